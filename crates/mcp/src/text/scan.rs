//! One pass over a text that marks what is hidden in it. Whether a character is hidden depends on its
//! neighbours only, so the cost is that of looking at each character once.

use super::{HiddenKind, MAX_IDEOGRAPH_SELECTORS, classes};

const OPENS: &str = "<!--";
const CLOSES: &str = "-->";

/// A stretch of a text that is not seen; of a comment, its beginning or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) kind: HiddenKind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether it is the beginning of a comment.
    pub(super) opens: bool,
    /// Whether it is that within a comment, where it begins none.
    pub(super) is_nested: bool,
}

pub(super) struct Scanner<'t> {
    text: &'t str,
    at: usize,
    /// The character before, unless it was hidden itself.
    before: Option<char>,
    in_comment: bool,
    ideograph_selectors: usize,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            before: None,
            in_comment: false,
            ideograph_selectors: 0,
        }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn mark(&mut self, kind: HiddenKind, length: usize) -> Mark {
        let start = self.at;
        self.at += length;
        self.before = None;
        Mark {
            kind,
            start,
            end: self.at,
            opens: false,
            is_nested: false,
        }
    }

    fn comment(&mut self) -> Option<Mark> {
        if self.rest().starts_with(OPENS) {
            let is_nested = std::mem::replace(&mut self.in_comment, true);
            let mark = self.mark(HiddenKind::Comment, OPENS.len());
            return Some(Mark {
                opens: true,
                is_nested,
                ..mark
            });
        }
        if self.in_comment && self.rest().starts_with(CLOSES) {
            self.in_comment = false;
            return Some(self.mark(HiddenKind::Comment, CLOSES.len()));
        }
        None
    }

    /// How far what is hidden reaches from here: characters of one kind in a row.
    fn run(&mut self, kind: HiddenKind) -> usize {
        let mut length = 0;
        for c in self.rest().chars() {
            // What could be part of writing after a visible character cannot be after a hidden one,
            // but for a line break that ends the run.
            let ends_line = c == '\r' && self.follows(length + 1, '\n');
            if classes::unseen(c) != Some(kind) || ends_line && length > 0 {
                break;
            }
            length += c.len_utf8();
        }
        length
    }

    fn follows(&self, offset: usize, c: char) -> bool {
        let rest = self.text.get(self.at + offset..);
        rest.is_some_and(|rest| rest.starts_with(c))
    }

    /// How many bytes from here are part of honest writing although they are not seen; none if the
    /// character is hidden.
    fn written(&mut self, c: char) -> usize {
        let width = c.len_utf8();
        let rest = self.rest();
        let after = rest.get(width..).and_then(|rest| rest.chars().next());
        let before = self.before;
        let is = |class: fn(char) -> bool, c: Option<char>| c.is_some_and(class);
        let is_part = match c {
            '\r' => after == Some('\n'),
            '\u{200D}' if is(classes::is_pictograph, after) => {
                is(classes::is_pictograph, before) || before == Some('\u{FE0F}')
            }
            '\u{200C}' | '\u{200D}' => is(classes::joins, before) && is(classes::joins, after),
            '\u{200E}' | '\u{200F}' | '\u{061C}' => {
                is(classes::is_right_to_left, before) || is(classes::is_right_to_left, after)
            }
            '\u{FE0E}' | '\u{FE0F}' if is(classes::is_pictograph, before) => true,
            '\u{FE0F}' if is(classes::is_keycap, before) => after == Some(classes::KEYCAP),
            '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}'
                if is(classes::is_ideograph, before) =>
            {
                self.ideograph_selectors += 1;
                self.ideograph_selectors <= MAX_IDEOGRAPH_SELECTORS
            }
            '\u{180B}'..='\u{180F}' => is(classes::is_mongolian, before),
            '\u{115F}' | '\u{1160}' => is(classes::is_jamo, before) || is(classes::is_jamo, after),
            '\u{2800}' => is(classes::is_braille, before) || is(classes::is_braille, after),
            '\u{E0067}' if before == Some(classes::FLAG) => {
                let flag = classes::FLAGS.iter().find(|flag| rest.starts_with(*flag));
                return flag.map_or(0, |flag| flag.len());
            }
            _ => false,
        };
        if is_part { width } else { 0 }
    }
}

impl Iterator for Scanner<'_> {
    type Item = Mark;

    fn next(&mut self) -> Option<Mark> {
        loop {
            // What is plain needs no closer look.
            let plain = self.rest().bytes().position(|byte| {
                !matches!(byte, b' '..=b'~' | b'\n' | b'\t') || matches!(byte, b'<' | b'-')
            });
            match plain {
                Some(0) => {}
                Some(length) => {
                    let passed = self.rest().get(..length).unwrap_or_default();
                    self.before = passed.chars().next_back();
                    self.at += length;
                }
                None => {
                    self.at = self.text.len();
                    // A comment that nobody ends reaches to the end.
                    let is_open = std::mem::take(&mut self.in_comment);
                    return is_open.then(|| self.mark(HiddenKind::Comment, 0));
                }
            }
            if let Some(mark) = self.comment() {
                return Some(mark);
            }
            let c = self.rest().chars().next()?;
            let Some(kind) = classes::unseen(c) else {
                self.before = Some(c);
                self.at += c.len_utf8();
                continue;
            };
            match self.written(c) {
                0 => {
                    let length = self.run(kind).max(c.len_utf8());
                    return Some(self.mark(kind, length));
                }
                length => {
                    self.before = Some(c);
                    self.at += length;
                }
            }
        }
    }
}
