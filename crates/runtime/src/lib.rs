//! Puts models, tools and the journal together: drives the run machine to its end.
//!
//! [`Driver`] does what the machine says is next, [`Journal`] keeps what happened. No HTTP server, no
//! user interface.

mod driver;
mod journal;

pub use driver::{DriveError, Driver, Progress, Stop};
pub use journal::{Journal, JournalError, JournalFuture, MemoryJournal, StoredJournal, now};
