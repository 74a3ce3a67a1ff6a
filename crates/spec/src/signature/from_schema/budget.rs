//! The limit on the cost of reading one schema. References let a short schema describe an exponentially
//! large type, so the budget counts what is built, not what is read.

use serde_json::Value;

/// The largest number of types, fields and options built from one schema.
pub(super) const MAX_TYPES: usize = 10_000;

/// The largest number of bytes of names, texts and values read and copied.
const MAX_BYTES: usize = 32 << 20;

/// The remaining budget.
#[derive(Debug)]
pub(super) struct Budget {
    types: usize,
    bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            types: MAX_TYPES,
            bytes: MAX_BYTES,
        }
    }
}

impl Budget {
    /// Spends the budget for building `count` parts; false once it is used up.
    #[must_use]
    pub(super) fn types(&mut self, count: usize) -> bool {
        spend(&mut self.types, count)
    }

    /// Spends the budget for handling `count` bytes; false once it is used up.
    #[must_use]
    pub(super) fn bytes(&mut self, count: usize) -> bool {
        spend(&mut self.bytes, count)
    }

    /// Spends the budget for handling a value, whose nesting must be bounded by the caller.
    #[must_use]
    pub(super) fn value(&mut self, value: &Value) -> bool {
        const EACH: usize = 16;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => self.bytes(EACH),
            Value::String(text) => self.bytes(EACH.saturating_add(text.len())),
            Value::Array(items) => self.bytes(EACH) && items.iter().all(|item| self.value(item)),
            Value::Object(entries) => {
                self.bytes(EACH)
                    && entries
                        .iter()
                        .all(|(key, entry)| self.bytes(key.len()) && self.value(entry))
            }
        }
    }
}

fn spend(left: &mut usize, count: usize) -> bool {
    match left.checked_sub(count) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => {
            *left = 0;
            false
        }
    }
}
