//! Arguments as they are typed, `key=value`, into the JSON a tool takes. What cannot be read as the
//! signature says is passed on as text, so that the gate says what is wrong with it, as it says it to
//! a model.

use std::path::Path;

use serde_json::{Map, Value};
use windlass_spec::{Signature, Type};

use crate::arguments::Argument;
use crate::source::Source;

/// The arguments as one object.
///
/// # Errors
/// If the file behind an argument cannot be read.
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
        object.insert(key.clone(), value(&texts, ty));
    }
    Ok(Value::Object(object))
}

/// What was typed, or what stands in the file it names.
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
        // A list can be given whole, or by a key for each item.
        ([text], Type::List(_) | Type::Array) => match fitting(text, ty) {
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
        // Of the items of an untyped array nothing is known but that any JSON may be one.
        Type::Array => &Type::Array,
        _ => ty,
    }
}

/// One text as a value of a type.
fn single(text: &str, ty: &Type) -> Value {
    let as_text = || Value::String(text.to_owned());
    match ty {
        Type::Text | Type::Enum(_) => as_text(),
        Type::Nullable(inner) if text.trim() != "null" => single(text, inner),
        // Any JSON may stand in an untyped array.
        Type::Array | Type::Any => serde_json::from_str(text).unwrap_or_else(|_| as_text()),
        Type::Object | Type::Record(_) => {
            // An object that does not fit is passed on as one: its parts are then what is wrong.
            let parsed = serde_json::from_str(text).ok();
            parsed.filter(Value::is_object).unwrap_or_else(as_text)
        }
        _ => fitting(text, ty).unwrap_or_else(as_text),
    }
}

/// The text as JSON, if it is JSON of that type.
fn fitting(text: &str, ty: &Type) -> Option<Value> {
    let value = serde_json::from_str(text).ok()?;
    ty.misfits(&value).is_empty().then_some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_spec::Signature;

    use super::arguments;
    use crate::arguments::Argument;

    #[test]
    fn arguments_are_read_as_the_signature_says() {
        let signature = Signature::parse(
            "(name: Text, age: Int, rate: Double, sure: Bool, unit: \"c\" | \"f\", tags: [Text], \
             sizes: [Int], grades: [Maybe Int], any: Array, home: {zip: Int}, more: Object) --> Text",
        );
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
        let typed = typed.map(|(key, value)| Argument {
            key: key.to_owned(),
            value: value.to_owned(),
        });
        let read = signature
            .ok()
            .and_then(|signature| arguments(&typed, &signature).ok());
        assert_eq!(
            read,
            Some(json!({
                "name": "12", "age": 12, "rate": 1.5, "sure": true, "unit": "c", "tags": ["[x"],
                "sizes": [1, 2], "grades": [1, null], "any": [1, "x"], "home": {"zip": "x"}, "more": {},
                "nobody": "1",
            }))
        );
    }

    #[test]
    fn what_does_not_fit_stays_text() {
        let signature =
            Signature::parse("(age: Int, sure: Bool, sizes: [Int], name: Text) --> Text");
        let typed = [
            ("age", "x"),
            ("sure", "yes"),
            ("sizes", "a"),
            ("name", "a"),
            ("name", "b"),
        ];
        let typed = typed.map(|(key, value)| Argument {
            key: key.to_owned(),
            value: value.to_owned(),
        });
        let read = signature
            .ok()
            .and_then(|signature| arguments(&typed, &signature).ok());
        assert_eq!(
            read,
            Some(json!({"age": "x", "sure": "yes", "sizes": ["a"], "name": ["a", "b"]}))
        );
    }
}
