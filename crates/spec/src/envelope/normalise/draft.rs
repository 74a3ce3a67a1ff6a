//! An answer on its way to the canonical shape: its parts, what was said about it so far, and the
//! few moves that all rewrites share.

use serde_json::Value;

use super::notice::{Deprecation, DeprecationCode};
use crate::envelope::Object;
use crate::envelope::error::pointer;
use crate::envelope::words::{ToolStatus, Word};

/// An answer being rewritten.
pub(super) struct Draft {
    /// Everything beside `data`.
    pub(super) top: Object,
    /// `data`, or what will become part of it.
    pub(super) data: Object,
    /// `data` where it is no object.
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

    /// The rewritten answer, and what was said about it.
    pub(super) fn finish(mut self, status: ToolStatus) -> (Value, Vec<Deprecation>) {
        let data = self.plain.unwrap_or(Value::Object(self.data));
        self.top.insert("data".to_owned(), data);
        self.top.insert("status".to_owned(), status.as_str().into());
        (Value::Object(self.top), self.notices)
    }

    pub(super) fn found(
        &mut self,
        code: DeprecationCode,
        pointer: impl Into<String>,
        found: &Value,
        instead: impl Into<String>,
    ) {
        let notice = Deprecation::new(code, pointer.into(), found, instead);
        self.notices.push(notice);
    }

    pub(super) fn missing(
        &mut self,
        code: DeprecationCode,
        pointer: &str,
        instead: impl Into<String>,
    ) {
        let notice = Deprecation::missing(code, pointer, instead);
        self.notices.push(notice);
    }

    /// Keeps a value in `data` that cannot stay where it was.
    pub(super) fn put_aside(&mut self, name: &str, value: Value) {
        let mut name = format!("reported_{name}");
        while self.data.contains_key(&name) {
            name.insert_str(0, "reported_");
        }
        self.data.insert(name, value);
    }

    /// Puts a field of `data` aside because it cannot be read as what it should be.
    pub(super) fn put_field_aside(&mut self, name: &str, code: DeprecationCode, instead: &str) {
        if let Some(value) = self.data.shift_remove(name) {
            self.found(code, pointer("/data", name), &value, instead);
            self.put_aside(name, value);
        }
    }

    /// A field of `data` that is a text with something in it.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        text_of(self.data.get(name))
    }

    pub(super) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.data.insert(name.to_owned(), value.into());
    }

    /// The word in the field `name` of `data`, which is put into its canonical spelling.
    pub(super) fn data_word<W: Word>(&mut self, name: &str) -> Option<W> {
        let (word, respelt) = spelt::<W>(self.data.get(name))?;
        if let Some(found) = respelt {
            self.spelling(pointer("/data", name), &found, word.word());
            self.set(name, word.word());
        }
        Some(word)
    }

    /// The word in the field `name` beside `data`, which is put into its canonical spelling.
    pub(super) fn top_word<W: Word>(&mut self, name: &str) -> Option<W> {
        let (word, respelt) = spelt::<W>(self.top.get(name))?;
        if let Some(found) = respelt {
            self.spelling(pointer("", name), &found, word.word());
            self.top.insert(name.to_owned(), word.word().into());
        }
        Some(word)
    }

    fn spelling(&mut self, pointer: String, found: &Value, word: &str) {
        let instead = format!("`{word}`");
        self.found(DeprecationCode::WordSpelling, pointer, found, instead);
    }
}

/// The word a value is, and the value if it is not spelt as it should be.
fn spelt<W: Word>(value: Option<&Value>) -> Option<(W, Option<Value>)> {
    let value = value?;
    let text = value.as_str()?;
    let word = W::from_word(text.trim())?;
    Some((word, (text != word.word()).then(|| value.clone())))
}

/// The text a value is, if there is something in it.
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
