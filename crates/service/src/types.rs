//! The types of what the operations take and return that are defined in other crates, so that a front end
//! needs no other crate than this one.

/// Approvals, holds and what people decide.
pub use windlass_core::approval::{
    Approval, ApprovalStatus, Ask, Authorize, CredentialUse, Decided, DecisionMeans, Digest,
    FormRequest, Hold, HoldDecision, HoldStatus, Intervene, NotADigest, NotAPrincipal,
    PersonDecision, Principal, Question, StandingApproval, StandingScope, TenantPrincipal,
};
/// Runs, their events and what they cost.
pub use windlass_core::gate::{Decision as GateDecision, Stage, Verdict};
pub use windlass_core::model::{
    ChatMessage, Cost, ModelAnswer, RequestedArguments, RequestedCall, Usage,
};
pub use windlass_core::risk::{Assessment, EvaluationReport as RiskReport};
pub use windlass_core::run::{
    Budget, CallEnd, CallKind, CallProgress, Entry, Event, Mistake, Offer, PlanState,
    PlanTaskStatus, RecalledStrategy, Run, RunEnd, Settings, Task, TaskEnd, TaskState, TurnState,
};
pub use windlass_core::stop::{StopOrder, StopTarget};
pub use windlass_keys::{ApproverKey, KeyProtection, PublicKey};
pub use windlass_runtime::{AskOutcome, Asker, Progress, Stop, WaitPolicy, Watch, now};
pub use windlass_store::{
    AdminChange, Alteration, DeliveryState, Error as StoreError, KeepReason, LegalHold,
    OpenExchange, Purged, RecordedAdminChange, Redactor, RunState, RunSummary, RunVerification,
    SignatureState, StandingId, StoredConversation, StoredPlan, Tombstone, UsageGroup, UsageSum,
    WebhookDelivery,
};

/// Text that people decide about, with hidden characters shown.
pub use windlass_spec::text::{TextUse, escape};

/// Agents, tools and their declarations.
pub use windlass_model::{Dialect, ModelClient, ModelEvent, ProviderStatus};
pub use windlass_spec::number::read_json;
pub use windlass_spec::plan::{Plan, PlanTask, PlanTaskId, Work};
pub use windlass_spec::{
    Agent, AgentFile, AgentName, AgentResponse, CallId, CallRecord, CallState, Confidence,
    ErrorCategory, Failure, Money, NonEmptyText, RiskLevel, RunId, SecurityLevel, Signature,
    TaskInput, TaskOutput, Timestamp, ToolAttributes, ToolExecutionResult, ToolName, ToolResponse,
    ToolSpecification, Turn,
};
pub use windlass_store::{Execution, ToolStatistics};
pub use windlass_tools::{
    BindingFailure, BindingMode, BoundTool, BuiltinSettings, Tool, ToolLibrary, ToolProgress,
};

/// Configuration and policies.
pub use windlass_config::{
    ConfigEntry, ConfigMistake, Configuration, Layer, Origin, Severity, SwitchedOff, ToolSettings,
};
pub use windlass_policy::{
    Decision as PolicyDecision, Difference as PolicyDifference, Explanation, Policies, PolicyError,
    PolicyPosition, PolicyWarning, Problem, Request as PolicyRequest, Rule, RuleEffect,
};
pub use windlass_runtime::ConfigurationFiles;

/// MCP servers.
pub use windlass_mcp::{Era, Login, Lookup, Pin, PinState, Program, Rename, ServerInfo};
pub use windlass_spec::server::{ServerName, ServerSettings};

/// Memory, gaps, playbooks and experiments.
pub use windlass_learn::ab::{
    Analysis, Arm, ExperimentVerdict, Guard, GuardStatus, Interval, Stopping,
};
pub use windlass_learn::gap::GapReport;
pub use windlass_learn::intent::IntentReport;
pub use windlass_learn::playbook::{KeptStrategy, Playbook, RetiredReason, StrategyStatus};
pub use windlass_reflex::evaluate::Evaluation;
pub use windlass_runtime::{KeptPlaybook, PlaybookProblem, TrustDifference, TrustGrants};
pub use windlass_spec::{GapMoment, MissingCapability, StrategyId, ToolGapReport};
pub use windlass_store::{
    MemoryHit, MemoryStatistics, RememberOutcome, RememberedDocument, ScopeReach, ScopeStatistics,
    StoredDocument,
};
