//! Numbers in a text: digits, words, scales, signs and ordinals, with their unit, currency or per cent sign.

use crate::lexicon::{currencies, units, words};
use crate::text::{Text, TokenKind};

/// A number with its unit or currency.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantity {
    /// The number as stated, scales multiplied in, per cents not divided.
    pub(crate) value: f64,
    /// Its unit.
    pub(crate) unit: Option<units::Unit>,
    /// The code of its currency.
    pub(crate) currency: Option<&'static str>,
    /// Whether it is an ordinal, such as `19th`.
    pub(crate) ordinal: bool,
    /// Whether it was written in words.
    pub(crate) spelled: bool,
    /// The first token of the number itself.
    pub(crate) from: usize,
    /// The token after the number itself.
    pub(crate) to: usize,
    /// The token after number and unit.
    pub(crate) end: usize,
}

/// All numbers of a text, in order, without overlaps.
pub(crate) fn numbers(text: &Text) -> Vec<Quantity> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.tokens.len() {
        match number_at(text, at) {
            Some(quantity) => {
                at = quantity.end.max(at + 1);
                found.push(quantity);
            }
            None => at += 1,
        }
    }
    found
}

fn number_at(text: &Text, at: usize) -> Option<Quantity> {
    let token = text.tokens.get(at)?;
    let (mut value, mut to, spelled) = match token.kind {
        TokenKind::Number => (digits(&token.lower)?, at + 1, false),
        TokenKind::Word => {
            let (value, to) = spelled_number(text, at)?;
            (value, to, true)
        }
        TokenKind::Symbol => return None,
    };
    let mut from = at;
    let mut currency = None;
    if let Some(before) = at.checked_sub(1) {
        let sign = &text.tokens[before];
        let tight = !token.spaced;
        if tight && (sign.is('-') || sign.is('−')) {
            let previous = before.checked_sub(1).map(|earlier| &text.tokens[earlier]);
            // A hyphen after a word or number joins (`covid-19`, `2022-2023`); otherwise it is a minus sign.
            if sign.spaced || previous.is_none_or(|token| token.kind == TokenKind::Symbol) {
                value = -value;
                from = before;
            }
        }
        let sign_at = if from < at {
            before.checked_sub(1)
        } else {
            Some(before)
        };
        if let Some(sign_at) = sign_at
            && text.written(sign_at).chars().all(currencies::is_sign)
        {
            currency = currencies::code(text.written(sign_at));
            from = sign_at;
        }
    }
    // Scales: `5 million`, `$5k`, `$2M`.
    while let Some(next) = text.tokens.get(to) {
        let written = text.written(to);
        let scale = words::scale_word(&next.lower)
            .filter(|_| !spelled)
            .or(match written {
                "k" if !next.spaced => Some(1e3),
                // `298K and` is a temperature, `10K users` and `$10K` are thousands.
                "K" if !next.spaced && (currency.is_some() || is_counted(text, to + 1)) => {
                    Some(1e3)
                }
                "M" if !next.spaced => Some(1e6),
                "B" if !next.spaced && currency.is_some() => Some(1e9),
                _ => None,
            });
        let Some(scale) = scale else { break };
        value = units::tidy(value * scale);
        to += 1;
    }
    let ordinal = text.tokens.get(to).is_some_and(|next| {
        !next.spaced && matches!(next.lower.as_str(), "st" | "nd" | "rd" | "th")
    });
    if ordinal {
        to += 1;
    }
    let mut end = to;
    let mut unit = None;
    if !ordinal {
        // `3-day trip`, `70 kg`, `5%`.
        let skip = usize::from(text.tokens.get(to).is_some_and(|t| t.is('-') && !t.spaced));
        if let Some((found, length)) = unit_at(text, to + skip) {
            unit = Some(found);
            end = to + skip + length;
        } else if currency.is_none()
            && let Some((code, length)) = currency_at(text, to)
        {
            currency = Some(code);
            end = to + length;
        }
    }
    Some(Quantity {
        value,
        unit,
        currency,
        ordinal,
        spelled,
        from,
        to,
        end,
    })
}

fn is_counted(text: &Text, at: usize) -> bool {
    text.tokens
        .get(at)
        .is_some_and(|next| next.kind == TokenKind::Word && !words::is_function_word(&next.lower))
}

fn digits(lower: &str) -> Option<f64> {
    lower.replace(',', "").parse().ok()
}

/// A number in words: `five`, `twenty-five`, `two hundred and ten`, `a dozen`, `half`.
fn spelled_number(text: &Text, at: usize) -> Option<(f64, usize)> {
    let first = text.lower(at);
    if first == "a" || first == "an" {
        let scale = words::scale_word(text.lower(at + 1))?;
        return Some((scale, at + 2));
    }
    let mut total = 0.0;
    let mut group = words::number_word(first)?;
    let mut to = at + 1;
    let mut last = group;
    loop {
        let hyphen = usize::from(text.tokens.get(to).is_some_and(|t| t.is('-')));
        let and = usize::from(text.lower(to) == "and" && last >= 100.0);
        let next = text.lower(to + hyphen + and);
        if let Some(scale) = words::scale_word(next).filter(|_| and == 0) {
            if scale >= 1000.0 {
                total += group * scale;
                group = 0.0;
            } else {
                group *= scale;
            }
            last = scale;
        } else if let Some(digit) = words::number_word(next) {
            let joins = ((20.0..100.0).contains(&last) && digit < 10.0 && and == 0)
                || (last >= 100.0 && digit < 100.0);
            if !joins {
                break;
            }
            group += digit;
            last = digit;
        } else {
            break;
        }
        to += hyphen + and + 1;
    }
    // `one of them`, `no one`: not a number.
    if first == "one" && to == at + 1 && (text.lower(to) == "of" || text.before(at) == "no") {
        return None;
    }
    Some((total + group, to))
}

/// The unit that begins at a token, with the number of its tokens. Longer spellings first.
pub(crate) fn unit_at(text: &Text, at: usize) -> Option<(units::Unit, usize)> {
    for length in (1..=5).rev() {
        if at + length > text.tokens.len() {
            continue;
        }
        let spelling = text.slice(at, at + length);
        if spelling.len() > 32 {
            continue;
        }
        let Some(unit) = units::unit(spelling).or_else(|| {
            // `m / s`, `sq. ft`
            let tight: String = spelling.split_whitespace().collect();
            (length > 1).then(|| units::unit(&tight)).flatten()
        }) else {
            continue;
        };
        // `5 in Paris`: a preposition, not inches; `a 4 A`: a letter is a unit only next to its number.
        let letter = spelling.chars().count() == 1 && spelling.chars().all(char::is_alphabetic);
        let tight = !text.tokens[at].spaced;
        if letter && !tight && matches!(spelling, "A" | "C" | "F" | "H" | "g" | "s" | "h") {
            let next = text.tokens.get(at + 1);
            if next.is_some_and(|next| {
                next.kind == TokenKind::Word && !words::is_function_word(&next.lower)
            }) {
                return None;
            }
        }
        return Some((unit, length));
    }
    None
}

fn currency_at(text: &Text, at: usize) -> Option<(&'static str, usize)> {
    (1..=3).rev().find_map(|length| {
        if at + length > text.tokens.len() {
            return None;
        }
        let spelling = text.slice(at, at + length);
        // `try` and `php` are ordinary words in lower case.
        if spelling == "try" || spelling == "php" {
            return None;
        }
        currencies::code(spelling).map(|code| (code, length))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<f64> {
        numbers(&Text::new(text)).iter().map(|n| n.value).collect()
    }

    #[test]
    fn digits_words_and_scales_are_numbers() {
        assert_eq!(
            values("three of 1,200 and 5 million, $2k"),
            [3.0, 1200.0, 5e6, 2000.0]
        );
        assert_eq!(values("twenty-five, two hundred and ten"), [25.0, 210.0]);
        assert_eq!(values("a dozen eggs, 1e-9 and -3.5"), [12.0, 1e-9, -3.5]);
    }

    #[test]
    fn a_hyphen_between_words_is_not_a_minus_sign() {
        assert_eq!(values("covid-19 and 2022-2023"), [19.0, 2022.0, 2023.0]);
        assert_eq!(values("b=-3 and [-1, 2]"), [-3.0, -1.0, 2.0]);
    }

    #[test]
    fn units_and_currencies_belong_to_their_number() {
        let text =
            Text::new("70kg, 100 µF, 4 m/s^2, $400, 150 Euros, 5%, a 3-day trip, 1800 square feet");
        let found: Vec<_> = numbers(&text)
            .iter()
            .map(|n| (n.unit.map(|u| u.name), n.currency))
            .collect();
        assert_eq!(
            found,
            [
                (Some("kilogram"), None),
                (Some("microfarad"), None),
                (Some("meter per second squared"), None),
                (None, Some("USD")),
                (None, Some("EUR")),
                (Some("percent"), None),
                (Some("day"), None),
                (Some("square foot"), None),
            ]
        );
    }

    #[test]
    fn ordinals_are_recognised() {
        let found = numbers(&Text::new("the 19th century"));
        assert!(found[0].ordinal && found[0].value == 19.0);
    }
}
