//! Candidates for texts: names, quotations, codes, dates, phrases, and free text.

use serde_json::Value;

use super::cue::{FillContext, Slot, stem_similarity};
use super::{Candidate, choice, fit, number, place, special};
use crate::extract::entity::{self, EntityKind};
use crate::extract::format::DateFormat;
use crate::extract::{Mention, MentionKind, date};
use crate::lexicon::{places, words};
use crate::meaning::Meaning;
use crate::parameter::{Parameter, Role};

/// Adds all texts that a parameter could take.
pub(crate) fn candidates(slot: Slot<'_>, meaning: &Meaning, candidates: &mut Vec<Candidate>) {
    let (context, index, parameter) = slot.parts();
    let about = format!("{}. {}", parameter.name_words.join(" "), parameter.meaning);
    let about = meaning.of(&about);
    let role = parameter.role;
    match role {
        Role::Currency => special::currency(slot, candidates),
        Role::Unit => special::unit(slot, candidates),
        Role::Language => special::language(slot, candidates),
        Role::FreeText => special::free_text(slot, candidates),
        Role::State | Role::Country => implied_places(slot, candidates),
        Role::Date | Role::Time => special::moment(slot, candidates),
        _ => {}
    }
    // If a description lists all options, other texts score less.
    let listed = if !parameter.listed {
        0.0
    } else if choice::named(context, parameter).is_empty() {
        0.15
    } else {
        0.5
    };
    for (position, mention) in context.reading.mentions.iter().enumerate() {
        let Some((value, from, to)) = rendered(context, mention, parameter) else {
            continue;
        };
        let mut score = fit::kind_fit(context, mention, parameter) - listed;
        let before = context.before(mention, parameter);
        let after = context.after(mention, parameter);
        score += 0.7 * before + 0.55 * after;
        score += fit::lead_fit(context, position, parameter);
        score += number::order(context, position, parameter);
        score -= fit::remark_penalty(context, mention) + fit::label_penalty(context, mention);
        score += fit::head_bonus(context, to, parameter);
        if !matches!(mention.kind, MentionKind::Number(_) | MentionKind::Date(_)) {
            score += 0.9 * context.similarity(meaning, &value, &about);
            score -= fit::tool_word_penalty(context, from, to);
            score -= fit::parameter_name_penalty(context, from, to, mention, parameter);
        }
        candidates.push(Candidate {
            parameter: index,
            value: Value::from(value),
            score,
            from,
            to,
        });
    }
    joined_rows(slot, candidates);
}

/// Adds a whole row as one value, for parameters that take a comma-separated list.
fn joined_rows(slot: Slot<'_>, candidates: &mut Vec<Candidate>) {
    let (context, index, parameter) = slot.parts();
    let lower = parameter.description.to_lowercase();
    if !lower.contains("comma-separated") && !lower.contains("comma separated") {
        return;
    }
    let mut rows: Vec<Candidate> = Vec::new();
    for (position, mention) in context.reading.mentions.iter().enumerate() {
        let row = context.rows[position];
        if row.size < 2 || row.index != 0 {
            continue;
        }
        let members = context.row_of(row.first);
        let texts: Vec<&str> = members
            .iter()
            .map(|&member| context.reading.written(&context.reading.mentions[member]))
            .collect();
        let best = candidates
            .iter()
            .filter(|candidate| {
                candidate.parameter == index
                    && candidate.from >= mention.from
                    && candidate.to <= mention.to
            })
            .map(|candidate| candidate.score)
            .fold(f32::MIN, f32::max);
        let last = members
            .last()
            .map_or(mention.to, |&last| context.reading.mentions[last].to);
        rows.push(Candidate {
            parameter: index,
            value: Value::from(texts.join(",")),
            score: best + 0.3,
            from: mention.from,
            to: last,
        });
    }
    candidates.extend(rows);
}

/// Adds the state or country of a city in the text.
fn implied_places(slot: Slot<'_>, candidates: &mut Vec<Candidate>) {
    let (context, index, parameter) = slot.parts();
    for mention in &context.reading.mentions {
        if !matches!(mention.kind, MentionKind::Place(places::PlaceKind::City)) {
            continue;
        }
        let city = context.reading.written(mention);
        let implied = match parameter.role {
            Role::State => places::state_of(city).and_then(places::state_name),
            _ => places::country_of(city).or(places::state_of(city).map(|_| "USA")),
        };
        if let Some(implied) = implied {
            candidates.push(Candidate {
                parameter: index,
                value: Value::from(place::written(implied, parameter, true, true)),
                score: if parameter.required { 0.5 } else { 0.2 },
                from: mention.from,
                to: mention.from,
            });
        }
    }
}

/// The text of a mention in the parameter's form, and the tokens that it uses.
fn rendered(
    context: &FillContext<'_>,
    mention: &Mention,
    parameter: &Parameter,
) -> Option<(String, usize, usize)> {
    let written = context.reading.written(mention);
    let whole = |text: String| Some((text, mention.from, mention.to));
    match &mention.kind {
        MentionKind::Quoted(inner) => whole(inner.clone()),
        MentionKind::Date(found) => {
            if !matches!(
                parameter.role,
                Role::Date | Role::Time | Role::Month | Role::Weekday | Role::Year
            ) {
                return whole(written.to_owned());
            }
            if parameter.role == Role::Month
                && let Some(month) = found.month
            {
                return whole(date::month_name(month).to_owned());
            }
            if parameter.role == Role::Year
                && let Some(year) = found.year
            {
                return whole(year.to_string());
            }
            let format = parameter
                .date_format
                .clone()
                .unwrap_or_else(DateFormat::iso);
            whole(found.written(&format).unwrap_or_else(|| written.to_owned()))
        }
        MentionKind::Number(quantity) => {
            let text = context.reading.text.slice(quantity.from, quantity.end);
            let number = context.reading.text.slice(quantity.from, quantity.to);
            let with_unit = matches!(parameter.role, Role::Other | Role::Time | Role::FreeText)
                && quantity.unit.is_some();
            let text = if with_unit { text } else { number };
            Some((
                text.trim_start_matches('#').to_owned(),
                quantity.from,
                if with_unit { quantity.end } else { quantity.to },
            ))
        }
        MentionKind::Place(_) => {
            let has = |role: Role| {
                context
                    .form
                    .parameters
                    .iter()
                    .any(|other| other.role == role && other.path != parameter.path)
            };
            whole(place::written(
                written,
                parameter,
                has(Role::State),
                has(Role::Country),
            ))
        }
        MentionKind::Value(_) => None,
        MentionKind::Entity(EntityKind::Time) => whole(time_of_day(written, parameter)),
        MentionKind::Entity(_) => whole(written.trim_start_matches('#').to_owned()),
        MentionKind::Phrase | MentionKind::Word => without_kind_words(context, mention, parameter),
    }
}

/// A time in the form that the parameter expects: with 24 hours if its description asks for them.
fn time_of_day(written: &str, parameter: &Parameter) -> String {
    let description = &parameter.description;
    let wants_pattern = ["HH:MM", "hh:mm", "24-hour", "24 hour", "24h"]
        .iter()
        .any(|cue| description.contains(cue));
    let lower = description.to_lowercase();
    let wants_suffix = lower.contains("am/pm") || lower.contains("12-hour");
    match entity::clock(written) {
        Some((hour, minute, second)) if wants_pattern && !wants_suffix => {
            if lower.contains("hh:mm:ss") {
                format!("{hour:02}:{minute:02}:{second:02}")
            } else {
                format!("{hour:02}:{minute:02}")
            }
        }
        _ => written.to_owned(),
    }
}

/// A phrase without the words that only name its kind: `Chinese` of `Chinese cuisine`, for a cuisine.
fn without_kind_words(
    context: &FillContext<'_>,
    mention: &Mention,
    parameter: &Parameter,
) -> Option<(String, usize, usize)> {
    let text = &context.reading.text;
    let (mut from, mut to) = (mention.from, mention.to);
    let head = parameter
        .name_stems
        .iter()
        .chain(parameter.description_stems.iter().take(4));
    let heads: Vec<&String> = head.collect();
    while to - from > 1 {
        let last = &text.tokens[to - 1];
        let names_kind = heads
            .iter()
            .any(|known| stem_similarity(known, &last.stem) > 0.8)
            || context.form.tool_stems.contains(&last.stem);
        if !names_kind {
            break;
        }
        to -= 1;
        if text.tokens[to - 1].is('-') {
            to -= 1;
        }
    }
    while to - from > 1 {
        let first = &text.tokens[from];
        let empty = matches!(
            first.lower.as_str(),
            "upcoming"
                | "next"
                | "latest"
                | "top"
                | "best"
                | "nearest"
                | "current"
                | "last"
                | "past"
                | "new"
                | "following"
                | "specific"
                | "available"
                | "recent"
                | "different"
                | "main"
                | "popular"
                | "certain"
                | "good"
                | "great"
        ) || words::is_request_verb(&first.lower)
            || parameter
                .name_stems
                .iter()
                .any(|known| stem_similarity(known, &first.stem) > 0.8);
        if !empty {
            break;
        }
        from += 1;
        if text.tokens[from].is('-') && to - from > 1 {
            from += 1;
        }
    }
    let written = text.slice(from, to);
    (!written.is_empty()).then(|| (written.to_owned(), from, to))
}
