//! Words and their TF-IDF weights: lower case, without stop words and common endings, weighted by how few of the
//! offered tools contain them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Stop words.
const STOP_WORDS: [&str; 64] = [
    "a", "about", "also", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
    "could", "do", "for", "from", "had", "has", "have", "i", "if", "in", "into", "is", "it", "its",
    "just", "like", "me", "my", "need", "not", "of", "on", "or", "our", "please", "so", "some",
    "such", "that", "the", "their", "them", "then", "there", "this", "to", "up", "was", "we",
    "were", "what", "which", "will", "with", "would", "you", "your", "am", "im", "ive",
];

/// The words of a text, in order.
pub(super) fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase().replace(['\'', '’'], "");
    let parts = lower.split(|c: char| !c.is_alphanumeric());
    let kept = parts.filter(|word| !word.is_empty() && !STOP_WORDS.contains(word));
    kept.map(stem).collect()
}

/// The words of a name such as `get_stock_info` or `fillFuelTank`.
pub(super) fn identifier_words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        if was_lower && c.is_uppercase() {
            spaced.push(' ');
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
        spaced.push(c);
    }
    words(&spaced)
}

/// A word without common endings, so that `moves`, `moved` and `moving` are equal.
fn stem(word: &str) -> String {
    let longer = |least: usize| word.len() > least && word.is_ascii();
    let stem = if let (true, Some(stem)) = (longer(4), word.strip_suffix("ies")) {
        return format!("{stem}y");
    } else if let (true, Some(stem)) = (longer(5), word.strip_suffix("ing")) {
        stem
    } else if let (true, Some(stem)) = (longer(4), word.strip_suffix("ed")) {
        stem
    } else if longer(3) && word.ends_with('s') && !word.ends_with("ss") {
        &word[..word.len() - 1]
    } else {
        word
    };
    match stem.strip_suffix('e') {
        Some(shorter) if shorter.len() > 2 => shorter.to_owned(),
        _ => stem.to_owned(),
    }
}

/// The document frequencies of words.
#[derive(Debug)]
pub(super) struct Lexicon {
    texts: usize,
    /// How many texts contain each word.
    frequencies: HashMap<String, usize>,
}

/// A text as a vector of unit length; empty if no word has a weight. Ordered, so that floating-point sums are always
/// the same.
pub(super) type Vector = BTreeMap<String, f64>;

impl Lexicon {
    pub(super) fn fit(texts: &[Vec<String>]) -> Self {
        let mut frequencies = HashMap::new();
        for text in texts {
            for word in text.iter().collect::<BTreeSet<_>>() {
                *frequencies.entry(word.clone()).or_default() += 1;
            }
        }
        Self {
            texts: texts.len(),
            frequencies,
        }
    }

    /// The weight of a word: zero if all texts contain it, largest if none does.
    fn weight(&self, word: &str) -> f64 {
        let frequency = self.frequencies.get(word).copied().unwrap_or(0);
        ((1 + self.texts) as f64 / (1 + frequency) as f64).ln()
    }

    pub(super) fn vector(&self, text: &[String]) -> Vector {
        let mut counts: BTreeMap<&String, u32> = BTreeMap::new();
        for word in text {
            *counts.entry(word).or_default() += 1;
        }
        let weighed = counts.into_iter().map(|(word, count)| {
            let often = 1.0 + f64::from(count).ln();
            (word.clone(), often * self.weight(word))
        });
        let mut vector: Vector = weighed.filter(|(_, weight)| *weight > 0.0).collect();
        let length = vector.values().map(|weight| weight * weight).sum::<f64>();
        let length = length.sqrt();
        vector.values_mut().for_each(|weight| *weight /= length);
        vector
    }
}

/// The cosine similarity of two texts, from 0 to 1.
pub(super) fn cosine(one: &Vector, other: &Vector) -> f64 {
    let shared = one
        .iter()
        .filter_map(|(word, weight)| other.get(word).map(|also| weight * also));
    shared.sum()
}
