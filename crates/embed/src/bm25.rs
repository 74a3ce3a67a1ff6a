//! Search by words: BM25 over short texts.
//!
//! An inverted index: every word has a list of its texts, so that the cost of a query depends on the occurrences
//! of its words, not on the number of texts. Building and searching are linear in the length of the texts.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use crate::Scored;
use crate::words::visit_words;

/// The parameters of BM25.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bm25Parameters {
    /// The saturation of repeated words; at least 0.
    pub k1: f32,
    /// The penalty for long texts, from 0 to 1.
    pub b: f32,
}

impl Default for Bm25Parameters {
    fn default() -> Self {
        Self { k1: 1.2, b: 0.75 }
    }
}

/// An index of texts by their words. Ids are the positions of the texts.
#[derive(Debug, Clone, Default)]
pub struct Bm25Index {
    parameters: Bm25Parameters,
    /// The number of each word.
    words: HashMap<Box<str>, usize>,
    /// By word, the texts it is in, in order.
    postings: Vec<Vec<Posting>>,
    /// How many words each text has.
    lengths: Vec<u32>,
    /// How many words all texts have.
    total: u64,
}

#[derive(Debug, Clone, Copy)]
struct Posting {
    text: u32,
    times: u32,
}

impl Bm25Index {
    /// The index of `texts` with the default parameters.
    pub fn build<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::build_with(Bm25Parameters::default(), texts)
    }

    /// The index of `texts`.
    pub fn build_with<T: AsRef<str>>(
        parameters: Bm25Parameters,
        texts: impl IntoIterator<Item = T>,
    ) -> Self {
        let mut index = Self {
            parameters: parameters.sanitized(),
            ..Self::default()
        };
        for text in texts {
            index.push(text.as_ref());
        }
        index
    }

    /// Adds a text and returns its id, which is the number of texts before.
    pub fn push(&mut self, text: &str) -> usize {
        let id = self.lengths.len();
        let mut length = 0u32;
        visit_terms(text, |term| {
            length = length.saturating_add(1);
            let word = match self.words.get(term) {
                Some(&word) => word,
                None => {
                    self.words.insert(term.into(), self.postings.len());
                    self.postings.push(Vec::new());
                    self.postings.len() - 1
                }
            };
            let postings = &mut self.postings[word];
            match postings.last_mut() {
                Some(last) if last.text as usize == id => last.times = last.times.saturating_add(1),
                _ => postings.push(Posting {
                    text: id as u32,
                    times: 1,
                }),
            }
        });
        self.lengths.push(length);
        self.total += u64::from(length);
        id
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The `count` best texts that share a word with `query`, best first, ties by id.
    pub fn search(&self, query: &str, count: usize) -> Vec<Scored<usize>> {
        Self::best(&self.scores(query), count)
    }

    /// The `count` best of `scores` above zero, best first, ties by id.
    pub(crate) fn best(scores: &[f32], count: usize) -> Vec<Scored<usize>> {
        let scores = scores.iter().copied().enumerate();
        let mut found: Vec<Scored<usize>> = scores
            .filter(|(_, score)| *score > 0.0)
            .map(|(id, score)| Scored { id, score })
            .collect();
        found.sort_unstable_by(|left, right| {
            right
                .score
                .total_cmp(&left.score)
                .then(left.id.cmp(&right.id))
        });
        found.truncate(count);
        found
    }

    /// The score of every text for `query`, by position; zero if no word is shared. A word of the
    /// query counts once, however often it occurs.
    pub fn scores(&self, query: &str) -> Vec<f32> {
        let mut scores = vec![0.0; self.len()];
        let Bm25Parameters { k1, b } = self.parameters;
        let average = (self.total as f32 / self.len() as f32).max(1.0);
        for word in self.words_of(query) {
            let postings = &self.postings[word];
            let rarity = self.rarity(postings.len());
            for posting in postings {
                let text = posting.text as usize;
                let times = posting.times as f32;
                let length = self.lengths[text] as f32 / average;
                scores[text] += rarity * times * (k1 + 1.0) / (times + k1 * (1.0 - b + b * length));
            }
        }
        scores
    }

    /// The distinct known words of `query`, in the order of first occurrence, so that the sum of floats
    /// does not depend on the order of a set.
    fn words_of(&self, query: &str) -> Vec<usize> {
        let mut seen = HashSet::new();
        let mut words = Vec::new();
        visit_terms(query, |term| {
            if let Some(&word) = self.words.get(term)
                && seen.insert(word)
            {
                words.push(word);
            }
        });
        words
    }

    /// The weight of a word that is in `texts` texts; more than zero even if it is in all.
    fn rarity(&self, texts: usize) -> f32 {
        let (all, texts) = (self.len() as f32, texts as f32);
        ((all - texts + 0.5) / (texts + 0.5)).ln_1p()
    }
}

impl Bm25Parameters {
    /// Replaces values that would make scores negative, infinite or NaN.
    fn sanitized(self) -> Self {
        let Self { k1, b } = Self::default();
        Self {
            k1: if self.k1.is_finite() {
                self.k1.clamp(0.0, 1e3)
            } else {
                k1
            },
            b: if self.b.is_finite() {
                self.b.clamp(0.0, 1.0)
            } else {
                b
            },
        }
    }
}

/// The words of `text` as the word search compares them: lower case, without accents, in order, with
/// repetitions.
pub fn search_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    visit_terms(text, |word| words.push(word.to_owned()));
    words
}

/// Calls `visit` with the words of `text`, without punctuation marks. Words are not stemmed: removing
/// plurals or `-ing` did not help to find tools, alone or together with embeddings.
fn visit_terms(text: &str, mut visit: impl FnMut(&str)) {
    visit_words(text, |word| {
        if word.chars().any(char::is_alphanumeric) {
            visit(word);
        }
        ControlFlow::Continue(())
    });
}
