//! Recognises single lexemes at a given offset. Which lexemes are possible depends on the place in
//! the grammar, so the parser asks for what is allowed here instead of receiving a token stream.
//!
//! The rules follow grammar 0.6.1 exactly, including the ambiguity between texts and comments:
//! the text of a quoted string that begins with `//` or `/**` is read as a comment when the comment
//! would be longer. [`QuotedText`] records this, so that the parser can warn.

use memchr::{memchr, memchr3, memmem};

use crate::token::TokenKind;

const BLANK: u8 = 1;
const SYMBOL_START: u8 = 2;
const SYMBOL: u8 = 4;
const DIGIT: u8 = 8;
const LETTER: u8 = 16;

/// The classes each byte belongs to. Bytes beyond ASCII belong to none.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        let mut class = 0;
        let value = byte as u8;
        if matches!(value, b'\t'..=b'\r' | b' ') {
            class |= BLANK;
        }
        if value.is_ascii_alphabetic() {
            class |= LETTER | SYMBOL_START | SYMBOL;
        }
        if value == b'_' {
            class |= SYMBOL_START | SYMBOL;
        }
        if value.is_ascii_digit() {
            class |= DIGIT | SYMBOL;
        }
        if matches!(value, b'.' | b'@' | b'-') {
            class |= SYMBOL;
        }
        classes[byte] = class;
        byte += 1;
    }
    classes
};

#[inline]
fn is(byte: u8, class: u8) -> bool {
    CLASSES[byte as usize] & class != 0
}

/// Whether a symbol may start with this byte.
#[inline]
pub(crate) fn starts_symbol(byte: u8) -> bool {
    is(byte, SYMBOL_START)
}

/// The content between the quotes of a string or name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuotedText {
    /// Where the text starts and ends.
    pub(crate) text: (usize, usize),
    /// Just after the closing quote; `None` if the quote is missing.
    pub(crate) end: Option<usize>,
    /// Whether a part in the quotes was read as a comment.
    pub(crate) holds_comment: bool,
}

/// The content between the fences of a fenced string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FencedText {
    /// The tag after the opening fence.
    pub(crate) tag: Option<(usize, usize)>,
    /// Where the text starts and ends.
    pub(crate) text: (usize, usize),
    /// Whether a part of it was read as a comment.
    pub(crate) holds_comment: bool,
    /// Just after the closing fence.
    pub(crate) end: usize,
}

/// Why a fenced string could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FenceError {
    /// The opening line holds something other than a tag, at this offset.
    OpeningLine(usize),
    /// There is no closing fence.
    Unterminated,
}

/// A source text, with a cache that keeps scanning linear.
#[derive(Debug)]
pub(crate) struct Scanner<'s> {
    bytes: &'s [u8],
    /// The last answer of [`Self::doc_comment_end`]: (asked at, answer).
    doc_comment_end: Option<(usize, Option<usize>)>,
}

impl<'s> Scanner<'s> {
    pub(crate) fn new(bytes: &'s [u8]) -> Self {
        Self {
            bytes,
            doc_comment_end: None,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The byte at `at`, or 0 past the end. (The parser stops at a real NUL, so 0 is unambiguous.)
    #[inline]
    pub(crate) fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    #[inline]
    pub(crate) fn starts_with(&self, at: usize, prefix: &[u8]) -> bool {
        self.bytes
            .get(at..)
            .is_some_and(|rest| rest.starts_with(prefix))
    }

    #[inline]
    fn run(&self, mut at: usize, class: u8) -> usize {
        while at < self.bytes.len() && is(self.bytes[at], class) {
            at += 1;
        }
        at
    }

    /// The end of the blanks that start at `at`.
    #[inline]
    pub(crate) fn blanks(&self, at: usize) -> usize {
        self.run(at, BLANK)
    }

    /// The end of the symbol that starts at `at`, which must be a symbol's start.
    #[inline]
    pub(crate) fn symbol(&self, at: usize) -> usize {
        self.run(at + 1, SYMBOL)
    }

    /// The end of the line that `at` is in, not including the line break.
    pub(crate) fn line_end(&self, at: usize) -> usize {
        let rest = self.bytes.get(at..).unwrap_or_default();
        memchr(b'\n', rest).map_or(self.len(), |offset| at + offset)
    }

    /// The comment at `at`, if there is one.
    #[inline]
    pub(crate) fn comment(&mut self, at: usize) -> Option<(TokenKind, usize)> {
        match (self.byte(at + 1), self.byte(at + 2)) {
            (b'/', _) => Some((TokenKind::Comment, self.line_end(at))),
            (b'*', b'*') => self
                .doc_comment_end(at + 3)
                .map(|end| (TokenKind::DocComment, end)),
            _ => None,
        }
    }

    /// Just after the next `*/` at or after `from`. Caches its answer: many unterminated
    /// openings must not each search the rest of the text.
    fn doc_comment_end(&mut self, from: usize) -> Option<usize> {
        if let Some((asked, answer)) = self.doc_comment_end
            && asked <= from
            && answer.is_none_or(|end| from + 2 <= end)
        {
            return answer;
        }
        let rest = self.bytes.get(from..).unwrap_or_default();
        let answer = memmem::find(rest, b"*/").map(|offset| from + offset + 2);
        self.doc_comment_end = Some((from, answer));
        answer
    }

    /// The end of the blanks and comments that start at `at`.
    fn trivia(&mut self, mut at: usize) -> usize {
        loop {
            at = self.blanks(at);
            match (self.byte(at) == b'/').then(|| self.comment(at)).flatten() {
                Some((_, end)) => at = end,
                None => return at,
            }
        }
    }

    /// The integer at `at` as an identifier. Measurements, decimals and other numbers are not identifiers.
    #[inline]
    pub(crate) fn integer(&self, at: usize) -> Option<usize> {
        let digits = at + usize::from(self.byte(at) == b'-');
        match self.byte(digits) {
            b'0' => Some(digits + 1),
            b'1'..=b'9' => Some(self.run(digits, DIGIT)),
            _ => None,
        }
    }

    /// The number at `at`, the longest form that fits.
    #[inline]
    pub(crate) fn number(&self, at: usize) -> Option<(TokenKind, usize)> {
        let integer = self.integer(at)?;
        let next = self.byte(integer);
        if next == b'.' && is(self.byte(integer + 1), DIGIT) {
            return Some((TokenKind::Decimal, self.run(integer + 1, DIGIT)));
        }
        let is_bare_zero = self.byte(at) == b'0';
        if is_bare_zero && next == b'x' {
            return Some(self.hexadecimal(integer + 1));
        }
        if is_bare_zero && matches!(next, b'0'..=b'7') {
            let mut end = integer;
            while matches!(self.byte(end), b'0'..=b'7') {
                end += 1;
            }
            return Some((TokenKind::Octal, end));
        }
        if is(next, LETTER) {
            return Some((TokenKind::Measurement, self.run(integer, LETTER)));
        }
        Some((TokenKind::Integer, integer))
    }

    /// What follows `0x`: a hexadecimal number, unless a measurement reaches further.
    fn hexadecimal(&self, from: usize) -> (TokenKind, usize) {
        let mut end = from;
        while self.byte(end).is_ascii_hexdigit() {
            end += 1;
        }
        let letters = self.run(from, LETTER);
        if end > from && end >= letters {
            (TokenKind::Hexadecimal, end)
        } else {
            (TokenKind::Measurement, letters)
        }
    }

    /// The quoted text whose opening quote is at `at`.
    #[inline]
    pub(crate) fn quoted(&mut self, at: usize) -> QuotedText {
        let quote = self.byte(at);
        let first = self.byte(at + 1);
        if first != b'/' && !is(first, BLANK) {
            let end = self.text_end(at + 1, quote);
            if self.byte(end) == quote {
                return QuotedText {
                    text: (at + 1, end),
                    end: Some(end + 1),
                    holds_comment: false,
                };
            }
        }
        self.quoted_with_comments(at, quote)
    }

    /// [`Self::quoted`] for texts that may begin with a comment or have blanks before the closing quote.
    #[cold]
    fn quoted_with_comments(&mut self, at: usize, quote: u8) -> QuotedText {
        let mut start = at + 1;
        let mut holds_comment = false;
        let text_end = loop {
            let begin = self.blanks_in_line(start);
            let text_end = self.text_end(begin, quote);
            let comment_end = if self.starts_with(begin, b"//") {
                let stopped_by = self.byte(text_end);
                (stopped_by == quote || stopped_by == b'\\').then(|| self.line_end(text_end))
            } else if self.starts_with(begin, b"/**") {
                self.doc_comment_end(begin + 3)
                    .filter(|&end| end > text_end)
            } else {
                None
            };
            match comment_end {
                Some(end) => {
                    holds_comment = true;
                    start = end;
                }
                None => break text_end,
            }
        };
        let closing = self.trivia(text_end);
        QuotedText {
            text: (start, text_end),
            end: (self.byte(closing) == quote && quote != 0).then_some(closing + 1),
            holds_comment,
        }
    }

    fn blanks_in_line(&self, mut at: usize) -> usize {
        while is(self.byte(at), BLANK) && self.byte(at) != b'\n' {
            at += 1;
        }
        at
    }

    /// Where a quoted text that starts at `at` stops: at the quote, the line's end, the text's end,
    /// or a backslash that escapes nothing.
    #[inline]
    pub(crate) fn text_end(&self, mut at: usize, quote: u8) -> usize {
        loop {
            let Some(offset) = memchr3(quote, b'\\', b'\n', &self.bytes[at.min(self.len())..])
            else {
                return self.len();
            };
            at += offset;
            let escapes = self.bytes[at] == b'\\'
                && (self.byte(at + 1) == quote
                    || matches!(
                        self.byte(at + 1),
                        b'b' | b'f' | b'n' | b'r' | b't' | b'/' | b'\\'
                    ));
            if !escapes {
                return at;
            }
            at += 2;
        }
    }

    /// The fenced text whose opening fence is at `at`.
    pub(crate) fn fenced(&mut self, at: usize) -> Result<FencedText, FenceError> {
        let mut tag = None;
        let mut here = at + 3;
        let mut start = loop {
            here = self.blanks_in_line(here);
            match self.byte(here) {
                b'\n' => break here + 1,
                b'/' => match self.comment(here) {
                    Some((_, end)) => here = end,
                    None => return Err(FenceError::OpeningLine(here)),
                },
                byte if starts_symbol(byte) && tag.is_none() => {
                    let end = self.symbol(here);
                    tag = Some((here, end));
                    here = end;
                }
                _ if here >= self.len() => return Err(FenceError::Unterminated),
                _ => return Err(FenceError::OpeningLine(here)),
            }
        };
        let mut holds_comment = false;
        loop {
            let begin = self.blanks(start);
            let close = self
                .bytes
                .get(start..)
                .and_then(|rest| memmem::find(rest, b"```"))
                .map(|offset| start + offset);
            let comment_end = if self.starts_with(begin, b"//") {
                let line_end = self.line_end(begin);
                close.filter(|&close| close < line_end).map(|_| line_end)
            } else if self.starts_with(begin, b"/**") {
                self.doc_comment_end(begin + 3)
                    .filter(|&end| close.is_some_and(|close| end > close))
            } else {
                None
            };
            match (comment_end, close) {
                (Some(end), _) => {
                    holds_comment = true;
                    start = end;
                }
                (None, Some(close)) => {
                    return Ok(FencedText {
                        tag,
                        text: (start, close),
                        holds_comment,
                        end: close + 3,
                    });
                }
                (None, None) => return Err(FenceError::Unterminated),
            }
        }
    }
}
