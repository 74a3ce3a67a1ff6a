//! Why a command did not do what a person asked of it, in a form that programs can tell apart: by the
//! exit code the kind, by a word the exact reason.

use std::fmt;

use serde_json::json;
use windlass_core::approval::DecideError;
use windlass_store::Error;

use super::Outcome;
use super::terminal::{complain, put};

/// A refusal. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    kind: Kind,
    /// The reason, for programs.
    word: &'static str,
    message: String,
    hint: Option<String>,
}

/// What a refusal lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// What was typed.
    Usage,
    /// Who typed it.
    Denied,
    /// What is meant is not there.
    NotFound,
    /// What is meant is there, but it is too late or it is not what the person thinks.
    Conflict,
}

impl Kind {
    const fn exit_code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Denied => 3,
            Self::NotFound => 7,
            Self::Conflict => 8,
        }
    }
}

impl Refusal {
    pub(super) fn usage(word: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, word, message)
    }

    pub(super) fn not_found(word: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, word, message)
    }

    pub(super) fn conflict(word: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::Conflict, word, message)
    }

    fn new(kind: Kind, word: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            word,
            message: message.into(),
            hint: None,
        }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What the store refused, unless something is wrong with the store itself.
    pub(super) fn of(error: &Error) -> Option<Self> {
        let (kind, word, hint) = match error {
            Error::NoSuchApproval(_) => (
                Kind::NotFound,
                "no_such_approval",
                Some("windlass approvals list --all"),
            ),
            Error::AlreadyDecided { .. } => (
                Kind::Conflict,
                "already_decided",
                Some("windlass approvals show tells who decided"),
            ),
            Error::Expired { .. } => (
                Kind::Conflict,
                "expired",
                Some("the model is told, and may ask once more"),
            ),
            // It has a hint of its own.
            Error::DigestDiffers { .. } => (Kind::Conflict, "digest_differs", None),
            Error::NotEntitled { .. } => (
                Kind::Denied,
                "not_entitled",
                Some("windlass approvals show tells who may decide"),
            ),
            Error::Undecided { source, .. } => return Some(Self::undecided(error, source)),
            Error::NoSuchHold(_) => (
                Kind::NotFound,
                "no_such_hold",
                Some("windlass holds list --all"),
            ),
            Error::TooLate { .. } => (Kind::Conflict, "too_late", None),
            Error::NoSuchRun(_) | Error::NoMatch(_) => {
                (Kind::NotFound, "no_such_run", Some("windlass runs list"))
            }
            Error::SeveralMatch { .. } => (
                Kind::Usage,
                "ambiguous",
                Some("give more of the id of the one you mean"),
            ),
            Error::Ended(_) => (Kind::Conflict, "ended", None),
            _ => return None,
        };
        let refusal = Self::new(kind, word, error.to_string());
        Some(match hint {
            Some(hint) => refusal.hint(hint),
            None => refusal,
        })
    }

    fn undecided(error: &Error, source: &DecideError) -> Self {
        let (kind, word) = match source {
            DecideError::SamePrincipal(_) => (Kind::Denied, "same_person"),
            DecideError::NotEntitled(_) => (Kind::Denied, "not_entitled"),
            DecideError::OtherArguments(_) => (Kind::Conflict, "other_arguments"),
            DecideError::DigestNeeded(_) => (Kind::Conflict, "digest_needed"),
            DecideError::NotPending(_) => (Kind::Conflict, "already_decided"),
            DecideError::Expired(_) => (Kind::Conflict, "expired"),
            DecideError::DigestDiffers { .. } => (Kind::Conflict, "digest_differs"),
            DecideError::DoesNotFit { .. } => (Kind::Usage, "does_not_fit"),
        };
        Self::new(kind, word, error.to_string())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

/// What went wrong with the store, as a refusal if it is one.
pub(super) fn refused(error: Error) -> anyhow::Error {
    match Refusal::of(&error) {
        Some(refusal) => refusal.into(),
        None => error.into(),
    }
}

/// How a command ended: one that was refused says why, also to programs, and has the exit code of the
/// refusal.
pub(super) fn told(result: anyhow::Result<Outcome>, as_json: bool) -> anyhow::Result<Outcome> {
    let refusal = match result {
        Ok(outcome) => return Ok(outcome),
        Err(error) => error.downcast::<Refusal>()?,
    };
    complain(&format!("error: {refusal}"))?;
    if as_json {
        let told = json!({
            "error": refusal.word, "message": refusal.message, "hint": refusal.hint,
        });
        put(&format!("{told}\n"))?;
    }
    Ok(Outcome::Code(refusal.kind.exit_code()))
}
