//! Finds everything in a text that could be the value of an argument. `fill` decides which mention fits which
//! parameter.

pub(crate) mod address;
pub(crate) mod date;
pub(crate) mod entity;
pub(crate) mod format;
pub(crate) mod number;
pub(crate) mod phrase;
pub(crate) mod quantity;
pub(crate) mod quoted;

use serde_json::Value;

use crate::lexicon::places::{self, PlaceKind};
use crate::text::{Text, Token};
use date::Date;
use entity::EntityKind;
use number::Quantity;

/// The most mentions that are considered. A usual request has far fewer.
const MAX_MENTIONS: usize = 300;

/// The kind of a mention.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MentionKind {
    /// A number with its unit.
    Number(Quantity),
    /// A date, possibly relative.
    Date(Date),
    /// A value with a recognisable format.
    Entity(EntityKind),
    /// A known place, possibly with its state or country.
    Place(PlaceKind),
    /// A quoted text.
    Quoted(String),
    /// A list or record in brackets.
    Value(Value),
    /// A run of plain words.
    Phrase,
    /// One word of a longer run.
    Word,
}

/// A possible value with its range of tokens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mention {
    /// Its kind.
    pub(crate) kind: MentionKind,
    /// The first token.
    pub(crate) from: usize,
    /// The token after it.
    pub(crate) to: usize,
}

impl Mention {
    /// The number, if it is one.
    pub(crate) fn number(&self) -> Option<&Quantity> {
        match &self.kind {
            MentionKind::Number(quantity) => Some(quantity),
            _ => None,
        }
    }
}

/// A text with all its mentions.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// The text.
    pub(crate) text: Text,
    /// Its mentions, in order.
    pub(crate) mentions: Vec<Mention>,
    /// Today's date, from the text or from the caller.
    pub(crate) today: Option<Date>,
}

impl Reading {
    /// Analyzes a text. Relative dates are resolved with `today`.
    pub(crate) fn new(source: &str, today: Option<Date>) -> Self {
        let text = Text::new(source);
        let today = date::stated_today(&text.source).or(today);
        let mut mentions: Vec<Mention> = Vec::new();
        let mut taken = vec![false; text.tokens.len()];
        let mut add = |kind: MentionKind, from: usize, to: usize, taken: &mut Vec<bool>| {
            let to = to.min(taken.len());
            if from < to && !taken[from..to].contains(&true) {
                taken[from..to].fill(true);
                mentions.push(Mention { kind, from, to });
            }
        };
        for verbatim in quoted::quotations(&text) {
            if let Value::String(inner) = verbatim.value {
                add(
                    MentionKind::Quoted(inner),
                    verbatim.from,
                    verbatim.to,
                    &mut taken,
                );
            }
        }
        for verbatim in quoted::brackets(&text) {
            add(
                MentionKind::Value(verbatim.value),
                verbatim.from,
                verbatim.to,
                &mut taken,
            );
        }
        for found in date::dates(&text, today) {
            add(
                MentionKind::Date(found.date),
                found.from,
                found.to,
                &mut taken,
            );
        }
        for found in entity::chunks(&text) {
            add(
                MentionKind::Entity(found.kind),
                found.from,
                found.to,
                &mut taken,
            );
        }
        for found in entity::formulas(&text) {
            add(
                MentionKind::Entity(found.kind),
                found.from,
                found.to,
                &mut taken,
            );
        }
        for found in entity::times(&text) {
            add(
                MentionKind::Entity(found.kind),
                found.from,
                found.to,
                &mut taken,
            );
        }
        for (from, to) in address::addresses(&text) {
            add(MentionKind::Place(PlaceKind::Address), from, to, &mut taken);
        }
        for quantity in number::numbers(&text) {
            let (from, to) = (quantity.from, quantity.end);
            add(MentionKind::Number(quantity), from, to, &mut taken);
        }
        let names: Vec<(usize, usize)> = entity::names(&text)
            .into_iter()
            .map(|name| (name.from, name.to))
            .filter(|&(from, to)| !taken[from..to].contains(&true))
            .collect();
        for &(from, to) in &names {
            let kind = places::kind(text.slice(from, to))
                .map_or(MentionKind::Entity(EntityKind::Name), MentionKind::Place);
            mentions.push(Mention { kind, from, to });
        }
        mentions.extend(parts_of_names(&text, &names));
        mentions.extend(composed_places(&text, &names));
        mentions.extend(lower_case_places(&text, &taken));
        mentions.extend(phrase::phrases(&text, &taken));
        mentions.sort_by_key(|mention| (mention.from, mention.to));
        mentions.truncate(MAX_MENTIONS);
        Self {
            text,
            mentions,
            today,
        }
    }

    /// A mention as it was written.
    pub(crate) fn written<'a>(&'a self, mention: &'a Mention) -> &'a str {
        match &mention.kind {
            MentionKind::Quoted(inner) => inner,
            _ => self.text.slice(mention.from, mention.to),
        }
    }
}

/// Places inside names: `King of France` also mentions France.
fn parts_of_names(text: &Text, names: &[(usize, usize)]) -> Vec<Mention> {
    let mut found = Vec::new();
    for &(from, to) in names {
        let Some(of) = (from..to).find(|&at| text.lower(at) == "of") else {
            continue;
        };
        let start = of + 1 + usize::from(text.lower(of + 1) == "the");
        if start < to
            && let Some(kind) = places::kind(text.slice(start, to))
        {
            found.push(Mention {
                kind: MentionKind::Place(kind),
                from: start,
                to,
            });
        }
    }
    found
}

/// Places with their state or country: `Denver, Colorado` and `Manhattan, New York`, in addition to their parts.
fn composed_places(text: &Text, names: &[(usize, usize)]) -> Vec<Mention> {
    let mut found = Vec::new();
    for pair in names.windows(2) {
        let [(from, middle), (next, to)] = *pair else {
            continue;
        };
        let joined = text.lower(middle) == "," && next == middle + 1;
        let within = places::kind(text.slice(next, to));
        let is_place = matches!(within, Some(PlaceKind::State | PlaceKind::Country))
            || within == Some(PlaceKind::City)
                && places::state_code(text.slice(next, to)).is_some();
        if joined && is_place {
            found.push(Mention {
                kind: MentionKind::Place(PlaceKind::City),
                from,
                to,
            });
        }
    }
    found
}

/// Places written in lower case.
fn lower_case_places(text: &Text, taken: &[bool]) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.tokens.len() {
        let longest = (1..=3).rev().find(|length| {
            let to = at + length;
            to <= taken.len()
                && !taken[at..to].contains(&true)
                && !text.tokens[at].capital
                && text.tokens[at..to].iter().all(Token::is_word)
                // Short words are codes or ordinary words, and `nice` and `mesa` are rarely cities in lower case.
                && text.slice(at, to).len() > 3
                && !matches!(text.lower(at), "nice" | "mesa" | "lima" | "queens" | "phoenix" | "buffalo" | "concord" | "providence" | "riverside" | "richmond" | "florence" | "turkey" | "china" | "georgia" | "jordan")
                && places::kind(text.slice(at, to)).is_some()
        });
        if let Some(length) = longest {
            if let Some(kind) = places::kind(text.slice(at, at + length)) {
                found.push(Mention {
                    kind: MentionKind::Place(kind),
                    from: at,
                    to: at + length,
                });
            }
            at += length;
        } else {
            at += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(String, &'static str)> {
        let reading = Reading::new(text, None);
        reading
            .mentions
            .iter()
            .map(|mention| {
                let kind = match &mention.kind {
                    MentionKind::Number(_) => "number",
                    MentionKind::Date(_) => "date",
                    MentionKind::Entity(_) => "entity",
                    MentionKind::Place(_) => "place",
                    MentionKind::Quoted(_) => "quoted",
                    MentionKind::Value(_) => "value",
                    MentionKind::Phrase | MentionKind::Word => "phrase",
                };
                (reading.written(mention).to_owned(), kind)
            })
            .collect()
    }

    #[test]
    fn every_mention_is_found_once_with_its_kind() {
        let found = kinds("Book 'Le Bistro' in Denver, Colorado on March 10, 2023 for 4 people");
        for expected in [
            ("Le Bistro", "quoted"),
            ("Denver", "place"),
            ("Colorado", "place"),
            ("Denver, Colorado", "place"),
            ("March 10, 2023", "date"),
            ("4", "number"),
            ("people", "phrase"),
        ] {
            assert!(
                found.contains(&(expected.0.to_owned(), expected.1)),
                "{expected:?} in {found:?}"
            );
        }
        assert_eq!(
            found.iter().filter(|(_, kind)| *kind == "number").count(),
            1
        );
    }

    #[test]
    fn places_are_recognised_in_lower_case() {
        assert!(kinds("weather in san francisco").contains(&("san francisco".to_owned(), "place")));
    }

    #[test]
    fn unusual_texts_do_not_panic() {
        for text in [
            "",
            "🦀🎉🥑",
            "这是什么",
            "مرحبا بالعالم",
            "\u{0}\u{1}",
            "((((([[[[[{{{{{",
            "''''\"\"\"\"",
            "$ € % - .",
        ] {
            let _ = Reading::new(text, None);
        }
    }
}
