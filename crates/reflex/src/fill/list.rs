//! Offers of lists and records: what stands in brackets, rows of values, and several options at once.

use serde_json::{Map, Value};

use super::cue::Scene;
use super::{Form, Offer, choice, fill, number, text};
use crate::extract::quantity::{fitted, json_number};
use crate::extract::{Reading, What};
use crate::meaning::Meaning;
use crate::parameter::{Kind, Parameter};

/// Lists of plain values.
pub(crate) fn offers(
    scene: &Scene<'_>,
    index: usize,
    parameter: &Parameter,
    item: &Kind,
    meaning: &Meaning,
    offers: &mut Vec<Offer>,
) {
    bracketed(scene, index, parameter, item, offers);
    if !parameter.choices.is_empty() {
        options(scene, index, parameter, offers);
        if parameter.closed {
            return;
        }
    }
    match item {
        Kind::Integer | Kind::Number => numbers(scene, index, parameter, item, offers),
        Kind::Text | Kind::Any => texts(scene, index, parameter, meaning, offers),
        _ => {}
    }
}

/// Whether a value in brackets can be an item list of this kind.
fn suits(value: &Value, item: &Kind) -> bool {
    match item {
        Kind::Integer | Kind::Number => value.is_number(),
        Kind::Text => value.is_string(),
        Kind::Boolean => value.is_boolean(),
        Kind::List(inner) => value
            .as_array()
            .is_some_and(|items| items.iter().all(|value| suits(value, inner))),
        Kind::Records(_) | Kind::Map => value.is_object(),
        Kind::Any => true,
    }
}

fn bracketed(
    scene: &Scene<'_>,
    index: usize,
    parameter: &Parameter,
    item: &Kind,
    offers: &mut Vec<Offer>,
) {
    for (position, mention) in scene.reading.mentions.iter().enumerate() {
        let What::Value(value @ Value::Array(items)) = &mention.what else {
            continue;
        };
        // Numbers are texts where texts are wanted.
        let value = if *item == Kind::Text && items.iter().all(Value::is_number) {
            Value::Array(
                items
                    .iter()
                    .map(|item| Value::from(item.to_string()))
                    .collect(),
            )
        } else if !items.is_empty() && items.iter().all(|value| suits(value, item)) {
            value.clone()
        } else {
            continue;
        };
        let score = 0.7
            + 0.5 * scene.before(mention, parameter)
            + number::order(scene, position, parameter);
        offers.push(Offer {
            parameter: index,
            value,
            score,
            from: mention.from,
            to: mention.to,
        });
    }
}

fn options(scene: &Scene<'_>, index: usize, parameter: &Parameter, offers: &mut Vec<Offer>) {
    let named: Vec<choice::Named> = choice::named(scene, parameter)
        .into_iter()
        .filter(|found| found.strength >= 0.6)
        .collect();
    let (Some(first), true) = (named.first(), !named.is_empty()) else {
        return;
    };
    let values: Vec<Value> = named
        .iter()
        .map(|found| parameter.choices[found.choice].value.clone())
        .collect();
    let strength = named.iter().map(|found| found.strength).fold(1.0, f32::min);
    offers.push(Offer {
        parameter: index,
        value: Value::Array(values),
        score: 0.35 + 0.6 * strength,
        from: first.from,
        to: first.from,
    });
}

fn numbers(
    scene: &Scene<'_>,
    index: usize,
    parameter: &Parameter,
    item: &Kind,
    offers: &mut Vec<Offer>,
) {
    for (position, mention) in scene.reading.mentions.iter().enumerate() {
        let row = scene.rows[position];
        if mention.number().is_none() || row.index != 0 {
            continue;
        }
        let members = if row.size > 1 {
            scene.row_of(row.first)
        } else {
            vec![position]
        };
        let values: Option<Vec<Value>> = members
            .iter()
            .map(|&member| {
                let quantity = scene.reading.mentions[member].number()?;
                let value = json_number(fitted(quantity, &parameter.wanted)?)?;
                match item {
                    Kind::Number => value.as_f64().map(Value::from),
                    _ => Some(value),
                }
            })
            .collect();
        let (Some(values), Some(&last)) = (values, members.last()) else {
            continue;
        };
        let mut score = if row.size > 1 { 0.55 } else { 0.1 };
        score += 0.5
            * scene
                .before(mention, parameter)
                .max(scene.after(mention, parameter));
        score += number::order(scene, position, parameter);
        offers.push(Offer {
            parameter: index,
            value: Value::Array(values),
            score,
            from: mention.from,
            to: scene.reading.mentions[last].to,
        });
    }
}

fn texts(
    scene: &Scene<'_>,
    index: usize,
    parameter: &Parameter,
    meaning: &Meaning,
    offers: &mut Vec<Offer>,
) {
    let mut single: Vec<Offer> = Vec::new();
    text::offers(scene, index, parameter, meaning, &mut single);
    for (position, mention) in scene.reading.mentions.iter().enumerate() {
        let row = scene.rows[position];
        if row.size < 2 || row.index != 0 {
            continue;
        }
        let members = scene.row_of(row.first);
        let found: Vec<&Offer> = members
            .iter()
            .filter_map(|&member| {
                let mention = &scene.reading.mentions[member];
                single.iter().find(|offer| {
                    offer.from >= mention.from && offer.to <= mention.to && offer.from < offer.to
                })
            })
            .collect();
        if found.len() != members.len() {
            continue;
        }
        let best = found
            .iter()
            .map(|offer| offer.score)
            .fold(f32::MIN, f32::max);
        let last = members
            .last()
            .map_or(mention.to, |&last| scene.reading.mentions[last].to);
        offers.push(Offer {
            parameter: index,
            value: Value::Array(found.iter().map(|offer| offer.value.clone()).collect()),
            score: best + 0.3,
            from: mention.from,
            to: last,
        });
    }
    // A list of one.
    offers.extend(
        single
            .into_iter()
            .filter(|offer| offer.from < offer.to)
            .map(|offer| Offer {
                value: Value::Array(vec![offer.value]),
                score: offer.score - 0.05,
                ..offer
            }),
    );
}

/// Lists of records: as given in brackets, else one for each part of the text that fills one.
pub(crate) fn records(
    scene: &Scene<'_>,
    index: usize,
    parameter: &Parameter,
    fields: &[Parameter],
    meaning: &Meaning,
    offers: &mut Vec<Offer>,
) {
    bracketed(scene, index, parameter, &Kind::Map, offers);
    let text = &scene.reading.text;
    let mut ends: Vec<usize> = (0..text.tokens.len())
        .filter(|&at| matches!(text.lower(at), "and" | ";" | ","))
        .collect();
    ends.truncate(12);
    ends.push(text.tokens.len());
    let mut from = 0;
    let mut records: Vec<Value> = Vec::new();
    let form = Form {
        parameters: fields,
        tool_stems: scene.form.tool_stems,
    };
    for end in ends {
        let part = Reading::new(text.slice(from, end), scene.reading.today);
        let filled = fill(&part, &form, meaning);
        let required = fields.iter().filter(|field| field.required).count();
        let enough = if required > 0 {
            filled.missing.is_empty()
        } else {
            filled.arguments.len() > 1
        };
        if enough && !filled.arguments.is_empty() {
            records.push(Value::Object(filled.arguments));
        }
        from = end + 1;
    }
    if records.is_empty() {
        let filled = fill(scene.reading, &form, meaning);
        if filled.missing.is_empty() && !filled.arguments.is_empty() {
            records.push(Value::Object(filled.arguments));
        }
    }
    if !records.is_empty() {
        offers.push(Offer {
            parameter: index,
            value: Value::Array(records),
            score: 0.5,
            from: 0,
            to: 0,
        });
    }
}

/// Records without declared fields: as given in braces, or from `key: value` pairs.
pub(crate) fn map(scene: &Scene<'_>, index: usize, parameter: &Parameter, offers: &mut Vec<Offer>) {
    for mention in &scene.reading.mentions {
        if let What::Value(value @ Value::Object(_)) = &mention.what {
            offers.push(Offer {
                parameter: index,
                value: value.clone(),
                score: 0.8 + 0.3 * scene.before(mention, parameter),
                from: mention.from,
                to: mention.to,
            });
        }
    }
    let quoted: Vec<_> = scene
        .reading
        .mentions
        .iter()
        .filter(|mention| matches!(mention.what, What::Quoted(_)))
        .collect();
    let mut pairs = Map::new();
    for pair in quoted.windows(2) {
        if pair[0].to < scene.reading.text.tokens.len()
            && scene.reading.text.lower(pair[0].to) == ":"
            && pair[1].from == pair[0].to + 1
        {
            pairs.insert(
                scene.reading.written(pair[0]).to_owned(),
                Value::from(scene.reading.written(pair[1])),
            );
        }
    }
    if !pairs.is_empty() {
        offers.push(Offer {
            parameter: index,
            value: Value::Object(pairs),
            score: 0.8,
            from: 0,
            to: 0,
        });
    }
}
