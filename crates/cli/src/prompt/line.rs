//! A line that is edited, and how it is drawn: the part around the cursor that fits on one row.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::drawn;
use super::keys::Key;

/// A line with a cursor.
#[derive(Debug)]
pub(super) struct Line {
    characters: Vec<char>,
    /// The index of the character at the cursor.
    cursor: usize,
}

impl Line {
    pub(super) fn new(text: &str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let cursor = characters.len();
        Self { characters, cursor }
    }

    pub(super) fn text(&self) -> String {
        self.characters.iter().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.characters.is_empty()
    }

    pub(super) fn move_to_end(&mut self) {
        self.cursor = self.characters.len();
    }

    /// Applies a key that edits or moves.
    pub(super) fn apply(&mut self, key: Key) {
        match key {
            Key::Text(text) => {
                let typed: Vec<char> = text.chars().collect();
                let count = typed.len();
                self.characters.splice(self.cursor..self.cursor, typed);
                self.cursor += count;
            }
            Key::Backspace => self.delete_back_to(self.cursor.saturating_sub(1)),
            Key::Delete | Key::EndOfInput => {
                if self.cursor < self.characters.len() {
                    self.characters.remove(self.cursor);
                }
            }
            Key::Left => self.cursor = self.cursor.saturating_sub(1),
            Key::Right => self.cursor = (self.cursor + 1).min(self.characters.len()),
            Key::WordLeft => self.cursor = self.word_before(),
            Key::WordRight => self.cursor = self.word_after(),
            Key::Home => self.cursor = 0,
            Key::End => self.move_to_end(),
            Key::DeleteToStart => self.delete_back_to(0),
            Key::DeleteToEnd => self.characters.truncate(self.cursor),
            Key::DeleteWord => self.delete_back_to(self.word_before()),
            Key::Up | Key::Down | Key::Enter | Key::Escape | Key::Interrupt | Key::Other => {}
        }
    }

    fn delete_back_to(&mut self, start: usize) {
        self.characters.drain(start..self.cursor);
        self.cursor = start;
    }

    /// The start of the word before the cursor.
    fn word_before(&self) -> usize {
        let before = self.characters[..self.cursor].iter().rev();
        let spaces = before.clone().take_while(|c| c.is_whitespace()).count();
        let word = before
            .skip(spaces)
            .take_while(|c| !c.is_whitespace())
            .count();
        self.cursor - spaces - word
    }

    /// The end of the word after the cursor.
    fn word_after(&self) -> usize {
        let after = self.characters[self.cursor..].iter();
        let spaces = after.clone().take_while(|c| c.is_whitespace()).count();
        let word = after
            .skip(spaces)
            .take_while(|c| !c.is_whitespace())
            .count();
        self.cursor + spaces + word
    }

    /// The text that draws the line behind a question, on a terminal with that many columns.
    pub(super) fn draw(&self, question: &str, columns: usize) -> String {
        let shown: Vec<String> = self
            .characters
            .iter()
            .map(|character| drawn(&character.to_string()).into_owned())
            .collect();
        let room = columns.saturating_sub(width_of(question) + 2).max(1);
        // The row ends at the cursor if what is before it does not fit.
        let mut start = self.cursor;
        let mut before = 0;
        while start > 0 && before + width_of(&shown[start - 1]) <= room {
            start -= 1;
            before += width_of(&shown[start]);
        }
        let mut end = self.cursor;
        let mut width = before;
        while end < shown.len() && width + width_of(&shown[end]) <= room {
            width += width_of(&shown[end]);
            end += 1;
        }
        let text = shown[start..end].concat();
        let back = match width - before {
            0 => String::new(),
            columns => format!("\x1b[{columns}D"),
        };
        format!("\r\x1b[K{question} {text}{back}")
    }
}

/// The number of columns of a text.
pub(super) fn width_of(text: &str) -> usize {
    text.width()
}

/// The beginning of a text that fits into that many columns.
pub(super) fn cut(text: &str, columns: usize) -> String {
    let mut width = 0;
    let fits = |character: &char| {
        width += character.width().unwrap_or_default();
        width <= columns
    };
    text.chars().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(initial: &str, keys: impl IntoIterator<Item = Key>) -> String {
        let mut line = Line::new(initial);
        for key in keys {
            line.apply(key);
        }
        line.text()
    }

    fn typed(text: &str) -> Key {
        Key::Text(text.to_owned())
    }

    #[test]
    fn the_usual_keys_edit_a_line() {
        assert_eq!(edited("one two", [Key::DeleteToStart, typed("x")]), "x");
        assert_eq!(edited("one two ", [Key::DeleteWord, typed("x")]), "one x");
        assert_eq!(edited("two", [Key::Home, typed("one ")]), "one two");
        assert_eq!(edited("oe", [Key::Left, typed("n")]), "one");
        assert_eq!(edited("onne", [Key::Left, Key::Backspace]), "one");
        let keys = [Key::Home, Key::Right, Key::DeleteToEnd];
        assert_eq!(edited("one", keys), "o");
        assert_eq!(edited("xone", [Key::Home, Key::Delete]), "one");
        let keys = [Key::WordLeft, Key::WordLeft, Key::WordRight, typed("!")];
        assert_eq!(edited("one two", keys), "one! two");
        assert_eq!(edited("", [Key::Backspace, Key::Left, Key::Delete]), "");
    }

    #[test]
    fn a_long_line_is_drawn_around_the_cursor() {
        let mut line = Line::new(&"abcdefghij".repeat(10));
        let at_end = line.draw("?", 20);
        assert!(at_end.ends_with("hij"), "{at_end}");
        assert!(width_of(at_end.trim_start_matches("\r\x1b[K")) < 20);
        line.apply(Key::Home);
        let at_start = line.draw("?", 20);
        assert!(at_start.contains("? abcdefg"), "{at_start}");
        assert!(at_start.ends_with('D'), "{at_start}");
    }

    #[test]
    fn hidden_characters_are_not_drawn() {
        let line = Line::new("a\u{1b}[2Jb\u{202e}c");
        let drawn = line.draw("?", 80);
        let drawn = drawn.strip_prefix("\r\x1b[K? ").unwrap();
        assert!(!drawn.contains(['\u{1b}', '\u{202e}']), "{drawn:?}");
    }
}
