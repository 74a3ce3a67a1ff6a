//! Normalises requests to a person, in both dialects: those whose status names the kind of request, and
//! those with `hil_required` whose fields imply it.

use serde_json::Value;

use super::draft::{Draft, as_text, text_of};
use super::notice::DeprecationCode;
use super::time;
use crate::envelope::error::pointer;
use crate::envelope::human::{AuthorizationRequest, CredentialAuthorization};
use crate::envelope::words::{InterventionType, SecurityLevel, ToolStatus};
use crate::names::{NonEmptyText, ToolName};
use crate::server::host;
use crate::time::Timestamp;

/// Normalises the fields of a request, and returns its status.
pub(super) fn normalise_request(draft: &mut Draft, status: ToolStatus) -> ToolStatus {
    normalise_instruction(draft);
    normalise_texts(draft, status);
    match status {
        ToolStatus::AuthorizationRequested | ToolStatus::AuthorizationRequired => {
            normalise_authorization(draft, status)
        }
        ToolStatus::CredentialRequired | ToolStatus::HumanRequired => {
            normalise_intervention(draft, status);
            status
        }
        _ => {
            normalise_question(draft);
            status
        }
    }
}

fn normalise_instruction(draft: &mut Draft) {
    let given = draft.data.shift_remove("instructions");
    let Some(given) = given.filter(|given| !given.is_null()) else {
        return;
    };
    draft.report(
        DeprecationCode::Instructions,
        "/data/instructions",
        &given,
        "`instruction`, as one text",
    );
    if draft.data.get("instruction").is_none_or(Value::is_null) {
        draft.set("instruction", as_text(&given));
    } else {
        draft.keep_as_reported("instructions", given);
    }
}

/// Converts fields that must be texts to texts.
fn normalise_texts(draft: &mut Draft, status: ToolStatus) {
    let names: &[&str] = match status {
        ToolStatus::AuthorizationRequested => &["request_id", "reason", "user_id"],
        ToolStatus::AuthorizationRequired => &[
            "request_id",
            "reason",
            "auth_type",
            "provider",
            "url",
            "screenshot",
        ],
        ToolStatus::CredentialRequired | ToolStatus::HumanRequired => {
            &["provider", "url", "screenshot", "oauth_url"]
        }
        _ => &["question", "context", "user_id"],
    };
    for &name in names.iter().chain(&["instruction"]) {
        let given = draft.data.get(name).cloned();
        let Some(given) = given.filter(|given| !given.is_null() && !given.is_string()) else {
            continue;
        };
        let at = pointer("/data", name);
        draft.report(DeprecationCode::FieldNotText, at, &given, "a text");
        draft.set(name, as_text(&given));
    }
    if let Some(message) = draft.top.get("message").cloned()
        && !message.is_null()
        && !message.is_string()
    {
        draft.report(
            DeprecationCode::FieldNotText,
            "/message",
            &message,
            "a text",
        );
        draft
            .top
            .insert("message".to_owned(), as_text(&message).into());
    }
}

fn message(draft: &Draft) -> Option<String> {
    text_of(draft.top.get("message")).map(str::to_owned)
}

/// Sets the message if there is none.
fn normalise_message(draft: &mut Draft, default: &str) {
    if message(draft).is_some() {
        return;
    }
    draft.report_missing(
        DeprecationCode::MessageMissing,
        "/message",
        "the message to the person, next to `data`",
    );
    let text = draft.text("message").unwrap_or(default).to_owned();
    if draft.text("message").is_some() {
        draft.data.shift_remove("message");
    }
    draft.top.insert("message".to_owned(), text.into());
}

fn normalise_question(draft: &mut Draft) {
    if draft.text("question").is_none()
        && let Some(question) = message(draft).or_else(|| draft.text("message").map(str::to_owned))
    {
        draft.report_missing(
            DeprecationCode::QuestionMissing,
            "/data/question",
            "the question, in `data`",
        );
        draft.set("question", question);
    }
    if let Some(question) = draft.text("question").map(str::to_owned) {
        normalise_message(draft, &question);
    }
}

fn normalise_intervention(draft: &mut Draft, status: ToolStatus) {
    let default_type = match status {
        ToolStatus::CredentialRequired => InterventionType::Login,
        _ => InterventionType::Verification,
    };
    let kind = draft.data_word("intervention_type").unwrap_or_else(|| {
        let name = "intervention_type";
        if draft.data.get(name).is_none_or(Value::is_null) {
            report_missing_field(draft, name);
        } else {
            let instead = "captcha, login, payment, wallet or verification";
            draft.keep_field_as_reported(name, DeprecationCode::WordUnknown, instead);
        }
        draft.set(name, default_type.as_str());
        default_type
    });
    if draft.text("provider").is_none() {
        report_missing_field(draft, "provider");
        let host = draft.text("url").and_then(host);
        let provider = host.unwrap_or_else(|| "unknown".to_owned());
        draft.set("provider", provider);
    }
    let default = draft.text("details").or(draft.text("question"));
    let default = default.map_or_else(|| format!("Manual work is needed: {kind}."), str::to_owned);
    normalise_message(draft, &default);
}

fn report_missing_field(draft: &mut Draft, name: &str) {
    let instead = format!("`data.{name}`");
    let at = pointer("/data", name);
    draft.report_missing(DeprecationCode::FieldMissing, &at, instead);
}

/// A complete request is about one exact call, whatever its status. An incomplete one is
/// `authorization_required`: the runtime fills its missing fields from the call it belongs to.
fn normalise_authorization(draft: &mut Draft, status: ToolStatus) -> ToolStatus {
    let is_requested = status == ToolStatus::AuthorizationRequested;
    let mut marks = CredentialAuthorization::MARKS.iter();
    let about_credentials = marks.any(|name| draft.data.get(*name).is_some_and(|v| !v.is_null()));
    if is_requested || !about_credentials {
        normalise_call(draft);
        if missing_fields(draft) == ["reason"]
            && let Some(reason) = message(draft)
        {
            report_missing_field(draft, "reason");
            draft.set("reason", reason);
        }
        let missing_fields = missing_fields(draft);
        if missing_fields.is_empty() {
            if !is_requested {
                draft.report(
                    DeprecationCode::AuthorizationStatus,
                    "/status",
                    &status.as_str().into(),
                    "`authorization_requested` to authorize one exact call",
                );
            }
            let reason = draft.text("reason").unwrap_or_default().to_owned();
            normalise_message(draft, &reason);
            return ToolStatus::AuthorizationRequested;
        }
        if is_requested {
            draft.report_missing(
                DeprecationCode::AuthorizationIncomplete,
                &pointer("/data", missing_fields.first().copied().unwrap_or_default()),
                format!("`{}` in `data`", missing_fields.join("`, `")),
            );
        }
    }
    normalise_credentials(draft);
    ToolStatus::AuthorizationRequired
}

/// Normalises the fields about the call. Fields that stay invalid are kept as `reported_`.
fn normalise_call(draft: &mut Draft) {
    draft.data_word::<SecurityLevel>("security_level");
    if let Some(given) = draft.data.get("expires_at").cloned()
        && let Some(time) = time::readable(draft, "/data/expires_at", &given)
    {
        draft.set("expires_at", time);
    }
    for name in missing_fields(draft) {
        if draft.data.get(name).is_some_and(|value| !value.is_null()) {
            let instead = "a valid value, or omit it";
            draft.keep_field_as_reported(name, DeprecationCode::FieldInvalid, instead);
        }
    }
}

/// The required fields of a request for one exact call that are missing or invalid.
fn missing_fields(draft: &Draft) -> Vec<&'static str> {
    let is_readable = |name: &str| {
        let value = draft.data.get(name);
        let text = value.and_then(Value::as_str);
        match name {
            "tool_name" => text.is_some_and(|text| ToolName::new(text).is_ok()),
            "tool_args" => value.is_some_and(Value::is_object),
            "security_level" => text.is_some_and(|text| text.parse::<SecurityLevel>().is_ok()),
            "expires_at" => text.is_some_and(|text| text.parse::<Timestamp>().is_ok()),
            _ => text.is_some_and(|text| NonEmptyText::new(text).is_ok()),
        }
    };
    let required = AuthorizationRequest::REQUIRED.into_iter();
    required.filter(|name| !is_readable(name)).collect()
}

fn normalise_credentials(draft: &mut Draft) {
    normalise_texts(draft, ToolStatus::AuthorizationRequired);
    let preview = draft.data.get("credential_preview").cloned();
    if let Some(preview) = preview.filter(|preview| !preview.is_null() && !preview.is_object()) {
        draft.report(
            DeprecationCode::FieldNotObject,
            "/data/credential_preview",
            &preview,
            "an object with `provider`, `vault_id` and `stored_at`",
        );
        draft.set(
            "credential_preview",
            serde_json::json!({ "value": preview }),
        );
    }
    let default = draft.text("reason").unwrap_or("Authorization is required.");
    let default = default.to_owned();
    normalise_message(draft, &default);
}
