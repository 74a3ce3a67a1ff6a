//! Signatures from JSON Schemas written elsewhere. The conversion is exact or fails: the schema of
//! the result accepts the same JSON values as the schema that was read (draft 2020-12), and where
//! no type can do that, every reason is given with the place it applies to. Annotations, which
//! accept and refuse nothing, are dropped, except descriptions and defaults of properties.

mod budget;
mod choices;
mod keywords;
mod loose;
mod objects;
mod place;
mod reader;

use std::fmt;

use serde_json::Value;

use super::{Field, Signature, Type};
pub use loose::NoSignature;
use reader::Reader;

/// Something in a schema that no type expresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Inexpressible {
    /// The place in the schema, as a JSON pointer.
    pub pointer: String,
    /// What cannot be expressed, in words for people.
    pub reason: String,
}

impl fmt::Display for Inexpressible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.reason)
        } else {
            write!(f, "{}: {}", self.pointer, self.reason)
        }
    }
}

impl Signature {
    /// The signature whose arguments and result these schemas describe.
    ///
    /// # Errors
    /// Everything that cannot be expressed. Pointers begin with `/parameters` or `/returns`, to
    /// tell the two schemas apart.
    pub fn from_schemas(parameters: &Value, returns: &Value) -> Result<Self, Vec<Inexpressible>> {
        let prefixed = |prefix: &str, problems: Vec<Inexpressible>| {
            let prefix = prefix.to_owned();
            problems
                .into_iter()
                .map(move |Inexpressible { pointer, reason }| Inexpressible {
                    pointer: format!("{prefix}{pointer}"),
                    reason,
                })
        };
        match (
            parameters_from_schema(parameters),
            Type::from_schema(returns),
        ) {
            (Ok(parameters), Ok(returns)) => Self::new(parameters, returns).map_err(|error| {
                vec![Inexpressible {
                    pointer: String::new(),
                    reason: error.to_string(),
                }]
            }),
            (parameters, returns) => {
                let parameters = prefixed("/parameters", parameters.err().unwrap_or_default());
                let returns = prefixed("/returns", returns.err().unwrap_or_default());
                Err(parameters.chain(returns).collect())
            }
        }
    }
}

/// The parameters of a tool whose object of arguments `schema` describes, for schemas that come
/// without one for the result.
///
/// # Errors
/// Everything that cannot be expressed, with pointers into `schema`.
pub fn parameters_from_schema(schema: &Value) -> Result<Vec<Field>, Vec<Inexpressible>> {
    let mut reader = Reader::new(schema);
    let parameters = reader.parameters();
    reader.finish(parameters)
}

impl Type {
    /// The type of exactly the values that `schema` accepts.
    ///
    /// # Errors
    /// Everything that cannot be expressed, with pointers into `schema`.
    pub fn from_schema(schema: &Value) -> Result<Self, Vec<Inexpressible>> {
        let mut reader = Reader::new(schema);
        let shape = reader.root();
        reader.finish(shape.map(reader::Shape::into_type))
    }
}
