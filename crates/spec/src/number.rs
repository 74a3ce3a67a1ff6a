//! Numbers in JSON texts. A JSON value keeps an integer of 64 bits and a floating-point number of 64 bits. A text
//! with a number that neither keeps is refused, so that no number becomes another one.

use std::borrow::Cow;

use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use serde_json::Value;

/// Above this, not every integer is a floating-point number: 2^53.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A number that would become another one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the number {number} cannot be kept exactly; write it as a text, or with fewer digits")]
pub struct InexactNumber {
    /// The number, as it is written.
    pub number: String,
}

/// Reads JSON without changing a number: one that cannot be kept is an error. A whole number that is written
/// with an exponent, or that would be printed with one, becomes an integer.
///
/// # Errors
/// If the text is not JSON, does not describe a `T`, or has a number that cannot be kept.
pub fn read_json<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    // Only valid JSON has numbers.
    let _: IgnoredAny = serde_json::from_str(text)?;
    let plain = rewritten(text, kept).map_err(serde_json::Error::custom)?;
    serde_json::from_str(&plain)
}

/// Reads JSON as [`read_json`] does, and what is no JSON as a text.
///
/// # Errors
/// If the text is JSON with a number that cannot be kept.
pub fn read_json_or_text(text: &str) -> Result<Value, InexactNumber> {
    if serde_json::from_str::<IgnoredAny>(text).is_err() {
        return Ok(Value::String(text.to_owned()));
    }
    let plain = rewritten(text, kept)?;
    Ok(serde_json::from_str(&plain).unwrap_or_else(|_| Value::String(text.to_owned())))
}

/// The JSON text with each number that cannot be kept as a text, and whole numbers as [`read_json`] reads them. For
/// answers that cannot be refused as a whole: the number is refused where its type is checked.
#[must_use]
pub fn with_inexact_as_texts(json: &str) -> Cow<'_, str> {
    let as_text = |number: &str| kept(number).or_else(|_| Ok(Some(format!("\"{number}\""))));
    rewritten(json, as_text).unwrap_or(Cow::Borrowed(json))
}

/// The JSON text with its numbers as `kept` writes them; `None` is as they are.
fn rewritten(
    json: &str,
    kept: impl Fn(&str) -> Result<Option<String>, InexactNumber>,
) -> Result<Cow<'_, str>, InexactNumber> {
    let mut plain = String::new();
    let mut copied = 0;
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'-' | b'0'..=b'9' => {
                let length = bytes[at..]
                    .iter()
                    .take_while(|byte| {
                        matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
                    })
                    .count();
                let number = &json[at..at + length];
                if let Some(integer) = kept(number)? {
                    plain.push_str(&json[copied..at]);
                    plain.push_str(&integer);
                    copied = at + length;
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Ok(Cow::Borrowed(json));
    }
    plain.push_str(&json[copied..]);
    Ok(Cow::Owned(plain))
}

/// The place after the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// How a number is written instead, if not as it is.
fn kept(number: &str) -> Result<Option<String>, InexactNumber> {
    let is_integer = !number.contains(['.', 'e', 'E']);
    if is_integer && (number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()) {
        return Ok(None);
    }
    let inexact = || InexactNumber {
        number: number.to_owned(),
    };
    let value = number.parse::<f64>().ok().filter(|value| value.is_finite());
    let (Some(value), Some(decimal)) = (value, Decimal::of(number)) else {
        return Err(inexact());
    };
    // A fraction is kept to the precision of a floating-point number, like everywhere.
    let is_exact = Decimal::of(&value.to_string()).as_ref() == Some(&decimal);
    let is_lost = value == 0.0 && !decimal.digits.is_empty();
    if is_integer || is_lost || (value.abs() >= EXACT && !is_exact) {
        return Err(inexact());
    }
    let has_exponent = number.contains(['e', 'E']);
    let integer = decimal
        .integer()
        .filter(|_| has_exponent || value.abs() >= EXACT);
    Ok(integer.filter(|text| text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()))
}

/// A decimal number: its digits without zeros at both ends, and the power of ten of the last one.
#[derive(PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// `None` if the exponent is too large to count.
    fn of(number: &str) -> Option<Self> {
        let (is_negative, number) = match number.strip_prefix('-') {
            Some(number) => (true, number),
            None => (false, number),
        };
        let (mantissa, exponent) = match number.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (number, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let written = format!("{whole}{fraction}");
        let digits = written.trim_end_matches('0');
        let places = i64::try_from(fraction.len()).ok()?;
        let dropped = i64::try_from(written.len() - digits.len()).ok()?;
        let digits = digits.trim_start_matches('0').to_owned();
        let is_zero = digits.is_empty();
        Some(Self {
            is_negative: is_negative && !is_zero,
            exponent: match is_zero {
                true => 0,
                false => i64::from(exponent) - places + dropped,
            },
            digits,
        })
    }

    /// The number as an integer, if it is one of at most 20 digits.
    fn integer(&self) -> Option<String> {
        let zeros = usize::try_from(self.exponent)
            .ok()
            .filter(|zeros| *zeros <= 20)?;
        let sign = if self.is_negative { "-" } else { "" };
        let digits = match self.digits.as_str() {
            "" => "0",
            digits => digits,
        };
        Some(format!("{sign}{digits}{}", "0".repeat(zeros)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{Decimal, read_json, read_json_or_text, with_inexact_as_texts};

    fn read(text: &str) -> Option<Value> {
        read_json(text).ok()
    }

    #[test]
    fn whole_numbers_are_read_as_integers_and_never_printed_with_an_exponent() {
        for (text, printed) in [
            ("1e3", "1000"),
            ("1E+3", "1000"),
            ("1.5e1", "15"),
            ("1e16", "10000000000000000"),
            ("-2e18", "-2000000000000000000"),
            ("100000000000000000.0", "100000000000000000"),
            ("12345678901234567890", "12345678901234567890"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("0e5", "0"),
            ("5.0", "5.0"),
            ("19.5", "19.5"),
            ("1.10", "1.1"),
            ("0.00001", "0.00001"),
            (
                "{\"a\": [1e3, \"1e3\\\"\", -1e0]}",
                "{\"a\":[1000,\"1e3\\\"\",-1]}",
            ),
        ] {
            assert_eq!(read(text).unwrap().to_string(), printed, "{text}");
        }
    }

    #[test]
    fn a_number_that_cannot_be_kept_is_refused() {
        for text in [
            "123456789012345678901234",
            "18446744073709551616",
            "-9223372036854775809",
            "9007199254740993.0",
            "12345678901234567.89",
            "1.2345678901234567890123e22",
            "1e400",
            "1e-400",
            "{\"a\": [\"x\", 123456789012345678901234]}",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        let error = read_json::<Value>("[123456789012345678901234]").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("the number 123456789012345678901234 cannot")
        );
        // Numbers in texts and names are texts.
        let text = "{\"123456789012345678901234\": \"123456789012345678901234\"}";
        assert_eq!(with_inexact_as_texts(text), text);
        assert_eq!(
            with_inexact_as_texts("{\"n\": 123456789012345678901234, \"m\": 1e3}"),
            "{\"n\": \"123456789012345678901234\", \"m\": 1000}"
        );
        assert!(read_json_or_text("123456789012345678901234").is_err());
        assert_eq!(
            read_json_or_text("no 123456789012345678901234"),
            Ok(json!("no 123456789012345678901234"))
        );
    }

    #[test]
    fn a_number_with_an_exponent_beyond_integers_keeps_its_value() {
        assert_eq!(read("6.022e23"), Some(json!(6.022e23)));
        assert_eq!(read("1e-7"), Some(json!(1e-7)));
    }

    proptest! {
        #[test]
        fn a_number_that_is_read_has_the_value_that_was_written(
            whole in "-?(0|[1-9][0-9]{0,25})", fraction in "(\\.[0-9]{1,6})?", exponent in "([eE][+-]?[0-9]{1,2})?",
        ) {
            let text = format!("{whole}{fraction}{exponent}");
            if let Some(value) = read(&text) {
                let (written, kept) = (Decimal::of(&text).unwrap(), value.to_string());
                let kept = Decimal::of(&kept).unwrap();
                // Below 2^53 a fraction has the precision of a floating-point number.
                let digits = written.digits.len();
                let is_same = written == kept;
                prop_assert!(is_same || (digits > 15 && value.as_f64().unwrap().abs() < super::EXACT), "{text}");
            } else {
                let digits = Decimal::of(&text).map_or(99, |decimal| decimal.digits.len());
                prop_assert!(digits > 15 || whole.trim_start_matches('-').len() > 19, "{text}");
            }
        }

        #[test]
        fn every_value_that_json_keeps_is_read_as_it_is(integer in any::<i64>(), float in any::<f64>()) {
            prop_assume!(float.is_finite());
            prop_assert_eq!(read(&integer.to_string()), Some(json!(integer)));
            let printed = json!(float).to_string();
            let value = read(&printed).unwrap();
            prop_assert_eq!(value.as_f64().unwrap().to_bits(), float.to_bits(), "{}", printed);
        }
    }
}
