//! Envelopes around results. A tool may return its bare result, a canonical
//! envelope, or one of the older shapes. The content must match the tool's specification.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use windlass_core::approval::{Ask, CredentialUse, Intervene};
use windlass_core::run::{CallEnd, ToolQuestion};
use windlass_spec::{
    Action, Answer, DeprecationCode, Effect, ErrorCategory, Failure, Timestamp, ToolResponse,
    ToolSpecification, Type, normalise_for,
};

/// The content of a tool's answer.
pub(crate) enum Opened {
    /// A result, to be checked against the declared type.
    Result(Value),
    /// A final end of the call without a result to check.
    End(CallEnd),
    /// A question to a person.
    Question(Box<ToolQuestion>),
}

/// Opens the envelope around a result, if there is one. A value that matches the declared type is not
/// an envelope, unless the type is so wide that every envelope matches it. Then only the canonical
/// shape is an envelope, because a tool's own data may resemble the older shapes.
pub(crate) fn open(specification: &ToolSpecification, value: Value) -> Opened {
    let declared = specification.signature().returns();
    let response = if declared.misfits(&value).is_empty() {
        match canonical(declared, &value) {
            Some(response) => response,
            None => return Opened::Result(value),
        }
    } else {
        let action = Action::from(specification.name());
        let normalised = normalise_for(&action, &value, now());
        let mut notices = normalised.notices.iter();
        if notices.any(|notice| notice.code == DeprecationCode::NoEnvelope) {
            return Opened::Result(value);
        }
        normalised.response
    };
    open_response(response)
}

/// The canonical envelope in a value that also matches the declared type.
fn canonical(declared: &Type, value: &Value) -> Option<ToolResponse> {
    let json = match (declared, value) {
        (Type::Object, Value::Object(_)) => value.clone(),
        // A program prints text; an envelope is a JSON object in it.
        (Type::Text, Value::String(text)) if text.trim_start().starts_with('{') => {
            serde_json::from_str(text).ok()?
        }
        _ => return None,
    };
    ToolResponse::from_value(json).ok()
}

fn open_response(response: ToolResponse) -> Opened {
    match response.into_answer() {
        Answer::Success { data, .. } => match serde_json::to_value(data) {
            Ok(value) => Opened::Result(value),
            Err(error) => Opened::End(CallEnd::Error(Failure::foreign(
                ErrorCategory::InvalidOutput,
                Effect::Unknown,
                error.to_string(),
            ))),
        },
        Answer::Error { failure, .. } => Opened::End(CallEnd::Error(failure)),
        // Accepted work that continues elsewhere is a result, whatever type is declared for its end.
        answer @ (Answer::Plan { .. } | Answer::Work { .. }) => Opened::End(CallEnd::Success(
            ToolResponse::new(answer, now()).for_model(),
        )),
        Answer::AskHuman(ask) => Opened::Question(Box::new(ToolQuestion::Ask(Ask {
            question: ask.question,
            context: ask.context,
            options: Vec::new(),
            free_text: true,
            form: None,
        }))),
        Answer::Authorization(request) => Opened::Question(Box::new(ToolQuestion::Authorization {
            reason: request.reason,
            security_level: Some(request.call.security_level),
            credentials: None,
        })),
        Answer::Credential(request) => Opened::Question(Box::new(ToolQuestion::Authorization {
            reason: request.message.clone(),
            security_level: None,
            credentials: Some(CredentialUse::from(request)),
        })),
        Answer::Intervention(work) => {
            Opened::Question(Box::new(ToolQuestion::Intervene(Intervene {
                status: work.status,
                intervention_type: work.intervention_type,
                provider: work.provider,
                message: work.message,
                url: work.url,
                screenshot: work.screenshot,
                oauth_url: work.oauth_url,
                details: work.details,
            })))
        }
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_microseconds(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
