//! Splits a document into chunks that are embedded and found one by one: at the end of a paragraph if
//! there is one near, else of a sentence, else between words, else, in an endless line, anywhere between
//! two characters. The end of a chunk is said again at the start of the next, so that what stands across
//! a border is found whole. Chunks cover all of the document, so it can be put together again.

/// How many characters a chunk has at most.
const MOST: usize = 1_000;

/// After how many a border is looked for.
const LEAST: usize = 500;

/// How much is said again at most.
const OVERLAP: usize = 120;

/// The chunks of a text, each with the byte at which it begins.
pub(super) fn split(text: &str) -> Vec<(usize, &str)> {
    let mut chunks = Vec::new();
    let mut begin = 0;
    loop {
        let rest = &text[begin..];
        let Some((most, _)) = rest.char_indices().nth(MOST) else {
            chunks.push((begin, rest));
            return chunks;
        };
        let length = border(&rest[..most]);
        let chunk = &rest[..length];
        chunks.push((begin, chunk));
        begin += length - overlap(chunk);
    }
}

/// Where to end a chunk that may have all of `text`.
fn border(text: &str) -> usize {
    let least = text.char_indices().nth(LEAST).map_or(0, |(at, _)| at);
    let late = &text[least..];
    let after = |found: Option<usize>| found.map(|at| least + at);
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

/// How many bytes of the end of a chunk the next one begins with: from the start of a sentence if one
/// starts near the end, else of a word.
fn overlap(chunk: &str) -> usize {
    let Some((begin, _)) = chunk.char_indices().rev().nth(OVERLAP) else {
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
        // An endless line: there is nothing to say again that would mean anything.
        None => 0,
    }
}

/// The byte after the character at `at`.
fn next(text: &str, at: usize) -> usize {
    at + text[at..].chars().next().map_or(0, char::len_utf8)
}

/// Puts a document together again.
#[derive(Default)]
pub(super) struct Joined(String);

impl Joined {
    /// Adds the next chunk; whether it fits to what is there.
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

    use super::{Joined, MOST, OVERLAP, split};

    fn joined(text: &str) -> String {
        let mut joined = Joined::default();
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
                prop_assert!(chunk.chars().count() <= MOST);
                prop_assert_eq!(&text[begins..begins + chunk.len()], chunk);
            }
            prop_assert_eq!(joined(&text), text);
        }
    }

    #[test]
    fn a_border_is_after_a_paragraph_before_a_sentence_before_a_word() {
        let words = "word ".repeat(130);
        let sentences = "It is said. ".repeat(30);
        let with_paragraph = format!("{words}\n\n{sentences}{words}");
        assert!(split(&with_paragraph)[0].1.ends_with("\n\n"));
        let with_sentence = format!("{words}{sentences}{words}");
        assert!(split(&with_sentence)[0].1.ends_with("said. "));
        assert!(split(&words.repeat(3))[0].1.ends_with("word "));
    }

    #[test]
    fn the_end_of_a_chunk_is_said_again_from_the_start_of_a_sentence() {
        let text = "Short ones are good to read. ".repeat(80);
        let chunks = split(&text);
        let (first, second) = (&chunks[0], &chunks[1]);
        assert!(second.0 < first.0 + first.1.len());
        assert!(first.0 + first.1.len() - second.0 <= OVERLAP);
        assert!(second.1.starts_with("Short"));
    }

    #[test]
    fn an_endless_line_is_cut_between_characters() {
        let text = "漢".repeat(2_500);
        let lengths: Vec<usize> = split(&text)
            .iter()
            .map(|(_, chunk)| chunk.chars().count())
            .collect();
        assert_eq!(lengths, [1_000, 1_000, 500]);
    }
}
