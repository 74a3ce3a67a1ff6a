//! Arguments from a text: every parameter gets offers from the text's mentions, each with a score that
//! says how well it fits, and the best consistent set of offers becomes the arguments.

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
use crate::extract::{Reading, What};
use crate::meaning::Meaning;
use crate::parameter::{Kind, Parameter, Role};

/// What a required argument must at least score to be given.
const REQUIRED: f32 = 0.15;
/// What an optional argument must at least score to be given.
const OPTIONAL: f32 = 0.75;
/// The same for a number.
const OPTIONAL_NUMBER: f32 = 0.55;

/// One possible value of one parameter.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    /// The parameter's position.
    pub(crate) parameter: usize,
    /// The value.
    pub(crate) value: Value,
    /// How well it fits; about 1 is good.
    pub(crate) score: f32,
    /// The first token it uses.
    pub(crate) from: usize,
    /// The token after the last it uses; `from` if it uses none for itself.
    pub(crate) to: usize,
}

/// A tool as filling sees it.
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
    /// How well each given argument fits, by the order of parameters.
    pub(crate) scores: Vec<f32>,
    /// How far each given argument is ahead of the next best offer for the same parameter.
    pub(crate) margins: Vec<f32>,
    /// How many explicit values of the text no argument uses.
    pub(crate) unused: usize,
    /// The tokens that given arguments were made of: the first, and the one after the last.
    pub(crate) used: Vec<(usize, usize)>,
}

/// Fills a form from a text.
pub(crate) fn fill(reading: &Reading, form: &Form<'_>, meaning: &Meaning) -> Filling {
    let scene = cue::Scene::new(reading, form);
    let mut offers = Vec::new();
    for (index, parameter) in form.parameters.iter().enumerate() {
        offers_for(&scene, index, parameter, meaning, &mut offers);
    }
    let chosen = assign::assign(form.parameters, offers);
    let mut filling = Filling {
        unused: unused(reading, &chosen),
        ..Filling::default()
    };
    for (parameter, choice) in form.parameters.iter().zip(chosen) {
        match choice {
            Some((offer, margin)) => {
                filling.scores.push(offer.score);
                filling.margins.push(margin);
                filling.used.push((offer.from, offer.to));
                insert(&mut filling.arguments, &parameter.path, offer.value);
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

fn offers_for(
    scene: &cue::Scene<'_>,
    index: usize,
    parameter: &Parameter,
    meaning: &Meaning,
    offers: &mut Vec<Offer>,
) {
    match &parameter.kind {
        Kind::Boolean => offers.extend(choice::boolean(scene, index, parameter)),
        Kind::Integer | Kind::Number => {
            if parameter.closed {
                choice::options(scene, index, parameter, meaning, offers);
            } else {
                number::offers(scene, index, parameter, offers);
            }
        }
        Kind::List(item) => list::offers(scene, index, parameter, item, meaning, offers),
        Kind::Records(fields) => list::records(scene, index, parameter, fields, meaning, offers),
        Kind::Map => list::map(scene, index, parameter, offers),
        Kind::Text => {
            if !parameter.choices.is_empty() {
                choice::options(scene, index, parameter, meaning, offers);
            }
            if !parameter.closed {
                text::offers(scene, index, parameter, meaning, offers);
            }
        }
        Kind::Any => {
            number::offers(scene, index, parameter, offers);
            text::offers(scene, index, parameter, meaning, offers);
        }
    }
}

/// Values that people state on purpose and that no argument uses.
fn unused(reading: &Reading, chosen: &[Option<(Offer, f32)>]) -> usize {
    reading
        .mentions
        .iter()
        .filter(|mention| match &mention.what {
            What::Quoted(_) | What::Value(_) => true,
            What::Number(quantity) => !quantity.spelled && !quantity.ordinal,
            What::Entity(kind) => *kind != EntityKind::Name,
            _ => false,
        })
        .filter(|mention| {
            !chosen.iter().flatten().any(|(offer, _)| {
                // Options and parts of dates use their place without taking it.
                let to = offer.to.max(offer.from + 1);
                mention.from < to && offer.from < mention.to
            })
        })
        .count()
}

/// What a required parameter is given when the text does not say it but its schema does.
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
        // A text is nearly always in the language of the request.
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

/// An optional record of which a required field is missing is not given at all.
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
