//! Requests to a person, in either dialect: those that say by their status what is asked, and those
//! that say `hil_required` and leave the rest to the fields.

use serde_json::Value;

use super::draft::{Draft, as_text, text_of};
use super::notice::DeprecationCode;
use super::time;
use crate::envelope::error::pointer;
use crate::envelope::human::{AuthorizationRequest, CredentialAuthorization};
use crate::envelope::words::{InterventionType, SecurityLevel, ToolStatus};
use crate::names::{NonEmptyText, ToolName};
use crate::time::Timestamp;

/// Decides the fields of a request, and which request it is in the end.
pub(super) fn settle(draft: &mut Draft, status: ToolStatus) -> ToolStatus {
    settle_instruction(draft);
    settle_texts(draft, status);
    match status {
        ToolStatus::AuthorizationRequested | ToolStatus::AuthorizationRequired => {
            settle_authorization(draft, status)
        }
        ToolStatus::CredentialRequired | ToolStatus::HumanRequired => {
            settle_intervention(draft, status);
            status
        }
        _ => {
            settle_question(draft);
            status
        }
    }
}

fn settle_instruction(draft: &mut Draft) {
    let given = draft.data.shift_remove("instructions");
    let Some(given) = given.filter(|given| !given.is_null()) else {
        return;
    };
    draft.found(
        DeprecationCode::Instructions,
        "/data/instructions",
        &given,
        "`instruction`, as one text",
    );
    if draft.data.get("instruction").is_none_or(Value::is_null) {
        draft.set("instruction", as_text(&given));
    } else {
        draft.put_aside("instructions", given);
    }
}

/// Makes texts of what has to be one.
fn settle_texts(draft: &mut Draft, status: ToolStatus) {
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
        draft.found(DeprecationCode::FieldNotText, at, &given, "a text");
        draft.set(name, as_text(&given));
    }
    if let Some(message) = draft.top.get("message").cloned()
        && !message.is_null()
        && !message.is_string()
    {
        draft.found(
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

/// Sets the message where there is none.
fn settle_message(draft: &mut Draft, default: &str) {
    if message(draft).is_some() {
        return;
    }
    draft.missing(
        DeprecationCode::MessageMissing,
        "/message",
        "what the person reads first, beside `data`",
    );
    let text = draft.text("message").unwrap_or(default).to_owned();
    if draft.text("message").is_some() {
        draft.data.shift_remove("message");
    }
    draft.top.insert("message".to_owned(), text.into());
}

fn settle_question(draft: &mut Draft) {
    if draft.text("question").is_none()
        && let Some(question) = message(draft).or_else(|| draft.text("message").map(str::to_owned))
    {
        draft.missing(
            DeprecationCode::QuestionMissing,
            "/data/question",
            "the question, in `data`",
        );
        draft.set("question", question);
    }
    if let Some(question) = draft.text("question").map(str::to_owned) {
        settle_message(draft, &question);
    }
}

fn settle_intervention(draft: &mut Draft, status: ToolStatus) {
    let default_type = match status {
        ToolStatus::CredentialRequired => InterventionType::Login,
        _ => InterventionType::Verification,
    };
    let kind = draft.data_word("intervention_type").unwrap_or_else(|| {
        let name = "intervention_type";
        if draft.data.get(name).is_none_or(Value::is_null) {
            filled(draft, name);
        } else {
            let instead = "captcha, login, payment, wallet or verification";
            draft.put_field_aside(name, DeprecationCode::WordUnknown, instead);
        }
        draft.set(name, default_type.as_str());
        default_type
    });
    if draft.text("provider").is_none() {
        filled(draft, "provider");
        let host = draft.text("url").and_then(host_of);
        let provider = host.unwrap_or("unknown").to_owned();
        draft.set("provider", provider);
    }
    let default = draft.text("details").or(draft.text("question"));
    let default = default.map_or_else(|| format!("A person is needed: {kind}."), str::to_owned);
    settle_message(draft, &default);
}

fn filled(draft: &mut Draft, name: &str) {
    let instead = format!("`data.{name}`");
    let at = pointer("/data", name);
    draft.missing(DeprecationCode::FieldMissing, &at, instead);
}

/// The host in an address, without user and port.
fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = host.split(':').next()?;
    (!host.trim().is_empty()).then_some(host)
}

/// A request that has all it needs is about one exact call, whatever its status says. One that does
/// not is `authorization_required`: what it lacks is filled from the call it belongs to, by whoever
/// knows that call.
fn settle_authorization(draft: &mut Draft, status: ToolStatus) -> ToolStatus {
    let is_requested = status == ToolStatus::AuthorizationRequested;
    let mut marks = CredentialAuthorization::MARKS.iter();
    let about_credentials = marks.any(|name| draft.data.get(*name).is_some_and(|v| !v.is_null()));
    if is_requested || !about_credentials {
        settle_call(draft);
        if lacking(draft) == ["reason"]
            && let Some(reason) = message(draft)
        {
            filled(draft, "reason");
            draft.set("reason", reason);
        }
        let lacking = lacking(draft);
        if lacking.is_empty() {
            if !is_requested {
                draft.found(
                    DeprecationCode::AuthorizationStatus,
                    "/status",
                    &status.as_str().into(),
                    "`authorization_requested` for leave to make one exact call",
                );
            }
            let reason = draft.text("reason").unwrap_or_default().to_owned();
            settle_message(draft, &reason);
            return ToolStatus::AuthorizationRequested;
        }
        if is_requested {
            draft.missing(
                DeprecationCode::AuthorizationIncomplete,
                &pointer("/data", lacking.first().copied().unwrap_or_default()),
                format!("`{}` in `data`", lacking.join("`, `")),
            );
        }
    }
    settle_credentials(draft);
    ToolStatus::AuthorizationRequired
}

/// Repairs what says which call it is, and puts aside what cannot be repaired.
fn settle_call(draft: &mut Draft) {
    draft.data_word::<SecurityLevel>("security_level");
    if let Some(given) = draft.data.get("expires_at").cloned()
        && let Some(time) = time::readable(draft, "/data/expires_at", &given)
    {
        draft.set("expires_at", time);
    }
    for name in lacking(draft) {
        if draft.data.get(name).is_some_and(|value| !value.is_null()) {
            let instead = "a value that can be read, or nothing";
            draft.put_field_aside(name, DeprecationCode::FieldInvalid, instead);
        }
    }
}

/// Which fields a request for one exact call lacks, or has in a form that cannot be read.
fn lacking(draft: &Draft) -> Vec<&'static str> {
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

fn settle_credentials(draft: &mut Draft) {
    settle_texts(draft, ToolStatus::AuthorizationRequired);
    let preview = draft.data.get("credential_preview").cloned();
    if let Some(preview) = preview.filter(|preview| !preview.is_null() && !preview.is_object()) {
        draft.found(
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
    settle_message(draft, &default);
}
