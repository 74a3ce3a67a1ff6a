//! Signatures from external JSON Schemas. The conversion is exact or fails: the schema of
//! the result accepts the same JSON values as the schema that was read (draft 2020-12). If no type
//! does, all reasons are returned with their places. Annotations, which do not restrict values,
//! are dropped, except descriptions and defaults of properties.

mod approximate;
mod budget;
mod choices;
mod keywords;
mod objects;
mod place;
mod reader;

use std::fmt;

use serde_json::Value;

use super::{Field, Signature, Type};
pub use approximate::NoSignature;
use reader::Reader;

/// Something in a schema that no type expresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Inexpressible {
    /// The place in the schema, as a JSON pointer.
    pub pointer: String,
    /// What cannot be expressed, as a message for people.
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
    /// All parts that cannot be expressed. Pointers begin with `/parameters` or `/returns`, to
    /// distinguish the two schemas.
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

/// The parameters of a tool whose arguments `schema` describes, for tools without a schema of the
/// result.
///
/// # Errors
/// All parts that cannot be expressed, with pointers into `schema`.
pub fn parameters_from_schema(schema: &Value) -> Result<Vec<Field>, Vec<Inexpressible>> {
    let mut reader = Reader::new(schema);
    let parameters = reader.parameters();
    reader.finish(parameters)
}

impl Type {
    /// The type of exactly the values that `schema` accepts.
    ///
    /// # Errors
    /// All parts that cannot be expressed, with pointers into `schema`.
    pub fn from_schema(schema: &Value) -> Result<Self, Vec<Inexpressible>> {
        let mut reader = Reader::new(schema);
        let shape = reader.root();
        reader.finish(shape.map(reader::Shape::into_type))
    }
}
