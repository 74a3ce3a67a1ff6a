//! Verbatim parts of a text: quoted text, and lists or records in brackets.

use serde_json::Value;

use crate::text::Text;

/// The longest quotation, in bytes.
const LONGEST: usize = 4_000;

/// A verbatim part of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verbatim {
    /// The quoted text, or the value in brackets.
    pub(crate) value: Value,
    /// The first token, quotes or brackets included.
    pub(crate) from: usize,
    /// The token after it.
    pub(crate) to: usize,
}

/// All quoted texts, in order, without nesting.
pub(crate) fn quotations(text: &Text) -> Vec<Verbatim> {
    let source = &text.source;
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(character) = source[at..].chars().next() {
        let next = at + character.len_utf8();
        if let Some(closing) = closing_of(character)
            && opens(source, at, character)
            && let Some(end) = find_closing(source, next, closing)
            && !source[next..end].trim().is_empty()
        {
            let after = end + closing.len_utf8();
            found.push(Verbatim {
                value: Value::from(source[next..end].trim()),
                from: text.token_at(at),
                to: text.token_at(after - 1) + 1,
            });
            at = after;
        } else {
            at = next;
        }
    }
    found
}

fn closing_of(opening: char) -> Option<char> {
    Some(match opening {
        '"' => '"',
        '\'' => '\'',
        '`' => '`',
        '“' | '„' => '”',
        '‘' => '’',
        '«' => '»',
        '「' => '」',
        _ => return None,
    })
}

fn opens(source: &str, at: usize, quote: char) -> bool {
    let before = source[..at].chars().next_back();
    let after = source[at + quote.len_utf8()..].chars().next();
    let is_separate = before.is_none_or(|before| !before.is_alphanumeric());
    let begins = after.is_some_and(|after| !after.is_whitespace());
    is_separate && (begins || quote != '\'')
}

/// The position of the closing quote. A quote before a letter is an apostrophe.
fn find_closing(source: &str, from: usize, closing: char) -> Option<usize> {
    let window = crate::text::beginning(&source[from..], LONGEST);
    window
        .match_indices(closing)
        .map(|(offset, _)| from + offset)
        .find(|&end| {
            let after = source[end + closing.len_utf8()..].chars().next();
            after.is_none_or(|after| !after.is_alphanumeric())
        })
}

/// All lists and records in brackets, and tuples of numbers in parentheses.
pub(crate) fn brackets(text: &Text) -> Vec<Verbatim> {
    let mut found = Vec::new();
    let mut at = 0;
    // The limit avoids searching again and again for brackets that never close.
    let mut failures = 0;
    while at < text.tokens.len() && failures < 50 {
        let token = &text.tokens[at];
        if token.is('[') || token.is('{') || token.is('(') {
            if let Some(verbatim) = bracket_at(text, at) {
                at = verbatim.to;
                found.push(verbatim);
                continue;
            }
            failures += 1;
        }
        at += 1;
    }
    found
}

fn bracket_at(text: &Text, from: usize) -> Option<Verbatim> {
    let mut depth = 0_usize;
    for to in from..text.tokens.len() {
        let token = &text.tokens[to];
        if token.is('[') || token.is('{') || token.is('(') {
            depth += 1;
        } else if token.is(']') || token.is('}') || token.is(')') {
            depth -= 1;
            if depth == 0 {
                let inner = text.slice(from, to + 1);
                let value = value_in(inner)?;
                return Some(Verbatim {
                    value,
                    from,
                    to: to + 1,
                });
            }
        }
    }
    None
}

/// The value of a bracketed text, in JSON or Python notation.
pub(crate) fn value_in(inner: &str) -> Option<Value> {
    let is_tuple = inner.starts_with('(');
    let normal = normalised(inner);
    let value: Value = serde_json::from_str(&normal)
        .ok()
        .or_else(|| bare_items(inner))?;
    match &value {
        // `(BMI)` and `(or so)` are remarks; only numbers form a tuple.
        Value::Array(items) if is_tuple => {
            (items.len() > 1 && items.iter().all(Value::is_number)).then_some(value)
        }
        Value::Array(_) | Value::Object(_) => Some(value),
        _ => None,
    }
}

fn normalised(inner: &str) -> String {
    let mut json = String::with_capacity(inner.len());
    let mut double = false;
    let mut word = String::new();
    let flush = |word: &mut String, json: &mut String| {
        json.push_str(match word.as_str() {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            other => other,
        });
        word.clear();
    };
    for character in inner.chars() {
        if character.is_alphabetic() && !double {
            word.push(character);
            continue;
        }
        flush(&mut word, &mut json);
        match character {
            '"' => {
                double = !double;
                json.push('"');
            }
            '\'' if !double => json.push('"'),
            '(' if !double => json.push('['),
            ')' if !double => json.push(']'),
            other => json.push(other),
        }
    }
    flush(&mut word, &mut json);
    json
}

/// `[apple, pear]`: items without quotes.
fn bare_items(inner: &str) -> Option<Value> {
    let inside = inner.strip_prefix('[')?.strip_suffix(']')?;
    if inside.contains(['[', '{', ':']) {
        return None;
    }
    let items: Vec<Value> = inside
        .split(',')
        .map(|item| item.trim().trim_matches(['"', '\'']))
        .filter(|item| !item.is_empty())
        .map(|item| {
            item.parse::<f64>()
                .ok()
                .and_then(super::quantity::json_number)
                .unwrap_or_else(|| Value::from(item))
        })
        .collect();
    (!items.is_empty()).then_some(Value::Array(items))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn quoted(text: &str) -> Vec<Value> {
        quotations(&Text::new(text))
            .into_iter()
            .map(|q| q.value)
            .collect()
    }

    #[test]
    fn apostrophes_do_not_end_a_quotation() {
        assert_eq!(
            quoted("the review 'I love it! It's always fresh.'. And Ann's \"other\" one"),
            [json!("I love it! It's always fresh."), json!("other")]
        );
    }

    #[test]
    fn unclosed_quotes_are_not_quotations() {
        assert!(quoted("the dogs' owner said \" and left").is_empty());
    }

    #[test]
    fn lists_records_and_tuples_are_values() {
        let text = Text::new("[1, -2.5] and [[1,2],[3,4]] {'a': True} (40.7, -74.0) (BMI) [x, y]");
        let found: Vec<Value> = brackets(&text).into_iter().map(|b| b.value).collect();
        assert_eq!(
            found,
            [
                json!([1, -2.5]),
                json!([[1, 2], [3, 4]]),
                json!({"a": true}),
                json!([40.7, -74.0]),
                json!(["x", "y"])
            ]
        );
    }
}
