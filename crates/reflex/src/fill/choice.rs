//! Candidates for parameters with known options, and for booleans.

use std::collections::HashSet;

use serde_json::Value;

use super::Candidate;
use super::cue::{FillContext, Slot, stem_similarity};
use crate::extract::MentionKind;
use crate::lexicon::{units, words};
use crate::meaning::Meaning;
use crate::parameter::{Direction, Kind, Parameter, ParameterOption, Role};

/// An option that the text names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedOption {
    /// The index of the option.
    pub(crate) choice: usize,
    /// The strength of the match, up to 1.
    pub(crate) strength: f32,
    /// The first token that names it.
    pub(crate) from: usize,
    /// The token after the last.
    pub(crate) to: usize,
}

/// Adds candidates from declared or described options.
pub(crate) fn options(slot: Slot<'_>, meaning: &Meaning, candidates: &mut Vec<Candidate>) {
    let (context, index, parameter) = slot.parts();
    let named = named(context, parameter);
    for found in &named {
        let choice = &parameter.choices[found.choice];
        let mut score = 0.35 + 0.7 * found.strength;
        score += 0.25 * nearby(context, parameter, found);
        if !parameter.closed && !is_typed(parameter, &choice.value) {
            continue;
        }
        // An example is only one of many values; the text may mean a longer name.
        if !parameter.closed && !parameter.listed {
            score -= 0.1;
        }
        score += direction_bonus(context, parameter, found.from);
        if is_default(parameter, &choice.value) {
            score -= 0.05;
        }
        candidates.push(Candidate {
            parameter: index,
            value: choice.value.clone(),
            score,
            from: found.from,
            // Other arguments may contain the same words.
            to: found.from,
        });
    }
    if named.is_empty() && parameter.closed && parameter.required {
        by_meaning(slot, meaning, candidates);
    }
}

/// A bonus for the direction: `2 tablespoons` is the source unit, `how many teaspoons` the target.
fn direction_bonus(context: &FillContext<'_>, parameter: &Parameter, at: usize) -> f32 {
    let text = &context.reading.text;
    let before = text.before(at);
    let counted = at > 0 && text.tokens[at - 1].is_number();
    match parameter.direction {
        Direction::From if counted || before == "from" => 0.3,
        Direction::From if matches!(before, "to" | "into" | "many" | "in") => -0.3,
        Direction::To if counted || before == "from" => -0.3,
        Direction::To if matches!(before, "to" | "into" | "many" | "in") => 0.3,
        _ => 0.0,
    }
}

fn is_typed(parameter: &Parameter, value: &Value) -> bool {
    match parameter.kind {
        Kind::Text => value.is_string(),
        _ => true,
    }
}

fn is_default(parameter: &Parameter, value: &Value) -> bool {
    parameter.default.as_ref() == Some(value)
}

/// How well the words near the option name the parameter, from 0 to 1.
fn nearby(context: &FillContext<'_>, parameter: &Parameter, found: &NamedOption) -> f32 {
    let text = &context.reading.text;
    (found.from.saturating_sub(4)..(found.to + 3).min(text.tokens.len()))
        .filter(|at| *at < found.from || *at >= found.to)
        .map(|at| &text.tokens[at])
        .filter(|token| token.is_word())
        .map(|token| {
            parameter
                .name_stems
                .iter()
                .map(|known| stem_similarity(known, &token.stem))
                .fold(0.0, f32::max)
        })
        .fold(0.0, f32::max)
}

/// The options that a text names, each once, at its best match.
pub(crate) fn named(context: &FillContext<'_>, parameter: &Parameter) -> Vec<NamedOption> {
    let mut found: Vec<NamedOption> = Vec::new();
    for (index, choice) in parameter.choices.iter().enumerate() {
        if let Some((strength, from, to)) = best_place(context, parameter, choice) {
            found.push(NamedOption {
                choice: index,
                strength,
                from,
                to,
            });
        }
    }
    // `New York` and `York`: the longer option wins if they overlap.
    let copy = found.clone();
    found.retain(|one| {
        !copy.iter().any(|other| {
            other.choice != one.choice
                && other.from <= one.from
                && other.to >= one.to
                && (other.to - other.from) > (one.to - one.from)
                && other.strength >= one.strength
        })
    });
    found.sort_by_key(|one| one.from);
    found
}

fn best_place(
    context: &FillContext<'_>,
    parameter: &Parameter,
    choice: &ParameterOption,
) -> Option<(f32, usize, usize)> {
    let text = &context.reading.text;
    let written = match &choice.value {
        Value::String(written) => written.as_str(),
        // A number as option matches the number itself.
        number => {
            let wanted = number.as_f64()?;
            return context.reading.mentions.iter().find_map(|mention| {
                let quantity = mention.number()?;
                (quantity.value - wanted)
                    .abs()
                    .lt(&1e-9)
                    .then_some((1.0, mention.from, mention.to))
            });
        }
    };
    let short = written.chars().count() <= 2;
    let mut best: Option<(f32, usize, usize)> = None;
    let mut consider = |strength: f32, from: usize, to: usize| {
        if best.is_none_or(|(known, ..)| strength > known) {
            best = Some((strength, from, to));
        }
    };
    for at in 0..text.tokens.len() {
        let token = &text.tokens[at];
        if short {
            // Short options such as `c` and `AA` match only exactly.
            let continues = text
                .tokens
                .get(at + 1)
                .is_some_and(|next| !next.spaced && (next.is('#') || next.is('+') || next.is('-')));
            if text.written(at) == written
                && !continues
                && (written.chars().count() == 2
                    || written.chars().all(char::is_uppercase)
                        && !text.begins_sentence(at)
                        && written != "A"
                        && written != "I")
            {
                consider(0.9, at, at + 1);
            }
        } else if let Some((strength, to)) = match_at(context, choice, at) {
            consider(strength, at, to);
        }
        if parameter.role == Role::Unit
            || parameter.is_named("unit")
            || parameter.is_named("units")
            || parameter.name().contains("temp")
        {
            let same = units::unit(written).is_some_and(|wanted| {
                token.is_word()
                    && units::unit(&token.lower).is_some_and(|unit| unit.name == wanted.name)
            });
            if same && token.lower.len() > 1 {
                consider(0.85, at, at + 1);
            }
        }
        if !choice.gloss.is_empty() && token.is_word() {
            let explained = choice
                .gloss
                .iter()
                .filter(|known| stem_similarity(known, &token.stem) > 0.8)
                .count();
            if explained > 0 && choice.gloss.len() <= 3 {
                consider(0.7, at, at + 1);
            }
        }
    }
    best
}

/// The match of an option's words at a token, ignoring hyphens and small words between them.
fn match_at(
    context: &FillContext<'_>,
    choice: &ParameterOption,
    at: usize,
) -> Option<(f32, usize)> {
    let text = &context.reading.text;
    let mut to = at;
    let mut strength = 1.0_f32;
    for (index, wanted) in choice.stems.iter().enumerate() {
        let mut skipped = 0;
        while index > 0
            && skipped < 2
            && text.tokens.get(to).is_some_and(|token| {
                token.is('-')
                    || token.is('_')
                    || token.is('/')
                    || matches!(token.lower.as_str(), "of" | "the" | "and" | "'" | "s")
            })
        {
            to += 1;
            skipped += 1;
        }
        let token = text.tokens.get(to)?;
        let similarity = stem_similarity(wanted, &token.stem);
        // `multiplayer` for `multi-player`.
        if similarity < 0.6 {
            let joined = text.tokens.get(to + 2).is_some_and(|next| {
                text.tokens[to + 1].is('-') && format!("{}{}", token.lower, next.lower) == *wanted
            });
            if !joined {
                return None;
            }
            to += 3;
            continue;
        }
        if similarity < 1.0 && wanted.chars().count() < 4 {
            return None;
        }
        strength = strength.min(similarity);
        to += 1;
    }
    (to > at).then_some((strength, to))
}

/// Adds the option nearest in meaning, if one is required and the text names none.
fn by_meaning(slot: Slot<'_>, meaning: &Meaning, candidates: &mut Vec<Candidate>) {
    let (context, index, parameter) = slot.parts();
    let task = meaning.of(&context.reading.text.source);
    let mut scored: Vec<(f32, &ParameterOption)> = parameter
        .choices
        .iter()
        .take(60)
        .map(|choice| {
            let text = format!(
                "{} {}",
                crate::parameter_text(&choice.value),
                choice.gloss.join(" ")
            );
            (task.cosine(&meaning.of(&text)), choice)
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    if let Some((similarity, choice)) = scored.first() {
        let next = scored.get(1).map_or(0.0, |(next, _)| *next);
        // Only a clear meaning overrides the default.
        let doubtful = parameter.default.is_some() && similarity - next < 0.1;
        if !doubtful && *similarity > 0.12 {
            candidates.push(Candidate {
                parameter: index,
                value: choice.value.clone(),
                score: 0.15 + 0.4 * similarity + (similarity - next).min(0.3),
                from: 0,
                to: 0,
            });
        }
    }
}

/// A candidate for a boolean, if the text mentions it.
pub(crate) fn boolean(slot: Slot<'_>) -> Option<Candidate> {
    let (context, index, parameter) = slot.parts();
    let text = &context.reading.text;
    if let Some(candidate) = switch(slot) {
        return Some(candidate);
    }
    let stems: Vec<&String> = parameter
        .name_stems
        .iter()
        .filter(|stem| {
            !matches!(
                stem.as_str(),
                "is" | "has"
                    | "enabl"
                    | "allow"
                    | "requir"
                    | "show"
                    | "want"
                    | "us"
                    | "mode"
                    | "includ"
                    | "need"
                    | "check"
                    | "onli"
            )
        })
        .collect();
    let fallback: Vec<&String>;
    let (stems, factor) = if stems.is_empty() {
        // Names such as `details` and `include` are generic; use the description.
        let own: HashSet<String> = parameter
            .name_words
            .iter()
            .map(|word| crate::text::stem(word))
            .collect();
        let of_name = text.tokens.iter().position(|token| {
            own.contains(&token.stem)
                && token.lower.len() > 3
                && !words::is_request_verb(&token.lower)
        });
        if let Some(at) = of_name {
            return Some(boolean_candidate(context, index, at, 0.9));
        }
        fallback = parameter.description_stems.iter().take(6).collect();
        (fallback, 0.6)
    } else {
        (stems, 1.0)
    };
    if stems.is_empty() {
        return None;
    }
    let mut matched = 0.0_f32;
    let mut place = None;
    let mut quoted_inside = vec![false; text.tokens.len()];
    for mention in &context.reading.mentions {
        if matches!(mention.kind, MentionKind::Quoted(_)) {
            quoted_inside[mention.from..mention.to].fill(true);
        }
    }
    for wanted in &stems {
        let best = text
            .tokens
            .iter()
            .enumerate()
            .filter(|(at, token)| token.is_word() && !quoted_inside[*at])
            .map(|(at, token)| {
                let joined = text.tokens.get(at + 2).is_some_and(|next| {
                    text.tokens[at + 1].is('-')
                        && format!("{}{}", token.lower, next.lower) == **wanted
                });
                (
                    if joined {
                        1.0
                    } else {
                        stem_similarity(wanted, &token.stem)
                    },
                    at,
                )
            })
            .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        if let Some((similarity, at)) = best.filter(|(similarity, _)| *similarity >= 0.6) {
            matched += similarity;
            place = Some(place.map_or(at, |known: usize| known.max(at)));
        }
    }
    let share = matched / stems.len() as f32 * factor;
    let at = place?;
    if share < 0.5 && !(parameter.required && share > 0.2) {
        return None;
    }
    // Words of the tool itself are weak evidence for the parameter.
    let ordinary = stems
        .iter()
        .all(|stem| context.form.tool_stems.contains(stem.as_str()));
    let score = 0.35 + 0.6 * share.min(1.0)
        - if ordinary && !parameter.required {
            0.1
        } else {
            0.0
        };
    Some(boolean_candidate(context, index, at, score))
}

/// A candidate from `turn off`, `enable` and the like, for a parameter that is a switch.
fn switch(slot: Slot<'_>) -> Option<Candidate> {
    let (context, index, parameter) = slot.parts();
    let is_switch = [
        "on", "off", "enabled", "enable", "active", "power", "state", "status",
    ]
    .iter()
    .any(|word| parameter.is_named(word));
    if !is_switch {
        return None;
    }
    let text = &context.reading.text;
    (0..text.tokens.len()).find_map(|at| {
        let verb = |from: usize| {
            (from.saturating_sub(4)..from)
                .any(|before| matches!(text.lower(before), "turn" | "switch" | "put" | "power"))
        };
        let on = match text.lower(at) {
            "enable" | "activate" => true,
            "disable" | "deactivate" => false,
            "on" if verb(at) => true,
            "off" if verb(at) => false,
            _ => return None,
        };
        Some(Candidate {
            parameter: index,
            value: Value::Bool(on != parameter.is_named("off")),
            score: 1.0,
            from: at,
            to: at,
        })
    })
}

fn boolean_candidate(context: &FillContext<'_>, index: usize, at: usize, score: f32) -> Candidate {
    let negated = (at.saturating_sub(4)..at)
        .any(|before| words::is_negation(context.reading.text.lower(before)));
    Candidate {
        parameter: index,
        value: Value::Bool(!negated),
        score,
        from: at,
        to: at,
    }
}
