//! Numbers in JSON text. A JSON value holds a number as a 64-bit integer or float, so a number with more digits
//! would silently become another one: an account number of 24 digits, for example. It is found in the text, before
//! that is parsed.

use std::borrow::Cow;

/// The first number in a JSON text that a JSON value cannot hold: with more digits than it can distinguish, or too
/// large. Trailing zeros and exponents do not count: `1.10` is the number `1.1`.
#[must_use]
pub fn inexact_number(json: &str) -> Option<&str> {
    numbers(json)
        .map(|(start, end)| &json[start..end])
        .find(|number| !is_exact(number))
}

/// A JSON text in which every number that a JSON value cannot hold is a string with its digits.
#[must_use]
pub fn inexact_numbers_as_text(json: &str) -> Cow<'_, str> {
    let mut text = String::new();
    let mut copied = 0;
    for (start, end) in numbers(json) {
        if !is_exact(&json[start..end]) {
            text.push_str(&json[copied..start]);
            text.push('"');
            text.push_str(&json[start..end]);
            text.push('"');
            copied = end;
        }
    }
    match copied {
        0 => Cow::Borrowed(json),
        _ => Cow::Owned(text + &json[copied..]),
    }
}

/// Where the numbers of a JSON text begin and end.
fn numbers(json: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let bytes = json.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    at += 1;
                    while let Some(&byte) = bytes.get(at) {
                        at += if byte == b'\\' { 2 } else { 1 };
                        if byte == b'"' {
                            break;
                        }
                    }
                }
                b'-' | b'0'..=b'9' => {
                    let start = at;
                    let is_part = |byte: &u8| {
                        byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E')
                    };
                    while bytes.get(at).is_some_and(is_part) {
                        at += 1;
                    }
                    return Some((start, at));
                }
                _ => at += 1,
            }
        }
        None
    })
}

fn is_exact(number: &str) -> bool {
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return true;
    }
    match number.parse::<f64>() {
        // Not a number after all: the parser of the JSON says so.
        Err(_) => true,
        Ok(value) => value.is_finite() && decimal(number) == decimal(&format!("{value:e}")),
    }
}

/// The significant digits of a number, and the power of ten of the first.
fn decimal(number: &str) -> (String, i64) {
    let number = number.trim_start_matches(['-', '+']);
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    let leading = i64::try_from(all.len() - digits.len()).unwrap_or(i64::MAX);
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        return (String::new(), 0);
    }
    let point = i64::try_from(whole.len()).unwrap_or(i64::MAX);
    let exponent: i64 = exponent.parse().unwrap_or(i64::MAX);
    let first = exponent.saturating_add(point).saturating_sub(leading);
    (digits.to_owned(), first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_that_a_value_cannot_hold_are_found() {
        for exact in [
            "{\"a\": [19.5, 1.10, 1e3, 0.0, -0, 12345678901234567890, 1E-7, 100000000000000000000]}",
            "{\"12345678901234567890123\": \"1234567890123456789012345 \\\" 12345678901234567890123\"}",
        ] {
            assert_eq!(inexact_number(exact), None);
            assert!(matches!(inexact_numbers_as_text(exact), Cow::Borrowed(_)));
        }
        for inexact in [
            "123456789012345678901234",
            "-99999999999999999999",
            "0.12345678901234567890123",
            "1e999",
        ] {
            let json = format!("{{\"a\": 1, \"b\": {inexact}}}");
            assert_eq!(inexact_number(&json), Some(inexact));
            assert_eq!(
                inexact_numbers_as_text(&json),
                format!("{{\"a\": 1, \"b\": \"{inexact}\"}}")
            );
        }
    }

    proptest! {
        /// What a value holds and prints is what was written.
        #[test]
        fn every_number_keeps_its_value_or_is_found(
            digits in "(0|[1-9][0-9]{0,30})", fraction in "(\\.[0-9]{1,25})?", exponent in "([eE][+-]?[0-9]{1,3})?", minus: bool,
        ) {
            let sign = if minus { "-" } else { "" };
            let written = format!("{sign}{digits}{fraction}{exponent}");
            let held = serde_json::from_str::<serde_json::Value>(&written).ok().map(|value| value.to_string());
            match inexact_number(&written) {
                None => prop_assert_eq!(decimal(&held.unwrap_or_default()), decimal(&written)),
                Some(found) => {
                    prop_assert_eq!(found, &written);
                    prop_assert_ne!(held.map(|held| decimal(&held)), Some(decimal(&written)));
                }
            }
        }
    }
}
