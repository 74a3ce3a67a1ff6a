//! SQLite: journals of runs, conversations, retention.
//!
//! A [`Store`] is one database file. Each run has one journal in it, and one owner at a time, who
//! holds the [`RunJournal`] and alone appends. Everybody may read. What an event means is decided in
//! `windlass-core`; here it is kept, in order, without the secrets. Nothing here knows the time
//! of day or the environment. Everything blocks, and asynchronous callers move it to a thread that
//! may wait; what they do most often they can also do without waiting, and be told when it is done.

mod connection;
mod conversation;
mod error;
mod journal;
mod lease;
mod purge;
mod queue;
mod read;
mod redact;
mod schema;
mod store;
mod writer;

pub use conversation::StoredConversation;
pub use error::Error;
pub use journal::{Durability, RunJournal};
pub use lease::RunLease;
pub use purge::{DEFAULT_RETENTION, Kept, KeptBecause, Purged, PurgedRun};
pub use read::{RunFilter, RunState, RunSummary, Tombstone};
pub use redact::{RedactedEvent, Redactor};
pub use store::{NewRun, Options, Store};
