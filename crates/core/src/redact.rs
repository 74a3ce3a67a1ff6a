//! Keeps secrets out of what is stored. Values are searched as JSON, text by text, before they are
//! stored; what is found is replaced. Which values are secret is set by the process that opens a store.
//!
//! This is here and not in a store because every store has to do it in the same way, and because a
//! [`RedactedEvent`] can be made in no other way: what a journal is given has no secrets in it.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::run::Event;

const REPLACEMENT: &str = "[redacted]";

/// Fields of an event that hold what Windlass made up itself: a word, a time, a position. A secret
/// that happens to be part of one is not given away by it.
const STRUCTURE: [&str; 5] = ["event", "at", "run", "call", "turn"];

/// Replaces secrets in what is stored.
#[derive(Clone, Default)]
pub struct Redactor {
    /// What to look for inside a text, the longest first: each secret as it is, and as it looks
    /// inside JSON, and inside JSON inside JSON.
    needles: Vec<String>,
}

impl fmt::Debug for Redactor {
    /// Says how many, never which.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} needles)", self.needles.len())
    }
}

impl Redactor {
    /// A shorter secret is not looked for: it would be found everywhere.
    pub const SHORTEST: usize = 6;

    /// Looks for these secrets.
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

    /// The text without secrets.
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

    /// The event as it is stored.
    ///
    /// # Errors
    /// If it would not be an event without the secret.
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

    /// The JSON of a value without secrets, except in the fields named `structure`. It reads back as
    /// a value of that type.
    ///
    /// # Errors
    /// If it would not read back without the secret.
    pub fn json<T>(&self, value: &T, structure: &[&str]) -> Result<String, RedactError>
    where
        T: Serialize + DeserializeOwned,
    {
        let text = serde_json::to_string(value).map_err(not_json)?;
        if !self.occurs_in(&text) {
            return Ok(text);
        }
        let value: Value = serde_json::from_str(&text).map_err(not_json)?;
        // Numbers go last: where only a number may stand, it counts something and is no secret.
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

/// Whether a person would be asked to authorize another call than the one that will run.
fn is_other_call(event: &Event, redacted: &Event) -> bool {
    let digest = |event: &Event| match event {
        Event::Asked { approval, .. } if approval.question().authorize().is_some() => {
            Some(approval.asked_digest())
        }
        _ => None,
    };
    digest(event) != digest(redacted)
}

/// An event without secrets. A run that is to be the same when its journal is folded again must take
/// this event rather than the one it was made from.
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

    /// The event, taken out.
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
    /// A secret occurs where the value cannot do without its text.
    #[error(
        "a secret occurs where an event cannot do without its text, so the event was not stored\n\
         hint: is one of the secrets an ordinary word?"
    )]
    SecretInStructure,
    /// The value cannot be written as JSON.
    #[error("what is to be stored cannot be written as JSON: {0}")]
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

/// A text as it looks inside a JSON string.
fn escaped(text: &str) -> String {
    let quoted = Value::String(text.to_owned()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
