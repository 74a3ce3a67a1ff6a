//! Takes the fields of a JSON object one by one. Each take validates the field and removes it, so
//! that the unknown fields remain. Every error has the pointer of its field.

use serde_json::Value;

use super::Object;
use super::error::{EnvelopeError, EnvelopeProblem, pointer};
use crate::names::{NonEmptyText, TextError};
use crate::time::Timestamp;
use crate::words::Word;

/// An object whose fields are taken one by one.
pub(super) struct Fields {
    at: &'static str,
    remaining: Object,
}

impl Fields {
    /// The fields of the object whose pointer is `at`.
    pub(super) fn new(at: &'static str, object: Object) -> Self {
        Self {
            at,
            remaining: object,
        }
    }

    /// The fields of a value that has to be an object.
    pub(super) fn of(at: &'static str, value: Value) -> Result<Self, EnvelopeError> {
        match value {
            Value::Object(object) => Ok(Self::new(at, object)),
            _ => Err(EnvelopeError {
                pointer: at.to_owned(),
                problem: EnvelopeProblem::Type {
                    expected: "an object",
                },
            }),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.remaining
            .get(name)
            .is_some_and(|value| !value.is_null())
    }

    /// The field as it is, `null` included.
    pub(super) fn value(&mut self, name: &str) -> Result<Value, EnvelopeError> {
        let value = self.remaining.shift_remove(name);
        value.ok_or_else(|| self.error(name, EnvelopeProblem::Missing))
    }

    /// The field unless it is absent or `null`, which mean the same where a field is optional.
    pub(super) fn optional(&mut self, name: &str) -> Option<Value> {
        self.remaining
            .shift_remove(name)
            .filter(|value| !value.is_null())
    }

    pub(super) fn text(&mut self, name: &str) -> Result<NonEmptyText, EnvelopeError> {
        self.parsed(name, NonEmptyText::new)
    }

    /// A text that `parse` accepts.
    pub(super) fn parsed<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(String) -> Result<T, TextError>,
    ) -> Result<T, EnvelopeError> {
        let text = self.string(name)?;
        parse(text).map_err(|error| self.error(name, EnvelopeProblem::Text(error)))
    }

    pub(super) fn optional_text(&mut self, name: &str) -> Result<Option<String>, EnvelopeError> {
        if self.has(name) {
            return self.string(name).map(Some);
        }
        self.remaining.shift_remove(name);
        Ok(None)
    }

    pub(super) fn word<W: Word>(&mut self, name: &str) -> Result<W, EnvelopeError> {
        let text = self.string(name)?;
        W::from_word(&text).ok_or_else(|| {
            let problem = EnvelopeProblem::Word {
                found: text.chars().take(60).collect(),
                what: W::WHAT,
                known: W::known(),
            };
            self.error(name, problem)
        })
    }

    pub(super) fn time(&mut self, name: &str) -> Result<Timestamp, EnvelopeError> {
        let text = self.string(name)?;
        text.parse()
            .map_err(|error| self.error(name, EnvelopeProblem::Time(error)))
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<bool, EnvelopeError> {
        match self.value(name)? {
            Value::Bool(flag) => Ok(flag),
            _ => Err(self.wrong_type(name, "true or false")),
        }
    }

    pub(super) fn object(&mut self, name: &str) -> Result<Object, EnvelopeError> {
        match self.value(name)? {
            Value::Object(object) => Ok(object),
            _ => Err(self.wrong_type(name, "an object")),
        }
    }

    pub(super) fn list(&mut self, name: &str) -> Result<Vec<Value>, EnvelopeError> {
        match self.value(name)? {
            Value::Array(list) => Ok(list),
            _ => Err(self.wrong_type(name, "a list")),
        }
    }

    pub(super) fn wrong_type(&self, name: &str, expected: &'static str) -> EnvelopeError {
        self.error(name, EnvelopeProblem::Type { expected })
    }

    pub(super) fn error(&self, name: &str, problem: EnvelopeProblem) -> EnvelopeError {
        EnvelopeError {
            pointer: pointer(self.at, name),
            problem,
        }
    }

    /// The fields that were not taken.
    pub(super) fn rest(self) -> Object {
        self.remaining
    }

    /// Fails if a field was not taken.
    pub(super) fn finish(self) -> Result<(), EnvelopeError> {
        match self.remaining.keys().next() {
            None => Ok(()),
            Some(name) => Err(self.error(name, EnvelopeProblem::Misplaced)),
        }
    }

    fn string(&mut self, name: &str) -> Result<String, EnvelopeError> {
        match self.value(name)? {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong_type(name, "a text")),
        }
    }
}
