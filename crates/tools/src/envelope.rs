//! Envelopes around results. A tool may return its bare result, a canonical envelope, or one of the older shapes.
//! The content must match the tool's specification. Nothing of it is lost: what an envelope has besides the declared
//! result stays next to it.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use windlass_core::approval::{Ask, CredentialUse, Intervene, NamedCall, SECRET_FIELDS};
use windlass_core::run::{CallEnd, QuestionSubject, ToolQuestion};
use windlass_spec::envelope::{ENVELOPE_FIELDS, Progress, read_frames};
use windlass_spec::{
    Action, Answer, Deprecation, DeprecationCode, Money, NonEmptyText, SecurityLevel, StreamFrame,
    Timestamp, ToolResponse, ToolSpecification, Type, normalise_for,
};

/// The content of a tool's answer.
pub(crate) enum Opened {
    /// A result, to be checked against the declared type.
    Result(Value),
    /// The data of an envelope. The parts are what the declared type may describe: all of the data, or the
    /// result in it.
    Data {
        /// All of the data.
        data: Value,
        /// The parts of it that may be the declared result, besides all of it.
        parts: Vec<Value>,
    },
    /// A final end of the call without a result to check.
    End(CallEnd),
    /// A question to a person.
    Question(Box<ToolQuestion>),
}

/// A tool's answer without its envelope.
pub(crate) struct OpenedAnswer {
    pub(crate) content: Opened,
    /// What the tool should write differently.
    pub(crate) notices: Vec<Deprecation>,
    /// The progress that the tool reported in a stream of frames.
    pub(crate) progress: Vec<Progress>,
    /// What the call cost, if the tool states it.
    pub(crate) cost: Option<Money>,
}

impl From<Opened> for OpenedAnswer {
    fn from(content: Opened) -> Self {
        Self {
            content,
            notices: Vec::new(),
            progress: Vec::new(),
            cost: None,
        }
    }
}

/// Opens the envelope around a result, if there is one. A value that matches the declared type is not an
/// envelope, unless the type is so wide that every envelope matches it.
pub(crate) fn open(specification: &ToolSpecification, value: Value) -> OpenedAnswer {
    let declared = specification.signature().returns();
    let is_of_type = declared.misfits(&value).is_empty();
    if is_of_type && !is_wide(declared) {
        return Opened::Result(value).into();
    }
    // A program prints text; an envelope is a JSON object in it, or a stream of frames.
    let object = match &value {
        Value::Object(_) => Some(value.clone()),
        Value::String(text) => match read_stream(text, declared) {
            Some(streamed) => return streamed,
            None if is_of_type => object_in(text),
            None => None,
        },
        _ => None,
    };
    let Some(object) = object else {
        return Opened::Result(value).into();
    };
    let written = written_result(&object);
    let action = Action::from(specification.name());
    let normalised = normalise_for(&action, &object, now());
    let mut notices = normalised.notices.iter();
    if notices.any(|notice| notice.code == DeprecationCode::NoEnvelope) {
        return Opened::Result(value).into();
    }
    let cost = normalised.response.cost();
    let mut content = open_response(normalised.response);
    if let Opened::Data { parts, .. } = &mut content {
        parts.extend(written);
    }
    OpenedAnswer {
        cost,
        content: as_declared(content, declared),
        notices: normalised.notices.into_iter().map(without_secret).collect(),
        progress: Vec::new(),
    }
}

/// The content for a tool that declares a text: the JSON of its data, as its program would have printed it.
fn as_declared(content: Opened, declared: &Type) -> Opened {
    match content {
        Opened::Data { data, .. } if is_text(declared) && (data.is_object() || data.is_array()) => {
            Opened::Result(Value::String(data.to_string()))
        }
        other => other,
    }
}

fn is_text(declared: &Type) -> bool {
    match declared {
        Type::Text => true,
        Type::Nullable(inner) => is_text(inner),
        _ => false,
    }
}

/// The notice without the value of a field that only the person who decides may read.
fn without_secret(mut notice: Deprecation) -> Deprecation {
    if SECRET_FIELDS
        .iter()
        .any(|name| notice.pointer.contains(name))
    {
        "a value that is not shown".clone_into(&mut notice.found);
    }
    notice
}

/// Whether a type has every envelope as a value.
fn is_wide(declared: &Type) -> bool {
    match declared {
        Type::Text | Type::Object | Type::Any => true,
        Type::Nullable(inner) => is_wide(inner),
        _ => false,
    }
}

fn object_in(text: &str) -> Option<Value> {
    let text = text.trim();
    let is_object = text.starts_with('{') && text.ends_with('}');
    is_object.then(|| serde_json::from_str(text).ok()).flatten()
}

/// Whether a text may be a stream of frames.
pub(crate) fn is_stream(text: &str) -> bool {
    text.trim_start().starts_with("data:")
}

/// The result in a whole stream of frames: its content, without the progress; as JSON if the declared type is no
/// text. `None` if the text is no stream.
fn read_stream(text: &str, declared: &Type) -> Option<OpenedAnswer> {
    if !is_stream(text) {
        return None;
    }
    let frames: Vec<StreamFrame> = read_frames(text)
        .into_iter()
        .collect::<Result<_, _>>()
        .ok()?;
    let (StreamFrame::Done, frames) = frames.split_last()? else {
        return None;
    };
    let (mut content, mut progress) = (String::new(), Vec::new());
    for frame in frames {
        match frame {
            StreamFrame::Content { content: part } => content += part,
            StreamFrame::Progress(reported) => progress.push(reported.clone()),
            StreamFrame::Done => return None,
        }
    }
    let json = (!is_text(declared))
        .then(|| serde_json::from_str(&content).ok())
        .flatten();
    Some(OpenedAnswer {
        progress,
        ..Opened::Result(json.unwrap_or(Value::String(content))).into()
    })
}

fn open_response(response: ToolResponse) -> Opened {
    let mut written = response.for_operator();
    let data = written.get_mut("data").map(Value::take).unwrap_or_default();
    match response.into_answer() {
        Answer::Success { .. } => Opened::Data {
            parts: parts(&data),
            data,
        },
        Answer::Error { failure, .. } => Opened::End(CallEnd::Error(failure)),
        // Accepted work that continues elsewhere is a result, whatever type is declared for its end.
        Answer::Plan { .. } | Answer::Work { .. } => {
            written["data"] = data;
            Opened::End(CallEnd::Success(written))
        }
        Answer::AskHuman(ask) => {
            let question = ToolQuestion {
                message: ask.message,
                ..ToolQuestion::new(QuestionSubject::Ask(Ask {
                    question: ask.question,
                    context: ask.context,
                    options: Vec::new(),
                    free_text: true,
                    form: None,
                }))
            };
            asked(question, &data)
        }
        Answer::Authorization(request) => {
            let question = ToolQuestion {
                message: request.message,
                ..ToolQuestion::new(QuestionSubject::Authorization {
                    reason: request.reason,
                    security_level: Some(request.call.security_level),
                    credentials: None,
                })
            };
            asked(question, &data)
        }
        Answer::Credential(request) => {
            let level = security_level(&data);
            let reason = data.get("reason").and_then(Value::as_str);
            let reason = reason.and_then(|reason| NonEmptyText::new(reason).ok());
            let credentials = CredentialUse::from(request.clone());
            let question = ToolQuestion {
                message: reason
                    .as_ref()
                    .filter(|reason| **reason != request.message)
                    .map(|_| request.message.clone()),
                ..ToolQuestion::new(QuestionSubject::Authorization {
                    reason: reason.unwrap_or(request.message),
                    security_level: level,
                    credentials: (credentials != CredentialUse::default()).then_some(credentials),
                })
            };
            asked(question, &data)
        }
        Answer::Intervention(work) => {
            let subject = QuestionSubject::Intervene(Intervene {
                status: work.status,
                intervention_type: work.intervention_type,
                provider: work.provider,
                message: work.message,
                url: work.url,
                screenshot: work.screenshot,
                oauth_url: work.oauth_url,
                details: work.details,
            });
            asked(ToolQuestion::new(subject), &data)
        }
    }
}

/// The security level in the data of a request. One that cannot be read is high, not absent.
fn security_level(data: &Value) -> Option<SecurityLevel> {
    let given = ["security_level", "reported_security_level"];
    let given = given.into_iter().find_map(|name| data.get(name))?;
    if given.is_null() {
        return None;
    }
    let word = given.as_str().unwrap_or_default().trim().to_uppercase();
    Some(word.parse().unwrap_or(SecurityLevel::High))
}

/// The fields of a request that have a place of their own in a question about that.
fn known_fields(subject: &QuestionSubject) -> &'static [&'static str] {
    match subject {
        QuestionSubject::Ask(_) => &["question", "context"],
        QuestionSubject::Authorization {
            credentials: None, ..
        } => &["reason", "security_level"],
        QuestionSubject::Authorization { .. } => &[
            "reason",
            "security_level",
            "auth_type",
            "provider",
            "url",
            "credential_preview",
            "screenshot",
            "details",
        ],
        QuestionSubject::Intervene(_) => &[
            "intervention_type",
            "provider",
            "url",
            "screenshot",
            "oauth_url",
            "details",
        ],
    }
}

/// A question with what the tool wants the person to see, from the data of its request.
fn asked(mut question: ToolQuestion, data: &Value) -> Opened {
    let text = |name: &str| {
        let text = data.get(name)?.as_str()?;
        (!text.trim().is_empty()).then(|| text.to_owned())
    };
    question.user_id = text("user_id");
    question.instruction = text("instruction");
    question.expires_at = text("expires_at").and_then(|time| time.parse().ok());
    let tool_args = data.get("tool_args").and_then(Value::as_object).cloned();
    question.named_call = text("tool_name").map(|tool_name| NamedCall {
        tool_name,
        tool_args: tool_args.unwrap_or_default(),
    });
    let known = known_fields(&question.subject);
    let asked = ["user_id", "instruction", "tool_name", "tool_args"];
    let is_further = |name: &str| match name {
        "expires_at" => question.expires_at.is_none(),
        _ => !known.contains(&name) && !asked.contains(&name),
    };
    let further = data.as_object().into_iter().flatten();
    let further = further.filter(|(name, value)| is_further(name) && !value.is_null());
    question.further = further
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Opened::Question(Box::new(question))
}

/// The parts of data that may be the declared result: the result of a service, the results of a page or a batch,
/// and each of these forms without the tool's further fields.
fn parts(data: &Value) -> Vec<Value> {
    let Value::Object(fields) = data else {
        return Vec::new();
    };
    let forms: [&[&str]; 4] = [
        &["total", "results", "aggregation"],
        &["total", "results"],
        &["total_processed", "successful", "failed", "results"],
        &["result", "metadata"],
    ];
    let forms = forms.into_iter().filter_map(|names| {
        let part: Map<String, Value> = names
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), fields.get(*name)?.clone())))
            .collect();
        (part.len() == names.len() && part.len() < fields.len()).then_some(Value::Object(part))
    });
    let inner = ["result", "results"].into_iter();
    let inner = inner.filter_map(|name| fields.get(name).cloned());
    forms.chain(inner).collect()
}

/// The result in an envelope as its tool wrote it: its `data`, or without it the fields that are no fields of an
/// envelope.
fn written_result(envelope: &Value) -> Option<Value> {
    let fields = envelope.as_object()?;
    match fields.get("data") {
        Some(data) => Some(data.clone()),
        None => {
            let own = fields
                .iter()
                .filter(|(name, _)| !ENVELOPE_FIELDS.contains(&name.as_str()));
            let own = own.map(|(name, value)| (name.clone(), value.clone()));
            Some(Value::Object(own.collect()))
        }
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_microseconds(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
