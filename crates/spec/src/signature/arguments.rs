//! Checks the arguments of a call against a signature: all misfits at once, each with a JSON
//! pointer, so that the caller can fix them in one step.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::check::is_integer;
use super::{Field, MAX_DEPTH, Presence, Signature, Type, shortened};

/// The largest number of misfits listed for one call.
const MAX_MISFITS: usize = 20;

/// One place where arguments do not fit a signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misfit {
    /// The place as a JSON pointer; empty for the whole.
    pub pointer: String,
    /// The expected type.
    pub expected: String,
    /// The value that was found.
    pub found: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() {
            "/"
        } else {
            &self.pointer
        };
        write!(f, "{place}: expected {}, got {}", self.expected, self.found)
    }
}

impl Signature {
    /// Every place where `arguments` do not fit the parameters; none if they fit.
    #[must_use]
    pub fn misfits(&self, arguments: &Value) -> Vec<Misfit> {
        let mut misfits = Misfits {
            found: Vec::new(),
            pointer: String::new(),
        };
        misfits.record(self.parameters(), arguments, MAX_DEPTH);
        misfits.found
    }

    /// The arguments with the declared defaults for absent ones.
    #[must_use]
    pub fn with_defaults(&self, arguments: &Value) -> Value {
        with_default_fields(self.parameters(), arguments)
    }
}

impl Type {
    /// Every place where a value is not of this type; none if it is.
    #[must_use]
    pub fn misfits(&self, value: &Value) -> Vec<Misfit> {
        let mut misfits = Misfits {
            found: Vec::new(),
            pointer: String::new(),
        };
        misfits.value(self, value, MAX_DEPTH);
        misfits.found
    }
}

fn with_default_fields(fields: &[Field], value: &Value) -> Value {
    let Some(given) = value.as_object() else {
        return value.clone();
    };
    let mut object = Map::new();
    for field in fields {
        match (given.get(&field.name), &field.presence, &field.ty) {
            (Some(value), _, Type::Record(fields)) => {
                object.insert(field.name.clone(), with_default_fields(fields, value));
            }
            (Some(value), _, _) => {
                object.insert(field.name.clone(), value.clone());
            }
            (None, Presence::Default(default), _) => {
                object.insert(field.name.clone(), default.clone());
            }
            (None, Presence::Required | Presence::Optional, _) => {}
        }
    }
    for (key, value) in given {
        object.entry(key).or_insert_with(|| value.clone());
    }
    Value::Object(object)
}

struct Misfits {
    found: Vec<Misfit>,
    pointer: String,
}

impl Misfits {
    fn report(&mut self, expected: impl Into<String>, found: impl Into<String>) {
        if self.found.len() < MAX_MISFITS {
            self.found.push(Misfit {
                pointer: self.pointer.clone(),
                expected: expected.into(),
                found: found.into(),
            });
        }
    }

    /// Calls `look` one step further down.
    fn below(&mut self, step: &str, look: impl FnOnce(&mut Self)) {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer
            .push_str(&step.replace('~', "~0").replace('/', "~1"));
        look(self);
        self.pointer.truncate(length);
    }

    fn value(&mut self, ty: &Type, value: &Value, levels: usize) {
        let Some(levels) = levels.checked_sub(1) else {
            return self.report(format!("at most {MAX_DEPTH} levels"), "more");
        };
        let fits = match ty {
            Type::Text => value.is_string(),
            Type::Integer => is_integer(value),
            Type::Number => value.is_number(),
            Type::Boolean => value.is_boolean(),
            Type::Object => value.is_object(),
            Type::Array => value.is_array(),
            Type::Any => true,
            Type::Enum(options) => value
                .as_str()
                .is_some_and(|text| options.iter().any(|o| o == text)),
            Type::Nullable(inner) => {
                if !value.is_null() {
                    self.value(inner, value, levels + 1);
                }
                return;
            }
            Type::List(item) => match value.as_array() {
                Some(items) => {
                    for (index, value) in items.iter().enumerate() {
                        if self.found.len() >= MAX_MISFITS {
                            return;
                        }
                        self.below(&index.to_string(), |below| below.value(item, value, levels));
                    }
                    return;
                }
                None => false,
            },
            Type::Record(fields) => return self.record(fields, value, levels),
        };
        if !fits {
            self.report(shortened(&ty.to_string()), describe_value(value));
        }
    }

    fn record(&mut self, fields: &[Field], value: &Value, levels: usize) {
        let Some(object) = value.as_object() else {
            return self.report("an object", describe_value(value));
        };
        for field in fields {
            match object.get(&field.name) {
                Some(value) => {
                    self.below(&field.name, |below| below.value(&field.ty, value, levels));
                }
                None if field.is_required() => {
                    self.below(&field.name, |below| {
                        below.report(shortened(&field.ty.to_string()), "nothing");
                    });
                }
                None => {}
            }
        }
        for (key, value) in object {
            if self.found.len() >= MAX_MISFITS {
                return;
            }
            if !fields.iter().any(|field| field.name == *key) {
                let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                let expected = match crate::nearest(key, known) {
                    Some(meant) => format!("no such key (did you mean `{meant}`?)"),
                    None => "no such key".to_owned(),
                };
                self.below(key, |below| below.report(expected, describe_value(value)));
            }
        }
    }
}

fn describe_value(value: &Value) -> String {
    shortened(&value.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Signature;

    fn signature() -> Signature {
        Signature::parse(
            "(name: Text, age: Maybe Int, unit: \"c\" | \"f\" = \"c\", home: {zip: Int, city: Text = \"Bern\"}?, tags: [Text] = []) --> Text",
        )
        .unwrap()
    }

    #[test]
    fn every_misfit_has_a_pointer_and_the_expected_and_found_values() {
        let arguments = json!({"age": "x", "unit": "k", "home": {"zip": 1.5, "z/p": 1}, "tags": ["a", 2], "nme": 1});
        let messages: Vec<String> = signature()
            .misfits(&arguments)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            messages,
            [
                "/name: expected Text, got nothing",
                "/age: expected Int, got \"x\"",
                "/unit: expected \"c\" | \"f\", got \"k\"",
                "/home/zip: expected Int, got 1.5",
                "/home/z~1p: expected no such key (did you mean `zip`?), got 1",
                "/tags/1: expected Text, got 2",
                "/nme: expected no such key (did you mean `name`?), got 1",
            ]
        );
        assert!(signature().misfits(&json!({"name": "x"})).is_empty());
        assert_eq!(signature().misfits(&json!([])).len(), 1);
    }

    #[test]
    fn absent_arguments_get_their_defaults() {
        let with_default_fields =
            signature().with_defaults(&json!({"home": {"zip": 1}, "name": "x"}));
        assert_eq!(
            with_default_fields,
            json!({"name": "x", "unit": "c", "home": {"zip": 1, "city": "Bern"}, "tags": []})
        );
    }

    #[test]
    fn arguments_have_no_misfits_exactly_if_the_schema_accepts_them() {
        let signature = signature();
        let validator = jsonschema::validator_for(&signature.parameters_schema()).unwrap();
        for arguments in [
            json!({}),
            json!(null),
            json!({"name": "a"}),
            json!({"name": 1}),
            json!({"name": "a", "age": null}),
            json!({"name": "a", "age": 1.0}),
            json!({"name": "a", "home": {}}),
            json!({"name": "a", "x": 1}),
            json!({"name": "a", "tags": [1]}),
            json!({"name": "a", "unit": "f"}),
        ] {
            assert_eq!(
                signature.misfits(&arguments).is_empty(),
                validator.is_valid(&arguments),
                "{arguments}"
            );
        }
    }
}
