//! How much one schema may cost to read. References let a short schema describe an exponentially
//! long type, so what is built is counted, not what is read.

use serde_json::Value;

/// How many types, fields and options one schema may become.
pub(super) const MAX_TYPES: usize = 10_000;

/// How many bytes of names, texts and values may be looked at and copied along the way.
const MAX_BYTES: usize = 32 << 20;

/// What is left to spend.
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
    /// Pays for building `count` parts; false once there is nothing left.
    #[must_use]
    pub(super) fn types(&mut self, count: usize) -> bool {
        spend(&mut self.types, count)
    }

    /// Pays for handling `count` bytes; false once there is nothing left.
    #[must_use]
    pub(super) fn bytes(&mut self, count: usize) -> bool {
        spend(&mut self.bytes, count)
    }

    /// Pays for handling a value, which must not nest too deep to walk.
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
