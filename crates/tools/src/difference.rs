//! Where two JSON Schemas differ, apart from order. This compares the schemas key
//! by key; whether one schema accepts the values of another is decided with types.

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value};

/// One place where the schema of a specification and that of an implementation differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The location, as a JSON pointer.
    pub pointer: String,
    /// The value in the specification; none if it has no (further) value.
    pub specification: Option<Value>,
    /// The value in the implementation; none if it has no (further) value.
    pub implementation: Option<Value>,
}

impl Difference {
    /// Whether it is a difference of texts that describe a part of the schema.
    #[must_use]
    pub fn is_of_descriptions(&self) -> bool {
        // A property can have that name, too.
        self.pointer.ends_with("/description") && !self.pointer.ends_with("/properties/description")
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The empty pointer means the whole schema. It is abbreviated as `/`, because people overlook an empty text.
        let pointer = if self.pointer.is_empty() {
            "/"
        } else {
            &self.pointer
        };
        match (&self.specification, &self.implementation) {
            (Some(specification), Some(implementation)) => write!(
                f,
                "{pointer}: specification {}, implementation {}",
                abbreviated(specification),
                abbreviated(implementation)
            ),
            (Some(value), None) => {
                write!(
                    f,
                    "{pointer}: only the specification has {}",
                    abbreviated(value)
                )
            }
            (None, Some(value)) => {
                write!(
                    f,
                    "{pointer}: only the implementation has {}",
                    abbreviated(value)
                )
            }
            (None, None) => write!(f, "{pointer}: neither has anything"),
        }
    }
}

fn abbreviated(value: &Value) -> String {
    const MAX_CHARACTERS: usize = 100;
    let text = value.to_string();
    match text.char_indices().nth(MAX_CHARACTERS) {
        None => text,
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// All differences between two schemas. The order of keys, and of the items of `required`, `enum` and
/// `type`, does not matter, nor whether a whole number is written with a fraction.
#[must_use]
pub fn differences(specification: &Value, implementation: &Value) -> Vec<Difference> {
    let mut found = Differences(Vec::new());
    found.schemas(specification, implementation, "");
    found.0
}

struct Differences(Vec<Difference>);

impl Differences {
    fn add(
        &mut self,
        pointer: &str,
        specification: Option<&Value>,
        implementation: Option<&Value>,
    ) {
        self.0.push(Difference {
            pointer: pointer.to_owned(),
            specification: specification.cloned(),
            implementation: implementation.cloned(),
        });
    }

    fn schemas(&mut self, specification: &Value, implementation: &Value, pointer: &str) {
        match (specification, implementation) {
            (Value::Object(specification), Value::Object(implementation)) => {
                self.entries(specification, implementation, pointer, Self::keyword);
            }
            _ => self.data(specification, implementation, pointer),
        }
    }

    /// Compares the values of one keyword. A name is a keyword only in a schema: a property
    /// may be called `required`, and a default may have a key `enum`.
    fn keyword(
        &mut self,
        name: &str,
        specification: &Value,
        implementation: &Value,
        pointer: &str,
    ) {
        match (name, specification, implementation) {
            ("required" | "enum" | "type", Value::Array(ours), Value::Array(theirs)) => {
                self.sets(ours, theirs, pointer);
            }
            (
                "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions",
                Value::Object(ours),
                Value::Object(theirs),
            ) => self.entries(ours, theirs, pointer, |found, _, ours, theirs, pointer| {
                found.schemas(ours, theirs, pointer);
            }),
            (
                "anyOf" | "oneOf" | "allOf" | "prefixItems",
                Value::Array(ours),
                Value::Array(theirs),
            ) if ours.len() == theirs.len() => {
                for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                    self.schemas(ours, theirs, &format!("{pointer}/{index}"));
                }
            }
            (
                "items"
                | "additionalProperties"
                | "propertyNames"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                ours,
                theirs,
            ) => self.schemas(ours, theirs, pointer),
            (_, ours, theirs) => self.data(ours, theirs, pointer),
        }
    }

    fn entries(
        &mut self,
        specification: &Map<String, Value>,
        implementation: &Map<String, Value>,
        pointer: &str,
        compare: impl Fn(&mut Self, &str, &Value, &Value, &str),
    ) {
        for (name, ours) in specification {
            let pointer = below(pointer, name);
            match implementation.get(name) {
                Some(theirs) => compare(self, name, ours, theirs, &pointer),
                None => self.add(&pointer, Some(ours), None),
            }
        }
        for (name, theirs) in implementation {
            if !specification.contains_key(name) {
                self.add(&below(pointer, name), None, Some(theirs));
            }
        }
    }

    fn sets(&mut self, specification: &[Value], implementation: &[Value], pointer: &str) {
        for value in missing(specification, implementation) {
            self.add(pointer, Some(value), None);
        }
        for value in missing(implementation, specification) {
            self.add(pointer, None, Some(value));
        }
    }

    fn data(&mut self, specification: &Value, implementation: &Value, pointer: &str) {
        if !same(specification, implementation) {
            self.add(pointer, Some(specification), Some(implementation));
        }
    }
}

/// The items of `values` that are not in `others`.
fn missing<'v>(values: &'v [Value], others: &[Value]) -> impl Iterator<Item = &'v Value> {
    // Such lists can be long, and nearly always contain only texts.
    let texts: HashSet<&str> = others.iter().filter_map(Value::as_str).collect();
    values.iter().filter(move |value| match value.as_str() {
        Some(text) => !texts.contains(text),
        None => !others.iter().any(|other| same(value, other)),
    })
}

/// Whether two values are the same JSON. Numbers are the same if they are equal: `2` is `2.0`.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            // Beyond this, `f64` cannot represent every integer.
            const EXACT: f64 = 9_007_199_254_740_992.0;
            one == other
                || one.is_f64() != other.is_f64()
                    && one.as_f64() == other.as_f64()
                    && one.as_f64().is_some_and(|number| number.abs() < EXACT)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        (one, other) => one == other,
    }
}

fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
