//! Words with their embeddings, and how far one set of words covers another. A word covers another fully
//! if both have the same stem, else by the cosine of their embeddings. The weight of a word comes from the
//! embedder's general vocabulary, not from the few available tools.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use windlass_embed::{Embedding, StaticEmbedder};
use windlass_reflex::{ContentWord, MentionedValue, ValueKind};

/// A word with its embedding.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) stem: String,
    meaning: Arc<Meaning>,
    /// Whether it carries little information about what a tool does, like `get` and `specific`.
    pub(super) light: bool,
    /// Whether it is only a word of request.
    pub(super) asks: bool,
    /// Whether it is part of a name.
    pub(super) name: bool,
    /// Its position in the text.
    pub(super) place: Range<usize>,
}

#[derive(Debug)]
struct Meaning {
    vector: Embedding,
    weight: f32,
}

/// A cache of the meanings of words.
#[derive(Debug, Default)]
pub(super) struct Meanings {
    embedder: StaticEmbedder,
    known: HashMap<String, Arc<Meaning>>,
}

impl Meanings {
    pub(super) fn words(&mut self, words: Vec<ContentWord>) -> Vec<Word> {
        words.into_iter().map(|word| self.word(word)).collect()
    }

    fn word(&mut self, word: ContentWord) -> Word {
        Word {
            light: is_light(&word.lower),
            meaning: self.meaning(&word.lower),
            stem: word.stem,
            asks: word.asks,
            name: word.name,
            place: word.place,
        }
    }

    fn meaning(&mut self, word: &str) -> Arc<Meaning> {
        if let Some(known) = self.known.get(word) {
            return Arc::clone(known);
        }
        let meaning = Arc::new(Meaning {
            vector: self.embedder.embed(word),
            weight: self.embedder.weight(word),
        });
        self.known.insert(word.to_owned(), Arc::clone(&meaning));
        meaning
    }
}

impl Word {
    /// How far the best of `others` covers this word, from 0 to 1. Only the same stem gives 1.
    fn covered(&self, others: &[&Word]) -> f64 {
        let mut best = 0.0_f32;
        for other in others {
            if other.stem == self.stem {
                return 1.0;
            }
            best = best.max(self.meaning.vector.cosine(&other.meaning.vector));
        }
        // Similar embeddings alone never count as the same word.
        f64::from(best).clamp(0.0, 0.99)
    }

    fn weight(&self) -> f64 {
        f64::from(self.meaning.weight)
    }
}

/// How far words are covered by others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Coverage {
    /// The mean, weighted by rarity.
    pub(super) mean: f64,
    /// The share of words that are fully covered, weighted by rarity.
    pub(super) exact: f64,
    /// The coverage of the least covered word.
    pub(super) least: f64,
    /// The largest uncovered weight of a word.
    pub(super) most_missed: f64,
}

/// How far `others` cover `words`; `None` if no word has a weight.
pub(super) fn coverage(words: &[&Word], others: &[&Word]) -> Option<Coverage> {
    let mut total = 0.0;
    let mut found = Coverage {
        mean: 0.0,
        exact: 0.0,
        least: 1.0,
        most_missed: 0.0,
    };
    for word in words {
        let (covered, weight) = (word.covered(others), word.weight());
        total += weight;
        found.mean += covered * weight;
        found.exact += if covered >= 1.0 { weight } else { 0.0 };
        found.least = found.least.min(covered);
        found.most_missed = found.most_missed.max((1.0 - covered) * weight);
    }
    (total > 0.0).then(|| Coverage {
        mean: found.mean / total,
        exact: found.exact / total,
        ..found
    })
}

/// Whether nearly every tool has this word in its name or description.
#[rustfmt::skip] // A table, read across.
pub(super) fn is_light(lower: &str) -> bool {
    matches!(
        lower,
        "retrieve" | "retrieves" | "calculate" | "calculates" | "compute" | "computes" |
        "get" | "gets" | "find" | "finds" | "fetch" | "fetches" | "search" | "searches" |
        "determine" | "determines" | "provide" | "provides" | "return" | "returns" |
        "specific" | "certain" | "given" | "based" | "particular" | "specified" | "various" |
        "list" | "information" | "details" | "detail" | "data" | "function" | "tool" |
        "using" | "use" | "uses" | "used" | "user" | "according" | "involved" | "include" |
        "includes" | "including" | "related" | "multiple" | "different" | "current" |
        "input" | "output" | "result" | "results" | "value" | "values" | "parameter" |
        "parameters" | "number" | "such" | "like" | "name" | "type" | "optional" | "default"
    )
}

/// Words that a text implies: `when` implies a date, `Paris` a place, `$` a currency.
pub(super) fn implied(text: &str, values: &[MentionedValue]) -> Vec<ContentWord> {
    let lower = text.to_lowercase();
    let asked = lower
        .split(|c: char| !c.is_alphanumeric())
        .flat_map(words_of_question);
    let mentioned = values.iter().flat_map(|value| words_of_kind(value.kind));
    let money = lower.contains(['$', '€', '£', '¥'])
        || lower.split(|c: char| !c.is_alphanumeric()).any(is_money);
    let money: &[&str] = if money {
        &["currency", "price", "amount"]
    } else {
        &[]
    };
    let mut words: Vec<&str> = asked.chain(mentioned).chain(money).copied().collect();
    words.sort_unstable();
    words.dedup();
    let words = words.into_iter();
    words
        .flat_map(windlass_reflex::content_words_of_name)
        .collect()
}

fn words_of_question(word: &str) -> &'static [&'static str] {
    match word {
        "when" => &["date", "time", "year"],
        "who" | "whom" | "whose" => &["person", "people"],
        "where" => &["location", "place"],
        "far" => &["distance"],
        "long" => &["duration", "time"],
        "much" => &["amount", "cost"],
        "many" => &["number", "count"],
        "old" => &["age"],
        _ => &[],
    }
}

fn words_of_kind(kind: ValueKind) -> &'static [&'static str] {
    match kind {
        ValueKind::Place => &["location", "city", "country", "place"],
        ValueKind::Date => &["date", "day", "year", "time"],
        ValueKind::Time => &["time", "date"],
        ValueKind::Email => &["email", "address"],
        ValueKind::Url => &["url", "website"],
        ValueKind::Path => &["file", "path"],
        ValueKind::Name | ValueKind::Language => &["name", "specific"],
        ValueKind::Integer
        | ValueKind::Number
        | ValueKind::Quoted
        | ValueKind::List
        | ValueKind::Code => &[],
    }
}

fn is_money(word: &str) -> bool {
    matches!(
        word,
        "usd"
            | "eur"
            | "gbp"
            | "jpy"
            | "euro"
            | "euros"
            | "dollar"
            | "dollars"
            | "pound"
            | "pounds"
            | "yen"
    )
}
