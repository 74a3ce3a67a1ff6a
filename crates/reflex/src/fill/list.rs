//! Candidates for lists and records: values in brackets, rows of values, and several options at once.

use serde_json::{Map, Value};

use super::cue::Slot;
use super::{Candidate, Form, choice, fill, number, text};
use crate::extract::quantity::{fitted, json_number};
use crate::extract::{MentionKind, Reading};
use crate::meaning::Meaning;
use crate::parameter::{Kind, Parameter};

/// Adds candidates for lists of plain values.
pub(crate) fn candidates(
    slot: Slot<'_>,
    item: &Kind,
    meaning: &Meaning,
    candidates: &mut Vec<Candidate>,
) {
    let parameter = slot.parameter;
    bracketed(slot, item, candidates);
    if !parameter.choices.is_empty() {
        options(slot, candidates);
        if parameter.closed {
            return;
        }
    }
    match item {
        Kind::Integer | Kind::Number => numbers(slot, candidates),
        Kind::Text | Kind::Any => texts(slot, meaning, candidates),
        _ => {}
    }
}

/// Whether a value can be an item of this type.
fn has_type(value: &Value, item: &Kind) -> bool {
    match item {
        Kind::Integer | Kind::Number => value.is_number(),
        Kind::Text => value.is_string(),
        Kind::Boolean => value.is_boolean(),
        Kind::List(inner) => value
            .as_array()
            .is_some_and(|items| items.iter().all(|value| has_type(value, inner))),
        Kind::Records(_) | Kind::Map => value.is_object(),
        Kind::Any => true,
    }
}

fn bracketed(slot: Slot<'_>, item: &Kind, candidates: &mut Vec<Candidate>) {
    let (context, index, parameter) = slot.parts();
    for (position, mention) in context.reading.mentions.iter().enumerate() {
        let MentionKind::Value(value @ Value::Array(items)) = &mention.kind else {
            continue;
        };
        // Numbers become strings in a list of strings.
        let value = if *item == Kind::Text && items.iter().all(Value::is_number) {
            Value::Array(
                items
                    .iter()
                    .map(|item| Value::from(item.to_string()))
                    .collect(),
            )
        } else if !items.is_empty() && items.iter().all(|value| has_type(value, item)) {
            value.clone()
        } else {
            continue;
        };
        let score = 0.7
            + 0.5 * context.before(mention, parameter)
            + number::order(context, position, parameter);
        candidates.push(Candidate {
            parameter: index,
            value,
            score,
            from: mention.from,
            to: mention.to,
        });
    }
}

fn options(slot: Slot<'_>, candidates: &mut Vec<Candidate>) {
    let (context, index, parameter) = slot.parts();
    let named: Vec<choice::NamedOption> = choice::named(context, parameter)
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
    candidates.push(Candidate {
        parameter: index,
        value: Value::Array(values),
        score: 0.35 + 0.6 * strength,
        from: first.from,
        to: first.from,
    });
}

fn numbers(slot: Slot<'_>, candidates: &mut Vec<Candidate>) {
    let (context, index, parameter) = slot.parts();
    for (position, mention) in context.reading.mentions.iter().enumerate() {
        let row = context.rows[position];
        if mention.number().is_none() || row.index != 0 {
            continue;
        }
        let members = if row.size > 1 {
            context.row_of(row.first)
        } else {
            vec![position]
        };
        let values: Option<Vec<Value>> = members
            .iter()
            .map(|&member| {
                let quantity = context.reading.mentions[member].number()?;
                json_number(fitted(quantity, &parameter.number_format)?)
            })
            .collect();
        let (Some(values), Some(&last)) = (values, members.last()) else {
            continue;
        };
        let mut score = if row.size > 1 { 0.55 } else { 0.1 };
        score += 0.5
            * context
                .before(mention, parameter)
                .max(context.after(mention, parameter));
        score += number::order(context, position, parameter);
        candidates.push(Candidate {
            parameter: index,
            value: Value::Array(values),
            score,
            from: mention.from,
            to: context.reading.mentions[last].to,
        });
    }
}

fn texts(slot: Slot<'_>, meaning: &Meaning, candidates: &mut Vec<Candidate>) {
    let (context, index, _) = slot.parts();
    let mut single: Vec<Candidate> = Vec::new();
    text::candidates(slot, meaning, &mut single);
    for (position, mention) in context.reading.mentions.iter().enumerate() {
        let row = context.rows[position];
        if row.size < 2 || row.index != 0 {
            continue;
        }
        let members = context.row_of(row.first);
        let found: Vec<&Candidate> = members
            .iter()
            .filter_map(|&member| {
                let mention = &context.reading.mentions[member];
                single.iter().find(|candidate| {
                    candidate.from >= mention.from
                        && candidate.to <= mention.to
                        && candidate.from < candidate.to
                })
            })
            .collect();
        if found.len() != members.len() {
            continue;
        }
        let best = found
            .iter()
            .map(|candidate| candidate.score)
            .fold(f32::MIN, f32::max);
        let last = members
            .last()
            .map_or(mention.to, |&last| context.reading.mentions[last].to);
        candidates.push(Candidate {
            parameter: index,
            value: Value::Array(
                found
                    .iter()
                    .map(|candidate| candidate.value.clone())
                    .collect(),
            ),
            score: best + 0.3,
            from: mention.from,
            to: last,
        });
    }
    // Lists of one item.
    candidates.extend(
        single
            .into_iter()
            .filter(|candidate| candidate.from < candidate.to)
            .map(|candidate| Candidate {
                value: Value::Array(vec![candidate.value]),
                score: candidate.score - 0.05,
                ..candidate
            }),
    );
}

/// Adds candidates for lists of records: from brackets, else one record for each part of the text that fills one.
pub(crate) fn records(
    slot: Slot<'_>,
    fields: &[Parameter],
    meaning: &Meaning,
    candidates: &mut Vec<Candidate>,
) {
    let (context, index, _) = slot.parts();
    bracketed(slot, &Kind::Map, candidates);
    let text = &context.reading.text;
    let mut ends: Vec<usize> = (0..text.tokens.len())
        .filter(|&at| matches!(text.lower(at), "and" | ";" | ","))
        .collect();
    ends.truncate(12);
    ends.push(text.tokens.len());
    let mut from = 0;
    let mut records: Vec<Value> = Vec::new();
    let form = Form {
        parameters: fields,
        tool_stems: context.form.tool_stems,
    };
    for end in ends {
        let part = Reading::new(text.slice(from, end), context.reading.today);
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
        let filled = fill(context.reading, &form, meaning);
        if filled.missing.is_empty() && !filled.arguments.is_empty() {
            records.push(Value::Object(filled.arguments));
        }
    }
    if !records.is_empty() {
        candidates.push(Candidate {
            parameter: index,
            value: Value::Array(records),
            score: 0.5,
            from: 0,
            to: 0,
        });
    }
}

/// Adds candidates for records without declared fields: from braces, or from `key: value` pairs.
pub(crate) fn map(slot: Slot<'_>, candidates: &mut Vec<Candidate>) {
    let (context, index, parameter) = slot.parts();
    for mention in &context.reading.mentions {
        if let MentionKind::Value(value @ Value::Object(_)) = &mention.kind {
            candidates.push(Candidate {
                parameter: index,
                value: value.clone(),
                score: 0.8 + 0.3 * context.before(mention, parameter),
                from: mention.from,
                to: mention.to,
            });
        }
    }
    let quoted: Vec<_> = context
        .reading
        .mentions
        .iter()
        .filter(|mention| matches!(mention.kind, MentionKind::Quoted(_)))
        .collect();
    let mut pairs = Map::new();
    for pair in quoted.windows(2) {
        if pair[0].to < context.reading.text.tokens.len()
            && context.reading.text.lower(pair[0].to) == ":"
            && pair[1].from == pair[0].to + 1
        {
            pairs.insert(
                context.reading.written(pair[0]).to_owned(),
                Value::from(context.reading.written(pair[1])),
            );
        }
    }
    if !pairs.is_empty() {
        candidates.push(Candidate {
            parameter: index,
            value: Value::Object(pairs),
            score: 0.8,
            from: 0,
            to: 0,
        });
    }
}
