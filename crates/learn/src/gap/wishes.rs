//! The same wish in other words: what was missing many times, counted once. Two wishes are one if what
//! they ask for is alike by meaning; whose name and which number they were about does not matter.

use windlass_embed::{Embedding, StaticEmbedder, split_identifier};
use windlass_reflex::{content_words, mentioned_values};

use super::words::is_light;

/// From here on two wishes are one. Of pairs of 240 labelled requests, those of one tool are this much
/// alike in 70 % of cases; of those of different tools that are, nearly all ask for the same by another
/// name of the tool.
const SAME: f32 = 0.75;

/// Wishes that are one, by position, in the order given: the first of each is the one the others joined.
/// The same wishes in the same order always come out the same, and more at the end change nothing about
/// those before.
#[must_use]
pub fn merge<S: AsRef<str>>(wishes: &[S]) -> Vec<Vec<usize>> {
    let embedder = StaticEmbedder::new();
    let mut merged: Vec<(String, Embedding, Vec<usize>)> = Vec::new();
    for (index, wish) in wishes.iter().enumerate() {
        let essence = essence(wish.as_ref());
        let meaning = embedder.embed(&essence);
        // The nearest, not the first that is near enough.
        let nearest = merged
            .iter_mut()
            .map(|(known, vector, joined)| {
                let likeness = match *known == essence {
                    true => 1.0,
                    false => vector.cosine(&meaning),
                };
                (likeness, joined)
            })
            .reduce(|best, next| if next.0 > best.0 { next } else { best });
        match nearest {
            Some((likeness, joined)) if likeness >= SAME => joined.push(index),
            _ => merged.push((essence, meaning, vec![index])),
        }
    }
    merged.into_iter().map(|(_, _, joined)| joined).collect()
}

/// The words that say what is wished for, without names, values and words like `find`.
fn essence(wish: &str) -> String {
    // Names of tools are words, too; a text with blanks is none.
    let text = match wish.contains(char::is_whitespace) {
        true => wish.to_owned(),
        false => split_identifier(wish),
    };
    let values = mentioned_values(&text);
    let words: Vec<String> = content_words(&text)
        .into_iter()
        .filter(|word| {
            let is_value = values.iter().any(|value| {
                value.place.start < word.place.end && word.place.start < value.place.end
            });
            !word.name && !is_value && !is_light(&word.lower) && !only_asks(&word.lower)
        })
        .map(|word| word.lower)
        .collect();
    match words.is_empty() {
        true => text.trim().to_lowercase(),
        false => words.join(" "),
    }
}

fn only_asks(word: &str) -> bool {
    matches!(
        word,
        "show" | "tell" | "give" | "want" | "need" | "please" | "help" | "know" | "look" | "make"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_wish_in_other_words_is_one() {
        let wishes = [
            "Translate this letter into French",
            "What is the weather in Paris?",
            "Please translate my letter to German",
            "Show me the weather in Oslo tomorrow",
            "translate_letter",
            "Delete the account of Ann",
        ];
        assert_eq!(merge(&wishes), [vec![0, 2, 4], vec![1, 3], vec![5]]);
    }

    #[test]
    fn later_wishes_change_nothing_about_earlier_ones() {
        let wishes = [
            "send an SMS to Bob",
            "book a flight to Rome",
            "send a text message",
        ];
        let before = merge(&wishes[..2]);
        let after = merge(&wishes);
        for (index, group) in before.iter().enumerate() {
            assert!(after[index].starts_with(group));
        }
    }

    #[test]
    fn what_has_no_words_is_the_same_only_as_itself() {
        assert_eq!(merge(&["???", "!!!", "???"]), [vec![0, 2], vec![1]]);
        assert!(merge::<&str>(&[]).is_empty());
    }
}
