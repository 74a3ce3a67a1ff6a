//! The words around a mention, and whether they name a parameter. They are the main evidence for assigning
//! similar values, such as two numbers or two names.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use windlass_embed::Embedding;

use super::Form;
use crate::extract::{Mention, MentionKind, Reading};
use crate::lexicon::words;
use crate::meaning::Meaning;
use crate::parameter::Parameter;
use crate::text::stem;

/// A text and the form that is filled from it.
pub(crate) struct FillContext<'a> {
    pub(crate) reading: &'a Reading,
    pub(crate) form: &'a Form<'a>,
    /// For each mention, its row of similar mentions.
    pub(crate) rows: Vec<Row>,
    /// For each token, the closed parameter of which it names an option.
    claimed: Vec<Option<usize>>,
    /// Cached embeddings of texts.
    vectors: RefCell<HashMap<String, Rc<Embedding>>>,
}

/// The position of a mention in an enumeration of the same kind: `3, 4 and 5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    /// The position in the row, from 0.
    pub(crate) index: usize,
    /// The number of mentions in the row.
    pub(crate) size: usize,
    /// The first mention of the row.
    pub(crate) first: usize,
}

/// A parameter to fill from a text.
#[derive(Clone, Copy)]
pub(crate) struct Slot<'a> {
    pub(crate) context: &'a FillContext<'a>,
    /// The position of the parameter in the form.
    pub(crate) index: usize,
    pub(crate) parameter: &'a Parameter,
}

impl<'a> Slot<'a> {
    /// The context, the position of the parameter, and the parameter.
    pub(crate) fn parts(self) -> (&'a FillContext<'a>, usize, &'a Parameter) {
        (self.context, self.index, self.parameter)
    }
}

impl<'a> FillContext<'a> {
    /// Finds the rows and the named options of a text.
    pub(crate) fn new(reading: &'a Reading, form: &'a Form<'a>) -> Self {
        let mut context = Self {
            rows: rows(reading),
            claimed: vec![None; reading.text.tokens.len()],
            vectors: RefCell::default(),
            reading,
            form,
        };
        for (index, parameter) in form.parameters.iter().enumerate() {
            if parameter.closed {
                for found in super::choice::named(&context, parameter) {
                    context.claimed[found.from..found.to].fill(Some(index));
                }
            }
        }
        context
    }

    /// Whether a token names an option of another parameter.
    pub(crate) fn is_option_of_another(&self, at: usize, parameter: &Parameter) -> bool {
        self.claimed
            .get(at)
            .copied()
            .flatten()
            .is_some_and(|index| self.form.parameters[index].path != parameter.path)
    }

    /// The similarity of a value to the description of a parameter.
    pub(crate) fn similarity(&self, meaning: &Meaning, value: &str, about: &Embedding) -> f32 {
        let known = self.vectors.borrow().get(value).cloned();
        let vector = known.unwrap_or_else(|| {
            let vector = Rc::new(meaning.of(value));
            self.vectors
                .borrow_mut()
                .insert(value.to_owned(), Rc::clone(&vector));
            vector
        });
        vector.cosine(about)
    }

    /// The lead word of a mention: the nearest word before it that is not an article.
    pub(crate) fn lead(&self, mention: &Mention) -> &str {
        let text = &self.reading.text;
        let mut at = mention.from;
        while at > 0 {
            at -= 1;
            let lower = text.lower(at);
            if !words::is_determiner(lower) && !matches!(lower, "(" | "'" | "\"") {
                return lower;
            }
        }
        ""
    }

    /// The lead word of a mention or, within an enumeration, of its row.
    pub(crate) fn row_lead(&self, position: usize) -> &str {
        let lead = self.lead(&self.reading.mentions[position]);
        if matches!(lead, "," | "and" | "or" | "&") {
            return self.lead(&self.reading.mentions[self.rows[position].first]);
        }
        lead
    }

    /// How well the words before a mention name a parameter, from 0 to 1.
    pub(crate) fn before(&self, mention: &Mention, parameter: &Parameter) -> f32 {
        let text = &self.reading.text;
        let mut best = 0.0_f32;
        let mut nearness = 1.0_f32;
        for at in (mention.from.saturating_sub(9)..mention.from).rev() {
            let token = &text.tokens[at];
            let lower = token.lower.as_str();
            match lower {
                "." if crate::split::is_letter(text.before(at)) && !text.tokens[at].spaced => {
                    continue;
                }
                "." | "?" | "!" | ";"
                    if text.tokens.get(at + 1).is_some_and(|next| next.spaced) =>
                {
                    break;
                }
                "=" | ":" | "of" | "is" | "as" | "the" | "a" | "an" | "equals" | "equal" | "to"
                | "'" | "\"" | "was" | "(" | "are" | "be" | "#" | "with" => {
                    nearness *= 0.97;
                    continue;
                }
                "," | "and" | "or" | ")" => {
                    nearness *= 0.6;
                    continue;
                }
                _ => {}
            }
            if token.is_number() {
                // Words before another number belong to that number.
                nearness *= 0.3;
                continue;
            }
            best = best.max(nearness * names(parameter, &token.stem, lower));
            nearness *= if words::is_function_word(lower) {
                0.85
            } else {
                0.75
            };
        }
        best
    }

    /// How well the words after a mention name a parameter, from 0 to 1.
    pub(crate) fn after(&self, mention: &Mention, parameter: &Parameter) -> f32 {
        let text = &self.reading.text;
        let mut best = 0.0_f32;
        let mut nearness = 1.0_f32;
        for at in mention.to..(mention.to + 6).min(text.tokens.len()) {
            let token = &text.tokens[at];
            let lower = token.lower.as_str();
            if token.is_number() || matches!(lower, "." | "," | "?" | "!" | "and" | "or" | ";") {
                break;
            }
            if matches!(lower, "'" | "’" | "s") {
                continue;
            }
            if lower == "of" || lower == "-" {
                nearness *= 0.7;
                continue;
            }
            if words::is_function_word(lower) {
                break;
            }
            best = best.max(nearness * names(parameter, &token.stem, lower));
            nearness *= 0.75;
        }
        best
    }

    /// The words right before a mention, nearest first.
    pub(crate) fn window(&self, mention: &Mention, length: usize) -> impl Iterator<Item = &str> {
        let from = mention.from.saturating_sub(length);
        (from..mention.from)
            .rev()
            .map(|at| self.reading.text.lower(at))
    }

    /// The mentions of a row, in order.
    pub(crate) fn row_of(&self, first: usize) -> Vec<usize> {
        (0..self.rows.len())
            .filter(|&index| self.rows[index].first == first && self.rows[index].size > 1)
            .collect()
    }
}

/// How well one word names a parameter. A match with its name scores higher than one with its description.
pub(crate) fn names(parameter: &Parameter, word_stem: &str, lower: &str) -> f32 {
    let mut best = 0.0_f32;
    for known in &parameter.name_stems {
        best = best.max(stem_similarity(known, word_stem));
    }
    if best < 0.6
        && parameter
            .name_words
            .iter()
            .any(|word| stem(word) == word_stem)
        && lower.len() > 1
    {
        best = 0.6;
    }
    if best < 0.8
        && is_people(word_stem)
        && parameter.name_stems.iter().any(|known| is_people(known))
    {
        best = 0.8;
    }
    // Parameters of one letter, as in `a=2`.
    if parameter.name_words.len() == 1 && parameter.name() == lower {
        best = 1.0;
    }
    if best < 0.5 {
        for known in &parameter.description_stems {
            best = best.max(0.5 * stem_similarity(known, word_stem));
        }
    }
    best
}

/// Whether a stem counts people.
fn is_people(stem: &str) -> bool {
    matches!(
        stem,
        "peopl"
            | "person"
            | "guest"
            | "adult"
            | "passenger"
            | "seat"
            | "attende"
            | "participant"
            | "travel"
            | "traveler"
            | "party"
            | "diner"
            | "member"
            | "visitor"
            | "ticket"
            | "serv"
    )
}

/// The similarity of two stems: 1 if equal, less for `weigh` and `weight` or `temp` and `temperature`.
pub(crate) fn stem_similarity(one: &str, other: &str) -> f32 {
    if one == other {
        return 1.0;
    }
    let common = one
        .chars()
        .zip(other.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let (short, long) = (
        one.chars().count().min(other.chars().count()),
        one.chars().count().max(other.chars().count()),
    );
    if common == short && short >= 3 && (short >= 4 || long <= 12) && short * 3 >= long {
        return if short * 3 >= long * 2 { 0.85 } else { 0.6 };
    }
    if common >= 5 && common * 10 >= long * 6 {
        return 0.7;
    }
    0.0
}

fn rows(reading: &Reading) -> Vec<Row> {
    let text = &reading.text;
    let mut rows: Vec<Row> = (0..reading.mentions.len())
        .map(|index| Row {
            index: 0,
            size: 1,
            first: index,
        })
        .collect();
    let class = |mention: &Mention| match &mention.kind {
        MentionKind::Number(_) => 1,
        MentionKind::Quoted(_) => 2,
        MentionKind::Entity(_) | MentionKind::Place(_) => 3,
        MentionKind::Value(_) => 4,
        MentionKind::Date(_) => 5,
        MentionKind::Phrase => 6,
        MentionKind::Word => 7,
    };
    for class_wanted in [1, 2, 3, 4, 5, 6] {
        let members: Vec<usize> = (0..reading.mentions.len())
            .filter(|&index| class(&reading.mentions[index]) == class_wanted)
            .collect();
        let mut row: Vec<usize> = Vec::new();
        for &member in &members {
            let joined = row.last().is_some_and(|&last| {
                let (end, start) = (reading.mentions[last].to, reading.mentions[member].from);
                // The counted noun may be repeated: `5 units, 4 units and 3 units`.
                let counted = class_wanted == 1
                    && text.tokens.get(end).is_some_and(|token| {
                        token.is_word() && !words::is_function_word(&token.lower) && {
                            let after = reading.mentions[member].to;
                            text.lower(after) == token.lower
                        }
                    });
                let end = end + usize::from(counted);
                end < start
                    && start - end <= 4
                    && (end..start).all(|at| {
                        matches!(
                            text.lower(at),
                            "," | "and" | "or" | "&" | "a" | "an" | "the" | "also" | "vs"
                        )
                    })
            });
            if !joined {
                close(&mut rows, &row);
                row.clear();
            }
            // A phrase and the `of` phrase that contains it overlap; only one is in the row.
            if row
                .last()
                .is_none_or(|&last| reading.mentions[last].to <= reading.mentions[member].from)
            {
                row.push(member);
            }
        }
        close(&mut rows, &row);
    }
    rows
}

fn close(rows: &mut [Row], members: &[usize]) {
    for (index, &member) in members.iter().enumerate() {
        rows[member] = Row {
            index,
            size: members.len(),
            first: members[0],
        };
    }
}
