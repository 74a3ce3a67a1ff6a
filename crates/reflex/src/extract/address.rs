//! Street addresses: a number, the name of a street, and optionally city, state and country.

use crate::text::Text;

/// The longest street name in words.
const LONGEST_STREET: usize = 5;

/// The addresses of a text as ranges of tokens.
pub(crate) fn addresses(text: &Text) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.tokens.len() {
        match street_end(text, at) {
            Some(end) => {
                let to = with_surroundings(text, end);
                found.push((at, to));
                at = to;
            }
            None => at += 1,
        }
    }
    found
}

/// The token after the street, if one begins here: `2020 Addison Street`, `221B Baker St.`.
fn street_end(text: &Text, at: usize) -> Option<usize> {
    let first = text.tokens.get(at)?;
    let numbered = first.lower.len() <= 6 && first.lower.starts_with(|c: char| c.is_ascii_digit());
    if !numbered {
        return None;
    }
    // `221B` is tokenized as a number and a letter.
    let letter = text
        .tokens
        .get(at + 1)
        .is_some_and(|next| !next.spaced && next.lower.len() == 1 && next.is_word());
    let start = at + 1 + usize::from(letter);
    for end in start + 1..=start + LONGEST_STREET {
        let token = text.tokens.get(end)?;
        let between = text.tokens[start..end].iter().all(|token| {
            token.is_word() && token.capital
                || token.is_number()
                || matches!(token.lower.as_str(), "." | "th" | "st" | "nd" | "rd")
        });
        if !between {
            return None;
        }
        if is_street(&token.lower) && token.capital {
            let point = text
                .tokens
                .get(end + 1)
                .is_some_and(|next| next.is('.') && !next.spaced && token.lower.len() < 5)
                && text.tokens.get(end + 2).is_some_and(|next| next.is(','));
            return Some(end + 1 + usize::from(point));
        }
    }
    None
}

fn is_street(lower: &str) -> bool {
    matches!(
        lower,
        "street"
            | "st"
            | "avenue"
            | "ave"
            | "road"
            | "rd"
            | "boulevard"
            | "blvd"
            | "lane"
            | "ln"
            | "drive"
            | "dr"
            | "way"
            | "court"
            | "ct"
            | "place"
            | "square"
            | "parkway"
            | "highway"
            | "terrace"
            | "alley"
            | "circle"
            | "plaza"
            | "broadway"
    )
}

/// The token after the city, state and country that follow a street: `, Berkeley, CA 94704, USA`.
fn with_surroundings(text: &Text, end: usize) -> usize {
    let mut to = end;
    while text.lower(to) == ","
        && text
            .tokens
            .get(to + 1)
            .is_some_and(|next| next.capital && next.is_word())
    {
        let mut next = to + 2;
        while text.tokens.get(next).is_some_and(|token| {
            token.capital && token.is_word() || token.is_number() && token.lower.len() == 5
        }) {
            next += 1;
        }
        to = next;
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_includes_its_city_and_country() {
        let found = |source: &str| {
            let text = Text::new(source);
            addresses(&text)
                .into_iter()
                .map(|(from, to)| text.slice(from, to).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            found("Get me a ride from 2020 Addison Street, Berkeley, CA 94704, USA, for 2 people"),
            ["2020 Addison Street, Berkeley, CA 94704, USA"]
        );
        assert_eq!(
            found("I live at 221B Baker Street in London"),
            ["221B Baker Street"]
        );
        assert!(found("5 Big Macs on the street").is_empty());
    }
}
