//! Everything that can go wrong with a store, said to whoever runs it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;
use windlass_core::approval::{ApprovalStatus, DecideError, Digest, HoldStatus, Principal};
use windlass_core::durable::InboxCommandId;
use windlass_core::redact::RedactError;
use windlass_core::run::FoldError;
use windlass_spec::{CallId, RunId, Timestamp};

/// Why the store did not do what it was asked to. It can be copied because one failed commit fails
/// everything that was in it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be used.
    #[error("cannot {action} `{path}`: {source}")]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
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
    /// The file is a database of something else.
    #[error("`{0}` is a database, but not one of Windlass\nhint: use another data directory")]
    ForeignDatabase(PathBuf),
    /// The file is damaged or no database.
    #[error(
        "the journal is damaged or is no database: {0}\n\
         hint: move the file away and restore a copy; Windlass starts a new one if there is none"
    )]
    Damaged(Arc<rusqlite::Error>),
    /// The disk, or the limit of the database, is full.
    #[error(
        "the disk under the journal is full; what was stored before is kept\n\
         hint: make room, or remove old traces with `windlass trace purge`, then resume the run"
    )]
    DiskFull,
    /// The file was removed or replaced while it was open.
    #[error(
        "the journal `{0}` was removed or replaced while it was open; nothing more is stored\n\
         hint: put it back, or start again with what is there now"
    )]
    Gone(PathBuf),
    /// Another process writes for too long.
    #[error(
        "the journal is locked by another process\n\
         hint: look for a program that keeps a transaction open on it"
    )]
    Busy,
    /// The database cannot be written.
    #[error("the journal cannot be written: {0}\nhint: check who owns the file and its directory")]
    ReadOnly(Arc<rusqlite::Error>),
    /// Anything else the database says.
    #[error("the journal's database failed: {0}")]
    Database(Arc<rusqlite::Error>),
    /// The thread that writes is gone.
    #[error("the journal has stopped writing")]
    Closed,
    /// There is no such run.
    #[error("there is no run `{0}`")]
    NoSuchRun(RunId),
    /// No run id begins like this.
    #[error("no run has an id that begins with `{0}`")]
    NoMatch(String),
    /// Several run ids begin like this.
    #[error("several runs have an id that begins with `{prefix}`: {}", shown(.runs))]
    SeveralMatch {
        /// What was asked for.
        prefix: String,
        /// The first of them.
        runs: Vec<RunId>,
    },
    /// There is a conversation of that id, and it is not the caller's.
    #[error("there is a conversation `{0}` of another user")]
    ConversationExists(String),
    /// There is a run of that id.
    #[error("there is a run `{0}` already")]
    RunExists(RunId),
    /// Somebody else, in this process or another, has the run.
    #[error("the run `{0}` is at work elsewhere\nhint: wait until it ends, or stop it there")]
    OwnedElsewhere(RunId),
    /// Somebody else took the run over.
    #[error("the run `{0}` has been taken over elsewhere; nothing more is stored from here")]
    TakenOver(RunId),
    /// The run is over.
    #[error("the run `{0}` has ended; nothing more can happen to it")]
    Ended(RunId),
    /// The run's events are past their retention.
    #[error("the events of the run `{0}` have been purged")]
    Purged(RunId),
    /// An earlier event could not be stored, so no later one may be.
    #[error("an earlier event of the run `{run}` could not be stored: {cause}")]
    Broken {
        /// The run.
        run: RunId,
        /// What happened to the earlier event.
        cause: Box<Error>,
    },
    /// The event that starts a run is missing.
    #[error("a journal begins with the event `started`")]
    NotStarted,
    /// What is stored cannot be read.
    #[error("{place} cannot be read: {reason}\nhint: was it written by a newer Windlass?")]
    Unreadable {
        /// Which part.
        place: String,
        /// Why.
        reason: String,
    },
    /// The events do not make a run.
    #[error("the journal of the run `{run}` does not fit together: {source}")]
    Fold {
        /// The run.
        run: RunId,
        /// Which rule was broken.
        source: FoldError,
    },
    /// Without its secrets, the event would not be one.
    #[error("{}", RedactError::SecretInStructure)]
    SecretInStructure,
    /// Nobody is asked about such a call.
    #[error("there is no question about the call `{0}`")]
    NoSuchApproval(CallId),
    /// It is settled.
    #[error("the question about the call `{call}` is already {status}; it is not decided twice")]
    AlreadyDecided {
        /// The call.
        call: CallId,
        /// How it was settled.
        status: ApprovalStatus,
    },
    /// It is too late to decide.
    #[error("the question about the call `{call}` expired at {at}")]
    Expired {
        /// The call.
        call: CallId,
        /// When.
        at: Timestamp,
    },
    /// The decision is about something else.
    #[error(
        "the decision is about {found}, but the call `{call}` is now {asked}\n\
         hint: look at the call again before you decide"
    )]
    DigestDiffers {
        /// The call.
        call: CallId,
        /// What is asked.
        asked: Digest,
        /// What the decision is about.
        found: Digest,
    },
    /// They have no say in it.
    #[error("{by} may not decide about the call `{call}`")]
    NotEntitled {
        /// The call.
        call: CallId,
        /// Who.
        by: Principal,
    },
    /// The decision cannot be taken for another reason.
    #[error("the decision about the call `{call}` was not taken: {source}")]
    Undecided {
        /// The call.
        call: CallId,
        /// Why.
        source: DecideError,
    },
    /// A person is asked about the call already.
    #[error("a question about the call `{0}` is pending already")]
    AlreadyAsked(CallId),
    /// What is asked or held is not of the run whose journal it was given to.
    #[error("the call `{call}` is not one of the run `{run}` and its principal")]
    NotOfThisRun {
        /// The run.
        run: RunId,
        /// The call.
        call: CallId,
    },
    /// There is no such hold.
    #[error("the call `{0}` is not held")]
    NoSuchHold(CallId),
    /// The call is held, or was, already.
    #[error("the call `{0}` was held already")]
    AlreadyHeld(CallId),
    /// The call is no longer held.
    #[error("it is too late: the call `{call}` is already {status}")]
    TooLate {
        /// The call.
        call: CallId,
        /// What became of it.
        status: HoldStatus,
    },
    /// The call is still to be held.
    #[error("the call `{call}` is held until {until}")]
    NotDue {
        /// The call.
        call: CallId,
        /// Until when.
        until: Timestamp,
    },
    /// The inbox command is gone, or is another run's.
    #[error("there is no inbox command {0} to take; was it taken before?")]
    NoSuchCommand(InboxCommandId),
    /// There is no such standing approval.
    #[error("there is no standing approval {0}")]
    NoSuchStanding(i64),
    /// No server of that name was met.
    #[error("no server `{0}` was met yet")]
    NoSuchServer(String),
    /// Nothing is known of such a tool.
    #[error("nothing is known of a tool `{tool}` of the server `{server}`")]
    NoSuchPin {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
    },
    /// Somebody else changed the pins since they were read.
    #[error("the pins of the server `{0}` were changed by somebody else\nhint: read them again")]
    PinsChanged(String),
    /// What is to be accepted is not what is offered.
    #[error(
        "the tool `{tool}` is not offered as {found}{}\n\
         hint: look at it again before you accept it",
        .offered.map_or_else(String::new, |offered| format!(", but as {offered}"))
    )]
    OfferDiffers {
        /// The tool.
        tool: String,
        /// What was to be accepted.
        found: Digest,
        /// What is offered, if anything is.
        offered: Option<Digest>,
    },
    /// What was exported could not be written.
    #[error("cannot write the export: {0}")]
    Export(Arc<std::io::Error>),
}

impl Error {
    /// Whether nothing is wrong with the store: what was wanted is not possible, or no longer.
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
            | DecideError::DoesNotFit { .. } => Self::Undecided { call, source },
        }
    }

    pub(crate) fn file(action: &'static str, path: &Path, source: std::io::Error) -> Self {
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
            RedactError::NotJson(reason) => Self::unreadable("what is to be stored", reason),
        }
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

fn shown(runs: &[RunId]) -> String {
    let runs: Vec<&str> = runs.iter().map(RunId::as_str).collect();
    runs.join(", ")
}
