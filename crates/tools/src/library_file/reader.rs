//! Reads values from TOML and collects errors. It knows locations and
//! types; its callers know the meaning of the keys.

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use windlass_gram::LineIndex;
use windlass_spec::nearest;

use super::LibraryFileError;

/// A location in the file, with the key it belongs to.
#[derive(Debug, Clone)]
pub(super) struct FileLocation {
    offset: usize,
    key: String,
}

impl FileLocation {
    pub(super) fn new(offset: usize, key: &str) -> Self {
        Self {
            offset,
            key: key.to_owned(),
        }
    }

    /// The location of a key of the table at this location.
    pub(super) fn below(&self, key: &str, offset: usize) -> Self {
        let key = match self.key.as_str() {
            "" => key.to_owned(),
            above => format!("{above}.{key}"),
        };
        Self { offset, key }
    }
}

pub(super) struct Reader<'t> {
    index: LineIndex<'t>,
    errors: Vec<LibraryFileError>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            index: LineIndex::new(text),
            errors: Vec::new(),
        }
    }

    /// All errors, in the order of the file.
    pub(super) fn finish(mut self) -> Vec<LibraryFileError> {
        self.errors.sort();
        self.errors
    }

    pub(super) fn error(
        &mut self,
        location: &FileLocation,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        let position = self
            .index
            .position(u32::try_from(location.offset).unwrap_or(u32::MAX));
        self.errors.push(LibraryFileError {
            line: position.line,
            column: position.column,
            key: location.key.clone(),
            message: message.into(),
            hint,
        });
    }

    /// Reports every key of `table` that is not in `known`.
    pub(super) fn check_keys(
        &mut self,
        table: &DeTable<'_>,
        location: &FileLocation,
        known: &[&str],
    ) {
        for (key, _) in table {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let meant = nearest(name, known.iter().copied());
                let meant =
                    meant.map_or(String::new(), |meant| format!("did you mean `{meant}`? "));
                self.error(
                    &location.below(name, key.span().start),
                    "is not a known key",
                    Some(format!("{meant}known keys: {}", quoted(known))),
                );
            }
        }
    }

    /// The text of a required key. It must not be empty.
    pub(super) fn required_text(
        &mut self,
        table: &DeTable<'_>,
        location: &FileLocation,
        key: &str,
    ) -> Option<String> {
        let Some(value) = table.get(key) else {
            let hint = format!("write {key} = \"...\"");
            self.error(
                &location.below(key, location.offset),
                "is missing",
                Some(hint),
            );
            return None;
        };
        self.text(value, &location.below(key, value.span().start))
    }

    /// A text that is not empty.
    pub(super) fn text(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        location: &FileLocation,
    ) -> Option<String> {
        match value.get_ref().as_str() {
            Some(text) if text.trim().is_empty() => {
                self.error(location, "is empty", None);
                None
            }
            Some(text) => Some(text.to_owned()),
            None => {
                self.wrong_type(value, location, "a text", None);
                None
            }
        }
    }

    /// A list of texts.
    pub(super) fn texts(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        location: &FileLocation,
        hint: &str,
    ) -> Option<Vec<String>> {
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_type(value, location, "a list of texts", Some(hint.to_owned()));
            return None;
        };
        let mut texts = Vec::new();
        for item in items {
            match item.get_ref().as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => {
                    let location = FileLocation::new(item.span().start, &location.key);
                    self.wrong_type(item, &location, "a text", Some(hint.to_owned()));
                }
            }
        }
        (texts.len() == items.len()).then_some(texts)
    }

    /// A table.
    pub(super) fn table<'v, 'i>(
        &mut self,
        value: &'v Spanned<DeValue<'i>>,
        location: &FileLocation,
    ) -> Option<&'v DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(value, location, "a table", None);
        }
        table
    }

    fn wrong_type(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        location: &FileLocation,
        expected: &str,
        hint: Option<String>,
    ) {
        let found = match value.get_ref().type_str() {
            "string" => "a text",
            "integer" | "float" => "a number",
            "boolean" => "a boolean",
            "array" => "a list",
            "table" => "a table",
            other => other,
        };
        self.error(location, format!("must be {expected}, not {found}"), hint);
    }
}

/// Words in backticks, for a sentence.
pub(super) fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
