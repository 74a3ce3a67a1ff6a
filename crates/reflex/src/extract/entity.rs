//! Entities with a recognisable format: e-mail addresses, URLs, paths, codes, times of day, formulas, and
//! capitalised names.

use crate::lexicon::words;
use crate::text::{Text, Token, TokenKind};

/// The kind of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntityKind {
    Email,
    Url,
    Path,
    /// A mix of letters, digits and marks, such as an order number.
    Code,
    /// A time of day.
    Time,
    /// A formula.
    Formula,
    /// Capitalised words.
    Name,
}

/// An entity with its range of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entity {
    pub(crate) kind: EntityKind,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl Entity {
    fn new(kind: EntityKind, from: usize, to: usize) -> Self {
        Self { kind, from, to }
    }
}

/// Entities without spaces.
pub(crate) fn chunks(text: &Text) -> Vec<Entity> {
    let mut found = Vec::new();
    let mut at = 0;
    for chunk in text.source.split(char::is_whitespace) {
        let start = at;
        // The separator is one character, of any length in bytes.
        at += chunk.len();
        at += text.source[at..].chars().next().map_or(0, char::len_utf8);
        let left = chunk.trim_start_matches(['(', '[', '{', '"', '\'', '“', '‘', '<', '`']);
        let inner = left.trim_end_matches([
            '.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '”', '’', '>', '`',
        ]);
        let inner = inner.strip_suffix("'s").unwrap_or(inner);
        if inner.len() < 2 || inner.len() > 2_000 {
            continue;
        }
        if let Some(kind) = chunk_kind(inner) {
            let from = start + (chunk.len() - left.len());
            found.push(Entity {
                kind,
                from: text.token_at(from),
                to: text.token_at(from + inner.len() - 1) + 1,
            });
        }
    }
    found
}

fn chunk_kind(chunk: &str) -> Option<EntityKind> {
    let has = |wanted: fn(char) -> bool| chunk.chars().any(wanted);
    if let Some((user, host)) = chunk.split_once('@')
        && !user.is_empty()
        && host.contains('.')
        && !host.contains('@')
        && !host.contains('/')
    {
        return Some(EntityKind::Email);
    }
    let lower = chunk.to_ascii_lowercase();
    if lower.starts_with("http://")
        || lower.starts_with("https://")
        || lower.starts_with("ftp://")
        || lower.starts_with("www.")
    {
        return Some(EntityKind::Url);
    }
    if is_path(chunk) {
        return Some(EntityKind::Path);
    }
    if is_domain(&lower) {
        return Some(EntityKind::Url);
    }
    if chunk.parse::<f64>().is_ok() {
        return None;
    }
    let letters = has(char::is_alphabetic);
    let digits = has(|c| c.is_ascii_digit());
    let plain = chunk
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '#' | '.' | ':' | '+'));
    if !plain || !letters {
        // Groups of digits, such as telephone numbers.
        let groups = chunk.split('-').filter(|group| !group.is_empty()).count();
        let only_digits = chunk
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '-' | '+'));
        let count = chunk.chars().filter(char::is_ascii_digit).count();
        return (only_digits && groups > 1 && count >= 7).then_some(EntityKind::Code);
    }
    if chunk.contains('_') || chunk.ends_with('#') && chunk.len() <= 3 || chunk.ends_with("++") {
        return Some(EntityKind::Code);
    }
    let starts_with_digit = chunk.starts_with(|c: char| c.is_ascii_digit());
    if digits && !starts_with_digit {
        // `3pm` and `70kg` begin with their digits; codes mostly do not.
        return Some(EntityKind::Code);
    }
    let inner_letters = chunk
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .chars()
        .any(|c| c.is_ascii_digit());
    if digits && inner_letters && !chunk.contains('.') && !chunk.contains(':') {
        return Some(EntityKind::Code);
    }
    // `owner/repository`, but neither `and/or` nor `km/h`.
    let parts: Vec<&str> = chunk.split('/').collect();
    if let [owner, name] = parts.as_slice()
        && owner.len() > 2
        && name.len() > 2
        && !words::is_function_word(&owner.to_lowercase())
        && !words::is_function_word(&name.to_lowercase())
        && !digits
    {
        return Some(EntityKind::Code);
    }
    None
}

fn is_path(chunk: &str) -> bool {
    let rooted = chunk.starts_with("~/")
        || chunk.starts_with("./")
        || chunk.starts_with("../")
        || chunk.starts_with('/') && chunk.len() > 2
        || chunk.as_bytes().get(1) == Some(&b':')
            && matches!(chunk.as_bytes().get(2), Some(b'/' | b'\\'));
    if rooted {
        return true;
    }
    let file = chunk.rsplit(['/', '\\']).next().unwrap_or(chunk);
    let Some((stem, extension)) = file.rsplit_once('.') else {
        return false;
    };
    const EXTENSIONS: [&str; 44] = [
        "txt", "pdf", "csv", "tsv", "json", "jsonl", "xml", "yaml", "yml", "toml", "md", "doc",
        "docx", "xls", "xlsx", "ppt", "pptx", "png", "jpg", "jpeg", "gif", "svg", "mp3", "mp4",
        "wav", "avi", "mov", "zip", "tar", "gz", "py", "rs", "js", "ts", "java", "c", "cpp", "h",
        "go", "sh", "html", "css", "sql", "log",
    ];
    stem.len() + extension.len() > 2
        && !stem.is_empty()
        && EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str())
}

fn is_domain(lower: &str) -> bool {
    const ENDINGS: [&str; 16] = [
        "com", "org", "net", "io", "edu", "gov", "dev", "ai", "co", "uk", "de", "fr", "eu", "in",
        "info", "app",
    ];
    let host = lower.split('/').next().unwrap_or(lower);
    host.rsplit_once('.').is_some_and(|(name, ending)| {
        name.len() > 1
            && ENDINGS.contains(&ending)
            && host
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
            && name.chars().any(char::is_alphabetic)
    })
}

/// Times of day: `6:30 PM`, `14:00`, `3pm`, `noon`.
pub(crate) fn times(text: &Text) -> Vec<Entity> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.tokens.len() {
        let mut to = at;
        let token = &text.tokens[at];
        let small = |index: usize, limit: u32| {
            text.tokens.get(index).is_some_and(|token| {
                token.is_number() && token.lower.parse::<u32>().is_ok_and(|n| n <= limit)
            })
        };
        if matches!(token.lower.as_str(), "noon" | "midnight") {
            to = at + 1;
        } else if small(at, 24) {
            let mut end = at + 1;
            while text.tokens.get(end).is_some_and(|t| t.is(':') && !t.spaced)
                && small(end + 1, 59)
                && text.lower(end + 1).len() == 2
            {
                end += 2;
            }
            let mut suffix = end;
            if matches!(text.lower(suffix), "am" | "pm") {
                suffix += 1;
            } else if matches!(text.lower(suffix), "a" | "p")
                && text.lower(suffix + 1) == "."
                && text.lower(suffix + 2) == "m"
            {
                suffix += 3 + usize::from(text.lower(suffix + 3) == ".");
            }
            if suffix > end || end > at + 1 {
                to = suffix;
            }
        }
        if to > at {
            found.push(Entity::new(EntityKind::Time, at, to));
        }
        at = to.max(at + 1);
    }
    found
}

/// The hour (of 24), minute and second of a written time.
pub(crate) fn clock(written: &str) -> Option<(u32, u32, u32)> {
    let lower = written.to_lowercase();
    match lower.as_str() {
        "noon" => return Some((12, 0, 0)),
        "midnight" => return Some((0, 0, 0)),
        _ => {}
    }
    let digits: String = lower
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ':')
        .collect();
    let mut parts = digits.split(':').map(str::parse::<u32>);
    let hour = parts.next()?.ok()?;
    let minute = parts.next().and_then(Result::ok).unwrap_or(0);
    let second = parts.next().and_then(Result::ok).unwrap_or(0);
    let letters: String = lower.chars().filter(char::is_ascii_alphabetic).collect();
    let hour = match letters.as_str() {
        "pm" if hour < 12 => hour + 12,
        "am" if hour == 12 => 0,
        _ => hour,
    };
    Some((hour, minute, second))
}

/// Formulas: `3x^2 + 2x - 1`, `f(x) = x**3`.
pub(crate) fn formulas(text: &Text) -> Vec<Entity> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.tokens.len() {
        let mut to = at;
        let (mut variable, mut operator) = (false, false);
        while let Some(token) = text.tokens.get(to) {
            let part = match token.kind {
                TokenKind::Number => true,
                TokenKind::Word => {
                    let one = token.lower.chars().count() == 1;
                    let known = matches!(
                        token.lower.as_str(),
                        "sin" | "cos" | "tan" | "exp" | "log" | "ln" | "sqrt" | "pi" | "lambda"
                    );
                    let article = matches!(token.lower.as_str(), "a" | "i")
                        && token.spaced
                        && text
                            .tokens
                            .get(to + 1)
                            .is_none_or(|next| next.kind != TokenKind::Symbol);
                    variable |= one && !article && touches_formula(text, to);
                    (one || known) && !article
                }
                TokenKind::Symbol => {
                    let is = |symbols: &str| symbols.contains(token.lower.as_str());
                    operator |= is("^*+/²³");
                    is("^*+-/()=²³") || token.is('.') && !next_is_spaced(text, to)
                }
            };
            if !part {
                break;
            }
            to += 1;
        }
        while to > at && matches!(text.lower(to - 1), "." | "=" | "(" | "-" | "+") {
            to -= 1;
        }
        // `4 m/s^2` is a quantity.
        let is_quantity = || {
            super::number::unit_at(text, at + 1).is_some_and(|(_, length)| at + 1 + length >= to)
        };
        if to > at && variable && operator && to - at >= 3 && !is_quantity() {
            found.push(Entity::new(EntityKind::Formula, at, to));
        }
        at = to.max(at + 1);
    }
    found
}

/// Whether a letter is next to an operator, or directly after a number.
fn touches_formula(text: &Text, at: usize) -> bool {
    let operator = |token: &Token| {
        token.kind == TokenKind::Symbol && "^*+-/()=²³".contains(token.lower.as_str())
    };
    let after = text.tokens.get(at + 1).is_some_and(operator);
    let before = at.checked_sub(1).is_some_and(|before| {
        let token = &text.tokens[before];
        operator(token) || token.is_number() && !text.tokens[at].spaced
    });
    after || before
}

fn next_is_spaced(text: &Text, at: usize) -> bool {
    text.tokens.get(at + 1).is_none_or(|next| next.spaced)
}

/// Names: runs of capitalised words, with small words between them.
pub(crate) fn names(text: &Text) -> Vec<Entity> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.tokens.len() {
        if !begins_name(text, at) {
            at += 1;
            continue;
        }
        let mut to = at + 1;
        while let Some(next) = next_name_part(text, to) {
            to = next;
        }
        // The final period belongs to `Washington D.C.` and `Apple Inc.`, also at the end of a sentence.
        if text.lower(to) == "." && !text.tokens[to].spaced && is_abbreviation(text, to - 1) {
            to += 1;
        }
        found.push(Entity {
            kind: EntityKind::Name,
            from: at,
            to,
        });
        at = to;
    }
    found
}

fn is_abbreviation(text: &Text, at: usize) -> bool {
    let lower = text.lower(at);
    matches!(
        lower,
        "inc" | "ltd" | "co" | "corp" | "jr" | "sr" | "mr" | "mrs" | "ms" | "dr" | "st" | "mt"
    ) || lower.chars().count() == 1
        && at
            .checked_sub(1)
            .is_some_and(|before| text.tokens[before].is('.') || text.tokens[before].capital)
}

fn begins_name(text: &Text, at: usize) -> bool {
    let token = &text.tokens[at];
    if !token.is_word() || !token.capital {
        return false;
    }
    // `The` begins a name in `The Weeknd`, but not at the start of a sentence.
    if token.lower == "the" {
        return !text.begins_sentence(at)
            && text.tokens.get(at + 1).is_some_and(|next| next.capital);
    }
    if token.lower == "i" || words::is_function_word(&token.lower) && token.lower.len() > 2 {
        return false;
    }
    if text.begins_sentence(at) {
        // The first word of a sentence is always capitalised; the next word decides whether it is a name.
        let next = text.lower(at + 1);
        return !words::is_request_verb(&token.lower)
            && !words::is_function_word(&token.lower)
            && (words::is_auxiliary(next) || matches!(next, "'" | "," | "’" | "and" | ":"));
    }
    !words::is_function_word(&token.lower)
        || token.lower.chars().all(|c| c.is_ascii_alphabetic())
            && token.lower.len() <= 2
            && text.written(at).chars().all(char::is_uppercase)
}

/// The token after the next part of a name, if the name continues at this token.
fn next_name_part(text: &Text, at: usize) -> Option<usize> {
    let token = text.tokens.get(at)?;
    let capital = |index: usize| {
        text.tokens
            .get(index)
            .is_some_and(|token| token.is_word() && token.capital)
    };
    if token.is_word() && token.capital {
        return (token.lower != "i").then_some(at + 1);
    }
    if !token.spaced && token.is('.') {
        let abbreviated = is_abbreviation(text, at - 1);
        return (abbreviated && capital(at + 1)).then_some(at + 2);
    }
    if !token.spaced && (token.is('-') || token.is('\'') || token.is('’') || token.is('&')) {
        let next = text.tokens.get(at + 1)?;
        let compound = next.capital || token.is('-');
        return (next.is_word() && compound && !next.spaced).then_some(at + 2);
    }
    if token.is('&') {
        return capital(at + 1).then_some(at + 2);
    }
    if matches!(
        token.lower.as_str(),
        "of" | "de" | "da" | "la" | "von" | "van" | "der" | "del" | "du"
    ) {
        if capital(at + 1) {
            return Some(at + 2);
        }
        if matches!(text.lower(at + 1), "the" | "la" | "der") && capital(at + 2) {
            return Some(at + 3);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, find: fn(&Text) -> Vec<Entity>) -> Vec<(EntityKind, String)> {
        let text = Text::new(text);
        find(&text)
            .into_iter()
            .map(|entity| (entity.kind, text.slice(entity.from, entity.to).to_owned()))
            .collect()
    }

    #[test]
    fn addresses_paths_and_codes_are_recognised() {
        use EntityKind::{Code, Email, Path, Url};
        assert_eq!(
            written(
                "Mail ann@site.org about https://a.b/c?d=1, C:/data/cars.csv, report.pdf, 2022/AL2562 and CA-99 and/or 3pm.",
                chunks
            ),
            [
                (Email, "ann@site.org".to_owned()),
                (Url, "https://a.b/c?d=1".to_owned()),
                (Path, "C:/data/cars.csv".to_owned()),
                (Path, "report.pdf".to_owned()),
                (Code, "2022/AL2562".to_owned()),
                (Code, "CA-99".to_owned()),
            ]
        );
    }

    #[test]
    fn names_are_runs_of_capitalised_words() {
        let names: Vec<String> = written(
            "Find the Metropolitan Museum of Art near Washington D.C. and ask Mr. X of Apple Inc. about The Weeknd",
            names,
        )
        .into_iter()
        .map(|(_, name)| name)
        .collect();
        assert_eq!(
            names,
            [
                "Metropolitan Museum of Art",
                "Washington D.C.",
                "Mr. X of Apple Inc.",
                "The Weeknd"
            ]
        );
    }

    #[test]
    fn a_verb_at_the_start_of_a_sentence_is_not_a_name() {
        assert_eq!(
            written("Greet Ada", names),
            [(EntityKind::Name, "Ada".to_owned())]
        );
    }

    #[test]
    fn times_and_formulas_are_recognised() {
        assert_eq!(
            written("at 6:30 PM or 3pm, not 7 days", times)
                .into_iter()
                .map(|(_, time)| time)
                .collect::<Vec<_>>(),
            ["6:30 PM", "3pm"]
        );
        assert_eq!(
            written("derive 3x^2 + 2x - 1. Then a 5/7 b", formulas),
            [(EntityKind::Formula, "3x^2 + 2x - 1".to_owned())]
        );
        assert_eq!(clock("6:30 PM"), Some((18, 30, 0)));
    }
}
