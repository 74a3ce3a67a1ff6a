//! SQLite: journals of runs, approvals, conversations, memory, retention.
//!
//! A [`Store`] is one database file. Each run has one journal in it, and one owner at a time, who
//! holds the [`RunJournal`] and alone appends. Everybody may read, and everybody may decide, undo or
//! cancel: that changes a row of its own and leaves a command in the inbox of the run. What an event means is
//! decided in `windlass-core`; here it is kept, in order, without the secrets. Nothing here knows the
//! time of day or, but for the [crash points](crash) of debug builds, the environment. Everything blocks, and asynchronous callers move it to a thread
//! that may wait; what they do most often they can also do without waiting, and be told when it is
//! done.

mod approval;
mod atomic;
mod conditions;
mod connection;
mod conversation;
pub mod crash;
mod error;
mod execution;
mod gap;
mod hold;
mod inbox;
mod journal;
mod lease;
mod limits;
mod memory;
mod pin;
mod plan;
mod purge;
mod queue;
mod read;
mod resumable;
mod schema;
mod standing;
mod store;
mod variant;
mod writer;

pub use approval::{ApprovalFilter, ApprovalSummary};
pub use conversation::StoredConversation;
pub use error::Error;
pub use execution::{Execution, ExecutionFilter, ToolStatistics, says_of_tool, told_end};
pub use gap::{GapFilter, NewGap, StoredGap};
pub use hold::HoldFilter;
pub use journal::RunJournal;
pub use lease::RunLease;
pub use memory::{
    DEFAULT_MAX_DOCUMENT_BYTES, Memory, MemoryError, MemoryHit, MemoryScope, MemoryStatistics,
    NewDocument, Reach, Reembedded, RememberOutcome, Remembered, ScopeStatistics, StoredDocument,
    document_text,
};
pub use pin::{PinsRevision, StoredDefinition, StoredPin, StoredPins, StoredServer};
pub use plan::StoredPlan;
pub use purge::{DEFAULT_RETENTION, Kept, KeptBecause, Purged, PurgedRun};
pub use read::{ChangeWatch, RunFilter, RunState, RunSummary, Tombstone};
pub use standing::{StandingFilter, StandingId, StoredStanding};
pub use store::{NewRun, Options, Store};
pub use variant::{Stopped, VariantExecution};

// Part of this crate's own interface, so that who uses a store needs no second crate for it.
pub use windlass_core::durable::{
    AtomicWrite, Durability, InboxAction, InboxCommand, InboxCommandId, ResumableRun, ResumeReason,
};
pub use windlass_core::limits::UsedUp;
pub use windlass_core::redact::{RedactedEvent, Redactor};
