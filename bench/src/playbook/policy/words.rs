//! Words and their weights: lower-cased, without the commonest, without the commonest endings, weighed by
//! how few of the offered tools speak of them (TF-IDF).

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Words that say nothing of what is wanted.
const STOP: [&str; 64] = [
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
    let kept = parts.filter(|word| !word.is_empty() && !STOP.contains(word));
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

/// A word without the commonest endings, so that `moves`, `moved` and `moving` are one.
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

/// What words weigh.
#[derive(Debug)]
pub(super) struct Lexicon {
    texts: usize,
    /// How many texts have each word.
    having: HashMap<String, usize>,
}

/// A text as a vector of unit length; nothing if it has no word that weighs anything. In order, so that
/// sums come out the same each time.
pub(super) type Vector = BTreeMap<String, f64>;

impl Lexicon {
    pub(super) fn fitted(texts: &[Vec<String>]) -> Self {
        let mut having = HashMap::new();
        for text in texts {
            for word in text.iter().collect::<BTreeSet<_>>() {
                *having.entry(word.clone()).or_default() += 1;
            }
        }
        Self {
            texts: texts.len(),
            having,
        }
    }

    /// What all texts have weighs nothing; what none of them has is the rarest.
    fn weight(&self, word: &str) -> f64 {
        let having = self.having.get(word).copied().unwrap_or(0);
        ((1 + self.texts) as f64 / (1 + having) as f64).ln()
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

/// How alike two texts are, from 0 to 1.
pub(super) fn cosine(one: &Vector, other: &Vector) -> f64 {
    let shared = one
        .iter()
        .filter_map(|(word, weight)| other.get(word).map(|also| weight * also));
    shared.sum()
}
