//! Takes values out of TOML and keeps account of what was wrong with them. It knows places and
//! types; what the keys mean is the business of its callers.

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use windlass_gram::LineIndex;
use windlass_spec::nearest;

use super::LibraryFileError;

/// A place in the file: where it is and which key it belongs to.
#[derive(Debug, Clone)]
pub(super) struct Place {
    offset: usize,
    key: String,
}

impl Place {
    pub(super) fn new(offset: usize, key: &str) -> Self {
        Self {
            offset,
            key: key.to_owned(),
        }
    }

    /// The place of a key of the table that is here.
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
        place: &Place,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        let position = self
            .index
            .position(u32::try_from(place.offset).unwrap_or(u32::MAX));
        self.errors.push(LibraryFileError {
            line: position.line,
            column: position.column,
            key: place.key.clone(),
            message: message.into(),
            hint,
        });
    }

    /// Complains about every key of `table` that is none of `known`.
    pub(super) fn known_keys(&mut self, table: &DeTable<'_>, place: &Place, known: &[&str]) {
        for (key, _) in table {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let meant = nearest(name, known.iter().copied());
                let meant =
                    meant.map_or(String::new(), |meant| format!("did you mean `{meant}`? "));
                self.error(
                    &place.below(name, key.span().start),
                    "is not a key that is known here",
                    Some(format!("{meant}known are {}", quoted(known))),
                );
            }
        }
    }

    /// The text under a key that must be there and must say something.
    pub(super) fn required_text(
        &mut self,
        table: &DeTable<'_>,
        place: &Place,
        key: &str,
    ) -> Option<String> {
        let Some(value) = table.get(key) else {
            let hint = format!("write {key} = \"...\"");
            self.error(&place.below(key, place.offset), "is missing", Some(hint));
            return None;
        };
        self.text(value, &place.below(key, value.span().start))
    }

    /// A text that says something.
    pub(super) fn text(&mut self, value: &Spanned<DeValue<'_>>, place: &Place) -> Option<String> {
        match value.get_ref().as_str() {
            Some(text) if text.trim().is_empty() => {
                self.error(place, "is empty", None);
                None
            }
            Some(text) => Some(text.to_owned()),
            None => {
                self.wrong_type(value, place, "a text", None);
                None
            }
        }
    }

    /// A list of texts.
    pub(super) fn texts(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        place: &Place,
        hint: &str,
    ) -> Option<Vec<String>> {
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_type(value, place, "a list of texts", Some(hint.to_owned()));
            return None;
        };
        let mut texts = Vec::new();
        for item in items {
            match item.get_ref().as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => {
                    let place = Place::new(item.span().start, &place.key);
                    self.wrong_type(item, &place, "a text", Some(hint.to_owned()));
                }
            }
        }
        (texts.len() == items.len()).then_some(texts)
    }

    /// A table.
    pub(super) fn table<'v, 'i>(
        &mut self,
        value: &'v Spanned<DeValue<'i>>,
        place: &Place,
    ) -> Option<&'v DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(value, place, "a table", None);
        }
        table
    }

    fn wrong_type(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        place: &Place,
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
        self.error(place, format!("must be {expected}, not {found}"), hint);
    }
}

/// Words in backticks, for a sentence.
pub(super) fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
