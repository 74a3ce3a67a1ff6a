//! An answer while it is normalised: its parts, the notices so far, and the operations that all
//! rewrites share.

use serde_json::Value;

use super::notice::{Deprecation, DeprecationCode};
use crate::envelope::Object;
use crate::envelope::error::pointer;
use crate::envelope::words::ToolStatus;
use crate::words::Word;

/// An answer being rewritten.
pub(super) struct Draft {
    /// All fields except `data`.
    pub(super) top: Object,
    /// `data`, and fields that are moved into it.
    pub(super) data: Object,
    /// `data` if it is not an object.
    pub(super) plain: Option<Value>,
    /// Whether there was any `data`.
    pub(super) has_data: bool,
    notices: Vec<Deprecation>,
}

impl Draft {
    pub(super) fn new(mut top: Object) -> Self {
        let given = top.shift_remove("data");
        let has_data = given.is_some();
        let (data, plain) = match given {
            Some(Value::Object(data)) => (data, None),
            other => (Object::new(), other),
        };
        Self {
            top,
            data,
            plain,
            has_data,
            notices: Vec::new(),
        }
    }

    /// The rewritten answer and the notices.
    pub(super) fn finish(mut self, status: ToolStatus) -> (Value, Vec<Deprecation>) {
        let data = self.plain.unwrap_or(Value::Object(self.data));
        self.top.insert("data".to_owned(), data);
        self.top.insert("status".to_owned(), status.as_str().into());
        (Value::Object(self.top), self.notices)
    }

    pub(super) fn report(
        &mut self,
        code: DeprecationCode,
        pointer: impl Into<String>,
        found: &Value,
        instead: impl Into<String>,
    ) {
        let notice = Deprecation::new(code, pointer.into(), found, instead);
        self.notices.push(notice);
    }

    pub(super) fn report_missing(
        &mut self,
        code: DeprecationCode,
        pointer: &str,
        instead: impl Into<String>,
    ) {
        let notice = Deprecation::missing(code, pointer, instead);
        self.notices.push(notice);
    }

    /// Keeps a value in `data` under `reported_` and its name.
    pub(super) fn keep_as_reported(&mut self, name: &str, value: Value) {
        let mut name = format!("reported_{name}");
        while self.data.contains_key(&name) {
            name.insert_str(0, "reported_");
        }
        self.data.insert(name, value);
    }

    /// Keeps an invalid field of `data` under `reported_` and its name, with a notice.
    pub(super) fn keep_field_as_reported(
        &mut self,
        name: &str,
        code: DeprecationCode,
        instead: &str,
    ) {
        if let Some(value) = self.data.shift_remove(name) {
            self.report(code, pointer("/data", name), &value, instead);
            self.keep_as_reported(name, value);
        }
    }

    /// A field of `data` that is a non-empty text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        text_of(self.data.get(name))
    }

    pub(super) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.data.insert(name.to_owned(), value.into());
    }

    /// The word in the field `name` of `data`. Replaces it by its canonical spelling.
    pub(super) fn data_word<W: Word>(&mut self, name: &str) -> Option<W> {
        let (word, misspelt) = parse_word::<W>(self.data.get(name))?;
        if let Some(found) = misspelt {
            self.report_spelling(pointer("/data", name), &found, word.word());
            self.set(name, word.word());
        }
        Some(word)
    }

    /// The word in the field `name` next to `data`. Replaces it by its canonical spelling.
    pub(super) fn top_word<W: Word>(&mut self, name: &str) -> Option<W> {
        let (word, misspelt) = parse_word::<W>(self.top.get(name))?;
        if let Some(found) = misspelt {
            self.report_spelling(pointer("", name), &found, word.word());
            self.top.insert(name.to_owned(), word.word().into());
        }
        Some(word)
    }

    fn report_spelling(&mut self, pointer: String, found: &Value, word: &str) {
        let instead = format!("`{word}`");
        self.report(DeprecationCode::WordSpelling, pointer, found, instead);
    }
}

/// The word that a value spells, and the value if it is not in the canonical spelling.
fn parse_word<W: Word>(value: Option<&Value>) -> Option<(W, Option<Value>)> {
    let value = value?;
    let text = value.as_str()?;
    let word = W::from_word(text.trim())?;
    Some((word, (text != word.word()).then(|| value.clone())))
}

/// The text of a value, if it is not blank.
pub(super) fn text_of(value: Option<&Value>) -> Option<&str> {
    value?.as_str().filter(|text| !text.trim().is_empty())
}

/// A value as text: lists of texts become lines, everything else its JSON.
pub(super) fn as_text(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    let lines: Option<Vec<&str>> = value
        .as_array()
        .and_then(|list| list.iter().map(Value::as_str).collect());
    lines.map_or_else(|| value.to_string(), |lines| lines.join("\n"))
}
