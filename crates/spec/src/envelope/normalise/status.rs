//! Normalises the status of an answer with another word, a contradictory status, or no status.

use serde_json::Value;

use super::draft::{Draft, text_of};
use super::failure::is_error_value;
use super::notice::DeprecationCode;
use crate::envelope::Object;
use crate::envelope::human::{AuthorizationRequest, CredentialAuthorization};
use crate::envelope::words::{HilAction, ToolStatus};
use crate::failure::ErrorCategory;
use crate::words::Word as _;

/// The normalised status of an answer.
pub(super) struct StatusVerdict {
    pub(super) status: ToolStatus,
    /// The category of the failure, if the status word implies one.
    pub(super) category: Option<ErrorCategory>,
}

/// Status words of other tools. They count only in an object that otherwise looks like an envelope: a
/// tool that reports on a job that `failed` has not failed itself.
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

/// The fields of envelopes, old and new.
pub const ENVELOPE_FIELDS: [&str; 11] = [
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
    "cost_usd",
];

/// Whether an object is meant as an envelope, not as a tool's own data.
pub(super) fn is_envelope(object: &Object) -> bool {
    let has = |name: &str| object.contains_key(name);
    let status = object.get("status").and_then(Value::as_str);
    status.is_some_and(|word| ToolStatus::from_word(word.trim()).is_some())
        || object.get("hil_required").is_some_and(Value::is_boolean)
        || object.get("success").is_some_and(Value::is_boolean)
        || is_error_value(object.get("error"))
        || is_error_value(object.get("error_message"))
        || status.is_some() && (has("data") || has("action"))
        || has("data") && (has("action") || has("timestamp"))
        || has("data")
            && object
                .keys()
                .all(|name| ENVELOPE_FIELDS.contains(&name.as_str()))
}

/// Normalises the status.
pub(super) fn normalise_status(draft: &mut Draft) -> StatusVerdict {
    let mut verdict = stated(draft).unwrap_or_else(|| inferred(draft));
    draft.top.shift_remove("status");
    let is_standard = !verdict.status.is_hil() && verdict.status != ToolStatus::Error;
    if is_standard && waits_for_person(draft) {
        verdict.status = kind_of_request(draft);
        draft.report(
            DeprecationCode::HilStatusMissing,
            "/status",
            &Value::from("hil_required: true"),
            format!("`{}`", verdict.status),
        );
    } else if is_standard && has_error(draft) {
        draft.report(
            DeprecationCode::SuccessWithError,
            "/status",
            &verdict.status.as_str().into(),
            "status `error` if there is an error, and no `error` field if there is none",
        );
        verdict.status = ToolStatus::Error;
    }
    verdict
}

/// The status from the status field.
fn stated(draft: &mut Draft) -> Option<StatusVerdict> {
    if let Some(status) = draft.top_word::<ToolStatus>("status") {
        let category = None;
        return Some(StatusVerdict { status, category });
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
    draft.report(DeprecationCode::StatusUnknown, "/status", &given, instead);
    draft.keep_as_reported("status", given);
    Some(synonym.map_or_else(
        || infer_from_fields(draft),
        |(_, status, category)| StatusVerdict { status, category },
    ))
}

/// The status from the other fields, if there is no status field.
fn inferred(draft: &mut Draft) -> StatusVerdict {
    draft.report_missing(
        DeprecationCode::StatusMissing,
        "/status",
        format!("one of {}", ToolStatus::known()),
    );
    infer_from_fields(draft)
}

fn infer_from_fields(draft: &mut Draft) -> StatusVerdict {
    let reports_failure = draft.top.get("success") == Some(&Value::Bool(false));
    if draft.top.get("success").is_some_and(Value::is_boolean) {
        draft.top.shift_remove("success");
    }
    // Without a status field, an error in `data` counts as the tool's error.
    let failed = reports_failure
        || has_error(draft)
        || is_error_value(draft.data.get("error"))
        || is_error_value(draft.data.get("error_message"));
    let status = if failed && !waits_for_person(draft) {
        ToolStatus::Error
    } else {
        ToolStatus::Success
    };
    let category = None;
    StatusVerdict { status, category }
}

fn has_error(draft: &Draft) -> bool {
    is_error_value(draft.top.get("error")) || is_error_value(draft.top.get("error_message"))
}

fn waits_for_person(draft: &Draft) -> bool {
    draft.top.get("hil_required") == Some(&Value::Bool(true))
}

/// The kind of request to a person, by its action and then by its fields.
fn kind_of_request(draft: &Draft) -> ToolStatus {
    let has = |name: &&str| draft.data.contains_key(*name) || draft.top.contains_key(*name);
    let is_intervention = has(&"intervention_type");
    match text_of(draft.top.get("action")).and_then(HilAction::from_word) {
        Some(HilAction::RequestAuthorization) => ToolStatus::AuthorizationRequired,
        Some(HilAction::AskHuman) if is_intervention => ToolStatus::HumanRequired,
        Some(HilAction::AskHuman) => ToolStatus::HumanInputRequested,
        None if is_intervention => ToolStatus::HumanRequired,
        None if CredentialAuthorization::MARKS.iter().any(has) => ToolStatus::AuthorizationRequired,
        None if AuthorizationRequest::REQUIRED.iter().any(has) => ToolStatus::AuthorizationRequired,
        None => ToolStatus::HumanInputRequested,
    }
}
