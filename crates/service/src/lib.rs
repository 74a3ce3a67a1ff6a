//! The service API: every operation that a command line, a server or a program needs.
//!
//! A [`Service`] resolves the configuration, libraries, servers, policies, models and the store once, and
//! offers operations on them. A front end translates its protocol into calls of these operations and their
//! results back; it decides nothing itself.
//!
//! - **Identity**: every operation takes an [`Identity`] (tenant, principal, scopes), which the front end got
//!   by authenticating its caller. Operations outside its scopes are refused. Objects of another tenant do
//!   not exist for it.
//! - **Runs**: [`Service::bind`] makes a [`BoundAgent`] of a declared agent, [`BoundAgent::start`] gives
//!   it a task, [`BoundAgent::begin`] returns the run's id before anything is done. [`Service::list_runs`], [`Service::show_run`], [`Service::resume`],
//!   [`Service::cancel_run`] and [`Service::events`] are about existing runs.
//! - **Decisions**: [`Service::list_approvals`], [`Service::show_approval`], [`Service::decide`];
//!   [`Service::list_holds`], [`Service::change_hold`].
//! - **Worker**: [`Service::work`] resumes every run that can continue, so that a decision is enough.
//! - **Errors**: a [`ServiceError`] has a kind (for an exit code or an HTTP status), a stable code, a
//!   message and a hint.
//!
//! - **Types** of other crates that operations take and return are in [`types`].
//! - **Reloading**: [`Service::reload`] applies a changed configuration.
//!
//! Operations that read or write the store block for as long as the disk takes; an asynchronous front end
//! calls them on a blocking thread. Operations that drive runs are asynchronous.

mod approvals;
mod assembly;
mod batch;
mod binding;
mod call_ids;
mod configuration;
mod conversations;
mod error;
mod evaluation;
mod experiments;
mod gaps;
mod health;
mod holds;
mod identity;
mod libraries;
mod mcp;
mod memory;
mod models;
mod names;
mod options;
mod outermost;
mod plans;
mod playbook;
mod policies;
mod runs;
mod sampling;
mod servers;
mod service;
mod tools;
pub mod types;
mod worker;

pub use approvals::{Always, ApprovalDetails, DecisionRequest, DecisionTaken, check_open};
pub use assembly::{BegunRun, BoundAgent, DeclaredAgent, NewRun, named_model};
pub use batch::BatchOptions;
pub use binding::BindingRecord;
pub use configuration::{ConfigurationCheck, ConfigurationFile, ConfigurationValues};
pub use conversations::ConversationChoice;
pub use error::{ErrorKind, ServiceError};
pub use evaluation::{IntentEvaluation, ModelEvaluation};
pub use experiments::{
    Experiment, ExperimentArm, ExperimentFindings, ExperimentMetric, ExperimentRequest,
    GuardRailFinding, MetricFinding, PairCounts, PairResult, RunMeasurements, SampleRatio,
    ToolDifference, VariantComparison, VariantQuery, VariantSplit, VariantSummary,
};
pub use gaps::{GapCheck, GapOccurrence, MissingTool, ToolProposal, gaps_of_run, unreported_gap};
pub use health::{ExaminedFile, FileContent, Finding, FindingStatus, HealthRequest};
pub use holds::HoldChange;
pub use identity::{Identity, Scope, UnknownScope};
pub use libraries::unknown_name_message;
pub use mcp::{
    AddedServer, ImportedServers, InspectedServer, RemovedServer, ServerConnection, ServerFile,
    ServerImport, ServerProgram, ServerStatus, ServerTool, needs_acceptance,
};
pub use memory::{
    ExportedDocument, ImportCounts, ImportOutcome, ImportProgress, ImportSource, MemoryCompaction,
    MemoryFile, MemoryImport, NewMemoryDocument, read_memory_text,
};
pub use options::{Attachment, LearningOverride, Notice, Notify, Overrides, RunOptions};
pub use outermost::{OutermostRun, is_part_of};
pub use plans::{PlanChange, PlanDetails, check_plan};
pub use playbook::{
    ActiveStrategies, ChangedStrategy, DomainPlaybook, ImportedStrategies, LearnedRuns,
    PlaybookDifference, PlaybookStatistics, RefusedStrategy, RevertedPlaybook, StrategyChange,
    StrategyDifference, StrategyFilter, SuccessStatistics, SuccessfulRuns,
};
pub use policies::{
    ExplainedCall, ExplainedDecision, PolicyReplay, PolicySource, RecordedCalls, ReplayedCall,
};
pub use runs::{
    CANCEL_TIMEOUT, Cancellation, ListedRun, ProgramWait, ResumeOptions, RunEvents, RunQuery,
    RunStatus,
};
pub use servers::{environment_lookup, server_of};
pub use service::Service;
pub use tools::{
    BindingReport, DeclaredTools, ExecutionQuery, FoundTool, ToolCall, ToolDetails, ToolEntry,
    ToolQuery, ToolStage, ToolStatus, execution_result,
};
pub use worker::WorkerOptions;
