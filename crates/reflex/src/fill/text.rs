//! Offers of texts: names, quotations, codes, dates, phrases, and free text.

use serde_json::Value;

use super::cue::{Scene, alike};
use super::{Offer, number, place};
use crate::extract::entity::EntityKind;
use crate::extract::format::DateFormat;
use crate::extract::{Mention, What, date};
use crate::lexicon::places::PlaceKind;
use crate::lexicon::{currencies, units, words};
use crate::meaning::Meaning;
use crate::parameter::{Direction, Kind, Parameter, Role};

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
    if role == Role::Currency {
        currency(scene, index, parameter, offers);
    }
    if role == Role::Unit {
        unit(scene, index, parameter, offers);
    }
    if role == Role::Language {
        language(scene, index, parameter, offers);
    }
    for (position, mention) in scene.reading.mentions.iter().enumerate() {
        let Some((value, from, to)) = rendered(scene, mention, parameter) else {
            continue;
        };
        let mut score = kind_fit(scene, mention, parameter);
        let before = scene.before(mention, parameter);
        let after = scene.after(mention, parameter);
        score += 0.7 * before + 0.55 * after;
        score += lead_fit(scene, position, parameter);
        score += number::order(scene, position, parameter);
        if !matches!(mention.what, What::Number(_) | What::Date(_)) {
            score += 0.9 * meaning.of(&value).cosine(&about);
            score -= tool_words(scene, from, to);
        }
        offers.push(Offer {
            parameter: index,
            value: Value::from(value),
            score,
            from,
            to,
        });
    }
    if role == Role::FreeText {
        free_text(scene, index, parameter, offers);
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
        What::Entity(_) => whole(written.to_owned()),
        What::Phrase => trimmed(scene, mention, parameter),
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

/// How well the kind of a mention suits a parameter's role.
fn kind_fit(scene: &Scene<'_>, mention: &Mention, parameter: &Parameter) -> f32 {
    use EntityKind as E;
    let role = parameter.role;
    let is_place = matches!(role, Role::City | Role::State | Role::Country | Role::Place);
    match &mention.what {
        What::Quoted(_) => match role {
            Role::Date | Role::Time | Role::Currency | Role::Unit | Role::Email | Role::Url => -0.2,
            Role::FreeText => 0.6,
            _ if is_place => 0.1,
            _ => 0.4,
        },
        What::Date(found) => match role {
            Role::Date => {
                if found.month.is_some() || found.year.is_some() {
                    0.9
                } else {
                    0.7
                }
            }
            Role::Time => 0.1,
            Role::Month if found.month.is_some() => 0.9,
            Role::Year if found.year.is_some() => 0.8,
            Role::Weekday => 0.3,
            _ => -0.6,
        },
        What::Number(quantity) => {
            let year = (1000.0..2200.0).contains(&quantity.value) && quantity.unit.is_none();
            match role {
                Role::Code | Role::Phone => 0.35,
                Role::Year if year => 0.8,
                Role::Date if year => 0.2,
                Role::Time
                    if quantity
                        .unit
                        .is_some_and(|unit| unit.dimension == units::Dimension::Time) =>
                {
                    0.3
                }
                Role::Other
                    if parameter.is_named("season")
                        || parameter.is_named("size")
                        || parameter.is_named("version")
                        || parameter.is_named("number")
                        || parameter.is_named("period")
                        || parameter.is_named("duration")
                        || parameter.is_named("frame") =>
                {
                    0.2
                }
                _ if is_place || role == Role::Person => -0.8,
                _ => -0.35,
            }
        }
        What::Place(kind) => {
            let composed = scene.reading.written(mention).contains(',');
            if is_place {
                place::fit(*kind, composed, parameter)
            } else if matches!(
                role,
                Role::Person
                    | Role::Code
                    | Role::Email
                    | Role::Url
                    | Role::Path
                    | Role::Date
                    | Role::Time
                    | Role::Currency
                    | Role::Unit
            ) {
                -0.5
            } else if parameter.is_named("timezone")
                || parameter.is_named("zone")
                || parameter.is_named("court")
            {
                0.5
            } else {
                0.0
            }
        }
        What::Entity(kind) => match (kind, role) {
            (E::Email, Role::Email)
            | (E::Url, Role::Url)
            | (E::Path, Role::Path)
            | (E::Time, Role::Time)
            | (E::Formula, Role::Formula) => 1.2,
            (E::Email | E::Url | E::Path, _) => -0.3,
            (E::Time, _) => -0.4,
            (E::Formula, _) => -0.1,
            (E::Code, Role::Code | Role::Phone) => 0.7,
            (E::Code, Role::Path) => 0.3,
            (E::Code, _) if is_place => -0.4,
            (E::Code, _) => 0.25,
            (E::Name, Role::Person | Role::Organisation) => 0.5,
            (E::Name, _) if is_place => 0.3,
            (
                E::Name,
                Role::Date
                | Role::Time
                | Role::Email
                | Role::Url
                | Role::Currency
                | Role::Unit
                | Role::Path
                | Role::Formula,
            ) => -0.5,
            (E::Name, Role::FreeText) => 0.15,
            (E::Name, _) => 0.3,
        },
        What::Phrase => {
            let text = &scene.reading.text;
            // A phrase that is nothing but a name is offered as the name.
            let is_name = text.tokens[mention.from..mention.to]
                .iter()
                .all(|token| token.capital);
            if is_name && mention.to - mention.from > 0 && !text.begins_sentence(mention.from) {
                return -0.3;
            }
            match role {
                Role::Date
                | Role::Time
                | Role::Email
                | Role::Url
                | Role::Code
                | Role::Phone
                | Role::Currency
                | Role::Unit
                | Role::Language => -0.6,
                Role::Person => -0.25,
                Role::Path => -0.1,
                Role::Colour
                    if (mention.from..mention.to).any(|at| words::is_colour(text.lower(at))) =>
                {
                    0.7
                }
                _ if is_place => -0.2,
                _ => 0.05,
            }
        }
        What::Value(_) => -1.0,
    }
}

/// Whether the word that leads a mention in suits the parameter.
fn lead_fit(scene: &Scene<'_>, position: usize, parameter: &Parameter) -> f32 {
    let mention = &scene.reading.mentions[position];
    let first = &scene.reading.mentions[scene.rows[position].first];
    let lead = scene.lead(mention);
    let lead = if matches!(lead, "," | "and" | "or") {
        scene.lead(first)
    } else {
        lead
    };
    let is_place = matches!(
        parameter.role,
        Role::City | Role::State | Role::Country | Role::Place
    );
    match lead {
        "in" | "at" | "near" | "around" | "within" | "across" | "nearby" | "inside" => {
            if is_place {
                0.3
            } else if matches!(parameter.role, Role::Person) {
                -0.2
            } else {
                0.0
            }
        }
        "by" => match parameter.role {
            Role::Person | Role::Organisation => 0.35,
            _ if ["sort", "order", "creator", "by", "method", "mode"]
                .iter()
                .any(|word| parameter.is_named(word)) =>
            {
                0.3
            }
            _ => -0.1,
        },
        "from" => match parameter.direction {
            Direction::From => 0.2,
            Direction::To => -0.3,
            Direction::None => {
                if matches!(parameter.role, Role::Organisation) {
                    0.2
                } else if is_place {
                    0.1
                } else {
                    0.0
                }
            }
        },
        "to" => match parameter.direction {
            Direction::To => 0.2,
            Direction::From => -0.3,
            Direction::None => {
                if parameter.is_named("recipient") || parameter.role == Role::Email {
                    0.2
                } else {
                    0.0
                }
            }
        },
        "about" | "regarding" | "concerning" | "on" => {
            if ["topic", "subject", "query", "keyword", "theme"]
                .iter()
                .any(|word| parameter.is_named(word))
                || parameter.role == Role::FreeText
            {
                0.4
            } else {
                0.0
            }
        }
        "called" | "named" | "titled" | "entitled" => {
            if parameter.is_named("name") || parameter.is_named("title") {
                0.6
            } else {
                0.1
            }
        }
        "for" | "of" => 0.08,
        _ => 0.0,
    }
}

/// Words that the tool itself is about are rarely its arguments.
fn tool_words(scene: &Scene<'_>, from: usize, to: usize) -> f32 {
    let text = &scene.reading.text;
    let (mut known, mut all) = (0.0_f32, 0.0_f32);
    for token in &text.tokens[from..to.min(text.tokens.len())] {
        if token.is_word() && !words::is_function_word(&token.lower) {
            all += 1.0;
            if scene.form.tool_stems.contains(&token.stem)
                || matches!(
                    token.lower.as_str(),
                    "number"
                        | "value"
                        | "information"
                        | "details"
                        | "data"
                        | "list"
                        | "amount"
                        | "name"
                        | "id"
                        | "type"
                )
            {
                known += 1.0;
            }
        }
    }
    if all == 0.0 { 0.0 } else { 0.35 * known / all }
}

fn currency(scene: &Scene<'_>, index: usize, parameter: &Parameter, offers: &mut Vec<Offer>) {
    let text = &scene.reading.text;
    let mut seen = 0_u32;
    let mut at = 0;
    while at < text.tokens.len() {
        let found = (1..=3).rev().find_map(|length| {
            let spelling = text.slice(at, (at + length).min(text.tokens.len()));
            let plain = matches!(
                spelling,
                "try" | "real" | "won" | "rand" | "all" | "dong" | "sar" | "ars"
            );
            currencies::code(spelling)
                .filter(|_| !plain)
                .map(|code| (code, length))
        });
        let Some((code, length)) = found else {
            at += 1;
            continue;
        };
        let before = (at.saturating_sub(4)..at)
            .rev()
            .map(|before| text.lower(before))
            .find(|word| {
                !words::is_determiner(word) && word.parse::<f64>().is_err() && *word != ","
            });
        // `500 US dollars` names what one has, `into Canadian dollars` what one wants.
        let amount = at > 0 && text.tokens[at - 1].is_number()
            || text
                .tokens
                .get(at + 1)
                .is_some_and(|next| next.is_number() && !next.spaced);
        let mut score = 0.8;
        score += match (parameter.direction, before.unwrap_or("")) {
            (Direction::From, "from") | (Direction::To, "to" | "into" | "in") => 0.4,
            (Direction::From, "to" | "into") | (Direction::To, "from") => -0.4,
            _ => 0.0,
        };
        score += match parameter.direction {
            Direction::From if amount => 0.3,
            Direction::To if amount => -0.3,
            _ => 0.0,
        };
        if let Some(ordinal) = parameter.ordinal {
            score += if ordinal == seen + 1 { 0.2 } else { -0.1 };
        }
        seen += 1;
        offers.push(Offer {
            parameter: index,
            value: Value::from(code),
            score,
            from: at,
            to: at + length,
        });
        at += length;
    }
}

/// Units that are asked for: `in miles`, `to teaspoons`.
fn unit(scene: &Scene<'_>, index: usize, parameter: &Parameter, offers: &mut Vec<Offer>) {
    let text = &scene.reading.text;
    for at in 0..text.tokens.len() {
        let Some((unit, length)) = crate::extract::number::unit_at(text, at) else {
            continue;
        };
        let after_number = at > 0 && text.tokens[at - 1].is_number();
        let written = text.slice(at, at + length);
        let before = text.before(at);
        let asked = matches!(before, "in" | "to" | "into" | "as" | "many");
        let mut score = match parameter.direction {
            Direction::From if after_number => 0.9,
            Direction::From if before == "from" => 1.0,
            Direction::To if asked => 1.0,
            Direction::None if asked => 0.85,
            Direction::None if after_number && parameter.required => 0.4,
            _ => 0.0,
        };
        if unit.dimension == units::Dimension::Time
            && parameter.direction == Direction::None
            && !parameter.is_named("time")
        {
            score -= 0.4;
        }
        if score > 0.0 && written.len() > 1 {
            offers.push(Offer {
                parameter: index,
                value: Value::from(unit.name),
                score,
                from: at,
                to: at,
            });
            offers.push(Offer {
                parameter: index,
                value: Value::from(written),
                score: score - 0.02,
                from: at,
                to: at,
            });
        }
    }
}

fn language(scene: &Scene<'_>, index: usize, parameter: &Parameter, offers: &mut Vec<Offer>) {
    let text = &scene.reading.text;
    let lower = parameter.description.to_lowercase();
    let codes = lower.contains("iso") || lower.contains("code") || lower.contains("'en'");
    for at in 0..text.tokens.len() {
        let known = words::LANGUAGES
            .iter()
            .find(|(name, _)| *name == text.lower(at));
        if let Some((_, code)) = known {
            let value = if codes {
                (*code).to_owned()
            } else {
                text.written(at).to_owned()
            };
            let before = text.before(at);
            let mut score = 0.7;
            score += match (parameter.direction, before) {
                (Direction::From, "from") | (Direction::To, "to" | "into") => 0.4,
                (Direction::From, "to" | "into") | (Direction::To, "from") => -0.4,
                (_, "in" | "to" | "into") => 0.2,
                _ => 0.0,
            };
            offers.push(Offer {
                parameter: index,
                value: Value::from(value),
                score,
                from: at,
                to: at + 1,
            });
        }
    }
}

/// What is to be said or searched: after a colon or `saying`, or the whole request.
fn free_text(scene: &Scene<'_>, index: usize, parameter: &Parameter, offers: &mut Vec<Offer>) {
    let text = &scene.reading.text;
    for at in 0..text.tokens.len() {
        let lead = text.lower(at);
        let starts = matches!(
            lead,
            "saying" | "says" | "say" | "that" | ":" | "about" | "for" | "regarding"
        );
        if !starts || at + 2 > text.tokens.len() {
            continue;
        }
        let mut to = text.tokens.len();
        while to > at + 1 && matches!(text.lower(to - 1), "." | "?" | "!" | "\"" | "'") {
            to -= 1;
        }
        let rest = text.slice(at + 1, to).trim();
        if rest.is_empty() {
            continue;
        }
        let score = match lead {
            "saying" | "says" | ":" => 0.85,
            "about" | "regarding" | "for"
                if parameter.is_named("query")
                    || parameter.is_named("keyword")
                    || parameter.is_named("keywords") =>
            {
                0.55
            }
            _ => 0.3,
        };
        offers.push(Offer {
            parameter: index,
            value: Value::from(rest),
            score,
            from: at + 1,
            to,
        });
    }
    if parameter.required && parameter.kind == Kind::Text {
        offers.push(Offer {
            parameter: index,
            value: Value::from(text.source.trim()),
            score: 0.2,
            from: 0,
            to: 0,
        });
    }
}

/// Whether a mention is a place that is known.
pub(crate) fn is_known_place(mention: &Mention) -> bool {
    matches!(
        mention.what,
        What::Place(PlaceKind::City | PlaceKind::State | PlaceKind::Country)
    )
}
