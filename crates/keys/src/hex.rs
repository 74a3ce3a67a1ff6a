//! Bytes as hexadecimal digits.

use std::fmt::Write as _;

/// The digits of some bytes, in lower case.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// The bytes of a text of exactly as many digits as they need, in either case.
#[must_use]
pub fn decode<const LENGTH: usize>(text: &str) -> Option<[u8; LENGTH]> {
    let digits = text.as_bytes();
    if digits.len() != LENGTH * 2 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = [0; LENGTH];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let [high, low] = *pair else { return None };
        *byte = u8::try_from(digit(high)? * 16 + digit(low)?).ok()?;
    }
    Some(bytes)
}

/// The bytes of a text of any even number of digits, in either case.
#[must_use]
pub fn decode_any(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        decode::<1>(pair).map(|[byte]| byte)
    });
    bytes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_back() {
        let bytes = [0, 1, 0x7f, 0xff];
        assert_eq!(encode(&bytes), "00017fff");
        assert_eq!(decode("00017FfF"), Some(bytes));
        for wrong in ["", "00017ff", "00017fff0", "00017ffg", "0é017ff"] {
            assert_eq!(decode::<4>(wrong), None, "{wrong}");
        }
        assert_eq!(decode_any("00017FfF"), Some(bytes.to_vec()));
        for wrong in ["0", "00017ffg", "0é017ff"] {
            assert_eq!(decode_any(wrong), None, "{wrong}");
        }
    }
}
