//! How alike texts are by their words, beside their meaning: a static embedder takes two travel bookings for
//! much the same, whatever is to be done about them; the few words that tell them apart count here by how
//! rare they are in the playbook.

use std::collections::HashMap;

use windlass_embed::search_words;

/// How many texts a word that none of them has counts as being in.
const NOWHERE: f32 = 0.5;

/// The words of texts.
#[derive(Debug, Clone, Default)]
pub(super) struct Lexicon {
    numbers: HashMap<String, u32>,
    /// How many texts have each word.
    having: Vec<u32>,
    texts: Vec<Words>,
}

/// The words of one text, each once, with how often it is said.
type Words = Box<[(u32, u32)]>;

/// A text that others are compared with: what each word of theirs adds.
pub(super) struct Wanted {
    weights: Vec<f32>,
}

impl Lexicon {
    /// Takes a text in, after those before it.
    pub(super) fn push(&mut self, text: &str) {
        let mut said: HashMap<u32, u32> = HashMap::new();
        for word in search_words(text) {
            let next = self.numbers.len() as u32;
            let number = *self.numbers.entry(word).or_insert(next);
            *said.entry(number).or_default() += 1;
        }
        self.having.resize(self.numbers.len(), 0);
        let mut words: Vec<(u32, u32)> = said.into_iter().collect();
        words.sort_unstable();
        for (word, _) in &words {
            self.having[*word as usize] += 1;
        }
        self.texts.push(words.into());
    }

    /// Makes a text ready to be compared.
    pub(super) fn wanted(&self, text: &str) -> Wanted {
        let mut said: HashMap<String, u32> = HashMap::new();
        for word in search_words(text) {
            *said.entry(word).or_default() += 1;
        }
        let mut weights = vec![0.0; self.having.len()];
        let mut squares = 0.0;
        let mut words: Vec<(&String, &u32)> = said.iter().collect();
        // In order, so that the sum is the same each time.
        words.sort_unstable();
        for (word, times) in words {
            let number = self.numbers.get(word);
            let having = number.map_or(NOWHERE, |number| self.having[*number as usize] as f32);
            let weight = self.weight(having, *times);
            squares += weight * weight;
            if let Some(number) = number {
                weights[*number as usize] = weight;
            }
        }
        let length = squares.sqrt().max(f32::MIN_POSITIVE);
        weights.iter_mut().for_each(|weight| *weight /= length);
        Wanted { weights }
    }

    /// How alike a text is to the wanted one, from 0 to 1.
    pub(super) fn likeness(&self, text: usize, wanted: &Wanted) -> f32 {
        let (mut shared, mut squares) = (0.0, 0.0);
        for (word, times) in &self.texts[text] {
            let weight = self.weight(self.having[*word as usize] as f32, *times);
            squares += weight * weight;
            shared += weight * wanted.weights[*word as usize];
        }
        if squares > 0.0 {
            shared / squares.sqrt()
        } else {
            0.0
        }
    }

    fn weight(&self, having: f32, times: u32) -> f32 {
        (1.0 + (times as f32).ln()) * (1.0 + self.texts.len() as f32 / having).ln()
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
    fn the_same_text_is_wholly_alike_and_one_with_other_words_not_at_all() {
        let lexicon = lexicon(&["Cancel the flight to Rome.", "Water plants"]);
        let wanted = lexicon.wanted("cancel the FLIGHT to rome");
        assert!((lexicon.likeness(0, &wanted) - 1.0).abs() < 1e-5);
        assert!(lexicon.likeness(1, &wanted).abs() < 1e-9);
    }

    #[test]
    fn rare_words_tell_more_than_common_ones() {
        let lexicon = lexicon(&[
            "book the flight to Rome",
            "cancel the flight to Oslo",
            "pay the flight to Bonn",
        ]);
        let wanted = lexicon.wanted("cancel the flight to Rome");
        let [rome, oslo, bonn] = [0, 1, 2].map(|text| lexicon.likeness(text, &wanted));
        assert!(oslo > bonn && rome > bonn, "{rome} {oslo} {bonn}");
    }

    #[test]
    fn without_words_nothing_is_alike() {
        let lexicon = lexicon(&["", "a"]);
        for text in ["", "a", "?"] {
            let wanted = lexicon.wanted(text);
            assert!(lexicon.likeness(0, &wanted).abs() < 1e-9);
        }
        assert!(lexicon.likeness(1, &lexicon.wanted("")).abs() < 1e-9);
    }
}
