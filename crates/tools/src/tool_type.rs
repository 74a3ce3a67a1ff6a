//! The Rust types that can be parameters and results of tools. The mapping describes the JSON that serde
//! reads and writes for a type.

use serde_json::{Map, Value};
use windlass_spec::{Field, MAX_DEPTH, Presence, ToolResponse, Type};

/// A Rust type that can be a parameter or result of a tool. Derive it for structs with named fields and for
/// enums of variants without data.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter or result of a tool",
    label = "not a `ToolType`",
    note = "derive `ToolType` for a struct with named fields or an enum of variants without data",
    note = "or use `String`, `bool`, a number, a `Vec`, an `Option` or a `serde_json::Map`"
)]
pub trait ToolType {
    /// The JSON type for values of this type.
    ///
    /// # Errors
    /// If types nest too deep, as recursive types do.
    fn tool_type(nesting: Nesting) -> Result<Type, TypeTooDeep>;

    /// A parameter or field of this type. It is optional if the type is.
    ///
    /// # Errors
    /// If types nest too deep, as recursive types do.
    fn field(name: &str, nesting: Nesting) -> Result<Field, TypeTooDeep> {
        Ok(Field::required(name, Self::tool_type(nesting)?))
    }
}

/// The nesting depth of a type. It is counted while types are described, because a recursive type
/// would otherwise be described without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nesting(usize);

impl Nesting {
    /// The top level.
    pub const TOP: Self = Self(0);

    /// One level deeper, within the type with this name.
    ///
    /// # Errors
    /// If that is deeper than types may nest.
    pub fn deeper(self, name: &'static str) -> Result<Self, TypeTooDeep> {
        if self.0 < MAX_DEPTH {
            Ok(Self(self.0 + 1))
        } else {
            Err(TypeTooDeep { name })
        }
    }
}

/// Types nest deeper than a signature allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the type `{name}` nests deeper than {MAX_DEPTH} levels; \
     if it is recursive, use `serde_json::Map` for the inner part"
)]
pub struct TypeTooDeep {
    /// The type at which the limit was passed.
    pub name: &'static str,
}

/// Makes the field optional.
#[doc(hidden)]
#[must_use]
pub fn optional(mut field: Field) -> Field {
    field.presence = Presence::Optional;
    field
}

macro_rules! plain {
    ($($variant:ident: $($rust:ty),+;)+) => {$($(
        impl ToolType for $rust {
            fn tool_type(_: Nesting) -> Result<Type, TypeTooDeep> {
                Ok(Type::$variant)
            }
        }
    )+)+};
}

/// An envelope around the result, an error, or a question to a person.
impl ToolType for ToolResponse {
    fn tool_type(_: Nesting) -> Result<Type, TypeTooDeep> {
        Ok(Type::Any)
    }
}

plain! {
    Text: String;
    Boolean: bool;
    Integer: i8, i16, i32, i64, isize, u8, u16, u32, u64, usize;
    Number: f32, f64;
    Object: Map<String, Value>;
}

impl<T: ToolType> ToolType for Vec<T> {
    fn tool_type(nesting: Nesting) -> Result<Type, TypeTooDeep> {
        Ok(Type::list(T::tool_type(nesting.deeper("Vec")?)?))
    }
}

impl<T: ToolType> ToolType for Box<T> {
    fn tool_type(nesting: Nesting) -> Result<Type, TypeTooDeep> {
        T::tool_type(nesting)
    }

    fn field(name: &str, nesting: Nesting) -> Result<Field, TypeTooDeep> {
        T::field(name, nesting)
    }
}

impl<T: ToolType> ToolType for Option<T> {
    fn tool_type(nesting: Nesting) -> Result<Type, TypeTooDeep> {
        Ok(Type::nullable(T::tool_type(nesting)?))
    }

    fn field(name: &str, nesting: Nesting) -> Result<Field, TypeTooDeep> {
        Ok(optional(T::field(name, nesting)?))
    }
}
