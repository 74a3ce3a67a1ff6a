//! Fills arguments from a text. Every parameter gets scored candidates from the text's mentions, and the best
//! consistent set of candidates becomes the arguments.

mod assign;
mod choice;
mod cue;
mod fit;
mod list;
mod number;
mod place;
mod special;
mod text;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::extract::entity::EntityKind;
use crate::extract::{MentionKind, Reading};
use crate::meaning::Meaning;
use crate::parameter::{Kind, Parameter, Role};

/// The least score of a required argument.
const REQUIRED: f32 = 0.15;
/// The least score of an optional argument.
const OPTIONAL: f32 = 0.75;
/// The least score of an optional number.
const OPTIONAL_NUMBER: f32 = 0.55;

/// A possible value of a parameter.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// The parameter's index.
    pub(crate) parameter: usize,
    /// The value.
    pub(crate) value: Value,
    /// How well it fits; about 1 is good.
    pub(crate) score: f32,
    /// The first token it uses.
    pub(crate) from: usize,
    /// The token after the last it uses; `from` if it reserves none.
    pub(crate) to: usize,
}

/// The parts of a tool that filling needs.
pub(crate) struct Form<'a> {
    /// The leaves of its schema.
    pub(crate) parameters: &'a [Parameter],
    /// The stems of its name and description.
    pub(crate) tool_stems: &'a HashSet<String>,
}

/// The arguments that were found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filling {
    /// The arguments.
    pub(crate) arguments: Map<String, Value>,
    /// Required parameters without a value, by path.
    pub(crate) missing: Vec<String>,
    /// The score of each given argument, in the order of parameters.
    pub(crate) scores: Vec<f32>,
    /// The margin of each given argument over the next best candidate for the same parameter.
    pub(crate) margins: Vec<f32>,
    /// The number of explicit values in the text that no argument uses.
    pub(crate) unused: usize,
    /// The token ranges that given arguments use.
    pub(crate) used: Vec<(usize, usize)>,
}

/// Fills a form from a text.
pub(crate) fn fill(reading: &Reading, form: &Form<'_>, meaning: &Meaning) -> Filling {
    let context = cue::FillContext::new(reading, form);
    let mut candidates = Vec::new();
    for (index, parameter) in form.parameters.iter().enumerate() {
        let slot = cue::Slot {
            context: &context,
            index,
            parameter,
        };
        candidates_for(slot, meaning, &mut candidates);
    }
    let chosen = assign::assign(form.parameters, candidates);
    let mut filling = Filling {
        unused: unused(reading, &chosen),
        ..Filling::default()
    };
    for (parameter, choice) in form.parameters.iter().zip(chosen) {
        match choice {
            Some((candidate, margin)) => {
                filling.scores.push(candidate.score);
                filling.margins.push(margin);
                filling.used.push((candidate.from, candidate.to));
                insert(&mut filling.arguments, &parameter.path, candidate.value);
            }
            None if parameter.required => match fallback(parameter) {
                Some(value) => {
                    filling.scores.push(REQUIRED);
                    filling.margins.push(0.0);
                    insert(&mut filling.arguments, &parameter.path, value);
                }
                None => filling.missing.push(parameter.path.join(".")),
            },
            None => {}
        }
    }
    drop_incomplete(form.parameters, &mut filling);
    filling
}

fn candidates_for(slot: cue::Slot<'_>, meaning: &Meaning, candidates: &mut Vec<Candidate>) {
    let parameter = slot.parameter;
    match &parameter.kind {
        Kind::Boolean => candidates.extend(choice::boolean(slot)),
        Kind::Integer | Kind::Number => {
            if parameter.closed {
                choice::options(slot, meaning, candidates);
            } else {
                number::candidates(slot, candidates);
            }
        }
        Kind::List(item) => list::candidates(slot, item, meaning, candidates),
        Kind::Records(fields) => {
            list::records(slot, fields, meaning, candidates);
        }
        Kind::Map => list::map(slot, candidates),
        Kind::Text => {
            if !parameter.choices.is_empty() {
                choice::options(slot, meaning, candidates);
            }
            if !parameter.closed {
                text::candidates(slot, meaning, candidates);
            }
        }
        Kind::Any => {
            number::candidates(slot, candidates);
            text::candidates(slot, meaning, candidates);
        }
    }
}

/// The number of explicit values that no argument uses.
fn unused(reading: &Reading, chosen: &[Option<(Candidate, f32)>]) -> usize {
    reading
        .mentions
        .iter()
        .filter(|mention| match &mention.kind {
            MentionKind::Quoted(_) | MentionKind::Value(_) => true,
            MentionKind::Number(quantity) => !quantity.spelled && !quantity.ordinal,
            MentionKind::Entity(kind) => *kind != EntityKind::Name,
            _ => false,
        })
        .filter(|mention| {
            !chosen.iter().flatten().any(|(candidate, _)| {
                // Options and parts of dates do not reserve their tokens.
                let to = candidate.to.max(candidate.from + 1);
                mention.from < to && candidate.from < mention.to
            })
        })
        .count()
}

/// The value of a required parameter that the text does not state, from its schema.
fn fallback(parameter: &Parameter) -> Option<Value> {
    if let Some(default) = &parameter.default {
        let fits = match parameter.kind {
            Kind::Text => default.is_string(),
            Kind::Integer | Kind::Number => default.is_number(),
            Kind::Boolean => default.is_boolean(),
            _ => true,
        };
        if fits {
            return Some(default.clone());
        }
    }
    match parameter.kind {
        Kind::Boolean => Some(Value::Bool(false)),
        // A text is usually in the language of the request, and requests are in English.
        Kind::Text if parameter.role == Role::Language && !parameter.closed => {
            Some(Value::from("English"))
        }
        _ => None,
    }
}

/// Puts a value at a path of nested records.
pub(crate) fn insert(arguments: &mut Map<String, Value>, path: &[String], value: Value) {
    let Some((last, outer)) = path.split_last() else {
        return;
    };
    let mut map = arguments;
    for name in outer {
        let inner = map
            .entry(name.clone())
            .or_insert_with(|| Value::Object(Map::new()));
        match inner {
            Value::Object(inner) => map = inner,
            _ => return,
        }
    }
    map.insert(last.clone(), value);
}

/// Removes optional records that lack a required field.
fn drop_incomplete(parameters: &[Parameter], filling: &mut Filling) {
    for parameter in parameters {
        if parameter.path.len() > 1
            && filling
                .missing
                .iter()
                .any(|missing| *missing == parameter.path.join("."))
            && !parameter.required
        {
            filling.arguments.remove(&parameter.path[0]);
        }
    }
}

#[cfg(test)]
mod tests;
