//! Checks that the references of a JSON Schema stay inside, end, and do not multiply. The schema is
//! converted to a graph of numbered subschemas, which is traversed with a stack instead of recursion.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{MAX_APPLIED, MAX_CHOICES, OutOfBounds};
use crate::text::{below, clipped, visible};

/// Keywords with one schema that applies to the same location of the data.
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];

/// Keywords with a list of such schemas.
const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Keywords with an object of such schemas.
const IN_PLACE_TABLES: [&str; 2] = ["dependentSchemas", "dependencies"];

/// Keywords with one schema, or a list of schemas, for deeper locations of the data.
const DEEPER: [&str; 9] = [
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "contentSchema",
    "prefixItems",
];

/// Keywords with an object of schemas for deeper locations of the data, or only for references.
const DEEPER_TABLES: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Keywords whose value is a reference.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// One subschema.
struct Subschema<'s> {
    value: &'s Value,
    pointer: String,
    /// The subschemas that apply to the same location of the data.
    in_place: Vec<usize>,
}

/// Checks the references of a schema.
pub(super) fn check(schema: &Value, pointer: &str) -> Result<(), OutOfBounds> {
    let mut graph = Graph {
        root: schema,
        parts: Vec::new(),
        known: HashMap::new(),
    };
    graph.add(schema, pointer.to_owned());
    // Subschemas are added during the loop, including those that are only reached by a reference.
    let mut next = 0;
    while next < graph.parts.len() {
        graph.expand(next)?;
        next += 1;
    }
    graph.check_applied()
}

struct Graph<'s> {
    root: &'s Value,
    parts: Vec<Subschema<'s>>,
    /// The subschemas by the memory addresses of their values, which distinguishes equal ones.
    known: HashMap<*const Value, usize>,
}

impl<'s> Graph<'s> {
    fn add(&mut self, value: &'s Value, pointer: String) -> usize {
        if let Some(&known) = self.known.get(&std::ptr::from_ref(value)) {
            return known;
        }
        let number = self.parts.len();
        self.known.insert(std::ptr::from_ref(value), number);
        self.parts.push(Subschema {
            value,
            pointer,
            in_place: Vec::new(),
        });
        number
    }

    fn expand(&mut self, number: usize) -> Result<(), OutOfBounds> {
        let part = &self.parts[number];
        let (value, pointer) = (part.value, part.pointer.clone());
        // Booleans are schemas without subschemas; other values are ignored.
        let Value::Object(keywords) = value else {
            return Ok(());
        };
        if number > 0 && keywords.get("$id").is_some_and(Value::is_string) {
            return Err(OutOfBounds::NestedIdentifier(pointer));
        }
        let mut in_place = Vec::new();
        for key in IN_PLACE {
            if let Some(schema) = keywords.get(key) {
                in_place.push(self.add(schema, below(&pointer, key)));
            }
        }
        for key in IN_PLACE_LISTS {
            if let Some(Value::Array(items)) = keywords.get(key) {
                let pointer = below(&pointer, key);
                if items.len() > MAX_CHOICES {
                    return Err(OutOfBounds::TooManyChoices(pointer));
                }
                for (index, item) in items.iter().enumerate() {
                    in_place.push(self.add(item, format!("{pointer}/{index}")));
                }
            }
        }
        for key in IN_PLACE_TABLES {
            in_place.extend(self.table(keywords, key, &pointer));
        }
        for key in DEEPER {
            match keywords.get(key) {
                Some(Value::Array(items)) => {
                    let pointer = below(&pointer, key);
                    for (index, item) in items.iter().enumerate() {
                        self.add(item, format!("{pointer}/{index}"));
                    }
                }
                Some(schema) => {
                    self.add(schema, below(&pointer, key));
                }
                None => {}
            }
        }
        for key in DEEPER_TABLES {
            self.table(keywords, key, &pointer);
        }
        for key in REFERENCES {
            // The target of a reference applies at the location of the reference.
            let Some(Value::String(reference)) = keywords.get(key) else {
                continue;
            };
            let (target, at) = self.resolve(reference, &below(&pointer, key))?;
            in_place.push(self.add(target, at));
        }
        self.parts[number].in_place = in_place;
        Ok(())
    }

    fn table(&mut self, keywords: &'s Map<String, Value>, key: &str, pointer: &str) -> Vec<usize> {
        let Some(Value::Object(entries)) = keywords.get(key) else {
            return Vec::new();
        };
        let pointer = below(pointer, key);
        entries
            .iter()
            .map(|(name, schema)| self.add(schema, below(&pointer, name)))
            .collect()
    }

    /// The target of a reference and its JSON pointer.
    fn resolve(&self, reference: &str, at: &str) -> Result<(&'s Value, String), OutOfBounds> {
        let shown = || visible(clipped(reference, 200)).into_owned();
        let pointer = match reference.strip_prefix('#') {
            Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => pointer,
            _ => {
                return Err(OutOfBounds::OutsideReference {
                    pointer: at.to_owned(),
                    reference: shown(),
                });
            }
        };
        let target = decoded(pointer).and_then(|pointer| self.root.pointer(&pointer));
        match target {
            Some(target) => Ok((target, format!("#{}", visible(clipped(pointer, 200))))),
            None => Err(OutOfBounds::Dangling {
                pointer: at.to_owned(),
                reference: shown(),
            }),
        }
    }

    /// Counts the schemas that apply at each subschema, in post-order. Fails on a cycle or a count that is
    /// too large.
    fn check_applied(&self) -> Result<(), OutOfBounds> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            Unknown,
            Open,
            Applied(u64),
        }
        let mut states = vec![State::Unknown; self.parts.len()];
        for start in 0..self.parts.len() {
            let mut stack = vec![start];
            while let Some(&number) = stack.last() {
                let part = &self.parts[number];
                match states[number] {
                    State::Applied(_) => {
                        stack.pop();
                    }
                    State::Unknown => {
                        states[number] = State::Open;
                        for &below in &part.in_place {
                            match states[below] {
                                State::Open => {
                                    return Err(OutOfBounds::ReferenceCycle(part.pointer.clone()));
                                }
                                State::Unknown => stack.push(below),
                                State::Applied(_) => {}
                            }
                        }
                    }
                    State::Open => {
                        let below = part.in_place.iter().map(|&below| match states[below] {
                            State::Applied(count) => count,
                            State::Unknown | State::Open => 0,
                        });
                        let count = below.fold(1, u64::saturating_add);
                        if count > MAX_APPLIED {
                            return Err(OutOfBounds::TooManyApplied(part.pointer.clone()));
                        }
                        states[number] = State::Applied(count);
                        stack.pop();
                    }
                }
            }
        }
        Ok(())
    }
}

/// A percent-decoded fragment.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let (high, low) = (rest.next()?, rest.next()?);
            let digit = |byte: u8| char::from(byte).to_digit(16);
            bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
