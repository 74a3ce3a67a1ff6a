//! Everything a text mentions that could be the value of an argument, found once and then offered to
//! every parameter. What a mention means for a parameter is decided in `fill`, not here.

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

/// How many mentions are considered; a person's request has far fewer.
const MOST_MENTIONS: usize = 300;

/// What a mention is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum What {
    /// A number with its unit.
    Number(Quantity),
    /// A date, perhaps relative.
    Date(Date),
    /// Something with a form of its own.
    Entity(EntityKind),
    /// A known place, perhaps with what it lies in.
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

/// A possible value with its place in the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mention {
    /// What it is.
    pub(crate) what: What,
    /// The first token.
    pub(crate) from: usize,
    /// The token after it.
    pub(crate) to: usize,
}

impl Mention {
    /// The number, if it is one.
    pub(crate) fn number(&self) -> Option<&Quantity> {
        match &self.what {
            What::Number(quantity) => Some(quantity),
            _ => None,
        }
    }
}

/// A text with all its mentions.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// The text.
    pub(crate) text: Text,
    /// Its mentions, by place.
    pub(crate) mentions: Vec<Mention>,
    /// What the text says about today, or was told.
    pub(crate) today: Option<Date>,
}

impl Reading {
    /// Reads a text. `today` resolves relative dates.
    pub(crate) fn new(source: &str, today: Option<Date>) -> Self {
        let text = Text::new(source);
        let today = date::stated_today(&text.source).or(today);
        let mut mentions: Vec<Mention> = Vec::new();
        let mut taken = vec![false; text.tokens.len()];
        let mut add = |what: What, from: usize, to: usize, taken: &mut Vec<bool>| {
            let to = to.min(taken.len());
            if from < to && !taken[from..to].contains(&true) {
                taken[from..to].fill(true);
                mentions.push(Mention { what, from, to });
            }
        };
        for verbatim in quoted::quotations(&text) {
            if let Value::String(inner) = verbatim.value {
                add(What::Quoted(inner), verbatim.from, verbatim.to, &mut taken);
            }
        }
        for verbatim in quoted::brackets(&text) {
            add(
                What::Value(verbatim.value),
                verbatim.from,
                verbatim.to,
                &mut taken,
            );
        }
        for found in date::dates(&text, today) {
            add(What::Date(found.date), found.from, found.to, &mut taken);
        }
        for found in entity::chunks(&text) {
            add(What::Entity(found.kind), found.from, found.to, &mut taken);
        }
        for found in entity::formulas(&text) {
            add(What::Entity(found.kind), found.from, found.to, &mut taken);
        }
        for found in entity::times(&text) {
            add(What::Entity(found.kind), found.from, found.to, &mut taken);
        }
        for (from, to) in address::addresses(&text) {
            add(What::Place(PlaceKind::Address), from, to, &mut taken);
        }
        for quantity in number::numbers(&text) {
            let (from, to) = (quantity.from, quantity.end);
            add(What::Number(quantity), from, to, &mut taken);
        }
        let names: Vec<(usize, usize)> = entity::names(&text)
            .into_iter()
            .map(|name| (name.from, name.to))
            .filter(|&(from, to)| !taken[from..to].contains(&true))
            .collect();
        for &(from, to) in &names {
            let what = places::kind(text.slice(from, to))
                .map_or(What::Entity(EntityKind::Name), What::Place);
            mentions.push(Mention { what, from, to });
        }
        mentions.extend(parts_of_names(&text, &names));
        mentions.extend(composed_places(&text, &names));
        mentions.extend(small_letter_places(&text, &taken));
        mentions.extend(phrase::phrases(&text, &taken));
        mentions.sort_by_key(|mention| (mention.from, mention.to));
        mentions.truncate(MOST_MENTIONS);
        Self {
            text,
            mentions,
            today,
        }
    }

    /// A mention as it was written.
    pub(crate) fn written<'a>(&'a self, mention: &'a Mention) -> &'a str {
        match &mention.what {
            What::Quoted(inner) => inner,
            _ => self.text.slice(mention.from, mention.to),
        }
    }
}

/// `King of France` mentions France, too.
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
                what: What::Place(kind),
                from: start,
                to,
            });
        }
    }
    found
}

/// `Denver, Colorado` and `Manhattan, New York` as one place, besides its parts.
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
                what: What::Place(PlaceKind::City),
                from,
                to,
            });
        }
    }
    found
}

/// Places that somebody wrote without capitals.
fn small_letter_places(text: &Text, taken: &[bool]) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.tokens.len() {
        let longest = (1..=3).rev().find(|length| {
            let to = at + length;
            to <= taken.len()
                && !taken[at..to].contains(&true)
                && !text.tokens[at].capital
                && text.tokens[at..to].iter().all(Token::is_word)
                // Short words are codes or plain words, and `nice` and `mesa` are not cities here.
                && text.slice(at, to).len() > 3
                && !matches!(text.lower(at), "nice" | "mesa" | "lima" | "queens" | "phoenix" | "buffalo" | "concord" | "providence" | "riverside" | "richmond" | "florence" | "turkey" | "china" | "georgia" | "jordan")
                && places::kind(text.slice(at, to)).is_some()
        });
        if let Some(length) = longest {
            if let Some(kind) = places::kind(text.slice(at, at + length)) {
                found.push(Mention {
                    what: What::Place(kind),
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
                let kind = match &mention.what {
                    What::Number(_) => "number",
                    What::Date(_) => "date",
                    What::Entity(_) => "entity",
                    What::Place(_) => "place",
                    What::Quoted(_) => "quoted",
                    What::Value(_) => "value",
                    What::Phrase | What::Word => "phrase",
                };
                (reading.written(mention).to_owned(), kind)
            })
            .collect()
    }

    #[test]
    fn every_mention_is_found_once_in_its_kind() {
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
    fn places_are_known_without_capitals() {
        assert!(kinds("weather in san francisco").contains(&("san francisco".to_owned(), "place")));
    }

    #[test]
    fn strange_texts_are_read_without_harm() {
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
