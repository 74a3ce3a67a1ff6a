//! Keeps secrets out of stored data. Values are searched as JSON before they are stored, and secrets are
//! replaced. The process that opens a store sets the secrets.
//!
//! This is here and not in a store because every store has to do it in the same way. A [`RedactedEvent`]
//! can be made only here, so a journal never gets an event with secrets.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::run::Event;

const REPLACEMENT: &str = "[redacted]";

/// Fields of an event that Windlass generates itself: a kind, a time, an id. A secret that occurs in one
/// by chance is not disclosed.
const STRUCTURE: [&str; 5] = ["event", "at", "run", "call", "turn"];

/// Replaces secrets in what is stored.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The texts to search for, longest first: each secret as it is, escaped as in JSON, and escaped
    /// twice.
    needles: Vec<String>,
}

impl fmt::Debug for Redactor {
    /// Writes the number of needles, never their texts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} needles)", self.needles.len())
    }
}

impl Redactor {
    /// The minimum length of a secret. A shorter one would match everywhere.
    pub const SHORTEST: usize = 6;

    /// Makes a redactor for these secrets.
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let mut needles = Vec::new();
        for secret in secrets {
            let secret = secret.as_ref().trim();
            if secret.len() < Self::SHORTEST || REPLACEMENT.contains(secret) {
                continue;
            }
            let inside = escaped(secret);
            needles.push(escaped(&inside));
            needles.push(inside);
            needles.push(secret.to_owned());
        }
        needles.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        needles.dedup();
        Self { needles }
    }

    /// Redacts a text.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for needle in &self.needles {
            if text.contains(needle.as_str()) {
                text = text.replace(needle.as_str(), REPLACEMENT);
            }
        }
        text
    }

    /// Redacts an event for storage.
    ///
    /// # Errors
    /// If the redacted value is not a valid event.
    pub fn event(&self, event: Event) -> Result<RedactedEvent, RedactError> {
        let payload = serde_json::to_string(&event).map_err(not_json)?;
        if !self.occurs_in(&payload) {
            return Ok(RedactedEvent { event, payload });
        }
        let payload = self.json(&event, &STRUCTURE)?;
        let redacted =
            serde_json::from_str(&payload).map_err(|_| RedactError::SecretInStructure)?;
        match is_other_call(&event, &redacted) {
            true => Err(RedactError::SecretInStructure),
            false => Ok(RedactedEvent {
                event: redacted,
                payload,
            }),
        }
    }

    /// Redacts the JSON of a value, except in the fields named `structure`. The result deserializes to
    /// the same type.
    ///
    /// # Errors
    /// If the redacted JSON does not deserialize.
    pub fn json<T>(&self, value: &T, structure: &[&str]) -> Result<String, RedactError>
    where
        T: Serialize + DeserializeOwned,
    {
        let text = serde_json::to_string(value).map_err(not_json)?;
        if !self.occurs_in(&text) {
            return Ok(text);
        }
        let value: Value = serde_json::from_str(&text).map_err(not_json)?;
        // Numbers are kept if redacting them fails: where only a number is valid, it is a count and not
        // a secret.
        for numbers in [Numbers::Redacted, Numbers::Kept] {
            let text = self
                .outermost(value.clone(), structure, numbers)
                .to_string();
            if serde_json::from_str::<T>(&text).is_ok() {
                return Ok(text);
            }
        }
        Err(RedactError::SecretInStructure)
    }

    fn occurs_in(&self, text: &str) -> bool {
        self.needles
            .iter()
            .any(|needle| text.contains(needle.as_str()))
    }

    fn outermost(&self, value: Value, structure: &[&str], numbers: Numbers) -> Value {
        let Value::Object(fields) = value else {
            return self.value(value, numbers);
        };
        let fields = fields.into_iter().map(|(name, value)| {
            let is_structure = structure.contains(&name.as_str());
            let value = if is_structure {
                value
            } else {
                self.value(value, numbers)
            };
            (name, value)
        });
        Value::Object(fields.collect())
    }

    fn value(&self, value: Value, numbers: Numbers) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items
                .into_iter()
                .map(|item| self.value(item, numbers))
                .collect(),
            Value::Object(fields) => {
                let mut redacted = Map::new();
                for (name, value) in fields {
                    redacted.insert(self.text(&name), self.value(value, numbers));
                }
                Value::Object(redacted)
            }
            Value::Number(number) if numbers == Numbers::Redacted => {
                let text = number.to_string();
                if self.occurs_in(&text) {
                    Value::String(self.text(&text))
                } else {
                    Value::Number(number)
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }
}

/// Whether the approver would be asked about another call than the one that will run.
fn is_other_call(event: &Event, redacted: &Event) -> bool {
    let digest = |event: &Event| match event {
        Event::Asked { approval, .. } if approval.question().authorize().is_some() => {
            Some(approval.asked_digest())
        }
        _ => None,
    };
    digest(event) != digest(redacted)
}

/// An event without secrets. A run must apply this event and not the original, so that its journal folds
/// back to the same run.
#[derive(Debug, Clone)]
pub struct RedactedEvent {
    event: Event,
    payload: String,
}

impl RedactedEvent {
    /// The event.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Converts it into the event.
    #[must_use]
    pub fn into_event(self) -> Event {
        self.event
    }

    /// Its JSON.
    #[must_use]
    pub fn payload(&self) -> &str {
        &self.payload
    }
}

/// Why a value cannot be stored without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedactError {
    /// A secret occurs in a part of the value that must not change.
    #[error(
        "a secret occurs in a part of the event that must not change, so the event was not stored\n\
         hint: check that no configured secret is an ordinary word"
    )]
    SecretInStructure,
    /// The value cannot be serialized.
    #[error("the value cannot be serialized as JSON: {0}")]
    NotJson(String),
}

fn not_json(error: serde_json::Error) -> RedactError {
    RedactError::NotJson(error.to_string())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Redacted,
    Kept,
}

/// A text as it is escaped inside a JSON string.
fn escaped(text: &str) -> String {
    let quoted = Value::String(text.to_owned()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
