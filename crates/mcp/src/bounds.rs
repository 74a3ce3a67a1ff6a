//! What a tool's definition may cost. A definition that breaks a bound is never used, whoever accepts
//! it: bounds protect the machine, not a judgement.
//!
//! Only references into the same schema (`#`, `#/...`) are followed, none is ever fetched. A reference
//! that comes back to itself through a property or an item ends with the data and is legal; one that
//! comes back without going deeper into the data would never end and is refused. So is a schema in
//! which references multiply: what applies to one place of the data is counted with every reference
//! followed, and may not exceed [`MAX_APPLIED`].

mod schema;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::definition::Definition;
use crate::naming::{self, NamingProblem};

/// The most bytes of JSON that a definition may have.
pub const MAX_BYTES: usize = 256 * 1024;

/// The most values and keys that a definition may have.
pub const MAX_NODES: usize = 10_000;

/// How deep a definition may nest. A property within a property takes two levels.
pub const MAX_DEPTH: usize = 64;

/// The most alternatives or parts that one list of a schema may have.
pub const MAX_CHOICES: usize = 1_000;

/// The most schemas that may apply to one place of the data.
pub const MAX_APPLIED: u64 = 10_000;

/// Which bound a definition breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutOfBounds {
    /// It is too large.
    #[error("the definition has more than {MAX_BYTES} bytes")]
    TooLarge,
    /// It has too many parts.
    #[error("the definition has more than {MAX_NODES} values")]
    TooManyNodes,
    /// It nests too deep.
    #[error("the definition nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// It has no name that a tool can have.
    #[error(transparent)]
    Name(#[from] NamingProblem),
    /// What the tool takes is not described.
    #[error("the definition has no `inputSchema` that is an object")]
    NoSchema,
    /// What the tool takes, or says it gives, is not an object.
    #[error("`{0}` does not describe an object; its `type` must be \"object\"")]
    NotAnObject(&'static str),
    /// A list of alternatives is too long.
    #[error("{0}: the list has more than {MAX_CHOICES} schemas")]
    TooManyChoices(String),
    /// A reference leads out of the schema.
    #[error(
        "{pointer}: the reference `{reference}` leads out of the schema; only `#/...` is followed"
    )]
    OutsideReference {
        /// Where it is.
        pointer: String,
        /// The reference.
        reference: String,
    },
    /// A reference leads nowhere.
    #[error("{pointer}: there is nothing at `{reference}`")]
    Dangling {
        /// Where it is.
        pointer: String,
        /// The reference.
        reference: String,
    },
    /// Something would change what references mean.
    #[error("{0}: a schema within the schema has an `$id` of its own")]
    NestedIdentifier(String),
    /// References that never end.
    #[error("{0}: the references lead back here without going deeper into the data")]
    Endless(String),
    /// References that multiply.
    #[error("{0}: more than {MAX_APPLIED} schemas apply here once references are followed")]
    Multiplies(String),
}

/// Checks what a definition may cost.
///
/// # Errors
/// The first bound that it breaks.
pub fn check(definition: &Definition) -> Result<(), OutOfBounds> {
    size(definition)?;
    naming::check_name(definition.name())?;
    let Some(input @ Value::Object(_)) = definition.input_schema() else {
        return Err(OutOfBounds::NoSchema);
    };
    if input.get("type").and_then(Value::as_str) != Some("object") {
        return Err(OutOfBounds::NotAnObject("inputSchema"));
    }
    schema::check(input, "/inputSchema")?;
    // What a tool gives may be anything, but must be described by a schema.
    match definition.output_schema() {
        None => Ok(()),
        Some(output @ (Value::Object(_) | Value::Bool(_))) => {
            schema::check(output, "/outputSchema")
        }
        Some(_) => Err(OutOfBounds::NotAnObject("outputSchema")),
    }
}

/// Counts bytes, values and levels, with a list of what is still to be counted in place of recursion.
fn size(definition: &Definition) -> Result<(), OutOfBounds> {
    let mut counted = Counted::default();
    let mut rest: Vec<(&Value, usize)> = Vec::new();
    for (key, value) in definition.as_map() {
        counted.add(key.len() + 4)?;
        rest.push((value, 1));
    }
    while let Some((value, depth)) = rest.pop() {
        if depth > MAX_DEPTH {
            return Err(OutOfBounds::TooDeep);
        }
        match value {
            Value::Null | Value::Bool(_) => counted.add(5)?,
            Value::Number(number) => counted.add(number.to_string().len())?,
            Value::String(text) => counted.add(text.len() + 2)?,
            Value::Array(items) => {
                counted.add(2 + items.len())?;
                rest.extend(items.iter().map(|item| (item, depth + 1)));
            }
            Value::Object(entries) => {
                counted.add(2)?;
                for (key, value) in entries {
                    counted.add(key.len() + 4)?;
                    rest.push((value, depth + 1));
                }
            }
        }
    }
    Ok(())
}

#[derive(Default)]
struct Counted {
    bytes: usize,
    nodes: usize,
}

impl Counted {
    fn add(&mut self, bytes: usize) -> Result<(), OutOfBounds> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.nodes += 1;
        if self.bytes > MAX_BYTES {
            return Err(OutOfBounds::TooLarge);
        }
        if self.nodes > MAX_NODES {
            return Err(OutOfBounds::TooManyNodes);
        }
        Ok(())
    }
}
