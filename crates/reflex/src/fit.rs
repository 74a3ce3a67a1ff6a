//! How well one tool fits one text, taken apart, and what a text consists of: for rooms that judge
//! something else by it than which call to make.

use std::ops::Range;

use crate::choose::{Reflex, ToolView};
use crate::extract::entity::EntityKind;
use crate::extract::{Reading, What};
use crate::lexicon::places::PlaceKind;
use crate::lexicon::words;
use crate::parameter::parameters;
use crate::rank::{self, Ranked};
use crate::text::{Text, Token, name_words, stem};

/// What speaks for a tool and what against it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFit {
    /// How alike text and tool are by meaning, name and description alone.
    pub likeness: f32,
    /// Which share of the tool's own name the text says.
    pub named: f32,
    /// How well each argument fits that was found in the text; about 1 is good.
    pub given: Vec<f32>,
    /// Required arguments that were not found, by path.
    pub missing: Vec<String>,
    /// How many arguments the tool requires.
    pub required: usize,
    /// How many values the text states that no argument uses.
    pub unused: usize,
    /// The parts of the text that arguments were made of, in bytes.
    pub used: Vec<Range<usize>>,
}

impl Reflex {
    /// How well a tool fits a text.
    #[must_use]
    pub fn fit(&self, text: &str, tool: &ToolView<'_>) -> ToolFit {
        let reading = Reading::new(text, None);
        let Ranked {
            likeness, named, ..
        } = rank::standing(&reading.text, tool, &self.meaning);
        let filling = self.filled(&reading, tool);
        let place = |token: usize| reading.text.tokens.get(token);
        let used = filling.used.iter().filter_map(|&(from, to)| {
            let last = place(to.checked_sub(1)?)?;
            Some(place(from)?.start..last.end)
        });
        ToolFit {
            likeness,
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

/// The parts of a task, one for each thing that is asked; the whole task if it does not come apart.
#[must_use]
pub fn parts(task: &str) -> Vec<String> {
    crate::split::split(task)
}

/// A word that says something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentWord {
    /// The word in lower case.
    pub lower: String,
    /// The word without its common endings.
    pub stem: String,
    /// Where it stands, in bytes.
    pub place: Range<usize>,
    /// Whether it is capitalised within a sentence, as names are.
    pub name: bool,
    /// Whether it only asks for something, as `find` and `show` do.
    pub asks: bool,
}

/// The words of a text that say something: neither numbers nor words like `the`.
#[must_use]
pub fn content_words(text: &str) -> Vec<ContentWord> {
    let text = Text::new(text);
    let says = |token: &Token| token.is_word() && !words::is_function_word(&token.lower);
    let words = text.tokens.iter().enumerate();
    words
        .filter(|(_, token)| says(token))
        .map(|(index, token)| ContentWord {
            lower: token.lower.clone(),
            stem: token.stem.clone(),
            place: token.start..token.end,
            name: token.capital && !text.begins_sentence(index),
            asks: words::is_request_verb(&token.lower),
        })
        .collect()
}

/// The words of a tool's or parameter's name that say something, with their stems.
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

/// What kind of value a text mentions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A day.
    Date,
    /// A time of the day.
    Time,
    /// An address for mail.
    Email,
    /// An address in the web.
    Url,
    /// A file.
    Path,
    /// A town, a country, an address.
    Place,
    /// A language of people.
    Language,
    /// A person or a thing with a name.
    Name,
    /// A text in quotation marks.
    Quoted,
    /// A list or a record.
    List,
    /// Something else with a form of its own.
    Code,
}

/// A value that a text mentions.
#[derive(Debug, Clone, PartialEq)]
pub struct MentionedValue {
    /// Its kind.
    pub kind: ValueKind,
    /// Its unit, if it is a number with one.
    pub unit: Option<String>,
    /// Where it stands, in bytes.
    pub place: Range<usize>,
}

/// The values that a text mentions, by place, none within another.
#[must_use]
pub fn mentioned_values(text: &str) -> Vec<MentionedValue> {
    let reading = Reading::new(text, None);
    let mut found: Vec<MentionedValue> = Vec::new();
    for mention in &reading.mentions {
        let unit = mention.number().and_then(|quantity| {
            let unit = reading.text.slice(quantity.to, quantity.end).trim();
            (!unit.is_empty()).then(|| unit.to_owned())
        });
        let Some(kind) = value_kind(&mention.what) else {
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
            // Of two that overlap, the longer says more.
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

fn value_kind(what: &What) -> Option<ValueKind> {
    Some(match what {
        What::Number(quantity) if quantity.ordinal => return None,
        What::Number(quantity) if quantity.value.fract() == 0.0 && quantity.currency.is_none() => {
            ValueKind::Integer
        }
        What::Number(_) => ValueKind::Number,
        What::Date(_) => ValueKind::Date,
        What::Place(
            PlaceKind::Address | PlaceKind::City | PlaceKind::State | PlaceKind::Country,
        ) => ValueKind::Place,
        What::Quoted(_) => ValueKind::Quoted,
        What::Value(_) => ValueKind::List,
        What::Entity(kind) => match kind {
            EntityKind::Email => ValueKind::Email,
            EntityKind::Url => ValueKind::Url,
            EntityKind::Path => ValueKind::Path,
            EntityKind::Time => ValueKind::Time,
            EntityKind::Name => ValueKind::Name,
            EntityKind::Code | EntityKind::Formula => ValueKind::Code,
        },
        What::Phrase | What::Word => return None,
    })
}
