//! Groups descriptions of missing capabilities that mean the same. Two descriptions are in one group if their
//! embeddings are similar. Names and values in them are ignored.

use windlass_embed::{Embedding, StaticEmbedder, split_identifier};
use windlass_reflex::{content_words, mentioned_values};

use super::words::is_light;

/// The least similarity within a group. Of pairs of 240 labelled requests, 70 % of those for the same tool are this
/// similar. Nearly all pairs for different tools that are this similar ask for the same under another tool
/// name.
const MIN_SIMILARITY: f32 = 0.75;

/// Groups texts by similarity. Each group lists positions in the given order; its first text is the one that the
/// others are compared with. The result is deterministic, and appending texts does not change the groups of
/// earlier ones.
#[must_use]
pub fn group_similar<S: AsRef<str>>(texts: &[S]) -> Vec<Vec<usize>> {
    let embedder = StaticEmbedder::new();
    let mut groups: Vec<(String, Embedding, Vec<usize>)> = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let core = core_words(text.as_ref());
        let meaning = embedder.embed(&core);
        // The nearest group, not the first that is similar enough.
        let nearest = groups
            .iter_mut()
            .map(|(known, vector, joined)| {
                let similarity = match *known == core {
                    true => 1.0,
                    false => vector.cosine(&meaning),
                };
                (similarity, joined)
            })
            .reduce(|best, next| if next.0 > best.0 { next } else { best });
        match nearest {
            Some((similarity, joined)) if similarity >= MIN_SIMILARITY => joined.push(index),
            _ => groups.push((core, meaning, vec![index])),
        }
    }
    groups.into_iter().map(|(_, _, joined)| joined).collect()
}

/// The words that describe the capability, without names, values and words like `find`.
fn core_words(text: &str) -> String {
    // A text without blanks may be a tool name, which is split into words.
    let text = match text.contains(char::is_whitespace) {
        true => text.to_owned(),
        false => split_identifier(text),
    };
    let values = mentioned_values(&text);
    let words: Vec<String> = content_words(&text)
        .into_iter()
        .filter(|word| {
            let is_value = values.iter().any(|value| {
                value.place.start < word.place.end && word.place.start < value.place.end
            });
            !word.name && !is_value && !is_light(&word.lower) && !is_request_word(&word.lower)
        })
        .map(|word| word.lower)
        .collect();
    match words.is_empty() {
        true => text.trim().to_lowercase(),
        false => words.join(" "),
    }
}

fn is_request_word(word: &str) -> bool {
    matches!(
        word,
        "show" | "tell" | "give" | "want" | "need" | "please" | "help" | "know" | "look" | "make"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_the_same_meaning_are_in_one_group() {
        let texts = [
            "Translate this letter into French",
            "What is the weather in Paris?",
            "Please translate my letter to German",
            "Show me the weather in Oslo tomorrow",
            "translate_letter",
            "Delete the account of Ann",
        ];
        assert_eq!(group_similar(&texts), [vec![0, 2, 4], vec![1, 3], vec![5]]);
    }

    #[test]
    fn appending_texts_does_not_change_earlier_groups() {
        let texts = [
            "send an SMS to Bob",
            "book a flight to Rome",
            "send a text message",
        ];
        let before = group_similar(&texts[..2]);
        let after = group_similar(&texts);
        for (index, group) in before.iter().enumerate() {
            assert!(after[index].starts_with(group));
        }
    }

    #[test]
    fn texts_without_words_are_grouped_only_if_equal() {
        assert_eq!(group_similar(&["???", "!!!", "???"]), [vec![0, 2], vec![1]]);
        assert!(group_similar::<&str>(&[]).is_empty());
    }
}
