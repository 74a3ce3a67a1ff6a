//! SQLite: journals of runs, conversations, retention.
//!
//! A [`Store`] is one database file. Each run has one journal in it, and one owner at a time, who
//! holds the [`RunJournal`] and alone appends. Everybody may read. What an event means is decided in
//! `windlass-core`; here it is kept, in order, without the secrets. Nothing here reads the clock or
//! the environment, and everything blocks: asynchronous callers move it to a thread that may wait.

mod connection;
mod conversation;
mod error;
mod journal;
mod lease;
mod purge;
mod read;
mod redact;
mod schema;
mod store;
mod writer;

pub use conversation::StoredConversation;
pub use error::Error;
pub use journal::{Done, Durability, RunJournal};
pub use lease::RunLease;
pub use purge::{DEFAULT_RETENTION, Kept, KeptBecause, Purged, PurgedRun};
pub use read::{RunFilter, RunState, RunSummary, Tombstone};
pub use redact::{RedactedEvent, Redactor};
pub use store::{NewRun, Options, Store};
