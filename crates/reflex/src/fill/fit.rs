//! How well a mention fits a parameter, by its kind and by its lead word.

use super::cue::{self, FillContext};
use super::place;
use crate::extract::entity::EntityKind;
use crate::extract::{Mention, MentionKind};
use crate::lexicon::{units, words};
use crate::parameter::{Direction, Parameter, Role};
use crate::text::Token;

/// How well the kind of a mention fits a parameter's role.
pub(crate) fn kind_fit(context: &FillContext<'_>, mention: &Mention, parameter: &Parameter) -> f32 {
    use EntityKind as E;
    if is_symbol(parameter) && !matches!(mention.kind, MentionKind::Quoted(_)) {
        let written = context.reading.written(mention);
        let is_upper =
            written.chars().all(|c| c.is_ascii_uppercase() || c == '.') && written.len() <= 6;
        return if is_upper { 1.0 } else { 0.0 };
    }
    let role = parameter.role;
    let is_place = matches!(role, Role::City | Role::State | Role::Country | Role::Place);
    match &mention.kind {
        MentionKind::Quoted(_) => match role {
            Role::Date | Role::Time | Role::Currency | Role::Unit | Role::Email | Role::Url => -0.2,
            Role::Language => -0.5,
            Role::FreeText => 0.6,
            _ if is_place => 0.2,
            _ => 0.65,
        },
        MentionKind::Date(found) => match role {
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
        MentionKind::Number(quantity) => {
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
        MentionKind::Place(kind) => {
            let composed = context.reading.written(mention).contains(',');
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
        MentionKind::Entity(kind) => match (kind, role) {
            (E::Email, Role::Email)
            | (E::Url, Role::Url)
            | (E::Path, Role::Path)
            | (E::Time, Role::Time)
            | (E::Formula, Role::Formula) => 1.2,
            // An e-mail address can identify a person.
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
            (E::Name, _) if continues(context, mention, parameter) => 0.15,
            (E::Name, _) => 0.3,
        },
        MentionKind::Word => {
            let text = &context.reading.text;
            let token = &text.tokens[mention.from];
            if token.capital && !text.begins_sentence(mention.from) {
                return -0.4;
            }
            match role {
                Role::Colour if words::is_colour(&token.lower) => 0.7,
                Role::Person | Role::Formula => -0.6,
                role if has_form(role) => -0.6,
                _ if is_place => -0.4,
                _ => -0.08,
            }
        }
        MentionKind::Phrase => {
            let text = &context.reading.text;
            // A phrase that is only a name is already a mention of the name.
            let is_name = text.tokens[mention.from..mention.to]
                .iter()
                .all(|token| token.capital);
            if is_name && mention.to - mention.from > 0 && !text.begins_sentence(mention.from) {
                return -0.3;
            }
            match role {
                role if has_form(role) => -0.6,
                Role::Person => -0.25,
                Role::Path => -0.1,
                Role::Colour
                    if (mention.from..mention.to).any(|at| words::is_colour(text.lower(at))) =>
                {
                    0.7
                }
                _ if is_place => -0.2,
                _ => 0.05 + composition(context, mention, parameter),
            }
        }
        MentionKind::Value(_) => -1.0,
    }
}

/// Whether values of a role have a form that plain words do not have.
fn has_form(role: Role) -> bool {
    matches!(
        role,
        Role::Date
            | Role::Time
            | Role::Email
            | Role::Url
            | Role::Code
            | Role::Phone
            | Role::Currency
            | Role::Unit
            | Role::Language
    )
}

/// How well the lead word of a mention fits the parameter.
pub(crate) fn lead_fit(context: &FillContext<'_>, position: usize, parameter: &Parameter) -> f32 {
    let lead = context.row_lead(position);
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

/// The penalty for words of the tool itself, which are rarely its arguments.
pub(crate) fn tool_word_penalty(context: &FillContext<'_>, from: usize, to: usize) -> f32 {
    let text = &context.reading.text;
    let (mut known, mut all) = (0.0_f32, 0.0_f32);
    for token in &text.tokens[from..to.min(text.tokens.len())] {
        if token.is_word() && !words::is_function_word(&token.lower) {
            all += 1.0;
            if context.form.tool_stems.contains(&token.stem)
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

/// A bonus for a composed value: `theory of evolution`, but not `temperature of the room`, which is the tool's topic.
fn composition(context: &FillContext<'_>, mention: &Mention, parameter: &Parameter) -> f32 {
    let text = &context.reading.text;
    let names_kind = |at: usize| {
        let token = &text.tokens[at];
        context.form.tool_stems.contains(&token.stem)
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

/// The penalty for a remark in parentheses, which is rarely a value.
pub(crate) fn remark_penalty(context: &FillContext<'_>, mention: &Mention) -> f32 {
    let text = &context.reading.text;
    if matches!(mention.kind, MentionKind::Date(_)) {
        return 0.0;
    }
    let capitals = context
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

/// Whether a name is only the first part of a longer value, as `ATP` in `ATP synthase`.
fn continues(context: &FillContext<'_>, mention: &Mention, parameter: &Parameter) -> bool {
    context
        .reading
        .text
        .tokens
        .get(mention.to)
        .is_some_and(|next| {
            next.is_word()
                && next.spaced
                && !next.capital
                && !words::is_function_word(&next.lower)
                && !context.form.tool_stems.contains(&next.stem)
                && cue::names(parameter, &next.stem, &next.lower) < 0.4
        })
}

/// The penalty for a word that only names the parameter, such as `game` in `the game 'Catan'`.
pub(crate) fn parameter_name_penalty(
    context: &FillContext<'_>,
    from: usize,
    to: usize,
    mention: &Mention,
    parameter: &Parameter,
) -> f32 {
    if matches!(mention.kind, MentionKind::Quoted(_) | MentionKind::Place(_)) {
        return 0.0;
    }
    let tokens = &context.reading.text.tokens[from..to.min(context.reading.text.tokens.len())];
    let mut content = tokens
        .iter()
        .filter(|token| token.is_word() && !words::is_function_word(&token.lower))
        .peekable();
    let names_parameter = |token: &Token| {
        parameter
            .name_stems
            .iter()
            .any(|known| cue::stem_similarity(known, &token.stem) > 0.8)
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
    // A word that names another parameter is no value either: `my employees database on the table`.
    let names_other = |token: &Token| {
        context.form.parameters.iter().any(|other| {
            other.path != parameter.path && other.name_stems.first() == Some(&token.stem)
        })
    };
    let is_option = (from..to).all(|at| context.is_option_of_another(at, parameter));
    if is_option {
        0.35
    } else if tokens.len() == 1 && tokens.iter().all(|token| names_other(token)) {
        0.25
    } else {
        0.0
    }
}

/// The penalty for the label of a quotation: `the game 'Catan'`, `'name': 'Ann'`.
pub(crate) fn label_penalty(context: &FillContext<'_>, mention: &Mention) -> f32 {
    let text = &context.reading.text;
    if matches!(mention.kind, MentionKind::Quoted(_)) {
        let is_key = text.lower(mention.to) == ":"
            && text
                .tokens
                .get(mention.to)
                .is_some_and(|colon| !colon.spaced);
        return if is_key { 0.8 } else { 0.0 };
    }
    let labels =
        context.reading.mentions.iter().any(|quoted| {
            matches!(quoted.kind, MentionKind::Quoted(_)) && quoted.from == mention.to
        });
    if labels { 0.5 } else { 0.0 }
}

/// The bonus for a value right before the parameter's name: `the sales database` for a database.
pub(crate) fn head_bonus(context: &FillContext<'_>, to: usize, parameter: &Parameter) -> f32 {
    let head = parameter.name_stems.first();
    let next = context
        .reading
        .text
        .tokens
        .get(to)
        .filter(|next| next.spaced);
    match (head, next) {
        (Some(head), Some(next)) if cue::stem_similarity(head, &next.stem) > 0.8 => 0.2,
        _ => 0.0,
    }
}

/// Whether a parameter is a topic or subject.
fn is_subject(parameter: &Parameter) -> bool {
    parameter.role == Role::FreeText
        || ["topic", "subject", "query", "keyword", "theme"]
            .iter()
            .any(|word| parameter.is_named(word))
}

/// Whether a parameter is a ticker symbol.
fn is_symbol(parameter: &Parameter) -> bool {
    parameter.is_named("symbol") || parameter.is_named("ticker") || parameter.is_named("symbols")
}
