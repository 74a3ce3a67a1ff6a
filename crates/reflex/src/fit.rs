//! The scores of one tool for one text, and the words and values of a text. Other crates use them for other
//! decisions than the next call.

use std::ops::Range;

use crate::choose::{Reflex, ToolView};
use crate::extract::entity::EntityKind;
use crate::extract::{MentionKind, Reading};
use crate::lexicon::places::PlaceKind;
use crate::lexicon::words;
use crate::parameter::parameters;
use crate::rank::{self, RankedTool};
use crate::text::{Text, Token, name_words, stem};

/// How well a tool fits a text.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFit {
    /// The similarity of text and tool by meaning, from name and description.
    pub similarity: f32,
    /// The share of the words of the tool's name that are in the text.
    pub named: f32,
    /// The score of each argument that was found in the text; about 1 is good.
    pub given: Vec<f32>,
    /// Required arguments that were not found, by path.
    pub missing: Vec<String>,
    /// The number of required arguments.
    pub required: usize,
    /// The number of values in the text that no argument uses.
    pub unused: usize,
    /// The byte ranges of the text that arguments use.
    pub used: Vec<Range<usize>>,
}

impl Reflex {
    /// How well a tool fits a text.
    #[must_use]
    pub fn fit(&self, text: &str, tool: &ToolView<'_>) -> ToolFit {
        let reading = Reading::new(text, None);
        let RankedTool {
            similarity, named, ..
        } = rank::rank_one(&reading.text, tool, &self.meaning);
        let filling = self.fill_arguments(&reading, tool);
        let place = |token: usize| reading.text.tokens.get(token);
        let used = filling.used.iter().filter_map(|&(from, to)| {
            let last = place(to.checked_sub(1)?)?;
            Some(place(from)?.start..last.end)
        });
        ToolFit {
            similarity,
            named,
            used: used.collect(),
            given: filling.scores,
            missing: filling.missing,
            required: parameters(tool.input_schema)
                .iter()
                .filter(|parameter| parameter.required)
                .count(),
            unused: filling.unused,
        }
    }
}

/// The parts of a task, one for each request; the whole task if it cannot be split.
#[must_use]
pub fn task_parts(task: &str) -> Vec<String> {
    crate::split::split(task)
}

/// A word with a meaning of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentWord {
    /// The word in lower case.
    pub lower: String,
    /// The word without its common endings.
    pub stem: String,
    /// Its byte range in the text.
    pub place: Range<usize>,
    /// Whether it is capitalised within a sentence, as names are.
    pub name: bool,
    /// Whether it is a request verb, such as `find` and `show`.
    pub asks: bool,
}

/// The content words of a text: neither numbers nor function words such as `the`.
#[must_use]
pub fn content_words(text: &str) -> Vec<ContentWord> {
    let text = Text::new(text);
    let is_content = |token: &Token| token.is_word() && !words::is_function_word(&token.lower);
    let words = text.tokens.iter().enumerate();
    words
        .filter(|(_, token)| is_content(token))
        .map(|(index, token)| ContentWord {
            lower: token.lower.clone(),
            stem: token.stem.clone(),
            place: token.start..token.end,
            name: token.capital && !text.begins_sentence(index),
            asks: words::is_request_verb(&token.lower),
        })
        .collect()
}

/// The content words of a tool's or parameter's name, with their stems.
#[must_use]
pub fn content_words_of_name(name: &str) -> Vec<ContentWord> {
    let words = name_words(name).into_iter();
    words
        .filter(|word| !words::is_function_word(word) && word.chars().any(char::is_alphabetic))
        .map(|word| ContentWord {
            stem: stem(&word),
            place: 0..0,
            name: false,
            asks: words::is_request_verb(&word),
            lower: word,
        })
        .collect()
}

/// The kind of a value in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// A day.
    Date,
    /// A time of the day.
    Time,
    /// An e-mail address.
    Email,
    /// A URL.
    Url,
    /// A file path.
    Path,
    /// A city, a state, a country or a street address.
    Place,
    /// A natural language.
    Language,
    /// A person or a thing with a name.
    Name,
    /// A text in quotation marks.
    Quoted,
    /// A list or a record.
    List,
    /// A code or a formula.
    Code,
}

/// A value in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct MentionedValue {
    /// Its kind.
    pub kind: ValueKind,
    /// Its unit, if it is a number with one.
    pub unit: Option<String>,
    /// Its byte range in the text.
    pub place: Range<usize>,
}

/// The values in a text, in order, without overlaps.
#[must_use]
pub fn mentioned_values(text: &str) -> Vec<MentionedValue> {
    let reading = Reading::new(text, None);
    let mut found: Vec<MentionedValue> = Vec::new();
    for mention in &reading.mentions {
        let unit = mention.number().and_then(|quantity| {
            let unit = reading.text.slice(quantity.to, quantity.end).trim();
            (!unit.is_empty()).then(|| unit.to_owned())
        });
        let Some(kind) = value_kind(&mention.kind) else {
            continue;
        };
        let kind = match reading.written(mention) {
            written if kind == ValueKind::Name && is_language(written) => ValueKind::Language,
            _ => kind,
        };
        let tokens = &reading.text.tokens;
        let (Some(first), Some(last)) = (
            tokens.get(mention.from),
            mention.to.checked_sub(1).and_then(|last| tokens.get(last)),
        ) else {
            continue;
        };
        let place = first.start..last.end;
        let within =
            |known: &MentionedValue| place.start < known.place.end && known.place.start < place.end;
        match found.iter().position(within) {
            // Of two values that overlap, the longer one is kept.
            Some(known) if found[known].place.len() < place.len() => {
                found[known] = MentionedValue { kind, unit, place };
            }
            Some(_) => {}
            None => found.push(MentionedValue { kind, unit, place }),
        }
    }
    found
}

fn is_language(text: &str) -> bool {
    let mut languages = words::LANGUAGES.iter();
    languages.any(|(name, _)| name.eq_ignore_ascii_case(text))
}

fn value_kind(kind: &MentionKind) -> Option<ValueKind> {
    Some(match kind {
        MentionKind::Number(quantity) if quantity.ordinal => return None,
        MentionKind::Number(quantity)
            if quantity.value.fract() == 0.0 && quantity.currency.is_none() =>
        {
            ValueKind::Integer
        }
        MentionKind::Number(_) => ValueKind::Number,
        MentionKind::Date(_) => ValueKind::Date,
        MentionKind::Place(
            PlaceKind::Address | PlaceKind::City | PlaceKind::State | PlaceKind::Country,
        ) => ValueKind::Place,
        MentionKind::Quoted(_) => ValueKind::Quoted,
        MentionKind::Value(_) => ValueKind::List,
        MentionKind::Entity(kind) => match kind {
            EntityKind::Email => ValueKind::Email,
            EntityKind::Url => ValueKind::Url,
            EntityKind::Path => ValueKind::Path,
            EntityKind::Time => ValueKind::Time,
            EntityKind::Name => ValueKind::Name,
            EntityKind::Code | EntityKind::Formula => ValueKind::Code,
        },
        MentionKind::Phrase | MentionKind::Word => return None,
    })
}
