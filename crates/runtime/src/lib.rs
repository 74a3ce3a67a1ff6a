//! Puts models, tools and the journal together: drives the run machine to its end.
//!
//! A [`Crew`] is a set of agents, each with its tools and its model. A [`Driver`] takes a task and
//! does what the machine returns as the next step. It stores the events in a [`Durable`], so that another
//! process can resume the run. No HTTP server, no user interface.

mod agent;
mod assembly;
mod cancelling;
mod choice;
mod crew;
mod driver;
mod durable;
mod gap;
mod intake;
mod learning;
mod limiter;
mod memory;
mod playbook;
mod progress;
mod recording;
mod registry;
mod stored;
mod stored_memory;
mod work;

pub use agent::{Agent, Error};
pub use assembly::{Models, PROGRAM, assemble, reader_digest, text_digest, tools_digest};
pub use cancelling::cancel_unowned;
pub use choice::{ModelChoice, NoModel, choose_model};
pub use crew::{Crew, CrewError, CrewMember, ModelOf};
pub use driver::{AskOutcome, Asker, BegunRun, DriveError, Driver, NewTask, Stop, WaitPolicy};
pub use durable::{
    AppendOutcome, Durable, DurableError, DurableFuture, Journal, RateLimits, RunMonitor,
    TakenOver, now,
};
pub use gap::{GapAtLoad, at_load as gap_at_load, during_run as gap_during_run};
pub use learning::{Checker, Learned, Learning, answer_matches, experience, followed, learn};
pub use memory::InMemory;
pub use playbook::{
    KeptPlaybook, NewEvidence, PlaybookError, PlaybookPort, PlaybookProblem, Playbooks,
    SearchablePlaybook,
};
pub use progress::{Progress, Watch, frames, watch_nothing};
pub use registry::{
    ConfigurationError, ConfigurationFiles, ConfigurationWatch, Configured, FileTexts, LibraryOf,
    OnReload, PROJECT_FILE, Reload, watch_configuration,
};
pub use stored::{Clock, Stored, local_identity, secrets};
pub use work::{Completed, Update, Updates, Work};
