//! Candidates for numbers, scored by the words around them, their unit, their size, and their order.

use super::Candidate;
use super::cue::{self, FillContext, Slot};
use crate::extract::entity::{self, EntityKind};
use crate::extract::number::Quantity;
use crate::extract::quantity::{fitted, json_number};
use crate::extract::{Mention, MentionKind};
use crate::lexicon::units::Dimension;
use crate::parameter::{Direction, Parameter, Role};

/// Adds all numbers that a parameter could take.
pub(crate) fn candidates(slot: Slot<'_>, candidates: &mut Vec<Candidate>) {
    let (context, index, parameter) = slot.parts();
    for (position, mention) in context.reading.mentions.iter().enumerate() {
        let (value, score, from, to) = match &mention.kind {
            MentionKind::Number(quantity) => {
                let Some(value) = fitted(quantity, &parameter.number_format) else {
                    continue;
                };
                let score = score(context, position, quantity, parameter);
                (value, score, quantity.from, quantity.to)
            }
            MentionKind::Date(date) => {
                let part = if parameter.role == Role::Year || parameter.is_named("year") {
                    date.year.map(f64::from)
                } else if parameter.is_named("month") {
                    date.month.map(f64::from)
                } else if parameter.is_named("day") {
                    date.day.map(f64::from)
                } else {
                    None
                };
                let Some(part) = part else { continue };
                // Several parameters may take parts of the same date.
                (
                    part,
                    0.9 + order(context, position, parameter),
                    mention.from,
                    mention.from,
                )
            }
            MentionKind::Entity(EntityKind::Time) => {
                let Some((hour, minute, second)) = entity::clock(context.reading.written(mention))
                else {
                    continue;
                };
                let stated = context
                    .reading
                    .text
                    .lower(mention.from)
                    .parse()
                    .unwrap_or(hour);
                let part = if parameter.is_named("hour") || parameter.is_named("hours") {
                    stated
                } else if parameter.is_named("minute") || parameter.is_named("minutes") {
                    minute
                } else if parameter.is_named("second") || parameter.is_named("seconds") {
                    second
                } else {
                    continue;
                };
                (f64::from(part), 0.9, mention.from, mention.from)
            }
            MentionKind::Entity(EntityKind::Code) if parameter.role == Role::Code => {
                let Ok(value) = context.reading.written(mention).parse::<f64>() else {
                    continue;
                };
                (value, 0.6, mention.from, mention.to)
            }
            _ => continue,
        };
        let Some(value) = json_number(value) else {
            continue;
        };
        candidates.push(Candidate {
            parameter: index,
            value,
            score,
            from,
            to,
        });
    }
}

/// How well a number fits a parameter.
pub(crate) fn score(
    context: &FillContext<'_>,
    position: usize,
    quantity: &Quantity,
    parameter: &Parameter,
) -> f32 {
    let mut score = 0.3;
    let (row, mention) = (context.rows[position], &context.reading.mentions[position]);
    let before = context.before(mention, parameter);
    let after = context
        .after(mention, parameter)
        .max(unit_names(context, quantity, parameter));
    score += before.max(after) + 0.2 * before.min(after);
    score += unit_fit(quantity, parameter);
    score += role_fit(context, position, quantity, parameter);
    score += order(context, position, parameter);
    if row.size > 1 {
        score += row_position_score(context, position, parameter);
    }
    score
}

/// How well the unit names the parameter: `30 minutes` names `cooking_minutes`, and `4 beats` names a parameter
/// with beats in its description.
fn unit_names(context: &FillContext<'_>, quantity: &Quantity, parameter: &Parameter) -> f32 {
    let text = &context.reading.text;
    (quantity.to..quantity.end)
        .filter_map(|at| text.tokens.get(at))
        .map(|token| 0.8 * cue::names(parameter, &token.stem, &token.lower))
        .fold(0.0, f32::max)
}

fn unit_fit(quantity: &Quantity, parameter: &Parameter) -> f32 {
    match (quantity.unit, parameter.number_format.unit) {
        (Some(unit), _) if unit.dimension == Dimension::Ratio => {
            if parameter.number_format.percent || parameter.role == Role::Rate {
                0.6
            } else {
                -0.4
            }
        }
        (Some(unit), Some(wanted)) if unit.name == wanted.name => 0.7,
        (Some(unit), Some(wanted)) if unit.dimension == wanted.dimension => 0.45,
        (Some(_), Some(_)) => -0.7,
        (Some(unit), None) => match (unit.dimension, parameter.role) {
            (_, Role::Year | Role::Money | Role::Code) => -0.6,
            (Dimension::Time, _) => {
                let temporal = [
                    "time", "duration", "period", "age", "term", "length", "nights", "days", "stay",
                ];
                if temporal.iter().any(|word| parameter.is_named(word)) {
                    0.4
                } else {
                    -0.1
                }
            }
            _ => 0.0,
        },
        (None, Some(wanted)) if wanted.dimension == Dimension::Time => {
            if quantity.currency.is_some() {
                -0.6
            } else {
                -0.15
            }
        }
        (None, _) => 0.0,
    }
}

fn role_fit(
    context: &FillContext<'_>,
    position: usize,
    quantity: &Quantity,
    parameter: &Parameter,
) -> f32 {
    let mention = &context.reading.mentions[position];
    let plain = quantity.unit.is_none() && quantity.currency.is_none();
    let like_year = plain
        && quantity.value.fract() == 0.0
        && (1000.0..2200.0).contains(&quantity.value)
        && !quantity.spelled
        && !context
            .reading
            .text
            .slice(quantity.from, quantity.to)
            .contains(',');
    let lead = context.row_lead(position);
    let dated = like_year
        && matches!(
            lead,
            "in" | "year"
                | "since"
                | "from"
                | "to"
                | "between"
                | "and"
                | "of"
                | "until"
                | "by"
                | "for"
                | "after"
                | "before"
                | "during"
                | "till"
                | "through"
        );
    let mut fit = match parameter.role {
        Role::Year if like_year => 0.8,
        Role::Year if lead == "year" || lead == "years" => 0.4,
        Role::Year => -0.5,
        Role::Money if quantity.currency.is_some() => 0.6,
        Role::Money if plain => 0.05,
        Role::Money => -0.3,
        Role::Rate if quantity.currency.is_some() => -0.6,
        Role::Rate if plain && quantity.value.abs() < 1.0 => 0.15,
        Role::Code if !plain => -0.5,
        Role::Code if matches!(lead, "id" | "number" | "code" | "#") => 0.4,
        Role::Count if quantity.currency.is_some() => -0.6,
        Role::Count if plain && quantity.value.fract() == 0.0 && quantity.value > 0.0 => {
            if dated {
                -0.4
            } else {
                0.15
            }
        }
        _ if quantity.currency.is_some() => -0.1,
        _ if dated && quantity.value > 1500.0 => -0.25,
        _ => 0.0,
    };
    // In `two numbers, 12 and 15`, `two` only counts the row.
    let counts_a_row = quantity.spelled
        && context
            .rows
            .iter()
            .zip(&context.reading.mentions)
            .any(|(row, member)| {
                row.size > 1
                    && row.size as f64 == quantity.value
                    && (member.number().is_some() || context.after(mention, parameter) < 0.9)
            });
    if counts_a_row {
        fit -= 1.3;
    }
    if quantity.ordinal && !parameter.is_named("century") {
        fit -= 0.3;
    }
    let window: Vec<&str> = context.window(mention, 4).collect();
    let has = |wanted: &[&str]| window.iter().any(|word| wanted.contains(word));
    let bounded_above = has(&[
        "under",
        "below",
        "less",
        "within",
        "maximum",
        "max",
        "exceeding",
        "most",
        "up",
    ]);
    let bounded_below = has(&[
        "above", "over", "least", "minimum", "min", "greater", "exceeds",
    ]) || has(&["more"]) && has(&["than"]);
    let is_max = parameter.is_named("max")
        || parameter.is_named("maximum")
        || parameter.is_named("limit")
        || parameter.meaning.to_lowercase().contains("maximum");
    let is_min = parameter.is_named("min")
        || parameter.is_named("minimum")
        || parameter.meaning.to_lowercase().contains("minimum");
    if is_max {
        fit += if bounded_above {
            0.3
        } else if bounded_below {
            -0.3
        } else {
            0.0
        };
    }
    if is_min {
        fit += if bounded_below {
            0.3
        } else if bounded_above {
            -0.4
        } else {
            0.0
        };
    }
    if has(&["top", "first", "last", "next", "past", "latest", "upcoming"])
        && parameter.role == Role::Count
        && plain
    {
        fit += 0.2;
    }
    // `rounded to 3 decimals` is about the result only.
    let rounding = ["round", "decimal", "precision", "places"]
        .iter()
        .any(|word| parameter.is_named(word));
    if rounding && !has(&["round", "rounded", "precision", "to"]) {
        fit -= 0.2;
    }
    fit
}

/// Words before the start of a range.
const STARTS: [&str; 7] = [
    "from",
    "since",
    "starting",
    "start",
    "after",
    "beginning",
    "initial",
];

/// Words before the end of a range.
const ENDS: [&str; 7] = [
    "to", "until", "till", "through", "final", "before", "ending",
];

/// The score for order: start and end, first and second.
pub(crate) fn order(context: &FillContext<'_>, position: usize, parameter: &Parameter) -> f32 {
    let mention = &context.reading.mentions[position];
    let row = context.rows[position];
    let lead = context.lead(mention);
    let mut score = 0.0;
    let between = row.size == 2 && context.lead(&context.reading.mentions[row.first]) == "between";
    let is = |words: &[&str]| words.iter().any(|word| parameter.is_named(word));
    let direction = match parameter.direction {
        Direction::None if is(&["min", "minimum", "low", "lower"]) => Direction::From,
        Direction::None if is(&["max", "maximum", "high", "upper"]) => Direction::To,
        stated => stated,
    };
    let expected = |is_expected| if is_expected { 0.5 } else { -0.2 };
    score += match direction {
        Direction::From if STARTS.contains(&lead) || opens_range(context, mention) => 0.5,
        Direction::To if ENDS.contains(&lead) => 0.5,
        Direction::From if between => expected(row.index == 0),
        Direction::To if between => expected(row.index == 1),
        Direction::From if matches!(lead, "to" | "until") => -0.3,
        Direction::To if matches!(lead, "from" | "since") => -0.3,
        _ => 0.0,
    };
    if let Some(ordinal) = parameter.ordinal {
        let place = if row.size > 1 {
            row.index
        } else {
            // Without a row, the position among mentions of the same kind counts.
            context.reading.mentions[..position]
                .iter()
                .filter(|earlier| same_kind(earlier, mention))
                .count()
        };
        let wanted = ordinal.saturating_sub(1) as usize;
        score += if place == wanted { 0.25 } else { -0.1 };
    }
    score
}

/// Whether a number is the first of a range: `300 to 400`, `10-20`.
fn opens_range(context: &FillContext<'_>, mention: &Mention) -> bool {
    let text = &context.reading.text;
    mention.number().is_some()
        && matches!(text.lower(mention.to), "to" | "-" | "–")
        && context
            .reading
            .mentions
            .iter()
            .any(|other| other.number().is_some() && other.from == mention.to + 1)
}

fn same_kind(one: &Mention, other: &Mention) -> bool {
    match (&one.kind, &other.kind) {
        (MentionKind::Number(one), MentionKind::Number(other)) => {
            one.unit.map(|unit| unit.dimension) == other.unit.map(|unit| unit.dimension)
        }
        (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

/// The score for a row of values that follows as many names: `base and height as 6 cm and 10 cm`.
fn row_position_score(context: &FillContext<'_>, position: usize, parameter: &Parameter) -> f32 {
    let row = context.rows[position];
    let text = &context.reading.text;
    let first = &context.reading.mentions[row.first];
    let mut named: Vec<(usize, &str)> = Vec::new();
    for other in context
        .form
        .parameters
        .iter()
        .filter(|other| other.kind.is_numeric())
    {
        let found = (first.from.saturating_sub(14)..first.from)
            .rev()
            .find(|&at| {
                let token = &text.tokens[at];
                token.is_word()
                    && other
                        .name_stems
                        .iter()
                        .any(|known| cue::stem_similarity(known, &token.stem) > 0.8)
            });
        if let Some(at) = found {
            named.push((at, other.name()));
        }
    }
    named.sort_unstable();
    named.dedup_by_key(|(at, _)| *at);
    if named.len() != row.size {
        return 0.0;
    }
    match named.iter().position(|(_, name)| *name == parameter.name()) {
        Some(place) if place == row.index => 0.8,
        Some(_) => -0.5,
        None => 0.0,
    }
}
