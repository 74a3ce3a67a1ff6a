//! Parses `key=value` arguments into the JSON of a call. A value that does not match the signature stays text,
//! so that the gate reports the error as it does for a model.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value};
use windlass_spec::number::{read_json, read_json_or_text};
use windlass_spec::{Signature, Type};

use crate::arguments::Argument;
use crate::source::Source;

/// Parses the arguments into one object.
///
/// # Errors
/// If the file of an argument cannot be read.
pub(super) fn arguments(typed: &[Argument], signature: &Signature) -> anyhow::Result<Value> {
    let mut object = Map::new();
    for argument in typed {
        let key = &argument.key;
        if object.contains_key(key) {
            continue;
        }
        let texts = typed
            .iter()
            .filter(|other| other.key == *key)
            .map(|other| text(&other.value))
            .collect::<anyhow::Result<Vec<String>>>()?;
        let ty = signature
            .parameter(key)
            .map_or(&Type::Text, |field| &field.ty);
        if !matches!(ty, Type::Text | Type::Enum(_)) {
            for text in &texts {
                read_json_or_text(text).with_context(|| format!("the argument `{key}`"))?;
            }
        }
        object.insert(key.clone(), value(&texts, ty));
    }
    Ok(Value::Object(object))
}

/// Returns the typed text, or the content of the file it names.
fn text(typed: &str) -> anyhow::Result<String> {
    let Some(path) = typed.strip_prefix('@') else {
        return Ok(typed.to_owned());
    };
    let (source, problem) = Source::read(Path::new(path));
    match problem {
        None => Ok(source.text),
        Some(problem) => anyhow::bail!(problem.message),
    }
}

fn value(texts: &[String], ty: &Type) -> Value {
    let several = |item: &Type| texts.iter().map(|text| single(text, item)).collect();
    match (texts, ty) {
        // A list is one JSON value, or a repeated key.
        ([text], Type::List(_) | Type::Array) => match parse_as(text, ty) {
            Some(list) => list,
            None => Value::Array(several(item_of(ty))),
        },
        ([text], _) => single(text, ty),
        _ => Value::Array(several(item_of(ty))),
    }
}

fn item_of(ty: &Type) -> &Type {
    match ty {
        Type::List(item) => item,
        // Any JSON can be an item of an untyped array.
        Type::Array => &Type::Array,
        _ => ty,
    }
}

/// Parses a text as a value of a type.
fn single(text: &str, ty: &Type) -> Value {
    let as_text = || Value::String(text.to_owned());
    match ty {
        Type::Text | Type::Enum(_) => as_text(),
        Type::Nullable(inner) if text.trim() != "null" => single(text, inner),
        // Any JSON is allowed in an untyped array.
        Type::Array | Type::Any => read_json(text).unwrap_or_else(|_| as_text()),
        Type::Object | Type::Record(_) => {
            // An object that does not match is kept as an object, so that the gate reports its fields.
            let parsed = read_json(text).ok();
            parsed.filter(Value::is_object).unwrap_or_else(as_text)
        }
        _ => parse_as(text, ty).unwrap_or_else(as_text),
    }
}

/// Parses the text as JSON of that type.
fn parse_as(text: &str, ty: &Type) -> Option<Value> {
    let value = read_json(text).ok()?;
    ty.misfits(&value).is_empty().then_some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use windlass_spec::Signature;

    use super::arguments;
    use crate::arguments::Argument;

    fn read(signature: &str, typed: &[(&str, &str)]) -> Option<Value> {
        let typed = typed.iter().map(|(key, value)| Argument {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        });
        let typed: Vec<_> = typed.collect();
        arguments(&typed, &Signature::parse(signature).ok()?).ok()
    }

    #[test]
    fn arguments_are_parsed_by_the_signature() {
        let signature = "(name: Text, age: Int, rate: Double, sure: Bool, unit: \"c\" | \"f\", tags: [Text], \
             sizes: [Int], grades: [Maybe Int], any: Array, home: {zip: Int}, more: Object) --> Text";
        let typed = [
            ("name", "12"),
            ("age", "12"),
            ("rate", "1.5"),
            ("sure", "true"),
            ("unit", "c"),
            ("tags", "[x"),
            ("sizes", "[1, 2]"),
            ("grades", "1"),
            ("grades", "null"),
            ("any", "1"),
            ("any", "x"),
            ("home", "{\"zip\": \"x\"}"),
            ("more", "{}"),
            ("nobody", "1"),
        ];
        assert_eq!(
            read(signature, &typed),
            Some(json!({
                "name": "12", "age": 12, "rate": 1.5, "sure": true, "unit": "c", "tags": ["[x"],
                "sizes": [1, 2], "grades": [1, null], "any": [1, "x"], "home": {"zip": "x"}, "more": {},
                "nobody": "1",
            }))
        );
    }

    #[test]
    fn values_that_do_not_match_stay_text() {
        let signature = "(age: Int, sure: Bool, sizes: [Int], name: Text) --> Text";
        let typed = [
            ("age", "x"),
            ("sure", "yes"),
            ("sizes", "a"),
            ("name", "a"),
            ("name", "b"),
        ];
        assert_eq!(
            read(signature, &typed),
            Some(json!({"age": "x", "sure": "yes", "sizes": ["a"], "name": ["a", "b"]}))
        );
    }
}
