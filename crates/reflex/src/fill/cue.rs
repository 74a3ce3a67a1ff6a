//! What stands around a mention: the words that lead it in or follow it, and whether they name the
//! parameter. This is most of what tells two numbers, or two names, apart.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use windlass_embed::Embedding;

use super::Form;
use crate::extract::{Mention, Reading, What};
use crate::lexicon::words;
use crate::meaning::Meaning;
use crate::parameter::Parameter;
use crate::text::stem;

/// A text together with the form that is being filled.
pub(crate) struct Scene<'a> {
    pub(crate) reading: &'a Reading,
    pub(crate) form: &'a Form<'a>,
    /// For each mention, the row of alike mentions it stands in.
    pub(crate) rows: Vec<Row>,
    /// For each token, the closed parameter one of whose options it names.
    claimed: Vec<Option<usize>>,
    /// Vectors of texts that several parameters ask about.
    vectors: RefCell<HashMap<String, Rc<Embedding>>>,
}

/// Mentions of one kind in a row: `3, 4 and 5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    /// The position in the row, from 0.
    pub(crate) index: usize,
    /// How many stand in it.
    pub(crate) size: usize,
    /// The mention it begins with.
    pub(crate) first: usize,
}

impl<'a> Scene<'a> {
    /// Finds the rows of a text.
    pub(crate) fn new(reading: &'a Reading, form: &'a Form<'a>) -> Self {
        let mut scene = Self {
            rows: rows(reading),
            claimed: vec![None; reading.text.tokens.len()],
            vectors: RefCell::default(),
            reading,
            form,
        };
        for (index, parameter) in form.parameters.iter().enumerate() {
            if parameter.closed {
                for found in super::choice::named(&scene, parameter) {
                    scene.claimed[found.from..found.to].fill(Some(index));
                }
            }
        }
        scene
    }

    /// Whether a token names an option of another parameter than this.
    pub(crate) fn is_option_of_another(&self, at: usize, parameter: &Parameter) -> bool {
        self.claimed
            .get(at)
            .copied()
            .flatten()
            .is_some_and(|index| self.form.parameters[index].path != parameter.path)
    }

    /// How alike a value is to what a parameter is about.
    pub(crate) fn likeness(&self, meaning: &Meaning, value: &str, about: &Embedding) -> f32 {
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

    /// The word that leads a mention in: the nearest before it that is no article.
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

    /// The word that leads in the row a mention stands in.
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
                // What stands before another number belongs to that one.
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

    /// The words right before a mention, nearest first, as far as the sentence goes.
    pub(crate) fn window(&self, mention: &Mention, length: usize) -> impl Iterator<Item = &str> {
        let from = mention.from.saturating_sub(length);
        (from..mention.from)
            .rev()
            .map(|at| self.reading.text.lower(at))
    }

    /// Mentions of a row in order.
    pub(crate) fn row_of(&self, first: usize) -> Vec<usize> {
        (0..self.rows.len())
            .filter(|&index| self.rows[index].first == first && self.rows[index].size > 1)
            .collect()
    }
}

/// How well one word names a parameter: by its name best, by its description less.
pub(crate) fn names(parameter: &Parameter, word_stem: &str, lower: &str) -> f32 {
    let mut best = 0.0_f32;
    for known in &parameter.name_stems {
        best = best.max(alike(known, word_stem));
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
    // `a=2`: parameters of one letter.
    if parameter.name_words.len() == 1 && parameter.name() == lower {
        best = 1.0;
    }
    if best < 0.5 {
        for known in &parameter.description_stems {
            best = best.max(0.5 * alike(known, word_stem));
        }
    }
    best
}

/// Stems that count people, whatever they do there.
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

/// How alike two stems are: 1 for the same, less for `weigh` and `weight` or `temp` and `temperature`.
pub(crate) fn alike(one: &str, other: &str) -> f32 {
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
    let class = |mention: &Mention| match &mention.what {
        What::Number(_) => 1,
        What::Quoted(_) => 2,
        What::Entity(_) | What::Place(_) => 3,
        What::Value(_) => 4,
        What::Date(_) => 5,
        What::Phrase => 6,
        What::Word => 7,
    };
    for class_wanted in [1, 2, 3, 4, 5, 6] {
        let members: Vec<usize> = (0..reading.mentions.len())
            .filter(|&index| class(&reading.mentions[index]) == class_wanted)
            .collect();
        let mut row: Vec<usize> = Vec::new();
        for &member in &members {
            let joined = row.last().is_some_and(|&last| {
                let (end, start) = (reading.mentions[last].to, reading.mentions[member].from);
                // `5 units, 4 units and 3 units`: what is counted may stand between.
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
            // A phrase and the `of` phrase that contains it overlap; only one can stand in the row.
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
