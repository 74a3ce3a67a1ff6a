//! The protocols of providers: how each writes requests and reads the events of a stream.

mod anthropic;
mod gemini;
mod openai;
mod responses;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_core::model::ChatCall;
use windlass_core::run::repair_json;
use windlass_spec::number::with_inexact_as_texts;

use super::draft::Draft;
use super::endpoint::Protocol;
use super::limits::{ExceededLimit, MOST_LEVELS};
use super::names::WireNames;

/// How a protocol writes requests and reads events.
pub(super) trait WireFormat: Sync {
    /// The path and query below the base URL.
    fn path(&self, model: &str) -> String;

    /// The headers besides the content type. The second part is secret if it contains the key.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// Whether system messages are part of the conversation.
    fn has_system_messages(&self) -> bool {
        true
    }

    /// Writes the definition of a tool.
    fn write_tool(&self, list: &mut JsonList, tool: &ToolDefinition<'_>) -> JsonResult;

    /// Writes a turn of the conversation.
    fn write_turn(&self, list: &mut JsonList, turn: &Turn<'_>, to: &WireTarget<'_>) -> JsonResult;

    /// Writes the request from its parts.
    fn write_body(&self, body: &mut Vec<u8>, parts: &BodyParts<'_>) -> JsonResult;

    /// Reads an event.
    fn read_event(&self, data: &[u8], draft: &mut Draft<'_>) -> Result<Progress, EventError>;
}

impl Protocol {
    pub(super) fn format(self) -> &'static dyn WireFormat {
        match self {
            Self::OpenAi => &openai::OpenAi,
            Self::Responses => &responses::Responses,
            Self::Anthropic => &anthropic::Anthropic,
            Self::Gemini => &gemini::Gemini,
        }
    }
}

pub(super) type JsonResult = Result<(), serde_json::Error>;

/// A tool as the model is shown it.
pub(super) struct ToolDefinition<'a> {
    pub(super) name: &'a str,
    pub(super) description: Cow<'a, str>,
    pub(super) schema: Value,
}

/// A turn of a conversation.
pub(super) enum Turn<'a> {
    System(&'a str),
    User(&'a str),
    Assistant {
        text: &'a str,
        calls: &'a [ChatCall],
    },
    /// The results of all calls of a turn.
    Results(Vec<CallResult<'a>>),
}

pub(super) struct CallResult<'a> {
    pub(super) id: &'a str,
    pub(super) tool: &'a str,
    pub(super) content: &'a str,
}

/// The model that a turn is written for, and the names of its tools there.
pub(super) struct WireTarget<'a> {
    pub(super) model: &'a str,
    pub(super) names: &'a WireNames,
}

/// The parts of a request.
pub(super) struct BodyParts<'a> {
    pub(super) model: &'a str,
    /// The system messages, if they are not part of the conversation.
    pub(super) system: Option<String>,
    /// A JSON list; empty if no tools are offered.
    pub(super) tools: &'a [u8],
    /// A JSON list.
    pub(super) turns: &'a [u8],
    pub(super) temperature: Option<f64>,
    pub(super) max_output_tokens: Option<u32>,
    /// The schema of the answer.
    pub(super) answer_schema: Option<Value>,
}

/// What an event was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// Nothing that shows that the model works.
    None,
    /// A part of the answer, or that the model still works on it.
    Some,
    /// The end of the answer.
    End,
}

/// Why an event cannot be read.
pub(super) enum EventError {
    NotJson,
    /// It is an error of the provider.
    Refused,
    /// The provider refuses to answer, for this reason.
    Blocked(String),
    Exceeded(ExceededLimit),
}

impl From<ExceededLimit> for EventError {
    fn from(limit: ExceededLimit) -> Self {
        Self::Exceeded(limit)
    }
}

impl From<serde_json::Error> for EventError {
    fn from(error: serde_json::Error) -> Self {
        // There is no other way to tell.
        match error.to_string().starts_with("recursion limit exceeded") {
            true => Self::Exceeded(ExceededLimit::Depth(MOST_LEVELS)),
            false => Self::NotJson,
        }
    }
}

fn parse<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, EventError> {
    Ok(serde_json::from_slice(data)?)
}

/// The event with each number that cannot be kept as a text: its calls may have their arguments as JSON.
fn exact_numbers(data: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(data).map(with_inexact_as_texts) {
        Ok(Cow::Owned(rewritten)) => Cow::Owned(rewritten.into_bytes()),
        _ => Cow::Borrowed(data),
    }
}

/// A JSON list as it is written.
#[derive(Debug, Clone)]
pub(super) struct JsonList(Vec<u8>);

impl JsonList {
    pub(super) fn new() -> Self {
        Self(vec![b'['])
    }

    pub(super) fn push(&mut self, item: &impl Serialize) -> JsonResult {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        serde_json::to_writer(&mut self.0, item)
    }

    /// The length, which [`JsonList::truncate`] takes the list back to.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }

    /// The list without its closing bracket.
    pub(super) fn as_open_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.0.push(b']');
        self.0
    }
}

/// Writes the fields of an object.
struct Fields<'a> {
    body: &'a mut Vec<u8>,
    is_first: bool,
}

impl<'a> Fields<'a> {
    fn open(body: &'a mut Vec<u8>) -> Self {
        body.push(b'{');
        Self {
            body,
            is_first: true,
        }
    }

    fn field(&mut self, name: &str, value: &impl Serialize) -> JsonResult {
        self.name(name)?;
        serde_json::to_writer(&mut *self.body, value)
    }

    fn optional(&mut self, name: &str, value: Option<&impl Serialize>) -> JsonResult {
        value.map_or(Ok(()), |value| self.field(name, value))
    }

    /// A field whose value is JSON already.
    fn raw(&mut self, name: &str, json: &[u8]) -> JsonResult {
        self.name(name)?;
        self.body.extend_from_slice(json);
        Ok(())
    }

    fn close(self) {
        self.body.push(b'}');
    }

    fn name(&mut self, name: &str) -> JsonResult {
        if !std::mem::take(&mut self.is_first) {
            self.body.push(b',');
        }
        serde_json::to_writer(&mut *self.body, name)?;
        self.body.push(b':');
        Ok(())
    }
}

/// The arguments of a past call as providers accept them: an object, whatever the model wrote.
fn past_arguments(arguments: &Value) -> Cow<'_, Value> {
    match arguments {
        Value::Object(_) => Cow::Borrowed(arguments),
        Value::String(text) => match repair_json(text) {
            Ok((value @ Value::Object(_), _)) => Cow::Owned(value),
            _ => Cow::Owned(serde_json::json!({"not_json": text})),
        },
        Value::Null => Cow::Owned(serde_json::json!({})),
        other => Cow::Owned(serde_json::json!({"value": other})),
    }
}
