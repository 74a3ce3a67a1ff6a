//! The service API: every operation that a command line, a server or a program needs.
//!
//! A [`Service`] resolves the configuration, libraries, servers, policies, models and the store once, and
//! offers operations on them. A front end translates its protocol into calls of these operations and their
//! results back; it decides nothing itself.
//!
//! # Rules
//!
//! - **Identity**: every operation takes an [`Identity`] (tenant, principal, scopes), which the front end got
//!   by authenticating its caller. Operations outside its scopes are refused. Objects of another tenant do
//!   not exist for it. Only what a front end does for itself takes none: the first row of the table, and
//!   [`authenticate`](Service::authenticate), which makes an identity.
//! - **Errors**: a [`ServiceError`] has a kind (for an exit code or an HTTP status), a stable code, a
//!   message and a hint.
//! - **Ids**: runs, approvals, holds and plans are found by their id or a prefix that matches only one.
//! - **Pages**: a list with a `limit` and an `after` is read page by page. `after` is the id of the last
//!   object of the page before; a page that is not full is the last one.
//! - **Streams**: [`RunEvents`] and [`ApprovalChanges`] deliver changes as they happen, from a position. They
//!   end when they are dropped.
//! - **Blocking**: operations that read or write the store block for as long as the disk takes; an
//!   asynchronous front end calls them on a blocking thread. Operations that drive runs are asynchronous.
//! - **Types** of other crates that operations take and return are in [`types`].
//!
//! # Operations
//!
//! | subject | operations |
//! |---|---|
//! | life of a front end | [`Service::open`], [`check`](Service::check), [`data_directory`](Service::data_directory), [`given_data_directory`](Service::given_data_directory), [`max_document_bytes`](Service::max_document_bytes), [`now`](Service::now), [`store_changes`](Service::store_changes), [`close`](Service::close), [`abandon`](Service::abandon) |
//! | configuration that changed | [`Service::reload`] |
//! | agents | [`Service::list_agents`], [`show_agent`](Service::show_agent), [`bind`](Service::bind), [`project_agent_files`](Service::project_agent_files) |
//! | new runs | [`BoundAgent::begin`] returns the id before anything is done, [`BegunRun::drive`], [`BegunRun::drive_or_leave`] or [`BegunRun::leave_to_worker`]; [`BoundAgent::start`] does both |
//! | runs | [`Service::list_runs`], [`show_run`](Service::show_run), [`run`](Service::run), [`events`](Service::events), [`resume`](Service::resume), [`cancel_run`](Service::cancel_run), [`leave_to_worker`](Service::leave_to_worker), [`export_run`](Service::export_run), [`purge_runs`](Service::purge_runs), [`latest_run`](Service::latest_run), [`outermost_run`](Service::outermost_run), [`outermost_run_state`](Service::outermost_run_state) |
//! | retention | [`Service::add_legal_holds`], [`remove_legal_holds`](Service::remove_legal_holds), [`legal_holds`](Service::legal_holds), [`preview_purge`](Service::preview_purge) |
//! | live events of many listeners | [`Service::stored_events`], [`tenant_news`](Service::tenant_news), [`newest_event`](Service::newest_event) |
//! | many tasks | [`DeclaredAgent::read_tasks`], [`BoundAgent::run_batch`] |
//! | conversations | [`Service::conversation`], [`NewRun::of_message`] (the service adds the answer), [`list_conversations`](Service::list_conversations), [`show_conversation`](Service::show_conversation), [`delete_conversation`](Service::delete_conversation) |
//! | chat clients, which send the whole conversation | [`ChatMessages`], [`Service::reserve_chat`], [`answer_chat`](Service::answer_chat) |
//! | approvals | [`Service::list_approvals`], [`show_approval`](Service::show_approval), [`decide`](Service::decide), [`approval_changes`](Service::approval_changes), [`pending_responses`](Service::pending_responses), [`required_confirmation`](Service::required_confirmation), [`approval_to_json`](Service::approval_to_json) |
//! | approvers | [`Service::list_approvers`], [`add_approver`](Service::add_approver), [`remove_approver`](Service::remove_approver), [`delegate_approvals`](Service::delegate_approvals), [`unlock_approver`](Service::unlock_approver), [`key_protection`](Service::key_protection) |
//! | holds | [`Service::list_holds`], [`show_hold`](Service::show_hold), [`change_hold`](Service::change_hold), [`hold_to_json`](Service::hold_to_json) |
//! | tools | [`Service::list_tools`], [`find_tools`](Service::find_tools), [`describe_tool`](Service::describe_tool), [`call_tool`](Service::call_tool), [`bind_tool_call`](Service::bind_tool_call), [`check_binding`](Service::check_binding), [`tool_statistics`](Service::tool_statistics), [`tool_executions`](Service::tool_executions), [`show_execution`](Service::show_execution), [`find_library`](Service::find_library), [`libraries`](Service::libraries), [`shipped_libraries`](Service::shipped_libraries) |
//! | calls of other programs | [`Service::judge_outside_call`], [`outside_decision`](Service::outside_decision), [`outside_decision_of`](Service::outside_decision_of), [`wait_for_outside_call`](Service::wait_for_outside_call), [`begin_outside_call`](Service::begin_outside_call), [`end_outside_call`](Service::end_outside_call), [`outside_decisions`](Service::outside_decisions) |
//! | plans | [`read_plan`], [`BoundAgent::start_plan`], [`Service::list_plans`], [`show_plan`](Service::show_plan), [`mark_plan_task`](Service::mark_plan_task), [`edit_plan`](Service::edit_plan) |
//! | policies | [`Service::active_policies`], [`load_policies`](Service::load_policies), [`explain_call`](Service::explain_call), [`recorded_calls`](Service::recorded_calls), [`replay_policies`](Service::replay_policies) |
//! | memory | [`Service::search_memory`], [`list_memory`](Service::list_memory), [`show_memory`](Service::show_memory), [`add_memory`](Service::add_memory), [`forget_memory`](Service::forget_memory), [`import_memory`](Service::import_memory), [`export_memory`](Service::export_memory), [`memory_statistics`](Service::memory_statistics), [`compact_memory`](Service::compact_memory), [`reembed_memory`](Service::reembed_memory) |
//! | playbooks | [`Service::list_playbooks`], [`show_strategy`](Service::show_strategy), [`change_strategy`](Service::change_strategy), [`playbook_difference`](Service::playbook_difference), [`revert_playbook`](Service::revert_playbook), [`playbook_statistics`](Service::playbook_statistics), [`import_strategies`](Service::import_strategies), [`export_strategies`](Service::export_strategies) |
//! | gaps | [`Service::list_missing_tools`], [`show_missing_tool`](Service::show_missing_tool), [`propose_tool`](Service::propose_tool), [`check_gaps`](Service::check_gaps) |
//! | evaluation | [`Service::evaluate_model`], [`evaluate_risk`](Service::evaluate_risk), [`evaluate_intents`](Service::evaluate_intents), [`evaluate_gaps`](Service::evaluate_gaps), [`read_intent`](Service::read_intent) |
//! | experiments | [`Service::prepare_experiment`], [`Experiment::run`]; in the background: [`begin_experiment`](Service::begin_experiment), [`list_experiments`](Service::list_experiments), [`show_experiment`](Service::show_experiment), [`experiment_of_request`](Service::experiment_of_request), [`stop_experiment`](Service::stop_experiment); [`compare_variants`](Service::compare_variants) |
//! | MCP servers | [`Service::list_servers`], [`show_server`](Service::show_server), [`inspect_server`](Service::inspect_server), [`add_server`](Service::add_server), [`accept_definition`](Service::accept_definition), [`import_servers`](Service::import_servers), [`remove_server`](Service::remove_server), [`server_tool_name`](Service::server_tool_name), [`server_program`](Service::server_program), [`accept_program`](Service::accept_program), [`log_in_to_server`](Service::log_in_to_server) |
//! | configuration | [`Service::configuration_values`] with origins, [`check_configuration`](Service::check_configuration), [`list_configuration_files`](Service::list_configuration_files), [`list_models`](Service::list_models), [`init_project`](Service::init_project) |
//! | trust in projects | [`Service::review_trust`], [`grant_trust`](Service::grant_trust), [`trust_written_project`](Service::trust_written_project), [`revoke_trust`](Service::revoke_trust), [`trusted_projects`](Service::trusted_projects) |
//! | tokens | [`Service::create_token`], [`list_tokens`](Service::list_tokens), [`revoke_token`](Service::revoke_token), [`authenticate`](Service::authenticate), [`authenticate_bearer`](Service::authenticate_bearer) also takes tokens of the configured issuer, [`record_audit_read`](Service::record_audit_read) |
//! | sessions of browsers | [`LoginCode::create`], [`Service::begin_session`], [`authenticate_session`](Service::authenticate_session), [`end_session`](Service::end_session) |
//! | stops | [`Service::stop`], [`start_again`](Service::start_again), [`list_stops`](Service::list_stops) |
//! | webhooks | [`Service::list_webhooks`], [`list_deliveries`](Service::list_deliveries), [`show_delivery`](Service::show_delivery), [`delivery_message`](Service::delivery_message), [`retry_delivery`](Service::retry_delivery), [`new_webhook_secret`](Service::new_webhook_secret) |
//! | repeated requests | [`Service::reserve_run`] |
//! | evidence | [`Service::verify_runs`], [`admin_changes`](Service::admin_changes), [`export_audit`](Service::export_audit), [`audit_key`](Service::audit_key), [`check_audit_file`] |
//! | usage | [`Service::usage`], [`usage_to_json`] |
//! | health | [`Service::examine`], [`has_worker`](Service::has_worker) |
//! | worker | [`Service::work`] resumes every run that can continue, so that a decision is enough |
//!
//! # Example
//!
//! ```no_run
//! use windlass_service::types::Task;
//! use windlass_service::{
//!     Attachment, Identity, NewRun, Overrides, RunOptions, Service, ServiceError,
//! };
//!
//! async fn start(service: &Service, caller: &Identity, task: String) -> Result<String, ServiceError> {
//!     let agent = service.show_agent(caller, "assistant")?;
//!     let bound = service.bind(caller, &agent.declared, &RunOptions::default())?;
//!     let task = Task { description: task, ..Task::default() };
//!     let new = NewRun { task, ..NewRun::default() };
//!     let begun = bound.begin(caller, new, Attachment::default()).await?;
//!     let id = begun.id().to_string();
//!     tokio::spawn(begun.drive());
//!     Ok(id)
//! }
//!
//! let service = Service::open(None, Overrides::default());
//! ```

#![deny(clippy::disallowed_methods)]

mod agents;
mod approval_changes;
mod approvals;
mod approvers;
mod assembly;
mod audit;
mod batch;
mod binding;
mod call_ids;
mod chat;
mod configuration;
mod conversations;
mod error;
mod evaluation;
mod evidence;
mod experiments;
mod file_changes;
mod gaps;
mod governing;
mod health;
mod holds;
mod identity;
mod intents;
mod json;
mod libraries;
mod live;
mod mcp;
mod memory;
mod models;
mod names;
mod new_project;
mod oidc;
mod options;
mod outermost;
mod outside;
mod plans;
mod playbook;
mod policies;
mod request_keys;
mod retention;
mod runs;
mod sampling;
mod servers;
mod service;
mod sessions;
mod stops;
mod tokens;
mod tools;
mod traces;
mod trust;
pub mod types;
mod usage;
mod webhooks;
mod worker;

pub use agents::{InvalidAgentFile, ProjectAgent, ProjectAgents};
pub use approval_changes::{ApprovalChange, ApprovalChangeKind, ApprovalChanges};
pub use approvals::{
    Always, ApprovalDetails, ApprovalQuery, Confirmation, DecisionRequest, DecisionTaken,
    QuestionId, RequiredConfirmation, check_open,
};
pub use approvers::{ApproverEntry, ApproverSummary, DelegationEntry, NewApprover};
pub use assembly::{BegunRun, BoundAgent, DeclaredAgent, NewRun, named_model};
pub use audit::{AuditCheck, AuditExport, AuditFormat, AuditQuery, Checkpoint, check_audit_file};
pub use batch::{BatchOptions, CheckedTasks};
pub use binding::BindingRecord;
pub use chat::{ChatAnswer, ChatMessages, ChatRequest, ReservedChat};
pub use configuration::{ConfigurationCheck, ConfigurationFile, ConfigurationValues};
pub use conversations::ConversationChoice;
pub use error::{ErrorKind, ServiceError};
pub use evaluation::{IntentEvaluation, ModelEvaluation};
pub use evidence::{JournalVerification, alteration_to_json, verification_to_json};
pub use experiments::{
    BegunExperiment, Experiment, ExperimentArm, ExperimentFindings, ExperimentMetric,
    ExperimentRequest, ExperimentState, ExperimentStatus, GuardRailFinding, MetricFinding,
    PairCounts, PairResult, RunMeasurements, SampleRatio, ToolDifference, VariantComparison,
    VariantQuery, VariantSplit, VariantSummary,
};
pub use file_changes::{FileChange, FileChangeCause};
pub use gaps::{GapCheck, GapOccurrence, MissingTool, ToolProposal, gaps_of_run, unreported_gap};
pub use governing::GoverningFiles;
pub use health::{ExaminedFile, FileContent, FindingStatus, HealthFinding, HealthRequest};
pub use holds::HoldChange;
pub use identity::{Identity, Scope};
pub use intents::IntentReading;
pub use json::{
    RunCall, notices_to_json, plan_to_json, run_to_json, stored_plan_to_json, strategy_to_json,
    subject_of,
};
pub use libraries::unknown_name_message;
pub use live::{NewestEvent, StoreChanges, StoredEvents, TenantEvent, TenantNews, TenantRunEnd};
pub use mcp::{
    AddedServer, ImportedServers, InspectedServer, RemovedServer, ServerConnection, ServerFile,
    ServerImport, ServerProgram, ServerStatus, ServerTool, description_warnings, needs_acceptance,
};
pub use memory::{
    ExportedDocument, ImportCounts, ImportOutcome, ImportProgress, ImportSource, MemoryCompaction,
    MemoryFile, MemoryImport, NewMemoryDocument, read_memory_text,
};
pub use new_project::InitializedProject;
pub use options::{Attachment, Confirm, LearningOverride, Notice, Notify, Overrides, RunOptions};
pub use outermost::{OutermostRun, ResumedBy, is_part_of};
pub use outside::{
    BEGIN_SECONDS, MAX_OUTCOME_SECONDS, OUTCOME_SECONDS, OutsideCallRequest, OutsideDecision,
    OutsideOutcome, OutsideState, OutsideTool, outside_programs, outside_tools,
};
pub use plans::{PlanChange, PlanDetails, read_plan};
pub use playbook::{
    ActiveStrategies, ChangedStrategy, DomainPlaybook, ImportedStrategies, LearnedRuns,
    PlaybookDifference, PlaybookStatistics, RefusedStrategy, RevertedPlaybook, StrategyChange,
    StrategyDifference, StrategyFilter, SuccessStatistics, SuccessfulRuns,
};
pub use policies::{
    ExplainedCall, ExplainedDecision, PolicyReplay, PolicySource, RecordedCall, RecordedCalls,
    ReplayedCall,
};
pub use retention::{LegalHoldChange, legal_hold_to_json};
pub use runs::{
    CANCEL_TIMEOUT, Cancellation, ListedRun, ProgramWait, ResumeOptions, RunEvents, RunQuery,
    RunStatus,
};
pub use servers::{environment_lookup, server_of};
pub use service::Service;
pub use sessions::{LoginCode, SessionSecret};
pub use stops::{StopRequest, StopSelector, Stopped, stop_to_json};
pub use tokens::{
    AccessToken, AuthenticatedCaller, CallerKind, CreatedToken, NewToken, TokenSecret, TokenState,
};
pub use tools::{
    BindingReport, DeclaredTools, ExecutionQuery, FoundTool, ToolCallRequest, ToolDetails,
    ToolEntry, ToolQuery, ToolStage, ToolStatus, execution_result,
};
pub use traces::trace_to_json;
pub use trust::{TrustReview, TrustState, TrustedProject};
pub use usage::{UsageQuery, UsageReport, usage_sum_to_json, usage_to_json};
pub use webhooks::{DeliveryQuery, WebhookStatus, delivery_to_json};
pub use worker::{WorkerOptions, WorkerTenants};
