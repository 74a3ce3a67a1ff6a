//! How well a mention suits a parameter by what it is and by the word that leads it in.

use super::cue::{self, Scene};
use super::place;
use crate::extract::entity::EntityKind;
use crate::extract::{Mention, What};
use crate::lexicon::{units, words};
use crate::parameter::{Direction, Parameter, Role};
use crate::text::Token;

/// How well the kind of a mention suits a parameter's role.
pub(crate) fn kind_fit(scene: &Scene<'_>, mention: &Mention, parameter: &Parameter) -> f32 {
    use EntityKind as E;
    if is_symbol(parameter) && !matches!(mention.what, What::Quoted(_)) {
        let written = scene.reading.written(mention);
        let is_upper =
            written.chars().all(|c| c.is_ascii_uppercase() || c == '.') && written.len() <= 6;
        return if is_upper { 1.0 } else { 0.0 };
    }
    let role = parameter.role;
    let is_place = matches!(role, Role::City | Role::State | Role::Country | Role::Place);
    match &mention.what {
        What::Quoted(_) => match role {
            Role::Date | Role::Time | Role::Currency | Role::Unit | Role::Email | Role::Url => -0.2,
            Role::Language => -0.5,
            Role::FreeText => 0.6,
            _ if is_place => 0.2,
            _ => 0.65,
        },
        What::Date(found) => match role {
            Role::Date => {
                if found.month.is_some() || found.year.is_some() {
                    0.9
                } else {
                    0.5
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
            } else if role == Role::Organisation {
                0.3
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
            // An address stands for whoever has it.
            (E::Email, Role::Person) => 0.6,
            (E::Email, Role::Other | Role::Code) => 0.2,
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
            (E::Name, _) if goes_on(scene, mention, parameter) => 0.15,
            (E::Name, _) => 0.3,
        },
        What::Word => {
            let text = &scene.reading.text;
            let token = &text.tokens[mention.from];
            if token.capital && !text.begins_sentence(mention.from) {
                return -0.4;
            }
            match role {
                Role::Colour if words::is_colour(&token.lower) => 0.7,
                Role::Date
                | Role::Time
                | Role::Email
                | Role::Url
                | Role::Code
                | Role::Phone
                | Role::Currency
                | Role::Unit
                | Role::Language
                | Role::Person
                | Role::Formula => -0.6,
                _ if is_place => -0.4,
                _ => -0.08,
            }
        }
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
                _ => 0.05 + composition(scene, mention, parameter),
            }
        }
        What::Value(_) => -1.0,
    }
}

/// Whether the word that leads a mention in suits the parameter.
pub(crate) fn lead_fit(scene: &Scene<'_>, position: usize, parameter: &Parameter) -> f32 {
    let lead = scene.row_lead(position);
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
        "about" | "regarding" | "concerning" | "on" if is_subject(parameter) => 0.4,
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
pub(crate) fn tool_words(scene: &Scene<'_>, from: usize, to: usize) -> f32 {
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

/// `theory of evolution` is one thing, `temperature of the room` is a thing of a tool's own.
fn composition(scene: &Scene<'_>, mention: &Mention, parameter: &Parameter) -> f32 {
    let text = &scene.reading.text;
    let names_kind = |at: usize| {
        let token = &text.tokens[at];
        scene.form.tool_stems.contains(&token.stem)
            || cue::names(parameter, &token.stem, &token.lower) >= 0.6
            || words::is_generic_parameter_word(&token.lower)
    };
    let inner = (mention.from..mention.to).find(|&at| text.lower(at) == "of");
    if let Some(of) = inner {
        return if names_kind(of - 1) { -0.25 } else { 0.2 };
    }
    let mixed = text.tokens[mention.from].capital
        && text.tokens[mention.from..mention.to]
            .iter()
            .any(|token| token.is_word() && !token.capital);
    if mixed { 0.15 } else { 0.0 }
}

/// What stands in parentheses after something explains it and is rarely meant itself.
pub(crate) fn remark(scene: &Scene<'_>, mention: &Mention) -> f32 {
    let text = &scene.reading.text;
    if matches!(mention.what, What::Date(_)) {
        return 0.0;
    }
    let capitals = scene
        .reading
        .written(mention)
        .chars()
        .all(char::is_uppercase);
    if !capitals
        && text.before(mention.from) == "("
        && text.lower(mention.to) == ")"
        && mention.from > 1
    {
        0.35
    } else {
        0.0
    }
}

/// Whether a name is only the beginning of what is meant, as `ATP` in `ATP synthase`.
fn goes_on(scene: &Scene<'_>, mention: &Mention, parameter: &Parameter) -> bool {
    scene
        .reading
        .text
        .tokens
        .get(mention.to)
        .is_some_and(|next| {
            next.is_word()
                && next.spaced
                && !next.capital
                && !words::is_function_word(&next.lower)
                && !scene.form.tool_stems.contains(&next.stem)
                && cue::names(parameter, &next.stem, &next.lower) < 0.4
        })
}

/// A word that only says which parameter is meant is not its value: `game` in `the game 'Catan'`.
pub(crate) fn names_itself(
    scene: &Scene<'_>,
    from: usize,
    to: usize,
    mention: &Mention,
    parameter: &Parameter,
) -> f32 {
    if matches!(mention.what, What::Quoted(_) | What::Place(_)) {
        return 0.0;
    }
    let tokens = &scene.reading.text.tokens[from..to.min(scene.reading.text.tokens.len())];
    let mut content = tokens
        .iter()
        .filter(|token| token.is_word() && !words::is_function_word(&token.lower))
        .peekable();
    let names_parameter = |token: &Token| {
        parameter
            .name_stems
            .iter()
            .any(|known| cue::alike(known, &token.stem) > 0.8)
            || parameter.name_words.contains(&token.lower)
            || parameter
                .description_stems
                .iter()
                .take(1)
                .any(|known| *known == token.stem)
    };
    if content.peek().is_none() {
        return 0.0;
    }
    let tokens: Vec<&Token> = content.collect();
    if tokens.iter().all(|token| names_parameter(token)) {
        return 0.7;
    }
    // Nor is it the value of another: `my employees database on the table`.
    let names_other = |token: &Token| {
        scene.form.parameters.iter().any(|other| {
            other.path != parameter.path && other.name_stems.first() == Some(&token.stem)
        })
    };
    let is_option = (from..to).all(|at| scene.is_option_of_another(at, parameter));
    if is_option {
        0.35
    } else if tokens.len() == 1 && tokens.iter().all(|token| names_other(token)) {
        0.25
    } else {
        0.0
    }
}

/// `the game 'Catan'`, `'name': 'Ann'`: what stands before a quotation is its label.
pub(crate) fn label(scene: &Scene<'_>, mention: &Mention) -> f32 {
    let text = &scene.reading.text;
    if matches!(mention.what, What::Quoted(_)) {
        let is_key = text.lower(mention.to) == ":"
            && text
                .tokens
                .get(mention.to)
                .is_some_and(|colon| !colon.spaced);
        return if is_key { 0.8 } else { 0.0 };
    }
    let labels = scene
        .reading
        .mentions
        .iter()
        .any(|quoted| matches!(quoted.what, What::Quoted(_)) && quoted.from == mention.to);
    if labels { 0.5 } else { 0.0 }
}

/// `the sales database` for a database: what stands right before the parameter's own name.
pub(crate) fn heads(scene: &Scene<'_>, to: usize, parameter: &Parameter) -> f32 {
    let head = parameter.name_stems.first();
    let next = scene.reading.text.tokens.get(to).filter(|next| next.spaced);
    match (head, next) {
        (Some(head), Some(next)) if cue::alike(head, &next.stem) > 0.8 => 0.2,
        _ => 0.0,
    }
}

/// Whether a parameter says what something is about.
fn is_subject(parameter: &Parameter) -> bool {
    parameter.role == Role::FreeText
        || ["topic", "subject", "query", "keyword", "theme"]
            .iter()
            .any(|word| parameter.is_named(word))
}

/// Whether a parameter wants a short name in capitals, as stock exchanges use.
fn is_symbol(parameter: &Parameter) -> bool {
    parameter.is_named("symbol") || parameter.is_named("ticker") || parameter.is_named("symbols")
}
