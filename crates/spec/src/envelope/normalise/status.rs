//! How a call went, when the answer says it in other words, in contradictory words, or not at all.

use serde_json::Value;

use super::draft::{Draft, text_of};
use super::failure::says_error;
use super::notice::DeprecationCode;
use crate::envelope::Object;
use crate::envelope::human::{AuthorizationRequest, CredentialAuthorization};
use crate::envelope::words::{HilAction, ToolStatus, Word};
use crate::failure::ErrorCategory;

/// What an answer's status amounts to.
pub(super) struct Verdict {
    pub(super) status: ToolStatus,
    /// Why it failed, where the status word says so.
    pub(super) category: Option<ErrorCategory>,
}

/// Words that other tools use. They count only in what otherwise looks like an envelope: a tool
/// that reports on a job that `failed` has not failed itself.
const SYNONYMS: [(&str, ToolStatus, Option<ErrorCategory>); 9] = [
    ("ok", ToolStatus::Success, None),
    ("completed", ToolStatus::Success, None),
    ("done", ToolStatus::Success, None),
    ("running", ToolStatus::InProgress, None),
    ("failed", ToolStatus::Error, None),
    ("failure", ToolStatus::Error, None),
    ("timeout", ToolStatus::Error, Some(ErrorCategory::Timeout)),
    (
        "cancelled",
        ToolStatus::Error,
        Some(ErrorCategory::Cancelled),
    ),
    (
        "canceled",
        ToolStatus::Error,
        Some(ErrorCategory::Cancelled),
    ),
];

const ENVELOPE_FIELDS: [&str; 10] = [
    "status",
    "action",
    "data",
    "timestamp",
    "created_at",
    "error",
    "error_message",
    "message",
    "hil_required",
    "billing",
];

/// Whether an object means to be an envelope, and not just a tool's own data.
pub(super) fn is_envelope(object: &Object) -> bool {
    let has = |name: &str| object.contains_key(name);
    let status = object.get("status").and_then(Value::as_str);
    status.is_some_and(|word| ToolStatus::from_word(word.trim()).is_some())
        || object.get("hil_required").is_some_and(Value::is_boolean)
        || object.get("success").is_some_and(Value::is_boolean)
        || says_error(object.get("error"))
        || says_error(object.get("error_message"))
        || status.is_some() && (has("data") || has("action"))
        || has("data") && (has("action") || has("timestamp"))
        || has("data")
            && object
                .keys()
                .all(|name| ENVELOPE_FIELDS.contains(&name.as_str()))
}

/// Decides the status.
pub(super) fn settle(draft: &mut Draft) -> Verdict {
    let mut verdict = stated(draft).unwrap_or_else(|| inferred(draft));
    draft.top.shift_remove("status");
    let is_standard = !verdict.status.is_hil() && verdict.status != ToolStatus::Error;
    if is_standard && asks_person(draft) {
        verdict.status = kind_of_request(draft);
        draft.found(
            DeprecationCode::HilStatusMissing,
            "/status",
            &Value::from("hil_required: true"),
            format!("`{}`", verdict.status),
        );
    } else if is_standard && has_error(draft) {
        draft.found(
            DeprecationCode::SuccessWithError,
            "/status",
            &verdict.status.as_str().into(),
            "`error` where there is an error, and no `error` where there is none",
        );
        verdict.status = ToolStatus::Error;
    }
    verdict
}

/// What the status says, in whatever words.
fn stated(draft: &mut Draft) -> Option<Verdict> {
    if let Some(status) = draft.top_word::<ToolStatus>("status") {
        let category = None;
        return Some(Verdict { status, category });
    }
    let given = draft.top.get("status").filter(|value| !value.is_null())?;
    let given = given.clone();
    let word = given.as_str().unwrap_or_default().trim();
    let synonym = SYNONYMS
        .into_iter()
        .find(|(synonym, ..)| synonym.eq_ignore_ascii_case(word));
    let instead = match synonym {
        Some((_, status, Some(category))) => format!("`{status}` with the category `{category}`"),
        Some((_, status, None)) => format!("`{status}`"),
        None => format!("one of {}", ToolStatus::known()),
    };
    draft.found(DeprecationCode::StatusUnknown, "/status", &given, instead);
    draft.put_aside("status", given);
    Some(synonym.map_or_else(
        || unsaid(draft),
        |(_, status, category)| Verdict { status, category },
    ))
}

/// What the rest of the answer says about its status.
fn inferred(draft: &mut Draft) -> Verdict {
    draft.missing(
        DeprecationCode::StatusMissing,
        "/status",
        format!("one of {}", ToolStatus::known()),
    );
    unsaid(draft)
}

fn unsaid(draft: &mut Draft) -> Verdict {
    let said_failed = draft.top.get("success") == Some(&Value::Bool(false));
    if draft.top.get("success").is_some_and(Value::is_boolean) {
        draft.top.shift_remove("success");
    }
    // Without a status to contradict it, an error in `data` is the tool's own.
    let failed = said_failed
        || has_error(draft)
        || says_error(draft.data.get("error"))
        || says_error(draft.data.get("error_message"));
    let status = if failed && !asks_person(draft) {
        ToolStatus::Error
    } else {
        ToolStatus::Success
    };
    let category = None;
    Verdict { status, category }
}

fn has_error(draft: &Draft) -> bool {
    says_error(draft.top.get("error")) || says_error(draft.top.get("error_message"))
}

fn asks_person(draft: &Draft) -> bool {
    draft.top.get("hil_required") == Some(&Value::Bool(true))
}

/// Which request to a person this is, judged by its action and then by its fields.
fn kind_of_request(draft: &Draft) -> ToolStatus {
    let has = |name: &&str| draft.data.contains_key(*name) || draft.top.contains_key(*name);
    let by_hand = has(&"intervention_type");
    match text_of(draft.top.get("action")).and_then(HilAction::from_word) {
        Some(HilAction::RequestAuthorization) => ToolStatus::AuthorizationRequired,
        Some(HilAction::AskHuman) if by_hand => ToolStatus::HumanRequired,
        Some(HilAction::AskHuman) => ToolStatus::HumanInputRequested,
        None if by_hand => ToolStatus::HumanRequired,
        None if CredentialAuthorization::MARKS.iter().any(has) => ToolStatus::AuthorizationRequired,
        None if AuthorizationRequest::REQUIRED.iter().any(has) => ToolStatus::AuthorizationRequired,
        None => ToolStatus::HumanInputRequested,
    }
}
