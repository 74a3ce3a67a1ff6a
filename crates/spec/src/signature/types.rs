//! The signature and its parts as data. Types and fields are plain values;
//! a [`Signature`] is validated on construction, so it is always valid.

use serde_json::Value;

use super::check::{self, SignatureError};

/// The parameters and the return type of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    parameters: Vec<Field>,
    returns: Type,
}

impl Signature {
    /// A signature of these parts, if they are valid.
    ///
    /// # Errors
    /// The first invalid part found: an empty or repeated name, an empty enum or one that repeats
    /// an option, a default that does not fit its type, a nullable type where none is allowed, or
    /// types nested deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    pub fn new(parameters: Vec<Field>, returns: Type) -> Result<Self, SignatureError> {
        check::fields(&parameters, "", 1)?;
        check::check_type(&returns, "the return type", 1)?;
        Ok(Self {
            parameters,
            returns,
        })
    }

    /// The parameters in the order they were declared.
    #[must_use]
    pub fn parameters(&self) -> &[Field] {
        &self.parameters
    }

    /// The return type.
    #[must_use]
    pub fn returns(&self) -> &Type {
        &self.returns
    }

    /// The parameter of that name.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&Field> {
        self.parameters.iter().find(|field| field.name == name)
    }

    /// The parameters and the return type, for building another signature of them.
    #[must_use]
    pub fn into_parts(self) -> (Vec<Field>, Type) {
        (self.parameters, self.returns)
    }
}

/// A parameter of a tool or a field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The key under which its value is passed.
    pub name: String,
    /// The type of its values; never [`Type::Nullable`] in a valid signature.
    pub ty: Type,
    /// Whether it may be omitted.
    pub presence: Presence,
    /// Its description, for models and people.
    pub description: Option<String>,
}

impl Field {
    /// A required field.
    #[must_use]
    pub fn required(name: impl Into<String>, ty: Type) -> Self {
        Self {
            name: name.into(),
            ty,
            presence: Presence::Required,
            description: None,
        }
    }

    /// An optional field.
    #[must_use]
    pub fn optional(name: impl Into<String>, ty: Type) -> Self {
        Self {
            presence: Presence::Optional,
            ..Self::required(name, ty)
        }
    }

    /// A field with the default `value`.
    #[must_use]
    pub fn with_default(name: impl Into<String>, ty: Type, value: impl Into<Value>) -> Self {
        Self {
            presence: Presence::Default(value.into()),
            ..Self::required(name, ty)
        }
    }

    /// The same field with a description.
    #[must_use]
    pub fn described(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Whether it is required.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.presence == Presence::Required
    }
}

/// Whether a field may be omitted, and its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It is required.
    Required,
    /// It may be omitted and then has no value.
    Optional,
    /// It may be omitted and then has this value.
    Default(Value),
}

/// A set of JSON values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// Any string.
    Text,
    /// Any number without a fractional part.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Any JSON object.
    Object,
    /// Any JSON array.
    Array,
    /// Any JSON value, `null` too.
    Any,
    /// Arrays whose items all have one type.
    List(Box<Type>),
    /// Objects with these fields and no others.
    Record(Vec<Field>),
    /// Any of these strings.
    Enum(Vec<String>),
    /// A value of the type, or `null`. It is allowed only where a value must be present: as the item
    /// of a list or as the return type. A field that may be absent has [`Presence::Optional`] instead.
    Nullable(Box<Type>),
}

impl Type {
    /// Arrays whose items have type `item`.
    #[must_use]
    pub fn list(item: Type) -> Self {
        match item {
            Self::Any => Self::Array,
            item => Self::List(Box::new(item)),
        }
    }

    /// A value of type `ty`, or `null`; a type that already includes `null` does not change.
    #[must_use]
    pub fn nullable(ty: Type) -> Self {
        match ty {
            Self::Nullable(_) | Self::Any => ty,
            ty => Self::Nullable(Box::new(ty)),
        }
    }

    /// Any of these strings.
    #[must_use]
    pub fn options<S: Into<String>>(options: impl IntoIterator<Item = S>) -> Self {
        Self::Enum(options.into_iter().map(Into::into).collect())
    }
}
