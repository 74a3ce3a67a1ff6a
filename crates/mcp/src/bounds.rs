//! Bounds on the size and complexity of a tool's definition. A definition that exceeds a bound is never
//! used, and no approval can override that: bounds protect the machine.
//!
//! Only references into the same schema (`#`, `#/...`) are followed; none is fetched. A recursive reference
//! through a property or an item ends with the data and is allowed. A cycle that does not descend into the
//! data would never end and is refused. So is a schema in which references multiply: the number of schemas
//! that apply to one location of the data, with all references followed, must not exceed [`MAX_APPLIED`].

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

/// The most schemas in one `allOf`, `anyOf` or `oneOf` list.
pub const MAX_CHOICES: usize = 1_000;

/// The most schemas that may apply to one location of the data.
pub const MAX_APPLIED: u64 = 10_000;

/// The bound that a definition exceeds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutOfBounds {
    /// It is too large.
    #[error("the definition has more than {MAX_BYTES} bytes")]
    TooLarge,
    /// It has too many values.
    #[error("the definition has more than {MAX_NODES} values")]
    TooManyNodes,
    /// It nests too deep.
    #[error("the definition nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Its name is not valid.
    #[error(transparent)]
    Name(#[from] NamingProblem),
    /// It has no input schema.
    #[error("the `inputSchema` of the definition is missing or not an object")]
    NoSchema,
    /// The input or output schema does not describe an object.
    #[error("`{0}` does not describe an object; its `type` must be \"object\"")]
    NotAnObject(&'static str),
    /// A list of alternatives is too long.
    #[error("{0}: the list has more than {MAX_CHOICES} schemas")]
    TooManyChoices(String),
    /// A reference leads out of the schema.
    #[error(
        "{pointer}: the reference `{reference}` leads out of the schema; only `#/...` is allowed"
    )]
    OutsideReference {
        /// The JSON pointer of the reference.
        pointer: String,
        /// The reference.
        reference: String,
    },
    /// The target of a reference does not exist.
    #[error("{pointer}: the target of the reference `{reference}` does not exist")]
    Dangling {
        /// The JSON pointer of the reference.
        pointer: String,
        /// The reference.
        reference: String,
    },
    /// A nested `$id` changes the base of references.
    #[error("{0}: a nested schema has its own `$id`, which is not allowed")]
    NestedIdentifier(String),
    /// A cycle of references that never ends.
    #[error("{0}: the references form a cycle that does not descend into the data")]
    ReferenceCycle(String),
    /// Too many schemas apply to one location.
    #[error("{0}: more than {MAX_APPLIED} schemas apply here once references are followed")]
    TooManyApplied(String),
}

/// Checks the bounds of a definition.
///
/// # Errors
/// The first bound that it exceeds.
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
    // An output may be of any type, but must have a valid schema.
    match definition.output_schema() {
        None => Ok(()),
        Some(output @ (Value::Object(_) | Value::Bool(_))) => {
            schema::check(output, "/outputSchema")
        }
        Some(_) => Err(OutOfBounds::NotAnObject("outputSchema")),
    }
}

/// Counts bytes, values and levels, with a stack instead of recursion.
fn size(definition: &Definition) -> Result<(), OutOfBounds> {
    let mut counted = DefinitionSize::default();
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
struct DefinitionSize {
    bytes: usize,
    nodes: usize,
}

impl DefinitionSize {
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
