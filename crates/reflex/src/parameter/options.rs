//! Options, examples and defaults in the descriptions of parameters. Real descriptions state these in prose, so
//! they are found by typical phrases.

use serde_json::Value;

use crate::lexicon::words;
use crate::text::{Text, name_words, stem};

/// A value that a parameter can take, with the words that stand for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParameterOption {
    /// The value.
    pub(crate) value: Value,
    /// The stems of the value itself.
    pub(crate) stems: Vec<String>,
    /// The stems of its explanation in the description.
    pub(crate) gloss: Vec<String>,
}

/// The values of an `enum`, each with its explanation in the description.
pub(crate) fn declared(values: &[Value], description: &str) -> Vec<ParameterOption> {
    let texts: Vec<String> = values.iter().map(written).collect();
    values
        .iter()
        .zip(&texts)
        .take(400)
        .filter(|(value, _)| !value.is_null())
        .map(|(value, text)| ParameterOption {
            value: value.clone(),
            stems: value_stems(text),
            gloss: gloss(description, text, &texts),
        })
        .collect()
}

/// A value as text, strings without quotes.
pub(crate) fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn value_stems(text: &str) -> Vec<String> {
    let mut stems: Vec<String> = name_words(text).iter().map(|word| stem(word)).collect();
    if stems.len() > 1 {
        stems.retain(|stem| !words::is_function_word(stem));
    }
    stems
}

/// Options that a description lists in prose: `'Celsius' or 'Fahrenheit'`, `e.g. oil, acrylic`.
pub(crate) fn described(description: &str) -> Vec<ParameterOption> {
    let mut texts: Vec<String> = quoted(description);
    if texts.is_empty() {
        texts = enumerated(description);
    }
    texts.retain(|text| text.len() <= 40 && text.split_whitespace().count() <= 4);
    let default = default(description);
    let only_default = texts.len() == 1
        && default.as_ref().and_then(Value::as_str) == texts.first().map(String::as_str);
    if only_default {
        return Vec::new();
    }
    texts.dedup();
    texts
        .iter()
        .map(|text| ParameterOption {
            value: Value::from(text.as_str()),
            stems: value_stems(text),
            gloss: gloss(description, text, &texts),
        })
        .collect()
}

fn quoted(description: &str) -> Vec<String> {
    crate::extract::quoted::quotations(&Text::new(description))
        .into_iter()
        .filter_map(|quotation| quotation.value.as_str().map(str::to_owned))
        .collect()
}

/// Whether a description seems to list all options.
pub(crate) fn lists_all(description: &str) -> bool {
    let lower = description.to_lowercase();
    let open = [
        "e.g",
        "such as",
        "etc",
        "for example",
        "like ",
        "example",
        "i.e",
    ];
    !open.iter().any(|cue| lower.contains(cue))
}

/// The items after `such as`, `e.g.`, `like`, `options:`, `can be` or `one of`, separated by commas and `or`.
fn enumerated(description: &str) -> Vec<String> {
    let lower = description.to_lowercase();
    // If lower case has another length in bytes, positions in it are not valid for the original.
    if lower.len() != description.len() {
        return Vec::new();
    }
    const CUES: [&str; 16] = [
        "such as ",
        "e.g. ",
        "e.g., ",
        "eg. ",
        "i.e., ",
        "i.e. ",
        "options are ",
        "options: ",
        "options include ",
        "one of ",
        "can be ",
        "values are ",
        "values: ",
        "either ",
        "choose from ",
        "like ",
    ];
    let Some((start, cue)) = CUES
        .iter()
        .filter_map(|cue| lower.find(cue).map(|at| (at, cue)))
        .min_by_key(|(at, _)| *at)
    else {
        return Vec::new();
    };
    let Some(rest) = description.get(start + cue.len()..) else {
        return Vec::new();
    };
    let end = rest
        .find(". ")
        .or_else(|| rest.find(['(', ')', ';', '\n']))
        .unwrap_or(rest.len());
    rest[..end]
        .trim_end_matches(['.', ')'])
        .trim_start_matches(['[', '('])
        .split([',', '|', '/'])
        .flat_map(|part| part.split(" or "))
        .flat_map(|part| part.split(" and "))
        .map(|part| {
            part.trim()
                .trim_start_matches("or ")
                .trim_start_matches("and ")
                .trim_matches([']', '[', '"', '\'', '`', '.'])
                .trim()
                .to_owned()
        })
        .filter(|part| {
            !part.is_empty() && part != "etc" && !words::is_function_word(&part.to_lowercase())
        })
        .take(30)
        .collect()
}

/// The stems after a value in the description, or in parentheses next to it, up to the next value.
fn gloss(description: &str, value: &str, all: &[String]) -> Vec<String> {
    if value.is_empty() {
        return Vec::new();
    }
    let found = find_word(description, value);
    let Some(at) = found else {
        return Vec::new();
    };
    let rest = &description[at + value.len()..];
    let explains = rest
        .trim_start_matches(['\'', '"', '`', '”', ' '])
        .starts_with(['(', '-', ':', '=', '–'])
        || ["for ", "refers ", "means ", "is ", "stands "]
            .iter()
            .any(|word| {
                rest.trim_start_matches(['\'', '"', '`', '”', ' '])
                    .starts_with(word)
            });
    if !explains {
        return Vec::new();
    }
    let next = all
        .iter()
        .filter(|other| other.as_str() != value && !other.is_empty())
        .filter_map(|other| find_word(rest, other))
        .chain(rest.find(['.', ',', ';', ')', '\n']).filter(|end| *end > 2))
        .min()
        .unwrap_or(rest.len());
    Text::new(&rest[..next])
        .tokens
        .into_iter()
        .filter(|token| {
            token.is_word()
                && !words::is_function_word(&token.lower)
                && !words::is_generic_parameter_word(&token.lower)
        })
        .map(|token| token.stem)
        .take(8)
        .collect()
}

/// The position of a value in a text, as a whole word.
fn find_word(text: &str, value: &str) -> Option<usize> {
    text.match_indices(value).map(|(at, _)| at).find(|&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + value.len()..].chars().next();
        before.is_none_or(|c| !c.is_alphanumeric()) && after.is_none_or(|c| !c.is_alphanumeric())
    })
}

/// The description up to its defaults, options and examples.
pub(crate) fn meaning(description: &str) -> &str {
    let lower = description.to_lowercase();
    if lower.len() != description.len() {
        return description;
    }
    let end = [
        "default",
        "e.g",
        "for example",
        "example:",
        "example,",
        "such as",
        "if not provided",
        "if not specified",
        "options:",
        "options are",
    ]
    .iter()
    .filter_map(|cue| lower.find(cue))
    .filter(|at| *at > 8)
    .min()
    .unwrap_or(description.len());
    description.get(..end).unwrap_or(description)
}

/// The default value in a description: `Default is 5`, `defaults to 'units'`.
pub(crate) fn default(description: &str) -> Option<Value> {
    let lower = description.to_lowercase();
    if lower.len() != description.len() {
        return None;
    }
    let at = lower.rfind("default")?;
    let rest = description.get(at + "default".len()..)?;
    let mut rest = rest.trim_start_matches('s').trim_start();
    for lead in [
        "value", "set", "level", "is", "to", "be", "of", "set", "to", ":", "=",
    ] {
        rest = rest.strip_prefix(lead).unwrap_or(rest).trim_start();
    }
    if let Some(quote) = rest
        .chars()
        .next()
        .filter(|c| matches!(c, '\'' | '"' | '`'))
    {
        let inner = &rest[1..];
        return inner.find(quote).map(|end| Value::from(&inner[..end]));
    }
    let word: String = rest
        .chars()
        .take_while(|c| !c.is_whitespace() && !matches!(c, ',' | ';' | ')'))
        .collect();
    let word = word.trim_end_matches('.');
    match word.to_lowercase().as_str() {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        lower if lower.is_empty() || words::is_function_word(lower) => None,
        _ => match word.parse::<f64>() {
            Ok(number) => crate::extract::quantity::json_number(number),
            Err(_) => Some(Value::from(word)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn texts(description: &str) -> Vec<String> {
        described(description)
            .iter()
            .map(|choice| written(&choice.value))
            .collect()
    }

    #[test]
    fn options_in_prose_are_found() {
        assert_eq!(
            texts("The unit ('Celsius' or 'Fahrenheit'). Default is 'Fahrenheit'.")[..2],
            ["Celsius", "Fahrenheit"]
        );
        assert_eq!(
            texts("The medium, such as oil, acrylic, etc."),
            ["oil", "acrylic"]
        );
        assert_eq!(
            texts("The company. Default is 'NASDAQ'"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn defaults_in_prose_are_found() {
        for (description, expected) in [
            ("Default is 5.", json!(5)),
            ("defaults to 'units' if not specified", json!("units")),
            ("Default: false", json!(false)),
            ("The default value is 0.5", json!(0.5)),
        ] {
            assert_eq!(default(description), Some(expected), "{description}");
        }
    }

    #[test]
    fn the_explanation_of_an_option_follows_it() {
        let choices = described("'c' for Celsius, 'f' for Fahrenheit. Default is 'c'.");
        assert_eq!(choices[0].gloss, ["celsiu"].map(|_| stem("celsius")));
    }
}
