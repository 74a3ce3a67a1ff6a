//! Splits a document into chunks that are embedded and found one by one. A chunk ends at the end of a paragraph if
//! there is one near, else of a sentence, else between words, else between any two characters. Chunks overlap, so
//! that text across a border is found whole. They cover the whole document, so it can be joined again.

/// The maximum number of characters in a chunk.
const MAX_CHARS: usize = 1_000;

/// The minimum number of characters before a border.
const MIN_CHARS: usize = 500;

/// The maximum number of characters that two chunks share.
const MAX_OVERLAP: usize = 120;

/// The chunks of a text, each with the byte at which it begins.
pub(super) fn split(text: &str) -> Vec<(usize, &str)> {
    let mut chunks = Vec::new();
    let mut begin = 0;
    loop {
        let rest = &text[begin..];
        let Some((max_length, _)) = rest.char_indices().nth(MAX_CHARS) else {
            chunks.push((begin, rest));
            return chunks;
        };
        let length = border(&rest[..max_length]);
        let chunk = &rest[..length];
        chunks.push((begin, chunk));
        begin += length - overlap(chunk);
    }
}

/// The byte at which to end a chunk that may have all of `text`.
fn border(text: &str) -> usize {
    let min_length = text.char_indices().nth(MIN_CHARS).map_or(0, |(at, _)| at);
    let late = &text[min_length..];
    let after = |found: Option<usize>| found.map(|at| min_length + at);
    after(late.rfind("\n\n").map(|at| at + 2))
        .or_else(|| after(sentence_end(late)))
        .or_else(|| after(late.rfind(char::is_whitespace).map(|at| next(late, at))))
        .unwrap_or(text.len())
}

/// The byte after the last sentence that ends in `text`, or after its last line.
fn sentence_end(text: &str) -> Option<usize> {
    let mut last = None;
    let mut ended = false;
    for (at, character) in text.char_indices() {
        let after = at + character.len_utf8();
        match character {
            '\n' | '。' | '！' | '？' => last = Some(after),
            _ if ended && character.is_whitespace() => last = Some(after),
            _ => {}
        }
        ended = matches!(character, '.' | '!' | '?' | '…')
            || (ended && matches!(character, '"' | '\'' | ')' | '”' | '’' | '»'));
    }
    last
}

/// How many bytes at the end of a chunk the next chunk repeats: from the start of a sentence if one
/// starts near the end, else of a word.
fn overlap(chunk: &str) -> usize {
    let Some((begin, _)) = chunk.char_indices().rev().nth(MAX_OVERLAP) else {
        return 0;
    };
    let tail = &chunk[begin..];
    let kept = tail.trim_end();
    let first_sentence = kept
        .match_indices(['.', '!', '?', '\n'])
        .map(|(at, _)| next(kept, at))
        .find(|&at| kept[at..].starts_with(char::is_whitespace));
    let first_word = kept.find(char::is_whitespace);
    match first_sentence.or(first_word) {
        Some(at) => {
            let at = at + (kept[at..].len() - kept[at..].trim_start().len());
            tail.len() - at
        }
        // A line without blanks: repeating a fragment would have no meaning.
        None => 0,
    }
}

/// The byte after the character at `at`.
fn next(text: &str, at: usize) -> usize {
    at + text[at..].chars().next().map_or(0, char::len_utf8)
}

/// Joins the chunks of a document.
#[derive(Default)]
pub(super) struct JoinedText(String);

impl JoinedText {
    /// Adds the next chunk. Returns false if it does not continue the text.
    pub(super) fn add(&mut self, begins: usize, chunk: &str) -> bool {
        let known = self.0.len().checked_sub(begins);
        match known.and_then(|known| chunk.get(known..)) {
            Some(new) => {
                self.0.push_str(new);
                true
            }
            None => false,
        }
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{JoinedText, MAX_CHARS, MAX_OVERLAP, split};

    fn joined(text: &str) -> String {
        let mut joined = JoinedText::default();
        for (begins, chunk) in split(text) {
            assert!(joined.add(begins, chunk));
        }
        joined.into_text()
    }

    proptest! {
        #[test]
        fn chunks_are_short_and_cover_the_text(
            parts in prop::collection::vec(
                prop_oneof![
                    "[a-zé漢🦀]{1,40}", Just(" ".to_owned()), Just(". ".to_owned()),
                    Just("\n\n".to_owned()), "[a-z漢]{900,1200}",
                ],
                0..300,
            )
        ) {
            let text = parts.concat();
            for (begins, chunk) in split(&text) {
                prop_assert!(chunk.chars().count() <= MAX_CHARS);
                prop_assert_eq!(&text[begins..begins + chunk.len()], chunk);
            }
            prop_assert_eq!(joined(&text), text);
        }
    }

    #[test]
    fn chunks_end_at_paragraphs_then_sentences_then_words() {
        let words = "word ".repeat(130);
        let sentences = "It is said. ".repeat(30);
        let with_paragraph = format!("{words}\n\n{sentences}{words}");
        assert!(split(&with_paragraph)[0].1.ends_with("\n\n"));
        let with_sentence = format!("{words}{sentences}{words}");
        assert!(split(&with_sentence)[0].1.ends_with("said. "));
        assert!(split(&words.repeat(3))[0].1.ends_with("word "));
    }

    #[test]
    fn chunks_overlap_from_the_start_of_a_sentence() {
        let text = "Short ones are good to read. ".repeat(80);
        let chunks = split(&text);
        let (first, second) = (&chunks[0], &chunks[1]);
        assert!(second.0 < first.0 + first.1.len());
        assert!(first.0 + first.1.len() - second.0 <= MAX_OVERLAP);
        assert!(second.1.starts_with("Short"));
    }

    #[test]
    fn a_line_without_blanks_is_split_between_characters() {
        let text = "漢".repeat(2_500);
        let lengths: Vec<usize> = split(&text)
            .iter()
            .map(|(_, chunk)| chunk.chars().count())
            .collect();
        assert_eq!(lengths, [1_000, 1_000, 500]);
    }
}
