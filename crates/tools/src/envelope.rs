//! Answers that come in an envelope. A tool may answer with its bare result, with a canonical
//! envelope, or with one of the older shapes; what is inside is what its specification promises.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use windlass_core::approval::{Ask, CredentialUse, Intervene};
use windlass_core::run::{CallEnd, ToolQuestion};
use windlass_spec::{
    Action, Answer, DeprecationCode, Effect, ErrorCategory, Failure, Timestamp, ToolResponse,
    ToolSpecification, Type, normalise_for,
};

/// What a tool's answer comes to.
pub(crate) enum Opened {
    /// A result, to be held against what is promised.
    Result(Value),
    /// Something else than a result, and final.
    End(CallEnd),
    /// A question to a person.
    Asks(Box<ToolQuestion>),
}

/// Opens the envelope around a result, if there is one. What is exactly as promised is never taken
/// for an envelope, unless the promise is so wide that any envelope keeps it; then only the canonical
/// shape is one, because a tool's own data may resemble the older ones.
pub(crate) fn open(specification: &ToolSpecification, value: Value) -> Opened {
    let promised = specification.signature().returns();
    let response = if promised.misfits(&value).is_empty() {
        match canonical(promised, &value) {
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
    opened(response)
}

/// The envelope that a value is although it is also what was promised.
fn canonical(promised: &Type, value: &Value) -> Option<ToolResponse> {
    let json = match (promised, value) {
        (Type::Object, Value::Object(_)) => value.clone(),
        // A program prints text; an envelope is an object inside it.
        (Type::Text, Value::String(text)) if text.trim_start().starts_with('{') => {
            serde_json::from_str(text).ok()?
        }
        _ => return None,
    };
    ToolResponse::from_value(json).ok()
}

fn opened(response: ToolResponse) -> Opened {
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
        // Work that was accepted and goes on elsewhere is a result, whatever is promised for its end.
        answer @ (Answer::Plan { .. } | Answer::Work { .. }) => Opened::End(CallEnd::Success(
            ToolResponse::new(answer, now()).for_model(),
        )),
        Answer::AskHuman(ask) => Opened::Asks(Box::new(ToolQuestion::Ask(Ask {
            question: ask.question,
            context: ask.context,
            options: Vec::new(),
            free_text: true,
            form: None,
        }))),
        Answer::Authorization(request) => Opened::Asks(Box::new(ToolQuestion::Leave {
            reason: request.reason,
            security_level: Some(request.call.security_level),
            credentials: None,
        })),
        Answer::Credential(request) => Opened::Asks(Box::new(ToolQuestion::Leave {
            reason: request.message.clone(),
            security_level: None,
            credentials: Some(CredentialUse::from(request)),
        })),
        Answer::Intervention(work) => Opened::Asks(Box::new(ToolQuestion::Intervene(Intervene {
            status: work.status,
            intervention_type: work.intervention_type,
            provider: work.provider,
            message: work.message,
            url: work.url,
            screenshot: work.screenshot,
            oauth_url: work.oauth_url,
            details: work.details,
        }))),
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_microseconds(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
