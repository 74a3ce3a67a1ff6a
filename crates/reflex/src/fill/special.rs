//! Candidates for special texts: currencies, units, languages, free text and search terms, and dates with times.

use serde_json::Value;

use super::Candidate;
use super::cue::Slot;
use crate::extract::MentionKind;
use crate::extract::entity::{self, EntityKind};
use crate::extract::format::DateFormat;
use crate::lexicon::{currencies, units, words};
use crate::parameter::{Direction, Kind};

pub(crate) fn currency(slot: Slot<'_>, candidates: &mut Vec<Candidate>) {
    let (context, index, parameter) = slot.parts();
    let text = &context.reading.text;
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
        // `500 US dollars` is the source currency, `into Canadian dollars` the target.
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
        candidates.push(Candidate {
            parameter: index,
            value: Value::from(code),
            score,
            from: at,
            to: at + length,
        });
        at += length;
    }
}

/// Adds units that the text asks for: `in miles`, `to teaspoons`.
pub(crate) fn unit(slot: Slot<'_>, candidates: &mut Vec<Candidate>) {
    let (context, index, parameter) = slot.parts();
    let text = &context.reading.text;
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
            candidates.push(Candidate {
                parameter: index,
                value: Value::from(unit.name),
                score,
                from: at,
                to: at,
            });
            candidates.push(Candidate {
                parameter: index,
                value: Value::from(written),
                score: score - 0.02,
                from: at,
                to: at,
            });
        }
    }
}

pub(crate) fn language(slot: Slot<'_>, candidates: &mut Vec<Candidate>) {
    let (context, index, parameter) = slot.parts();
    let text = &context.reading.text;
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
            candidates.push(Candidate {
                parameter: index,
                value: Value::from(value),
                score,
                from: at,
                to: at + 1,
            });
        }
    }
}

/// Adds free text and search terms: after a colon or `saying`, or the whole request.
pub(crate) fn free_text(slot: Slot<'_>, candidates: &mut Vec<Candidate>) {
    let (context, index, parameter) = slot.parts();
    let text = &context.reading.text;
    for at in 0..text.tokens.len() {
        let lead = text.lower(at);
        let named = lead.len() > 3 && parameter.name_words.iter().any(|word| word == lead);
        let starts = named
            || matches!(
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
        let rest = text
            .slice(at + 1, to)
            .trim()
            .trim_matches(['"', '\'', '“', '”']);
        if context
            .reading
            .mentions
            .iter()
            .any(|mention| matches!(mention.kind, MentionKind::Quoted(_)) && mention.from == at + 1)
        {
            // A quotation is already a candidate without its quotes.
            continue;
        }
        if rest.is_empty() {
            continue;
        }
        let rest = ["is ", "to ", "as ", "of "]
            .iter()
            .find_map(|small| rest.strip_prefix(small))
            .unwrap_or(rest);
        let searched = matches!(lead, "about" | "regarding" | "for" | "on");
        let score = match lead {
            _ if named => 0.75,
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
        if searched {
            // A search term ends before a time, place or manner.
            let stop = (at + 2..to).find(|&stop| {
                matches!(
                    text.lower(stop),
                    "in" | "since"
                        | "from"
                        | "between"
                        | "before"
                        | "after"
                        | "during"
                        | "until"
                        | "with"
                        | "on"
                        | "at"
                        | "by"
                        | ","
                        | "."
                        | "published"
                )
            });
            if let Some(stop) = stop {
                candidates.push(Candidate {
                    parameter: index,
                    value: Value::from(text.slice(at + 1, stop)),
                    score: score + 0.05,
                    from: at + 1,
                    to: stop,
                });
            }
        }
        candidates.push(Candidate {
            parameter: index,
            value: Value::from(rest),
            score,
            from: at + 1,
            to,
        });
    }
    if parameter.required && parameter.kind == Kind::Text {
        candidates.push(Candidate {
            parameter: index,
            value: Value::from(text.source.trim()),
            score: 0.2,
            from: 0,
            to: 0,
        });
    }
}

/// Adds dates with a time of day: `tomorrow at 5pm`, or combined as in ISO 8601.
pub(crate) fn moment(slot: Slot<'_>, candidates: &mut Vec<Candidate>) {
    let (context, index, parameter) = slot.parts();
    let reading = context.reading;
    let lower = parameter.description.to_lowercase();
    let iso = ["iso 8601", "ddthh", "iso8601"]
        .iter()
        .any(|cue| lower.contains(cue));
    let both = iso
        || parameter.is_named("when")
        || lower.contains("date and time")
        || parameter.is_named("datetime");
    if !both {
        return;
    }
    for mention in &reading.mentions {
        let MentionKind::Date(date) = &mention.kind else {
            continue;
        };
        let joined = mention.to + usize::from(matches!(reading.text.lower(mention.to), "at" | ","));
        let time = reading.mentions.iter().find(|time| {
            matches!(time.kind, MentionKind::Entity(EntityKind::Time)) && time.from == joined
        });
        let Some(time) = time else {
            continue;
        };
        let day = date.written(&DateFormat::iso());
        let value = match (day, entity::clock(reading.written(time))) {
            (Some(day), Some((hour, minute, second))) if iso => {
                format!("{day}T{hour:02}:{minute:02}:{second:02}")
            }
            _ => reading.text.slice(mention.from, time.to).to_owned(),
        };
        candidates.push(Candidate {
            parameter: index,
            value: Value::from(value),
            score: 1.8,
            from: mention.from,
            to: time.to,
        });
    }
}
