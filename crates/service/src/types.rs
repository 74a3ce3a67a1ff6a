//! The types of what the operations take and return that are defined in other crates, so that a front end needs
//! no other crate than this one.

pub use windlass_config::{Configuration, Severity};
pub use windlass_core::approval::{
    Approval, ApprovalStatus, Ask, Authorize, Digest, FormRequest, Hold, HoldStatus,
    Identity as Person, PersonDecision, Principal, Question, StandingApproval,
};
pub use windlass_core::model::{ChatMessage, RequestedArguments, RequestedCall};
pub use windlass_core::risk::EvaluationReport as RiskReport;
pub use windlass_core::run::{
    Entry, Event, PlanState, PlanTaskStatus, Run, RunEnd, Settings, Task, TaskState,
};
pub use windlass_learn::gap::GapReport;
pub use windlass_learn::intent::IntentReport;
pub use windlass_model::ModelClient;
pub use windlass_reflex::evaluate::Evaluation;
pub use windlass_runtime::{AskOutcome, Asker, Progress, Stop, Watch, now};
pub use windlass_spec::{
    Agent, AgentFile, AgentName, AgentResponse, CallId, CallRecord, NonEmptyText, RiskLevel, RunId,
    SecurityLevel, TaskInput, TaskOutput, Timestamp, ToolGapReport, ToolName, ToolResponse,
    ToolSpecification,
};
pub use windlass_store::{
    Error as StoreError, MemoryHit, Purged, Redactor, RememberOutcome, RememberedDocument,
    RunState, RunSummary, ScopeReach, ScopeStatistics, StandingId, StoredConversation,
    StoredDocument, StoredPlan, ToolStatistics,
};
pub use windlass_tools::{BindingMode, ToolLibrary};
