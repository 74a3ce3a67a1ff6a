//! Offers of texts: names, quotations, codes, dates, phrases, and free text.

use serde_json::Value;

use super::cue::{Scene, alike};
use super::{Offer, choice, fit, number, place, special};
use crate::extract::entity::{self, EntityKind};
use crate::extract::format::DateFormat;
use crate::extract::{Mention, What, date};
use crate::lexicon::{places, words};
use crate::meaning::Meaning;
use crate::parameter::{Parameter, Role};

/// All texts a parameter could take.
pub(crate) fn offers(
    scene: &Scene<'_>,
    index: usize,
    parameter: &Parameter,
    meaning: &Meaning,
    offers: &mut Vec<Offer>,
) {
    let about = format!("{}. {}", parameter.name_words.join(" "), parameter.meaning);
    let about = meaning.of(&about);
    let role = parameter.role;
    match role {
        Role::Currency => special::currency(scene, index, parameter, offers),
        Role::Unit => special::unit(scene, index, parameter, offers),
        Role::Language => special::language(scene, index, parameter, offers),
        Role::FreeText => special::free_text(scene, index, parameter, offers),
        Role::State | Role::Country => implied_places(scene, index, parameter, offers),
        Role::Date | Role::Time => special::moment(scene, index, parameter, offers),
        _ => {}
    }
    // Where a description lists all values, a text beside them is second best.
    let listed = if !parameter.listed {
        0.0
    } else if choice::named(scene, parameter).is_empty() {
        0.15
    } else {
        0.5
    };
    for (position, mention) in scene.reading.mentions.iter().enumerate() {
        let Some((value, from, to)) = rendered(scene, mention, parameter) else {
            continue;
        };
        let mut score = fit::kind_fit(scene, mention, parameter) - listed;
        let before = scene.before(mention, parameter);
        let after = scene.after(mention, parameter);
        score += 0.7 * before + 0.55 * after;
        score += fit::lead_fit(scene, position, parameter);
        score += number::order(scene, position, parameter);
        score -= fit::remark(scene, mention) + fit::label(scene, mention);
        score += fit::heads(scene, to, parameter);
        if !matches!(mention.what, What::Number(_) | What::Date(_)) {
            score += 0.9 * scene.likeness(meaning, &value, &about);
            score -= fit::tool_words(scene, from, to);
            score -= fit::names_itself(scene, from, to, mention, parameter);
        }
        offers.push(Offer {
            parameter: index,
            value: Value::from(value),
            score,
            from,
            to,
        });
    }
    joined_rows(scene, index, parameter, offers);
}

/// Where a text is a list with commas, a whole row is one value.
fn joined_rows(scene: &Scene<'_>, index: usize, parameter: &Parameter, offers: &mut Vec<Offer>) {
    let lower = parameter.description.to_lowercase();
    if !lower.contains("comma-separated") && !lower.contains("comma separated") {
        return;
    }
    let mut rows: Vec<Offer> = Vec::new();
    for (position, mention) in scene.reading.mentions.iter().enumerate() {
        let row = scene.rows[position];
        if row.size < 2 || row.index != 0 {
            continue;
        }
        let members = scene.row_of(row.first);
        let texts: Vec<&str> = members
            .iter()
            .map(|&member| scene.reading.written(&scene.reading.mentions[member]))
            .collect();
        let best = offers
            .iter()
            .filter(|offer| {
                offer.parameter == index && offer.from >= mention.from && offer.to <= mention.to
            })
            .map(|offer| offer.score)
            .fold(f32::MIN, f32::max);
        let last = members
            .last()
            .map_or(mention.to, |&last| scene.reading.mentions[last].to);
        rows.push(Offer {
            parameter: index,
            value: Value::from(texts.join(",")),
            score: best + 0.3,
            from: mention.from,
            to: last,
        });
    }
    offers.extend(rows);
}

/// The state or country that a named city lies in, where the text does not say it.
fn implied_places(scene: &Scene<'_>, index: usize, parameter: &Parameter, offers: &mut Vec<Offer>) {
    for mention in &scene.reading.mentions {
        if !matches!(mention.what, What::Place(places::PlaceKind::City)) {
            continue;
        }
        let city = scene.reading.written(mention);
        let implied = match parameter.role {
            Role::State => places::state_of(city).and_then(places::state_name),
            _ => places::country_of(city).or(places::state_of(city).map(|_| "USA")),
        };
        if let Some(implied) = implied {
            offers.push(Offer {
                parameter: index,
                value: Value::from(place::written(implied, parameter, true, true)),
                score: if parameter.required { 0.5 } else { 0.2 },
                from: mention.from,
                to: mention.from,
            });
        }
    }
}

/// The text a mention gives for a parameter, and the tokens it uses.
fn rendered(
    scene: &Scene<'_>,
    mention: &Mention,
    parameter: &Parameter,
) -> Option<(String, usize, usize)> {
    let written = scene.reading.written(mention);
    let whole = |text: String| Some((text, mention.from, mention.to));
    match &mention.what {
        What::Quoted(inner) => whole(inner.clone()),
        What::Date(found) => {
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
        What::Number(quantity) => {
            let text = scene.reading.text.slice(quantity.from, quantity.end);
            let number = scene.reading.text.slice(quantity.from, quantity.to);
            let with_unit = matches!(parameter.role, Role::Other | Role::Time | Role::FreeText)
                && quantity.unit.is_some();
            let text = if with_unit { text } else { number };
            Some((
                text.trim_start_matches('#').to_owned(),
                quantity.from,
                if with_unit { quantity.end } else { quantity.to },
            ))
        }
        What::Place(_) => {
            let has = |role: Role| {
                scene
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
        What::Value(_) => None,
        What::Entity(EntityKind::Time) => whole(time_of_day(written, parameter)),
        What::Entity(_) => whole(written.trim_start_matches('#').to_owned()),
        What::Phrase | What::Word => trimmed(scene, mention, parameter),
    }
}

/// A time as the parameter wants it: of 24 hours where its description says so.
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

/// A phrase without what only says what kind of thing it is: `Chinese cuisine` for a cuisine.
fn trimmed(
    scene: &Scene<'_>,
    mention: &Mention,
    parameter: &Parameter,
) -> Option<(String, usize, usize)> {
    let text = &scene.reading.text;
    let (mut from, mut to) = (mention.from, mention.to);
    let head = parameter
        .name_stems
        .iter()
        .chain(parameter.description_stems.iter().take(4));
    let heads: Vec<&String> = head.collect();
    while to - from > 1 {
        let last = &text.tokens[to - 1];
        let names_kind = heads.iter().any(|known| alike(known, &last.stem) > 0.8)
            || scene.form.tool_stems.contains(&last.stem);
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
                .any(|known| alike(known, &first.stem) > 0.8);
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
