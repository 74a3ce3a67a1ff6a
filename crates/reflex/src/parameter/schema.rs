//! Reads parameters from a JSON Schema. References, alternatives and nesting are followed up to a limit, so that
//! recursive schemas terminate.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::options::{self, ParameterOption};
use super::role;
use super::{Kind, Parameter};
use crate::extract::format::DateFormat;
use crate::extract::number::unit_at;
use crate::extract::quantity::NumberFormat;
use crate::lexicon::units::Unit;
use crate::lexicon::{units, words};
use crate::text::{Text, beginning, name_words, stem};

/// The depth to which nested records are followed.
const MAX_DEPTH: usize = 5;
/// The most leaves of a tool. Further leaves are ignored unless they are required.
const MAX_LEAVES: usize = 400;

/// The leaves of a tool's schema, in the order they are declared.
pub(crate) fn parameters(schema: &Value) -> Vec<Parameter> {
    let mut leaves = Vec::new();
    record(schema, schema, &mut Vec::new(), true, &mut leaves);
    leaves
}

/// The names of the arguments a schema requires.
fn required_names(schema: &Value) -> Vec<&str> {
    schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

fn record(
    root: &Value,
    schema: &Value,
    path: &mut Vec<String>,
    required: bool,
    leaves: &mut Vec<Parameter>,
) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    let names: HashSet<&str> = required_names(schema).into_iter().collect();
    for (name, property) in properties {
        if leaves.len() >= MAX_LEAVES && !names.contains(name.as_str()) {
            continue;
        }
        let property = resolved(root, property);
        let required = required && names.contains(name.as_str());
        path.push(name.clone());
        let nested = property
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|inner| !inner.is_empty());
        if nested && path.len() < MAX_DEPTH {
            record(root, property, path, required, leaves);
        } else {
            leaves.push(leaf(root, property, path, required));
        }
        path.pop();
    }
}

/// A schema with references followed and the first alternative taken that is not null.
fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..8 {
        if let Some(pointer) = schema.get("$ref").and_then(Value::as_str) {
            match pointer
                .strip_prefix('#')
                .and_then(|rest| root.pointer(rest))
            {
                Some(target) => schema = target,
                None => return schema,
            }
        } else if schema.get("type").is_none()
            && let Some(alternative) = ["anyOf", "oneOf", "allOf"]
                .iter()
                .find_map(|keyword| schema.get(*keyword)?.as_array())
                .and_then(|alternatives| {
                    alternatives
                        .iter()
                        .find(|one| one.get("type").and_then(Value::as_str) != Some("null"))
                })
        {
            schema = alternative;
        } else {
            break;
        }
    }
    schema
}

fn leaf(root: &Value, schema: &Value, path: &[String], required: bool) -> Parameter {
    let name = path.last().map_or("", String::as_str);
    let description = schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or("");
    let description = beginning(description, 1_500).to_owned();
    let kind = kind(root, schema, 0);
    let items = schema.get("items").map(|items| resolved(root, items));
    let declared = schema
        .get("enum")
        .or_else(|| items.and_then(|items| items.get("enum")))
        .and_then(Value::as_array);
    let (choices, closed): (Vec<ParameterOption>, bool) = match declared {
        Some(values) => (options::declared(values, &description), true),
        None if kind == Kind::Boolean => (Vec::new(), false),
        None => (options::described(&description), false),
    };
    let listed = !closed && choices.len() > 1 && options::lists_all(&description);
    let meaning = options::meaning(&description).to_owned();
    let words_of_name = name_words(name);
    // A field of a record may also be named by the record's name.
    let mut name_stems: Vec<String> = Vec::new();
    let outer = path[..path.len().saturating_sub(1)]
        .iter()
        .flat_map(|outer| name_words(outer));
    for word in words_of_name.iter().cloned().chain(outer) {
        if !words::is_generic_parameter_word(&word)
            && !words::is_function_word(&word)
            && word.parse::<u32>().is_err()
        {
            let stem = stem(&word);
            if !name_stems.contains(&stem) {
                name_stems.push(stem);
            }
        }
    }
    let description_stems = content_stems(&meaning, &name_stems);
    let number_format = number_format(&kind, &words_of_name, &meaning);
    Parameter {
        role: role::role(&kind, &words_of_name, &meaning, schema),
        direction: role::direction(&kind, &words_of_name, &meaning),
        ordinal: role::ordinal(&words_of_name, &meaning),
        date_format: DateFormat::in_description(&description),
        default: schema
            .get("default")
            .cloned()
            .or_else(|| options::default(&description)),
        path: path.to_vec(),
        kind,
        required,
        name_words: words_of_name,
        name_stems,
        description_stems,
        meaning,
        choices,
        closed,
        listed,
        number_format,
        description,
    }
}

fn kind(root: &Value, schema: &Value, depth: usize) -> Kind {
    if depth >= MAX_DEPTH {
        return Kind::Any;
    }
    match type_name(schema) {
        "string" => Kind::Text,
        "integer" => Kind::Integer,
        "number" | "float" => Kind::Number,
        "boolean" => Kind::Boolean,
        "object" | "dict" => Kind::Map,
        "array" | "tuple" => {
            let Some(items) = schema.get("items") else {
                return Kind::List(Box::new(Kind::Any));
            };
            let items = resolved(root, items);
            let fields = items.get("properties").and_then(Value::as_object);
            if fields.is_some_and(|fields: &Map<String, Value>| !fields.is_empty()) && depth == 0 {
                let mut leaves = Vec::new();
                // Nested records are not followed, so that recursion ends.
                record_once(root, items, &mut leaves);
                return Kind::Records(leaves);
            }
            Kind::List(Box::new(kind(root, items, depth + 1)))
        }
        _ if schema.get("enum").is_some() => Kind::Text,
        _ => Kind::Any,
    }
}

fn record_once(root: &Value, items: &Value, leaves: &mut Vec<Parameter>) {
    let Some(properties) = items.get("properties").and_then(Value::as_object) else {
        return;
    };
    let names = required_names(items);
    for (name, property) in properties.iter().take(40) {
        let property = resolved(root, property);
        let nested = property.get("properties").is_some() || property.get("items").is_some();
        if !nested {
            let required = names.contains(&name.as_str());
            leaves.push(leaf(root, property, std::slice::from_ref(name), required));
        }
    }
}

fn type_name(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .find(|name| *name != "null")
            .unwrap_or(""),
        _ => "",
    }
}

fn content_stems(meaning: &str, known: &[String]) -> Vec<String> {
    let mut stems: Vec<String> = Vec::new();
    for token in Text::new(meaning).tokens {
        let content = token.is_word()
            && token.lower.len() > 1
            && !words::is_function_word(&token.lower)
            && !words::is_generic_parameter_word(&token.lower);
        if content && !known.contains(&token.stem) && !stems.contains(&token.stem) {
            stems.push(token.stem);
        }
        if stems.len() >= 30 {
            break;
        }
    }
    stems
}

fn number_format(kind: &Kind, name: &[String], meaning: &str) -> NumberFormat {
    let whole = matches!(kind, Kind::Integer)
        || matches!(kind, Kind::List(item) if **item == Kind::Integer);
    let lower = meaning.to_lowercase();
    let as_fraction = [
        "decimal",
        "fraction",
        "between 0 and 1",
        "sum to 1",
        "0 to 1",
    ]
    .iter()
    .any(|cue| lower.contains(cue));
    let percent = !as_fraction
        && (lower.contains("percent")
            || lower.contains('%')
            || name
                .iter()
                .any(|word| word == "percentage" || word == "percent"));
    NumberFormat {
        unit: unit_of(name, meaning),
        whole,
        percent,
    }
}

/// The unit of a parameter, from its name (`weight_kg`, `days`) or its description (`in meters`).
fn unit_of(name: &[String], meaning: &str) -> Option<Unit> {
    let in_name = name.iter().enumerate().rev().find_map(|(at, word)| {
        let first_letter_unit = word.len() == 1 && at == 0;
        // `minute_hand`, `second_note` and `day_type` are not amounts; a unit is last or follows `in`.
        let last = at + 1 == name.len();
        let is_unit =
            word != "second" && (last || at > 0 && name[at - 1] == "in") && !first_letter_unit;
        let two = (at > 0).then(|| format!("{} {word}", name[at - 1]));
        is_unit
            .then(|| {
                two.and_then(|two| units::unit(&two))
                    .or_else(|| units::unit(word))
            })
            .flatten()
    });
    if in_name.is_some() {
        return in_name;
    }
    let text = Text::new(meaning);
    // `in henries` is clear; `(H)` next to a symbol may be the symbol.
    ["in", "as", "of", "(", ","]
        .iter()
        .find_map(|lead| unit_after(&text, lead))
}

fn unit_after(text: &Text, lead: &str) -> Option<Unit> {
    (1..text.tokens.len()).find_map(|at| {
        if text.before(at) != lead {
            return None;
        }
        let (unit, length) = unit_at(text, at)?;
        let spelling = text.slice(at, at + length);
        let short = spelling.chars().count() <= 2;
        let is_amount = spelling.ends_with('s') || unit.dimension != units::Dimension::Time;
        let fits = match lead {
            // `the minute of the hour`, `the year of the case`: not an amount in that unit.
            "of" => text.before(at.saturating_sub(1)) == "number",
            "," => short && at + length + 1 >= text.tokens.len(),
            _ => true,
        };
        (fits && is_amount).then_some(unit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn leaves_are_required_only_if_their_records_are_required() {
        let schema = json!({"type": "object", "required": ["area"], "properties": {
            "area": {"type": "object", "required": ["width"], "properties": {"width": {"type": "integer"}, "note": {"type": "string"}}},
            "extra": {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}}}}});
        let leaves: Vec<_> = parameters(&schema)
            .into_iter()
            .map(|leaf| (leaf.path.join("."), leaf.required))
            .collect();
        assert_eq!(
            leaves,
            [
                ("area.width".to_owned(), true),
                ("area.note".to_owned(), false),
                ("extra.kind".to_owned(), false)
            ]
        );
    }

    #[test]
    fn references_and_alternatives_are_followed_and_recursion_terminates() {
        let schema = json!({"$defs": {"node": {"type": "object", "properties": {
                "value": {"anyOf": [{"type": "null"}, {"type": "integer"}]},
                "next": {"$ref": "#/$defs/node"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}},
                "loop": {"$ref": "#/$defs/loop"}},
            "type": "object", "properties": {"root": {"$ref": "#/$defs/node"}, "odd": {"$ref": "#/$defs/loop"}, "gone": {"$ref": "#/nowhere"}}});
        let leaves = parameters(&schema);
        assert!(leaves.len() < 40);
        assert_eq!(leaves[0].kind, Kind::Integer);
    }

    #[test]
    fn units_are_read_from_names_and_descriptions() {
        let unit = |name: &str, description: &str| {
            unit_of(&name_words(name), description).map(|unit| unit.name)
        };
        assert_eq!(unit("weight_kg", ""), Some("kilogram"));
        assert_eq!(unit("time_in_years", ""), Some("year"));
        assert_eq!(unit("days", "The number of days"), Some("day"));
        assert_eq!(
            unit("inductance", "The inductance (L) in henries (H)."),
            Some("henry")
        );
        assert_eq!(unit("year", "The year of the case"), Some("year"));
        assert_eq!(
            unit("distance", "Distance traveled, in miles."),
            Some("mile")
        );
        assert_eq!(unit("city", "The city of interest"), None);
    }
}
