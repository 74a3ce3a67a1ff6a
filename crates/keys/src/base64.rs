//! Base64 for URLs, without padding (RFC 4648, section 5).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The text of some bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        // One byte makes two characters, two make three, three make four.
        for position in 0..=chunk.len() {
            let sextet = (group >> (18 - 6 * position)) & 0x3f;
            text.extend(ALPHABET.get(sextet as usize).map(|byte| char::from(*byte)));
        }
    }
    text
}

/// The bytes of a text; `None` if it is not valid.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for chunk in text.as_bytes().chunks(4) {
        let mut group = 0;
        for (position, character) in chunk.iter().enumerate() {
            let sextet = ALPHABET.iter().position(|known| known == character)?;
            group |= u32::try_from(sextet).ok()? << (18 - 6 * position);
        }
        let count = chunk.len().checked_sub(1).filter(|count| *count > 0)?;
        let decoded = group.to_be_bytes();
        bytes.extend(decoded.get(1..=count)?);
        // Bits that no byte has must be zero, so that bytes have one text only.
        if decoded.get(count + 1..)?.iter().any(|rest| *rest != 0) {
            return None;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn the_examples_of_the_rfc_are_encoded_and_decoded() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text), Some(bytes.as_bytes().to_vec()));
        }
        assert_eq!(encode(&[0xff, 0xef]), "_-8");
        assert_eq!(decode("_-8"), Some(vec![0xff, 0xef]));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["Z", "Zg==", "Zh", "Z g", "Zm9v+"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
