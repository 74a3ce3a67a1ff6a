//! Tokenizes text into words, numbers and single symbols, each with its position. All extractors of values use
//! these tokens, so that none has to handle white space or case.

/// The most bytes of a text that are read.
const LONGEST: usize = 12_000;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Letters, digits and underscores, with at least one letter or underscore.
    Word,
    /// Digits, optionally with separators and an exponent.
    Number,
    /// Any other single character.
    Symbol,
}

/// One token.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    /// Its kind.
    pub(crate) kind: TokenKind,
    /// Its start in the text, in bytes.
    pub(crate) start: usize,
    /// Its end in the text, in bytes.
    pub(crate) end: usize,
    /// The text in lower case.
    pub(crate) lower: String,
    /// The stem of the lower case text; see [`stem`].
    pub(crate) stem: String,
    /// Whether white space or the start of the text precedes it.
    pub(crate) spaced: bool,
    /// Whether its first character is an upper case letter.
    pub(crate) capital: bool,
}

impl Token {
    /// Whether it is this symbol.
    pub(crate) fn is(&self, symbol: char) -> bool {
        self.kind == TokenKind::Symbol && self.lower.starts_with(symbol)
    }

    /// Whether it is a word.
    pub(crate) fn is_word(&self) -> bool {
        self.kind == TokenKind::Word
    }

    /// Whether it is a number.
    pub(crate) fn is_number(&self) -> bool {
        self.kind == TokenKind::Number
    }
}

/// A text with its tokens.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    /// The text; only its beginning if the original is very long.
    pub(crate) source: String,
    /// Its tokens.
    pub(crate) tokens: Vec<Token>,
}

impl Text {
    /// Tokenizes a text.
    pub(crate) fn new(source: &str) -> Self {
        let source = beginning(source, LONGEST).to_owned();
        let tokens = tokens(&source);
        Self { source, tokens }
    }

    /// The text between two tokens, the first included, the second not.
    pub(crate) fn slice(&self, from: usize, to: usize) -> &str {
        match (
            self.tokens.get(from),
            to.checked_sub(1).and_then(|last| self.tokens.get(last)),
        ) {
            (Some(first), Some(last)) if first.start <= last.end => {
                &self.source[first.start..last.end]
            }
            _ => "",
        }
    }

    /// A token as it was written.
    pub(crate) fn written(&self, index: usize) -> &str {
        self.slice(index, index + 1)
    }

    /// A token in lower case; empty if there is none.
    pub(crate) fn lower(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", |token| &token.lower)
    }

    /// The lower case token before this one; empty if there is none.
    pub(crate) fn before(&self, index: usize) -> &str {
        index.checked_sub(1).map_or("", |index| self.lower(index))
    }

    /// The token that contains this byte, or the first one after it.
    pub(crate) fn token_at(&self, byte: usize) -> usize {
        self.tokens.partition_point(|token| token.end <= byte)
    }

    /// Whether a sentence begins at this token.
    pub(crate) fn begins_sentence(&self, index: usize) -> bool {
        let mut at = index;
        while let Some(before) = at.checked_sub(1) {
            let token = &self.tokens[before];
            if token.is('"') || token.is('\'') || token.is('“') || token.is('(') {
                at = before;
                continue;
            }
            return (token.is('.') || token.is('!') || token.is('?') || token.is(':'))
                && self.tokens[index].spaced;
        }
        true
    }
}

/// The first bytes of a text, cut between characters.
pub(crate) fn beginning(text: &str, longest: usize) -> &str {
    if text.len() <= longest {
        return text;
    }
    let mut end = longest;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The words of a tool's or parameter's name. Splits `snake_case`, `camelCase` and dots.
pub(crate) fn name_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let characters: Vec<char> = beginning(name, 400).chars().collect();
    for (index, &character) in characters.iter().enumerate() {
        let previous = index.checked_sub(1).map(|before| characters[before]);
        let next = characters.get(index + 1);
        let splits = match previous {
            Some(previous) if character.is_uppercase() => {
                previous.is_lowercase()
                    || previous.is_uppercase() && next.is_some_and(|next| next.is_lowercase())
            }
            Some(previous) => {
                character.is_numeric() != previous.is_numeric() && previous.is_alphanumeric()
            }
            None => false,
        };
        if (splits || !character.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn tokens(source: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    let mut spaced = true;
    while let Some(character) = source[at..].chars().next() {
        let rest = &source[at..];
        if character.is_whitespace() {
            at += character.len_utf8();
            spaced = true;
            continue;
        }
        let (length, kind) = if character.is_ascii_digit() {
            number_or_code(rest)
        } else if is_word_part(character) {
            (word_length(rest), TokenKind::Word)
        } else {
            (character.len_utf8(), TokenKind::Symbol)
        };
        let lower = rest[..length].to_lowercase();
        tokens.push(Token {
            kind,
            start: at,
            end: at + length,
            stem: stem(&lower),
            lower,
            spaced,
            capital: character.is_uppercase(),
        });
        at += length;
        spaced = false;
    }
    tokens
}

fn is_word_part(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || is_mark(character)
}

/// Whether a character is a combining mark or a joiner, which belongs to the letter before it.
fn is_mark(character: char) -> bool {
    matches!(character as u32,
        0x0300..=0x036f | 0x0591..=0x05bd | 0x064b..=0x065f | 0x0900..=0x0903 | 0x093a..=0x094f
        | 0x0981..=0x0983 | 0x09bc..=0x09cd | 0x0b82 | 0x0bbe..=0x0bcd | 0x0e31..=0x0e4e
        | 0x1100..=0x11ff | 0x200c | 0x200d)
}

fn word_length(rest: &str) -> usize {
    rest.find(|c: char| !is_word_part(c)).unwrap_or(rest.len())
}

/// A number, or a code that begins with a digit such as `12x18` or `2nd_floor`.
fn number_or_code(rest: &str) -> (usize, TokenKind) {
    let run = word_length(rest);
    let number = number_length(rest);
    let tail = rest.get(number..run).unwrap_or("");
    let is_suffix = tail.chars().all(char::is_alphabetic) && tail.chars().count() <= 6;
    if number >= run || is_suffix {
        (number, TokenKind::Number)
    } else {
        (run, TokenKind::Word)
    }
}

/// The length of the number a text begins with: `1,200.50`, `1e-9`, `7`.
fn number_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let digits = |from: usize| {
        bytes[from.min(bytes.len())..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut at = digits(0);
    let mut grouped = false;
    while at <= 3 || grouped {
        // A comma joins only groups of three digits, so `3,4,5` is three numbers.
        if bytes.get(at) == Some(&b',') && digits(at + 1) == 3 {
            at += 4;
            grouped = true;
        } else {
            break;
        }
    }
    if bytes.get(at) == Some(&b'.') && digits(at + 1) > 0 {
        at += 1 + digits(at + 1);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    at
}

/// A word without its common English endings, so that `drives`, `driving` and `drive` have the same stem.
pub(crate) fn stem(word: &str) -> String {
    if !word.is_ascii() || word.len() < 4 {
        return word.to_owned();
    }
    let mut stem = word;
    if let Some(rest) = stem.strip_suffix("ies").filter(|rest| rest.len() > 2) {
        return format!("{rest}y");
    }
    if stem.ends_with("sses")
        || ["xes", "ches", "shes", "zes", "oes"]
            .iter()
            .any(|ending| stem.ends_with(ending))
    {
        stem = &stem[..stem.len() - 2];
    } else if stem.ends_with('s')
        && !["ss", "us", "is"]
            .iter()
            .any(|ending| stem.ends_with(ending))
    {
        stem = &stem[..stem.len() - 1];
    }
    for (ending, shortest) in [("ing", 3), ("ed", 3), ("ion", 4), ("ly", 4)] {
        if let Some(rest) = stem.strip_suffix(ending)
            && rest.len() >= shortest
        {
            stem = undoubled(rest);
            break;
        }
    }
    stem.strip_suffix('e')
        .filter(|rest| rest.len() >= 3)
        .unwrap_or(stem)
        .to_owned()
}

fn undoubled(stem: &str) -> &str {
    let bytes = stem.as_bytes();
    match bytes {
        [.., before, last]
            if before == last && !matches!(last, b's' | b'e' | b'o') && stem.len() > 3 =>
        {
            &stem[..stem.len() - 1]
        }
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Vec<String> {
        let text = Text::new(text);
        (0..text.tokens.len())
            .map(|index| text.written(index).to_owned())
            .collect()
    }

    #[test]
    fn numbers_include_digit_groups_but_not_units() {
        assert_eq!(
            written("pay $1,200.50 for 70kg, 3,4 and 1e-9"),
            [
                "pay", "$", "1,200.50", "for", "70", "kg", ",", "3", ",", "4", "and", "1e-9"
            ]
        );
    }

    #[test]
    fn codes_are_single_tokens() {
        assert_eq!(
            written("case CA123456 and 12x18, car_price"),
            ["case", "CA123456", "and", "12x18", ",", "car_price"]
        );
    }

    #[test]
    fn inflected_forms_have_the_same_stem() {
        for words in [
            ["drive", "driving", "drives"],
            ["travel", "travelled", "travels"],
            ["accelerate", "acceleration", "accelerated"],
            ["city", "cities", "city"],
        ] {
            let stems: Vec<String> = words.iter().map(|word| stem(word)).collect();
            assert!(stems.windows(2).all(|pair| pair[0] == pair[1]), "{stems:?}");
        }
    }

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(
            name_words("getUserHTTPInfo.by_id2"),
            ["get", "user", "http", "info", "by", "id", "2"]
        );
    }

    #[test]
    fn very_long_texts_are_cut_between_characters() {
        let text = "é".repeat(3_000_000);
        assert!(Text::new(&text).source.len() <= LONGEST);
    }
}
