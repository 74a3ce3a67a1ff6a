//! Proposes a specification for a missing tool, as a starting point for a person. Its name comes from the words of
//! the request, its parameters from the values the text mentions.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use windlass_embed::split_identifier;
use windlass_reflex::{ContentWord, MentionedValue, ValueKind, content_words, mentioned_values};
use windlass_spec::text::{TextUse, replace_hidden};
use windlass_spec::{
    Field, NonEmptyText, Signature, ToolName, ToolSpecification, Type, write_tool,
};

/// The most words of a name.
const NAME_WORDS: usize = 3;

/// The most words of a name for something that is only looked up.
const LOOKED_UP_WORDS: usize = 2;

/// The capability to access what is in the user's account.
pub(super) const ACCOUNT_ACCESS: &str = "account_access";

/// Whether a request is about something in an account of the user.
pub(super) fn is_in_account(request: &str) -> bool {
    let lower = request.to_lowercase();
    let mut words = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let is_own = |word: &str| matches!(word, "my" | "our");
    let is_kept = |word: &str| {
        let word = word.strip_suffix('s').unwrap_or(word);
        matches!(
            word,
            "account"
                | "balance"
                | "bank"
                | "portfolio"
                | "subscription"
                | "transaction"
                | "invoice"
                | "payroll"
                | "salary"
                | "pension"
                | "mortgage"
                | "loan"
                | "insurance"
                | "membership"
                | "wallet"
                | "bill"
        )
    };
    // What the user has comes soon after "my".
    while words.by_ref().any(is_own) {
        if words.clone().take(4).any(is_kept) {
            return true;
        }
    }
    false
}

/// Whether a word only asks to be shown something.
fn is_lookup(word: &str) -> bool {
    matches!(
        word,
        "retrieve"
            | "get"
            | "show"
            | "fetch"
            | "give"
            | "tell"
            | "display"
            | "list"
            | "see"
            | "look"
            | "check"
            | "obtain"
            | "provide"
            | "find"
            | "know"
            | "want"
            | "need"
            | "view"
    )
}

/// The longest word of a name, in bytes.
const LONGEST_WORD: usize = 24;

/// The most parameters that are guessed.
const MOST_PARAMETERS: usize = 8;

/// A proposed tool with this capability; `None` if the text has no words for a name.
#[must_use]
pub fn specification(capability: &str) -> Option<ToolSpecification> {
    let text = capability.trim();
    let values = mentioned_values(text);
    let words = content_words(text);
    let name = name(&words, &values)?;
    let parameters = parameters(text, &words, &values);
    let description = description(text, &values, &parameters);
    let fields = if parameters.is_empty() {
        let what = "The request as text";
        vec![Field::required("request", Type::Text).described(what)]
    } else {
        parameters
            .into_iter()
            .map(|parameter| parameter.field)
            .collect()
    };
    let signature = Signature::new(fields, Type::Text).ok()?;
    Some(ToolSpecification::new(
        name,
        NonEmptyText::new(description).ok()?,
        signature,
    ))
}

/// A proposed tool from a call with this name and these arguments.
pub(super) fn specification_of_call(
    name: ToolName,
    arguments: &Value,
) -> Option<ToolSpecification> {
    let arguments = arguments
        .as_object()
        .into_iter()
        .flatten()
        .take(MOST_PARAMETERS);
    let fields: Vec<Field> = arguments
        .filter(|(key, _)| !key.trim().is_empty())
        .map(|(key, value)| Field::required(key.as_str(), type_of(value)))
        .collect();
    let description = split_identifier(name.as_str()).to_lowercase();
    let description = NonEmptyText::or(&description, name.as_str());
    let signature = Signature::new(fields, Type::Text).ok()?;
    Some(ToolSpecification::new(name, description, signature))
}

fn type_of(value: &Value) -> Type {
    match value {
        Value::String(_) => Type::Text,
        Value::Bool(_) => Type::Boolean,
        Value::Number(number) if number.is_f64() => Type::Number,
        Value::Number(_) => Type::Integer,
        Value::Object(_) => Type::Object,
        Value::Array(_) => Type::Array,
        Value::Null => Type::Any,
    }
}

/// A tool as the text of an agent file.
pub(super) fn to_agent_file_text(tool: &ToolSpecification) -> Option<NonEmptyText> {
    let text = write_tool(&Arc::new(tool.clone())).ok()?;
    NonEmptyText::new(text).ok()
}

fn name(words: &[ContentWord], values: &[MentionedValue]) -> Option<ToolName> {
    let is_value = |word: &&ContentWord| {
        values
            .iter()
            .any(|value| value.place.start < word.place.end && word.place.start < value.place.end)
    };
    let plain = |word: &&ContentWord| {
        word.lower.len() <= LONGEST_WORD && word.lower.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let usable: Vec<&ContentWord> = words.iter().filter(plain).collect();
    // Values are arguments. They are used in the name only if there are no other words.
    let own: Vec<&ContentWord> = usable
        .iter()
        .copied()
        .filter(|word| !is_value(word))
        .collect();
    let mut own = if own.is_empty() { usable } else { own };
    let mut most = NAME_WORDS;
    // What is looked up is named, not that it is.
    if own.len() > LOOKED_UP_WORDS && own.first().is_some_and(|word| is_lookup(&word.lower)) {
        own.remove(0);
        most = LOOKED_UP_WORDS;
    }
    let mut chosen: Vec<&str> = Vec::new();
    for word in own {
        let known = chosen.contains(&word.lower.as_str());
        // `want to find` has two words that only ask; one is enough.
        let repeats = word.asks && !chosen.is_empty();
        if !known && !repeats && chosen.len() < most {
            chosen.push(&word.lower);
        }
    }
    let name = chosen.join("_");
    let name = match name.chars().next() {
        Some(first) if first.is_ascii_digit() => format!("do_{name}"),
        Some(_) => name,
        None => return None,
    };
    ToolName::new(name).ok()
}

struct GuessedParameter {
    field: Field,
    /// The index of the value it was guessed from.
    value: usize,
}

fn parameters(
    text: &str,
    words: &[ContentWord],
    values: &[MentionedValue],
) -> Vec<GuessedParameter> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut guessed = Vec::new();
    for (index, value) in values.iter().enumerate().take(MOST_PARAMETERS) {
        let (default_name, ty) = default_parameter(value.kind);
        let named = match value.kind {
            ValueKind::Integer | ValueKind::Number | ValueKind::Code | ValueKind::List => {
                let before = word_before(text, words, value);
                let unit = || unit_word(value);
                before
                    .or_else(unit)
                    .or_else(|| word_after(text, words, value))
            }
            ValueKind::Place | ValueKind::Date | ValueKind::Time => {
                direction(text, value).map(|direction| format!("{direction}_{default_name}"))
            }
            _ => None,
        };
        let base = named.unwrap_or_else(|| default_name.to_owned());
        let mut name = base.clone();
        let mut count = 2;
        while !taken.insert(name.clone()) {
            name = format!("{base}_{count}");
            count += 1;
        }
        let example = text.get(value.place.clone()).unwrap_or_default();
        let field = Field::required(name, ty).described(format!("Such as: {example}"));
        guessed.push(GuessedParameter {
            field,
            value: index,
        });
    }
    guessed
}

/// The default name and type of a parameter for a kind of value.
fn default_parameter(kind: ValueKind) -> (&'static str, Type) {
    match kind {
        ValueKind::Integer => ("number", Type::Integer),
        ValueKind::Number => ("number", Type::Number),
        ValueKind::Date => ("date", Type::Text),
        ValueKind::Time => ("time", Type::Text),
        ValueKind::Email => ("email", Type::Text),
        ValueKind::Url => ("url", Type::Text),
        ValueKind::Path => ("path", Type::Text),
        ValueKind::Place => ("location", Type::Text),
        ValueKind::Language => ("language", Type::Text),
        ValueKind::Name => ("name", Type::Text),
        ValueKind::Quoted => ("text", Type::Text),
        ValueKind::List => ("items", Type::list(Type::Text)),
        ValueKind::Code => ("code", Type::Text),
    }
}

/// The word that names a number: `radius` in `a radius of 5`.
fn word_before(text: &str, words: &[ContentWord], value: &MentionedValue) -> Option<String> {
    let before = words
        .iter()
        .rev()
        .find(|word| word.place.end <= value.place.start)?;
    let between = text.get(before.place.end..value.place.start)?;
    let joins = between
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .all(|word| matches!(word, "of" | "is" | "to" | "at" | "equals" | "as" | "by"));
    let plain = before.lower.chars().all(|c| c.is_ascii_alphabetic());
    (joins && plain && !before.asks && between.len() <= 12 && before.lower.len() <= LONGEST_WORD)
        .then(|| before.lower.clone())
}

/// The word for what is counted: `people` in `2 people`.
fn word_after(text: &str, words: &[ContentWord], value: &MentionedValue) -> Option<String> {
    let after = words
        .iter()
        .find(|word| word.place.start >= value.place.end)?;
    let between = text.get(value.place.end..after.place.start)?;
    let plain = after.lower.chars().all(|c| c.is_ascii_alphabetic());
    (between == " " && plain && after.lower.len() <= LONGEST_WORD).then(|| after.lower.clone())
}

/// The prefix `from` or `to`, if the value is the start or end of a range.
fn direction(text: &str, value: &MentionedValue) -> Option<&'static str> {
    let before = text.get(..value.place.start)?.trim_end();
    let word = before.rsplit(|c: char| !c.is_alphanumeric()).next()?;
    match word.to_lowercase().as_str() {
        "from" => Some("from"),
        "to" | "until" => Some("to"),
        _ => None,
    }
}

fn unit_word(value: &MentionedValue) -> Option<String> {
    let unit = value.unit.as_ref()?.to_lowercase();
    let plain = !unit.is_empty() && unit.chars().all(|c| c.is_ascii_alphabetic());
    (plain && unit.len() <= LONGEST_WORD).then_some(unit)
}

/// The request, with the names of parameters in place of the values.
fn description(text: &str, values: &[MentionedValue], parameters: &[GuessedParameter]) -> String {
    let mut result = String::new();
    let mut at = 0;
    let mut placed: Vec<(&MentionedValue, &str)> = parameters
        .iter()
        .map(|guessed| (&values[guessed.value], guessed.field.name.as_str()))
        .collect();
    placed.sort_by_key(|(value, _)| value.place.start);
    for (value, name) in placed {
        if let Some(before) = text.get(at..value.place.start) {
            result.push_str(before);
            result.push('<');
            result.push_str(name);
            result.push('>');
            at = value.place.end;
        }
    }
    result.push_str(text.get(at..).unwrap_or_default());
    let result = replace_hidden(&result, TextUse::Display, |_, hidden, result| {
        result.extend(hidden.chars().map(|_| ' '));
    });
    result.replace(['\n', '\t'], " ")
}
