//! Puts models, tools and the journal together: drives the run machine to its end.
//!
//! A [`Crew`] is a set of agents, each with its tools and its model. A [`Driver`] takes a task and
//! does what the machine returns as the next step. It stores the events in a [`Durable`], so that another
//! process can resume the run. No HTTP server, no user interface.

mod agent;
mod approver;
mod assembly;
mod cancelling;
mod choice;
mod crew;
mod driver;
mod durable;
#[cfg_attr(not(feature = "learn"), path = "without_learn/gap.rs")]
mod gap;
mod gap_at_load;
mod intake;
#[cfg_attr(not(feature = "learn"), path = "without_learn/intents.rs")]
mod intents;
mod isolation;
#[cfg_attr(not(feature = "learn"), path = "without_learn/learning.rs")]
mod learning;
mod limiter;
mod memory;
mod money;
#[cfg(feature = "learn")]
mod operator_command;
#[cfg_attr(not(feature = "learn"), path = "without_learn/playbook.rs")]
mod playbook;
mod progress;
#[cfg_attr(not(feature = "learn"), path = "without_learn/ranking.rs")]
mod ranking;
mod registry;
mod stored;
#[cfg(feature = "memory")]
mod stored_memory;
mod work;

pub use agent::{Agent, Error};
pub use approver::{ApproverKeyError, approver_key, is_inside_tool};
pub use assembly::{PROGRAM, text_digest, tools_digest};
pub use cancelling::cancel_unowned;
pub use choice::{ModelChoice, NoModel, choose_model};
pub use crew::{Crew, CrewError, CrewMember, ModelOf, Models, assemble};
pub use driver::{
    AskOutcome, Asker, CallerAnswer, DriveError, Driver, NewTask, RecordedStart, Stop, WaitPolicy,
};
pub use durable::{
    AppendOutcome, Durable, DurableError, DurableFuture, Journal, LimitedCall, RateLimitPort,
    RunMonitor, STOPS_AGE, TakenOver, TurnRequest, UsageOf, now,
};
pub use gap::during_run as gap_during_run;
pub use gap_at_load::GapAtLoad;
#[cfg(feature = "learn")]
pub use intents::{Intents, UnderstoodTask};
pub use isolation::isolation;
pub use learning::Learning;
#[cfg(feature = "learn")]
pub use learning::{Checker, Learned, answer_matches, experience, followed, learn};
pub use limiter::lasting;
pub use memory::InMemory;
pub use money::priced_usage;
#[cfg(feature = "learn")]
pub use operator_command::OperatorCommand;
#[cfg(feature = "learn")]
pub use playbook::{
    KeptPlaybook, NewEvidence, PlaybookError, PlaybookProblem, PlaybookUpdate, SearchablePlaybook,
};
pub use playbook::{PlaybookPort, Playbooks};
pub use progress::{Progress, Watch, frames, watch_nothing};
pub use registry::{
    ConfigurationError, ConfigurationFiles, ConfigurationWatch, Configured, FileTexts, LibraryOf,
    LibraryScan, OnReload, PROJECT_FILE, ProjectSubject, ProjectTrust, Reload, TrustDifference,
    TrustGrants, TrustRecord, TrustRecords, read_text, watch_configuration,
};
pub use stored::{Clock, Stored, local_identity, secrets, short_secrets};
pub use windlass_tools::{FileDigests, file_digests};
pub use work::{Completed, Update, Updates, Work};
