//! Reads the properties of a pattern as the expected types.

use std::collections::HashMap;

use windlass_gram::{Diagnostic, Record, Span, Value, ValueData};

use super::Reader;
use super::definitions::Definition;
use crate::names::NonEmptyText;
use crate::nearest::nearest;

/// The record of a pattern and its owner.
#[derive(Debug, Clone)]
pub(super) struct Properties<'t> {
    /// The owner, for messages: "tool `search`".
    pub(super) owner: String,
    /// The place for diagnostics about a missing property.
    pub(super) place: Span,
    values: HashMap<String, Value<'t>>,
}

impl<'t> Properties<'t> {
    pub(super) fn get(&self, key: &str) -> Option<&Value<'t>> {
        self.values.get(key)
    }
}

/// The text of a value, if it can be read as text.
pub(super) fn text_of<'v>(data: &'v ValueData<'_>) -> Option<&'v str> {
    match data {
        ValueData::Tagged { text, .. } => Some(text),
        // `null` means that there is no value.
        ValueData::Symbol("null") => None,
        other => other.as_word(),
    }
}

impl<'t> Reader<'t> {
    /// Reads the properties of `owner`, which may have those in `known`. A key that is nearly a
    /// known one is an error, because its author expects an effect.
    pub(super) fn properties(
        &mut self,
        owner: String,
        place: Span,
        record: Option<Record<'t>>,
        known: &[&str],
    ) -> Properties<'t> {
        let mut values = HashMap::new();
        for property in record.into_iter().flat_map(Record::properties) {
            let (Some(key), Some(value)) = (property.key(), property.value()) else {
                continue;
            };
            if !known.contains(&&*key.text) {
                let message = format!("{owner} has no property `{}`", key.text);
                match nearest(&key.text, known.iter().copied()) {
                    Some(meant) => self.error_with_hint(
                        "unknown-property",
                        key.span,
                        message,
                        format!("did you mean `{meant}`?"),
                    ),
                    None => self.report(
                        Diagnostic::warning("unknown-property", key.span, message).with_hint(
                            format!("it has no effect; the properties are {}", list(known)),
                        ),
                    ),
                }
                continue;
            }
            if values.contains_key(&*key.text) {
                self.error_with_hint(
                    "duplicate-property",
                    key.span,
                    format!("{owner} has the property `{}` twice", key.text),
                    "keep one of them",
                );
                continue;
            }
            values.insert(key.text.into_owned(), value);
        }
        Properties {
            owner,
            place,
            values,
        }
    }

    /// A required property of type text.
    pub(super) fn required_text(
        &mut self,
        properties: &Properties<'t>,
        key: &str,
        example: &str,
    ) -> Option<(NonEmptyText, Span)> {
        if properties.get(key).is_none() {
            self.error_with_hint(
                "missing-property",
                properties.place,
                format!("{} needs the property `{key}`", properties.owner),
                format!("add `{key}: \"{example}\"`"),
            );
            return None;
        }
        self.optional_text(properties, key)
    }

    /// Checks that a stated `name` is the identifier of the definition.
    pub(super) fn check_stated_name(
        &mut self,
        definition: &Definition<'t>,
        properties: &Properties<'t>,
    ) {
        let Some((stated, span)) = self.optional_text(properties, "name") else {
            return;
        };
        let identifier = &*definition.name.text;
        if stated.as_str() != identifier {
            let message = format!("the `name` of {} is `{stated}`", properties.owner);
            let hint = format!(
                "the identifier is its name: write `{stated}` instead of `{identifier}`, or remove `name`"
            );
            self.error_with_hint("other-name", span, message, hint);
        }
    }

    /// An optional property of type text.
    pub(super) fn optional_text(
        &mut self,
        properties: &Properties<'t>,
        key: &str,
    ) -> Option<(NonEmptyText, Span)> {
        let value = properties.get(key)?;
        let Some(text) = text_of(&value.data) else {
            self.wrong_kind(properties, key, value, "a text");
            return None;
        };
        match NonEmptyText::new(text) {
            Ok(text) => Some((text, value.span)),
            Err(_) => {
                self.error_with_hint(
                    "empty-property",
                    value.span,
                    format!("the {key} of {} is empty", properties.owner),
                    "write a text, or remove the property if it is optional",
                );
                None
            }
        }
    }

    pub(super) fn optional_boolean(
        &mut self,
        properties: &Properties<'t>,
        key: &str,
    ) -> Option<bool> {
        let value = properties.get(key)?;
        match value.data {
            ValueData::Boolean(boolean) => Some(boolean),
            _ => {
                self.wrong_kind(properties, key, value, "`true` or `false`");
                None
            }
        }
    }

    pub(super) fn optional_integer(
        &mut self,
        properties: &Properties<'t>,
        key: &str,
    ) -> Option<(i64, Span)> {
        let value = properties.get(key)?;
        let integer = match value.data {
            ValueData::Number(number) => number.as_i64(),
            _ => None,
        };
        if integer.is_none() {
            self.wrong_kind(properties, key, value, "a whole number");
        }
        Some((integer?, value.span))
    }

    pub(super) fn wrong_kind(
        &mut self,
        properties: &Properties<'t>,
        key: &str,
        value: &Value<'t>,
        expected: &str,
    ) {
        self.error_with_hint(
            "property-type",
            value.span,
            format!(
                "`{key}` of {} must be {expected}, not {}",
                properties.owner,
                value.data.describe()
            ),
            format!("write {expected} here"),
        );
    }

    /// The offset of a text in the source; `None` if the text is a copy, because it has escapes.
    pub(super) fn offset_of(&self, text: &str) -> Option<u32> {
        let offset = (text.as_ptr() as usize).checked_sub(self.source.as_ptr() as usize)?;
        u32::try_from(offset)
            .ok()
            .filter(|&offset| offset as usize + text.len() <= self.source.len())
    }
}

/// A list of words in backticks.
pub(super) fn list(words: &[&str]) -> String {
    format!("`{}`", words.join("`, `"))
}
