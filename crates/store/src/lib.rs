//! SQLite: journals of runs, approvals, conversations, memory, retention.
//!
//! A [`Store`] is one database file. Each run has one journal in it and one owner at a time. The owner
//! holds the [`RunJournal`] and is the only process that appends. Any process may read, decide, undo or
//! cancel: that changes a separate row and leaves a command in the inbox of the run. The meaning of events is
//! defined in `windlass-core`; this crate stores them in order, without secrets. It reads neither the clock nor
//! the environment, except for the [crash points](crash) of debug builds. Rows are authenticated with a key that the
//! caller passes ([`Authentication`]). All operations block, so asynchronous
//! callers move them to a blocking thread. The most frequent operations also have a non-blocking form with a
//! completion callback (`*_then`).

mod admin;
mod answer_notice;
mod approval;
mod atomic;
mod chat;
mod conditions;
mod connection;
mod conversation;
pub mod crash;
mod decision;
mod error;
mod evidence;
mod execution;
mod file;
mod gap;
mod hold;
mod inbox;
mod journal;
mod lease;
mod legal_hold;
mod limits;
mod live;
#[cfg(feature = "memory")]
mod memory;
mod pin;
mod plan;
mod purge;
mod queue;
mod read;
mod request_key;
mod resumable;
mod rows;
mod schema;
mod secret;
mod standing;
mod stop;
mod store;
mod token;
mod usage;
mod variant;
mod webhook;
mod writer;

pub use admin::{AdminChange, RecordedAdminChange};
pub use answer_notice::AnswerNoticeCount;
pub use approval::{ApprovalFilter, ApprovalSummary};
pub use chat::{ChatKey, ChatOutcome, ChatTurn};
pub use conversation::{OpenExchange, StoredConversation};
pub use decision::{DecisionSigner, NewDecision};
pub use error::Error;
pub use evidence::Authentication;
pub use evidence::verify::{Alteration, RunVerification, SignatureState};
pub use execution::{Execution, ExecutionFilter, ToolStatistics};
pub use file::StoredFile;
pub use gap::{GapFilter, NewGap, StoredGap};
pub use hold::HoldFilter;
pub use journal::RunJournal;
pub use lease::RunLease;
pub use legal_hold::{LegalHold, LegalHoldDecision};
pub use live::{ChangeWatch, EventPlace, NewestPlace, RunEnding};
#[cfg(feature = "memory")]
pub use memory::{
    DEFAULT_MAX_DOCUMENT_BYTES, Memory, MemoryError, MemoryHit, MemoryScope, MemoryStatistics,
    NewDocument, ReembedReport, RememberOutcome, RememberedDocument, ScopeReach, ScopeStatistics,
    StoredDocument, document_text,
};
pub use pin::{PinsRevision, StoredDefinition, StoredPin, StoredPins, StoredServer};
pub use plan::StoredPlan;
pub use purge::{
    BeforePurge, KeepReason, KeptRun, Purged, PurgedRun, Retained, RetentionPlace, RetentionRound,
};
pub use read::{EventRecord, RunFilter, RunState, RunSummary, Tombstone};
pub use request_key::RequestKey;
pub use standing::{StandingFilter, StandingId, StoredStanding};
pub use store::{NewRun, Options, Store};
pub use token::{StoredToken, TokenDigest};
pub use usage::{NewUsage, UsageFilter, UsageGroup, UsagePurpose, UsageSum};
pub use variant::{StoppedCalls, VariantExecution};
pub use webhook::{
    DeliveryClaim, DeliveryCounts, DeliveryFilter, DeliveryOutcome, DeliveryState, WebhookDelivery,
    WebhookRegistration,
};

// Re-exported so that users of a store need no second crate for them.
pub use windlass_core::durable::{
    AtomicWrite, Durability, InboxAction, InboxCommand, InboxCommandId, ResumableRun, ResumeReason,
};
pub use windlass_core::limits::ExhaustedLimit;
pub use windlass_core::redact::{RedactedEvent, Redactor};
