//! Checks a model's rewording of a strategy. It must not contain anything that was not learned.

use windlass_spec::{NonEmptyText, ToolCallingStrategy, ToolName};

/// Numbers as words. "One" is missing because it is also a pronoun.
const NUMBERS: [&str; 35] = [
    "zero",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
    "hundred",
    "thousand",
    "million",
    "billion",
    "dozen",
    "twice",
    "thrice",
    "half",
];

/// Why a rewording is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WordingError {
    /// It has several lines or more than 400 characters.
    #[error("a strategy must be one line of at most 400 characters")]
    TooLong,
    /// It names other tools, or the same in another order.
    #[error("it must name exactly the tools of the sequence, in their order")]
    Tools,
    /// It has a number, a quotation, an address or a name that the strategy does not have.
    #[error("`{0}` is not in the learned strategy")]
    Invented(String),
}

/// Accepts a rewording of a strategy if it adds nothing: it has the same tools in the same order, and no new
/// number, quotation, address or name that looks like a tool.
///
/// # Errors
/// The reason for the rejection.
pub fn accept_wording<'t>(
    strategy: &ToolCallingStrategy,
    words: &str,
    known_tools: impl IntoIterator<Item = &'t str>,
) -> Result<NonEmptyText, WordingError> {
    let words = words.trim();
    if words.lines().count() != 1 || words.chars().count() > 400 {
        return Err(WordingError::TooLong);
    }
    let tokens = tokens(words);
    let known: Vec<&str> = known_tools.into_iter().collect();
    let sequence = strategy.tool_sequence();
    let is_tool =
        |token: &str| known.contains(&token) || sequence.iter().any(|tool| tool.as_str() == token);
    let named = tokens.iter().copied().filter(|token| is_tool(token));
    if !named.eq(sequence.iter().map(ToolName::as_str)) {
        return Err(WordingError::Tools);
    }
    let learned = strategy.content.as_str();
    let learned_tokens: Vec<String> = self::tokens(learned)
        .iter()
        .map(|token| token.to_lowercase())
        .collect();
    let is_learned = |token: &str| learned_tokens.contains(&token.to_lowercase());
    let is_specific = |token: &str| is_number(token) || is_identifier(token);
    let mut specific = tokens
        .iter()
        .copied()
        .filter(|token| is_specific(token) && !is_tool(token));
    if let Some(invented) = specific.find(|token| !is_learned(token)) {
        return Err(WordingError::Invented(invented.to_owned()));
    }
    let addresses = words.split_whitespace().filter(|word| is_address(word));
    let spans = addresses.chain(quotations(words));
    for span in spans.filter(|span| !is_tool(span)) {
        if !learned.contains(span) {
            return Err(WordingError::Invented(span.to_owned()));
        }
    }
    NonEmptyText::new(words).map_err(|_| WordingError::TooLong)
}

/// The words of a text, split so that a tool name is one word.
fn tokens(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let pieces = text.split(|c: char| !is_name(c));
    let trimmed = pieces.map(|piece| piece.trim_matches(['.', '-']));
    trimmed.filter(|token| !token.is_empty()).collect()
}

fn is_number(token: &str) -> bool {
    let is_spelled = |part: &str| {
        NUMBERS
            .iter()
            .any(|number| part.eq_ignore_ascii_case(number))
    };
    token.chars().any(char::is_numeric) || token.split('-').any(is_spelled)
}

/// Whether it looks like a tool name: `snake_case`, dotted or `camelCase`.
fn is_identifier(token: &str) -> bool {
    let chars: Vec<char> = token.chars().collect();
    let is_joined = |pair: &[char]| pair[0].is_lowercase() && pair[1].is_uppercase();
    token.contains(['_', '.']) || chars.windows(2).any(is_joined)
}

fn is_address(word: &str) -> bool {
    word.contains("://") || word.contains('@') || word.to_lowercase().starts_with("www.")
}

/// The marks around a quotation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Single,
    Double,
    Code,
}

impl Mark {
    fn of(c: char) -> Option<Self> {
        match c {
            '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '‹' | '›' => Some(Self::Single),
            '"' | '\u{201c}' | '\u{201d}' | '\u{201e}' | '«' | '»' => Some(Self::Double),
            '`' => Some(Self::Code),
            _ => None,
        }
    }
}

/// The texts in quotation marks of any kind. A single mark next to a letter is an apostrophe.
fn quotations(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut begun: Option<(usize, Mark)> = None;
    let mut before = ' ';
    for (place, c) in text.char_indices() {
        let end = place + c.len_utf8();
        let after = text[end..].chars().next().unwrap_or(' ');
        let near = match begun {
            Some(_) => after,
            None => before,
        };
        before = c;
        let Some(mark) = Mark::of(c) else { continue };
        if mark == Mark::Single && near.is_alphanumeric() {
            continue;
        }
        match begun {
            None => begun = Some((end, mark)),
            Some((start, of)) if of == mark => {
                found.push(text[start..place].trim());
                begun = None;
            }
            Some(_) => {}
        }
    }
    // An unclosed quotation ends with the text.
    if let Some((start, _)) = begun {
        found.push(text[start..].trim());
    }
    found.retain(|quotation| !quotation.is_empty());
    found
}
