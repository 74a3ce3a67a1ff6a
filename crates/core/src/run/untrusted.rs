//! The untrusted content that a run has read, so that a call can be checked for values taken from it. The cost
//! of a check does not grow with the length of the run, and neither does the memory. Content of more than
//! [`MAX_CONTENT`] bytes is not kept: then each text that may occur in it counts as untrusted.

use memchr::memmem;
use serde_json::Value;
use windlass_spec::Turn;

/// The shortest text that can count as tainted. Shorter ones occur by chance.
const MIN_TAINTED_LENGTH: usize = 4;

/// How many bytes of content are kept.
const MAX_CONTENT: usize = 1 << 20;

/// Less content than this is searched without a filter.
const MAX_UNFILTERED: usize = 1 << 14;

/// The untrusted content of the turns that have ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct UntrustedContent {
    /// The texts, each followed by a line break. Empty if they are too long.
    kept: String,
    /// What may occur in the texts; `None` while they are short.
    filter: Option<Filter>,
    is_kept_no_more: bool,
    /// The first turn in which there was any.
    first: Option<Turn>,
}

impl UntrustedContent {
    /// The first turn in which untrusted content was read.
    pub(super) fn first(&self) -> Option<Turn> {
        self.first
    }

    /// Adds what a call of a turn returned.
    pub(super) fn add(&mut self, turn: Turn, content: &Value) {
        self.add_within(MAX_UNFILTERED, MAX_CONTENT, turn, content);
    }

    fn add_within(&mut self, unfiltered: usize, limit: usize, turn: Turn, content: &Value) {
        self.first.get_or_insert(turn);
        visit_content(content, &mut |text| {
            if let Some(filter) = &mut self.filter {
                filter.add(text);
                filter.add("\n");
            }
            if !self.is_kept_no_more {
                self.kept.push_str(text);
                self.kept.push('\n');
            }
            if self.filter.is_none() && self.kept.len() > unfiltered {
                self.filter.insert(Filter::new()).add(&self.kept);
            }
            if self.kept.len() > limit {
                self.kept = String::new();
                self.is_kept_no_more = true;
            }
        });
    }

    /// Whether a text occurs in the content, or may occur in it if it is not kept.
    fn may_contain(&self, text: &str) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|filter| filter.may_contain(text))
            && (self.is_kept_no_more
                || memmem::find(self.kept.as_bytes(), text.as_bytes()).is_some())
    }

    /// Whether a value has a text that occurs in this content, or in `newer`, and in none of the `trusted`
    /// texts.
    pub(super) fn taints(&self, value: &Value, newer: &str, trusted: &[&str]) -> bool {
        let is_tainted = |text: &str| {
            text.len() >= MIN_TAINTED_LENGTH
                && (self.may_contain(text)
                    || memmem::find(newer.as_bytes(), text.as_bytes()).is_some())
                && !trusted.iter().any(|trusted| trusted.contains(text))
        };
        let mut found = false;
        visit_texts(value, &mut |text| found = found || is_tainted(text.trim()));
        found
    }
}

/// The sequences of four bytes that occur in a content, as a set of their hashes. A text with a sequence that
/// is not in the set does not occur in the content.
#[derive(Debug, Clone, PartialEq)]
struct Filter {
    words: Vec<u64>,
    /// The last four bytes.
    latest: u32,
    /// How many bytes were added, at most four.
    length: usize,
}

impl Filter {
    /// A power of two. Texts and JSON have some hundred thousand different sequences, however long they are.
    const BITS: usize = 1 << 21;

    fn new() -> Self {
        Self {
            words: vec![0; Self::BITS / 64],
            latest: 0,
            length: 0,
        }
    }

    /// Adds the continuation of the content.
    fn add(&mut self, text: &str) {
        for byte in text.bytes() {
            self.latest = self.latest << 8 | u32::from(byte);
            self.length = (self.length + 1).min(MIN_TAINTED_LENGTH);
            let position = position(self.latest);
            if let Some(word) = self.words.get_mut(position / 64)
                && self.length == MIN_TAINTED_LENGTH
            {
                *word |= 1 << (position % 64);
            }
        }
    }

    fn may_contain(&self, text: &str) -> bool {
        text.as_bytes().windows(MIN_TAINTED_LENGTH).all(|bytes| {
            let sequence = bytes
                .iter()
                .fold(0, |all, byte| all << 8 | u32::from(*byte));
            let position = position(sequence);
            let word = self.words.get(position / 64);
            word.is_some_and(|word| word & (1 << (position % 64)) != 0)
        })
    }
}

/// The bit of a sequence of four bytes.
fn position(sequence: u32) -> usize {
    let hash = sequence.wrapping_mul(0x9e37_79b1);
    (hash >> (u32::BITS - Filter::BITS.ilog2())) as usize
}

/// Calls `receive` with all texts and numbers in a value, and with the names of its fields: who writes untrusted
/// content can choose them, too.
pub(super) fn visit_content(value: &Value, receive: &mut dyn FnMut(&str)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| visit_content(item, receive)),
        Value::Object(fields) => fields.iter().for_each(|(name, field)| {
            receive(name);
            visit_content(field, receive);
        }),
        text => visit_texts(text, receive),
    }
}

/// Calls `receive` with all texts and numbers in a value.
fn visit_texts(value: &Value, receive: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => receive(text),
        Value::Number(number) => receive(&number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| visit_texts(item, receive)),
        Value::Object(fields) => fields
            .values()
            .for_each(|field| visit_texts(field, receive)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests;
