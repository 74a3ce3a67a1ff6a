//! The errors of a store, with messages for the operator.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;
use windlass_core::approval::{ApprovalStatus, DecideError, Digest, HoldStatus, Principal};
use windlass_core::durable::InboxCommandId;
use windlass_core::redact::RedactError;
use windlass_core::run::FoldError;
use windlass_core::stop::StopOrder;
use windlass_keys::KeyError;
use windlass_spec::{CallId, RunId, Timestamp};

/// An error of the store. It is `Clone` because one failed commit fails every request in it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be used.
    #[error("cannot {action} `{path}`: {source}")]
    File {
        /// The attempted action.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: Arc<std::io::Error>,
    },
    /// A later version of Windlass wrote the database.
    #[error(
        "`{path}` was written by a newer Windlass (format {found}; this one knows up to {known})\n\
         hint: upgrade Windlass, or use another data directory"
    )]
    NewerDatabase {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format known here.
        known: i64,
    },
    /// The file is a database of another program.
    #[error("`{0}` is a database of another program\nhint: use another data directory")]
    ForeignDatabase(PathBuf),
    /// The file is damaged or not a database.
    #[error(
        "the journal is damaged or is not a database: {0}\n\
         hint: move the file away, then restore a backup; without one, Windlass creates a new journal"
    )]
    Damaged(Arc<rusqlite::Error>),
    /// The disk, or the limit of the database, is full.
    #[error(
        "the disk of the journal is full; everything stored before is kept\n\
         hint: free some space, or remove old traces with `windlass trace purge`, then resume the run"
    )]
    DiskFull,
    /// The file was removed or replaced while it was open.
    #[error(
        "the journal `{0}` was removed or replaced while it was open; nothing more is stored\n\
         hint: restore the file, or restart to use the file that is there now"
    )]
    Gone(PathBuf),
    /// Another process holds the write lock for too long.
    #[error(
        "the journal is locked by another process\n\
         hint: find the program that keeps a transaction open on it, and stop it"
    )]
    Busy,
    /// The database cannot be written.
    #[error(
        "the journal cannot be written: {0}\n\
         hint: check the owner and the permissions of the file and its directory"
    )]
    ReadOnly(Arc<rusqlite::Error>),
    /// Any other error of the database.
    #[error("the journal's database failed: {0}")]
    Database(Arc<rusqlite::Error>),
    /// The writer thread has ended.
    #[error("the journal has stopped writing")]
    Closed,
    /// There is no such run.
    #[error("there is no run `{0}`")]
    NoSuchRun(RunId),
    /// No run id begins or ends with this.
    #[error("no run has an id that begins with `{0}`, or ends with it")]
    NoMatch(String),
    /// Several run ids begin or end with this.
    #[error("several runs have an id that begins with `{part}`, or ends with it: {}", join_ids(.runs))]
    SeveralMatch {
        /// The part of the id that was searched for.
        part: String,
        /// The first matches.
        runs: Vec<RunId>,
    },
    /// There is a conversation with this id, of another user.
    #[error("there is already a conversation `{0}` of another user")]
    ConversationExists(String),
    /// There is already a run with this id.
    #[error("there is already a run `{0}`")]
    RunExists(RunId),
    /// Another owner, in this process or another, has the run.
    #[error(
        "the run `{0}` is already running elsewhere\nhint: wait until it ends, or stop it there"
    )]
    OwnedElsewhere(RunId),
    /// Another owner took the run over.
    #[error("the run `{0}` has been taken over elsewhere; this process stores nothing more for it")]
    TakenOver(RunId),
    /// The run has ended.
    #[error("the run `{0}` has ended and accepts no more changes")]
    Ended(RunId),
    /// The run's events are past their retention.
    #[error("the events of the run `{0}` have been purged")]
    Purged(RunId),
    /// An earlier event could not be stored, so later events are refused.
    #[error("an earlier event of the run `{run}` could not be stored: {cause}")]
    Broken {
        /// The run.
        run: RunId,
        /// The error of the earlier event.
        cause: Box<Error>,
    },
    /// The event that starts a run is missing.
    #[error("the first event of a journal must be `started`")]
    NotStarted,
    /// A stored value cannot be read.
    #[error("{place} cannot be read: {reason}\nhint: upgrade Windlass if a newer version wrote it")]
    Unreadable {
        /// The stored value.
        place: String,
        /// Why it cannot be read.
        reason: String,
    },
    /// A stored row is not the one that Windlass wrote.
    #[error(
        "{place} was changed outside Windlass: {reason}\n\
         hint: `windlass runs verify` lists all such changes; restore the journal from a backup"
    )]
    Altered {
        /// What was changed.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no key to check the rows with.
    #[error(
        "the journal cannot be checked: {0}\n\
         hint: restore the key of this journal; docs/evidence.md describes where it is"
    )]
    KeyUnusable(String),
    /// The events do not fold into a run.
    #[error("the journal of the run `{run}` is inconsistent: {source}")]
    Fold {
        /// The run.
        run: RunId,
        /// The rule that was broken.
        source: FoldError,
    },
    /// The event would not be valid without the secret in it.
    #[error("{}", RedactError::SecretInStructure)]
    SecretInStructure,
    /// There is no question about the call.
    #[error("there is no request about the call `{0}`")]
    NoSuchApproval(CallId),
    /// The question is already settled.
    #[error("the request about the call `{call}` is already {status} and cannot be decided again")]
    AlreadyDecided {
        /// The call.
        call: CallId,
        /// How it was settled.
        status: ApprovalStatus,
    },
    /// The question expired before the decision.
    #[error("the request about the call `{call}` expired at {at}")]
    Expired {
        /// The call.
        call: CallId,
        /// When it expired.
        at: Timestamp,
    },
    /// The decision is for other arguments than those of the call.
    #[error(
        "the decision is for the digest {found}, but the call `{call}` now has {asked}\n\
         hint: review the call again, then decide"
    )]
    DigestDiffers {
        /// The call.
        call: CallId,
        /// The digest of the pending question.
        asked: Digest,
        /// The digest that the decision names.
        found: Digest,
    },
    /// The principal is not entitled to decide.
    #[error("{by} may not decide about the call `{call}`")]
    NotEntitled {
        /// The call.
        call: CallId,
        /// The principal that tried to decide.
        by: Principal,
    },
    /// The decision is refused for another reason.
    #[error("the decision about the call `{call}` was not accepted: {source}")]
    Undecided {
        /// The call.
        call: CallId,
        /// Why it was refused.
        source: DecideError,
    },
    /// A decision is not that of an enrolled approver.
    #[error("the decision about the call `{call}` does not count: {reason}")]
    NotProven {
        /// The call.
        call: CallId,
        /// What is wrong with it.
        reason: String,
    },
    /// A question about the call is already pending.
    #[error("a request about the call `{0}` is already pending")]
    AlreadyAsked(CallId),
    /// The question or hold belongs to another run than the journal.
    #[error("the call `{call}` does not belong to the run `{run}` and its principal")]
    NotOfThisRun {
        /// The run.
        run: RunId,
        /// The call.
        call: CallId,
    },
    /// There is no such hold.
    #[error("the call `{0}` is not held")]
    NoSuchHold(CallId),
    /// The call is held, or was held before.
    #[error("the call `{0}` was already held")]
    AlreadyHeld(CallId),
    /// The call is no longer held.
    #[error("it is too late: the call `{call}` is already {status}")]
    TooLate {
        /// The call.
        call: CallId,
        /// The status of the hold.
        status: HoldStatus,
    },
    /// The hold of the call is not over yet.
    #[error("the call `{call}` is held until {until}")]
    NotDue {
        /// The call.
        call: CallId,
        /// When the hold ends.
        until: Timestamp,
    },
    /// A stop covers the call.
    #[error("{0}\nhint: it goes on after `windlass start`")]
    Stopped(Box<StopOrder>),
    /// The inbox command is gone or belongs to another run.
    #[error("there is no inbox command {0} to take; it may have been taken before")]
    NoSuchCommand(InboxCommandId),
    /// There is no such standing approval.
    #[error("there is no standing approval {0}")]
    NoSuchStanding(i64),
    /// Windlass never connected to a server of this name.
    #[error("Windlass has not connected to a server `{0}` yet")]
    NoSuchServer(String),
    /// The server has no pin for this tool.
    #[error("the server `{server}` has no known tool `{tool}`")]
    NoSuchPin {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
    },
    /// The pins changed since they were read.
    #[error(
        "the pins of the server `{0}` have changed since they were read\nhint: read them again"
    )]
    PinsChanged(String),
    /// The definition to accept is not the one that the server offers.
    #[error(
        "the tool `{tool}` is not offered with the digest {found}{}\n\
         hint: review its definition again, then accept it",
        .offered.map_or_else(String::new, |offered| format!(", but with {offered}"))
    )]
    OfferDiffers {
        /// The tool.
        tool: String,
        /// The digest that was to be accepted.
        found: Digest,
        /// The digest of the offered definition, if there is one.
        offered: Option<Digest>,
    },
    /// The export could not be written.
    #[error("cannot write the export: {0}")]
    Export(Arc<std::io::Error>),
}

impl Error {
    /// Whether the request was refused because it is not possible (any more), not because the store failed.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::AlreadyAsked(_)
                | Self::AlreadyHeld(_)
                | Self::NotOfThisRun { .. }
                | Self::NoSuchHold(_)
                | Self::TooLate { .. }
                | Self::NotDue { .. }
                | Self::Stopped(_)
                | Self::NoSuchCommand(_)
                | Self::NoSuchServer(_)
                | Self::NoSuchPin { .. }
                | Self::PinsChanged(_)
                | Self::OfferDiffers { .. }
        )
    }

    pub(crate) fn undecided(call: &CallId, source: DecideError) -> Self {
        let call = call.clone();
        match source {
            DecideError::NotPending(status) => Self::AlreadyDecided { call, status },
            DecideError::Expired(at) => Self::Expired { call, at },
            DecideError::DigestDiffers { asked, found } => {
                Self::DigestDiffers { call, asked, found }
            }
            DecideError::NotEntitled(by) => Self::NotEntitled { call, by },
            DecideError::DigestNeeded(_)
            | DecideError::OtherArguments(_)
            | DecideError::SamePrincipal(_)
            | DecideError::ActsFor(_)
            | DecideError::WeakMeans { .. }
            | DecideError::DoesNotFit { .. } => Self::Undecided { call, source },
        }
    }

    pub(crate) fn altered(place: impl Into<String>, reason: impl ToString) -> Self {
        Self::Altered {
            place: place.into(),
            reason: reason.to_string(),
        }
    }

    /// The error of an operation on a file, such as `remove`.
    pub fn file(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::File {
            action,
            path: path.to_owned(),
            source: Arc::new(source),
        }
    }

    pub(crate) fn unreadable(place: impl Into<String>, reason: impl ToString) -> Self {
        Self::Unreadable {
            place: place.into(),
            reason: reason.to_string(),
        }
    }
}

impl From<RedactError> for Error {
    fn from(error: RedactError) -> Self {
        match error {
            RedactError::SecretInStructure => Self::SecretInStructure,
            RedactError::NotJson(reason) => Self::unreadable("the value to store", reason),
        }
    }
}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        Self::KeyUnusable(error.to_string())
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::DiskFull,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged(Arc::new(error))
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                Self::ReadOnly(Arc::new(error))
            }
            _ => Self::Database(Arc::new(error)),
        }
    }
}

fn join_ids(runs: &[RunId]) -> String {
    let runs: Vec<&str> = runs.iter().map(RunId::as_str).collect();
    runs.join(", ")
}
