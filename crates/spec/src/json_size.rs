//! The size of JSON, without writing it.

use std::io::{self, Write};

use serde_json::Value;

/// The size of a value as compact JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JsonSize {
    /// The length in bytes.
    pub bytes: usize,
    /// The number of characters.
    pub characters: usize,
}

impl JsonSize {
    /// The size of a value.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        let mut size = Self::default();
        // Counting cannot fail, and a `Value` has only keys that are texts.
        let _ = serde_json::to_writer(&mut size, value);
        size
    }
}

impl Write for JsonSize {
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        // Continuation bytes of UTF-8 begin no character.
        self.characters += bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
        Ok(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_characters_are_those_of_the_compact_text() {
        let value = serde_json::json!({"grüße": ["日本", 1.5, null, true, "\n"], "": {}});
        let text = value.to_string();
        let size = JsonSize::of(&value);
        assert_eq!(size.bytes, text.len());
        assert_eq!(size.characters, text.chars().count());
    }
}
