//! Errors of operations, which programs distinguish by their kind and by a code that names the exact
//! reason. Front ends translate the kind (an exit code, an HTTP status).

use std::fmt;

use serde::Serialize;
use windlass_core::approval::DecideError;
use windlass_runtime::{DriveError, DurableError};
use windlass_store::Error;

/// An operation that was refused or failed. Unless its message says otherwise, nothing was changed.
///
/// Serialized, it is an object with `kind`, `code`, `message` and, if there is one, `hint`. These codes are
/// stable: `already_begun`, `already_decided`, `already_delivered`, `ambiguous`, `arguments_do_not_fit`, `audit_altered`, `audit_other_key`, `bad_line`, `bad_scope`,
/// `cannot_be_changed`, `cannot_be_marked`, `changed_files`, `child_run`, `clock`, `conflict`, `corrupt`, `digest_differs`,
/// `digest_needed`, `does_not_fit`, `empty`, `empty_text`, `ended`, `experiment_running`, `expired`, `failed`, `has_runs`,
/// `in_use`, `inexact_number`, `inside_tool`, `invalid`, `invalid_agent_file`, `invalid_call`, `invalid_conversation`, `invalid_key`, `invalid_plan`, `invalid_policies`, `invalid_reason`, `invalid_stop`, `invalid_task`,
/// `invalid_token`, `is_directory`, `issuer_unavailable`, `journal_altered`, `key_reused`, `key_unusable`, `name_taken`, `named_twice`,
/// `never_always`, `no_command`, `no_project`, `no_schema`, `no_such_agent`, `no_such_approval`, `no_such_approver`,
/// `no_such_conversation`, `no_such_decision`, `no_such_delivery`, `no_such_document`, `no_such_domain`, `no_such_execution`, `no_such_experiment`, `no_such_gap`, `no_such_hold`,
/// `no_such_key`, `no_such_plan`, `no_session`, `no_such_revision`, `no_such_run`, `no_such_server`, `no_such_strategy`,
/// `no_such_task`, `no_such_token`, `no_such_tool`, `not_a_confidence`, `not_a_server_name`, `not_a_tool_name`, `not_allowed`,
/// `not_an_approver`, `not_begun`, `not_confirmed`, `not_entitled`, `not_importable`, `not_json`, `not_missing`, `not_stopped`, `not_text`, `not_your_call`,
/// `nothing_to_propose`, `other_arguments`, `other_embedder`, `other_experiment`, `owned_elsewhere`, `passphrase`,
/// `project_changed`, `purged`, `run_acts_for_you`, `run_exists`, `same_person`, `scope_missing`, `secret`,
/// `server_exists`, `stopped`, `store_unavailable`, `token_expired`, `token_invalid`, `token_revoked`, `token_unknown`, `too_large`, `too_late`, `too_many_experiments`,
/// `unknown_metric`, `unknown_tool`, `unknown_version`, `value_missing`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServiceError {
    kind: ErrorKind,
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// What kind of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request is not valid.
    Invalid,
    /// It is not known who the caller is.
    Unauthenticated,
    /// The identity may not do this.
    Denied,
    /// There is no such object, or it belongs to another tenant.
    NotFound,
    /// It is too late, or the object is in another state than the caller expects.
    Conflict,
    /// The store, or the issuer of tokens, cannot be reached now. The same request may succeed later.
    Unavailable,
    /// The configuration, a file, the store or another part failed.
    Failed,
}

impl ServiceError {
    /// A request that is not valid.
    pub fn invalid(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, code, message)
    }

    /// An identity that may not do this.
    pub fn denied(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Denied, code, message)
    }

    /// An object that does not exist.
    pub fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, code, message)
    }

    /// An object in another state than the caller expects.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, code, message)
    }

    /// A part that failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, "failed", message)
    }

    pub(crate) fn new(kind: ErrorKind, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            code,
            message: message.into(),
            hint: None,
        }
    }

    /// The same error with what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into()).filter(|hint: &String| !hint.is_empty());
        self
    }

    /// The same error, with what was being done in front of its message.
    #[must_use]
    pub fn context(mut self, doing: impl fmt::Display) -> Self {
        self.message = format!("{doing}: {}", self.message);
        self
    }

    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The exact reason, for programs: a stable code such as `already_decided`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What happened.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    fn undecided(error: &Error, source: &DecideError) -> Self {
        let (kind, code) = match source {
            DecideError::SamePrincipal(_) => (ErrorKind::Denied, "same_person"),
            DecideError::NotEntitled(_) => (ErrorKind::Denied, "not_entitled"),
            DecideError::ActsFor(_) => (ErrorKind::Denied, "run_acts_for_you"),
            DecideError::WeakMeans { .. } => (ErrorKind::Denied, "not_confirmed"),
            DecideError::OtherArguments(_) => (ErrorKind::Conflict, "other_arguments"),
            DecideError::DigestNeeded(_) => (ErrorKind::Conflict, "digest_needed"),
            DecideError::NotPending(_) => (ErrorKind::Conflict, "already_decided"),
            DecideError::Expired(_) => (ErrorKind::Conflict, "expired"),
            DecideError::DigestDiffers { .. } => (ErrorKind::Conflict, "digest_differs"),
            DecideError::DoesNotFit { .. } => (ErrorKind::Invalid, "does_not_fit"),
        };
        Self::new(kind, code, error.to_string())
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ServiceError {}

impl From<Error> for ServiceError {
    fn from(error: Error) -> Self {
        let (kind, code, hint) = match &error {
            Error::NoSuchApproval(_) => (
                ErrorKind::NotFound,
                "no_such_approval",
                Some("`windlass approvals list --all` lists all requests"),
            ),
            Error::AlreadyDecided { .. } => (
                ErrorKind::Conflict,
                "already_decided",
                Some("`windlass approvals show` shows who decided"),
            ),
            Error::Expired { .. } => (
                ErrorKind::Conflict,
                "expired",
                Some("the model is informed and can ask again"),
            ),
            // It has a hint of its own.
            Error::DigestDiffers { .. } => (ErrorKind::Conflict, "digest_differs", None),
            Error::NotEntitled { .. } => (
                ErrorKind::Denied,
                "not_entitled",
                Some("`windlass approvals show` shows who may decide"),
            ),
            Error::NotProven { .. } => (
                ErrorKind::Denied,
                "not_an_approver",
                Some("`windlass approvers list` lists the approvers"),
            ),
            Error::Undecided { source, .. } => return Self::undecided(&error, source),
            Error::NoSuchHold(_) => (
                ErrorKind::NotFound,
                "no_such_hold",
                Some("`windlass holds list --all` lists all held calls"),
            ),
            Error::TooLate { .. } => (ErrorKind::Conflict, "too_late", None),
            Error::NoSuchRun(_) | Error::NoMatch(_) => (
                ErrorKind::NotFound,
                "no_such_run",
                Some("`windlass runs list` lists the runs"),
            ),
            // They have hints of their own.
            Error::Altered { .. } => (ErrorKind::Failed, "journal_altered", None),
            Error::KeyUnusable(_) => (ErrorKind::Failed, "key_unusable", None),
            Error::SeveralMatch { .. } => (
                ErrorKind::Invalid,
                "ambiguous",
                Some("give more of the id of the one you mean"),
            ),
            Error::Ended(_) => (ErrorKind::Conflict, "ended", None),
            _ => return Self::failed(with_sources(&error)),
        };
        Self {
            hint: hint.map(str::to_owned),
            ..Self::new(kind, code, error.to_string())
        }
    }
}

impl From<DurableError> for ServiceError {
    fn from(error: DurableError) -> Self {
        let (kind, code) = kind_of(&error);
        Self::new(kind, code, with_sources(&error))
    }
}

impl From<DriveError> for ServiceError {
    fn from(error: DriveError) -> Self {
        let (kind, code) = match &error {
            DriveError::Durable(cause) => kind_of(cause),
            DriveError::NoSuchRun(_) => (ErrorKind::NotFound, "no_such_run"),
            DriveError::Context(_) => (ErrorKind::Invalid, "invalid_task"),
            _ => (ErrorKind::Failed, "failed"),
        };
        Self::new(kind, code, with_sources(&error))
    }
}

fn kind_of(error: &DurableError) -> (ErrorKind, &'static str) {
    match error {
        DurableError::RunNotFound(_) => (ErrorKind::NotFound, "no_such_run"),
        DurableError::RunExists(_) => (ErrorKind::Conflict, "run_exists"),
        DurableError::OwnedElsewhere(_) | DurableError::OwnershipLost(_) => {
            (ErrorKind::Conflict, "owned_elsewhere")
        }
        DurableError::RunEnded(_) => (ErrorKind::Conflict, "ended"),
        DurableError::RunPurged(_) => (ErrorKind::Conflict, "purged"),
        DurableError::Conflict(_) => (ErrorKind::Conflict, "conflict"),
        DurableError::Invalid(_) => (ErrorKind::Invalid, "invalid"),
        DurableError::Corrupt(_) => (ErrorKind::Failed, "corrupt"),
        DurableError::Unavailable(_) | DurableError::Closed => {
            (ErrorKind::Unavailable, "store_unavailable")
        }
    }
}

/// The message of an error with those of its causes.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let reason = cause.to_string();
        // Some errors repeat their cause in their own message.
        if !text.ends_with(&reason) {
            text = format!("{text}: {reason}");
        }
        source = cause.source();
    }
    text
}

/// Errors of other crates, whose messages say what to do.
macro_rules! failures {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for ServiceError {
            fn from(error: $error) -> Self {
                Self::failed(with_sources(&error))
            }
        })*
    };
}

failures!(
    std::io::Error,
    std::num::TryFromIntError,
    serde_json::Error,
    windlass_core::approval::NotAPrincipal,
    windlass_core::run::FoldError,
    windlass_mcp::LedgerError,
    windlass_mcp::ConnectError,
    windlass_mcp::OAuthError,
    windlass_model::ModelError,
    windlass_runtime::ConfigurationError,
    windlass_runtime::CrewError,
    windlass_runtime::PlaybookError,
    windlass_store::MemoryError,
    windlass_tools::MergeConflict,
    windlass_tools::SettingsError,
);

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// The source files below a directory.
    fn sources(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .flat_map(|path| match path.is_dir() {
                true => sources(&path),
                false => std::fs::read_to_string(path).into_iter().collect(),
            })
            .collect()
    }

    #[test]
    fn every_code_is_documented() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let documented = std::fs::read_to_string(directory.join("error.rs")).unwrap();
        let (documented, _) = documented.split_once("pub struct ServiceError").unwrap();
        let mut count = 0;
        for text in sources(&directory) {
            for makes in ["invalid(", "denied(", "not_found(", "conflict("] {
                let makes = ["ServiceError::", makes].concat();
                for rest in text.split(&makes).skip(1) {
                    let Some(code) = rest.trim_start().strip_prefix('"') else {
                        continue;
                    };
                    let code = code.split('"').next().unwrap();
                    assert!(documented.contains(&format!("`{code}`")), "{code}");
                    count += 1;
                }
            }
        }
        assert!(count > 50, "only {count} codes were found");
    }
}
