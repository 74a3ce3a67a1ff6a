//! The similarity of texts by their words (TF-IDF cosine), in addition to their embeddings. To a static embedder,
//! "book a flight" and "cancel a flight" are nearly the same. Here the words that differ count by how rare they
//! are in the playbook.

use std::collections::HashMap;

use windlass_embed::search_words;

/// The document frequency of a word that is in no text.
const UNSEEN_FREQUENCY: f32 = 0.5;

/// The words of texts.
#[derive(Debug, Clone, Default)]
pub(super) struct Lexicon {
    numbers: HashMap<String, u32>,
    /// How many texts contain each word.
    frequencies: Vec<u32>,
    texts: Vec<WordCounts>,
}

/// The distinct words of one text, each with its count.
type WordCounts = Box<[(u32, u32)]>;

/// A query text, as the weight of each word.
pub(super) struct WeightedQuery {
    weights: Vec<f32>,
}

impl Lexicon {
    /// Adds a text. Its number is how many there were before.
    pub(super) fn push(&mut self, text: &str) {
        let mut counts: HashMap<u32, u32> = HashMap::new();
        for word in search_words(text) {
            let next = self.numbers.len() as u32;
            let number = *self.numbers.entry(word).or_insert(next);
            *counts.entry(number).or_default() += 1;
        }
        self.frequencies.resize(self.numbers.len(), 0);
        let mut words: Vec<(u32, u32)> = counts.into_iter().collect();
        words.sort_unstable();
        for (word, _) in &words {
            self.frequencies[*word as usize] += 1;
        }
        self.texts.push(words.into());
    }

    /// Prepares a query text.
    pub(super) fn weigh_query(&self, text: &str) -> WeightedQuery {
        let mut counts: HashMap<String, u32> = HashMap::new();
        for word in search_words(text) {
            *counts.entry(word).or_default() += 1;
        }
        let mut weights = vec![0.0; self.frequencies.len()];
        let mut squares = 0.0;
        let mut words: Vec<(&String, &u32)> = counts.iter().collect();
        // Sorted, so that the floating-point sum is always the same.
        words.sort_unstable();
        for (word, times) in words {
            let number = self.numbers.get(word);
            let frequency = number.map_or(UNSEEN_FREQUENCY, |number| {
                self.frequencies[*number as usize] as f32
            });
            let weight = self.weight(frequency, *times);
            squares += weight * weight;
            if let Some(number) = number {
                weights[*number as usize] = weight;
            }
        }
        let length = squares.sqrt().max(f32::MIN_POSITIVE);
        weights.iter_mut().for_each(|weight| *weight /= length);
        WeightedQuery { weights }
    }

    /// The similarity of a text to the query, from 0 to 1.
    pub(super) fn similarity(&self, text: usize, query: &WeightedQuery) -> f32 {
        let (mut shared, mut squares) = (0.0, 0.0);
        for (word, times) in &self.texts[text] {
            let weight = self.weight(self.frequencies[*word as usize] as f32, *times);
            squares += weight * weight;
            shared += weight * query.weights[*word as usize];
        }
        if squares > 0.0 {
            shared / squares.sqrt()
        } else {
            0.0
        }
    }

    fn weight(&self, frequency: f32, times: u32) -> f32 {
        (1.0 + (times as f32).ln()) * (1.0 + self.texts.len() as f32 / frequency).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexicon(texts: &[&str]) -> Lexicon {
        let mut lexicon = Lexicon::default();
        texts.iter().for_each(|text| lexicon.push(text));
        lexicon
    }

    #[test]
    fn equal_texts_have_similarity_one_and_texts_without_common_words_zero() {
        let lexicon = lexicon(&["Cancel the flight to Rome.", "Water plants"]);
        let query = lexicon.weigh_query("cancel the FLIGHT to rome");
        assert!((lexicon.similarity(0, &query) - 1.0).abs() < 1e-5);
        assert!(lexicon.similarity(1, &query).abs() < 1e-9);
    }

    #[test]
    fn rare_words_count_more_than_common_ones() {
        let lexicon = lexicon(&[
            "book the flight to Rome",
            "cancel the flight to Oslo",
            "pay the flight to Bonn",
        ]);
        let query = lexicon.weigh_query("cancel the flight to Rome");
        let [rome, oslo, bonn] = [0, 1, 2].map(|text| lexicon.similarity(text, &query));
        assert!(oslo > bonn && rome > bonn, "{rome} {oslo} {bonn}");
    }

    #[test]
    fn texts_without_words_have_similarity_zero() {
        let lexicon = lexicon(&["", "a"]);
        for text in ["", "a", "?"] {
            let query = lexicon.weigh_query(text);
            assert!(lexicon.similarity(0, &query).abs() < 1e-9);
        }
        assert!(lexicon.similarity(1, &lexicon.weigh_query("")).abs() < 1e-9);
    }
}
