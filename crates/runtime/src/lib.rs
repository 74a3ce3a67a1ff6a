//! Puts models, tools and the journal together: drives the run machine to its end.
//!
//! A [`Crew`] is who works: agents, each with its tools and its model. A [`Driver`] takes a task and
//! does what the machine says is next; [`Durable`] is where it keeps what happened, so that another
//! process can go on with it. No HTTP server, no user interface.

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
mod remembering;
mod stored;
mod work;

pub use agent::{Agent, Error};
pub use assembly::{Models, PROGRAM, assemble, reader_digest, text_digest, tools_digest};
pub use cancelling::cancel_unowned;
pub use choice::{ModelChoice, NoModel, choose_model};
pub use crew::{Crew, CrewError, ModelOf, Worker};
pub use driver::{Asked, Asker, BegunRun, DriveError, Driver, NewTask, Patience, Stop};
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
    ConfigurationError, ConfigurationFiles, Configured, LibraryOf, OnReload, PROJECT_FILE, Read,
    Reload, Watching, watch,
};
pub use stored::{Clock, Stored, local_identity, secrets};
pub use work::{Completed, Update, Updates, Work};
