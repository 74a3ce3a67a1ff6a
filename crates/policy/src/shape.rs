//! The JSON types that Cedar can represent. A [`Shape`] is derived from the type of an argument. The
//! schema that rules are checked against and the values they are evaluated on both follow from it, so
//! they cannot differ.

use serde_json::{Map, Value, json};
use windlass_spec::{Field, Presence, Type};

/// A type of values in Cedar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// Any text.
    Text,
    /// One of these texts. For Cedar it is any text, but comparing it with another text is an error.
    Words(Vec<String>),
    /// A whole number of 64 bits.
    Long,
    /// A number with at most four decimal places.
    Decimal,
    /// True or false.
    Bool,
    /// Items of one shape, without order and repetition.
    Set(Box<Shape>),
    /// Attributes by name.
    Record(Vec<Attribute>),
}

/// An attribute of a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) presence: Presence,
}

impl Attribute {
    pub(crate) fn required(name: &str, shape: Shape) -> Self {
        Self {
            name: name.to_owned(),
            shape,
            presence: Presence::Required,
        }
    }

    pub(crate) fn optional(name: &str, shape: Shape) -> Self {
        Self {
            presence: Presence::Optional,
            ..Self::required(name, shape)
        }
    }
}

impl Shape {
    /// The shape of a type; `None` if Cedar has no equivalent.
    pub(crate) fn of(ty: &Type) -> Option<Self> {
        match ty {
            Type::Text => Some(Self::Text),
            Type::Integer => Some(Self::Long),
            Type::Number => Some(Self::Decimal),
            Type::Boolean => Some(Self::Bool),
            Type::Enum(options) => Some(Self::Words(options.clone())),
            Type::List(item) => Some(Self::Set(Box::new(Self::of(item)?))),
            Type::Record(fields) => Some(Self::Record(attributes(fields))),
            // Cedar has no records with unknown attributes, no sets of mixed items and no null.
            Type::Object | Type::Array | Type::Any | Type::Nullable(_) => None,
        }
    }

    /// The shape of a value without a declared type; `None` for `null` and values that contain it.
    pub(crate) fn guess(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Bool(_) => Some(Self::Bool),
            Value::String(_) => Some(Self::Text),
            Value::Number(number) if number.is_f64() => Some(Self::Decimal),
            Value::Number(_) => Some(Self::Long),
            Value::Array(items) => {
                let item = items.first().map_or(Some(Self::Text), Self::guess)?;
                Some(Self::Set(Box::new(item)))
            }
            Value::Object(object) => Some(Self::Record(guess_attributes(object)?)),
        }
    }

    /// The shape in Cedar's JSON schema format.
    pub(crate) fn schema(&self) -> Value {
        match self {
            Self::Text | Self::Words(_) => json!({"type": "String"}),
            Self::Long => json!({"type": "Long"}),
            Self::Decimal => json!({"type": "Extension", "name": "decimal"}),
            Self::Bool => json!({"type": "Boolean"}),
            Self::Set(item) => json!({"type": "Set", "element": item.schema()}),
            Self::Record(attributes) => {
                let attributes: Map<String, Value> = attributes
                    .iter()
                    .map(|attribute| {
                        let mut schema = attribute.shape.schema();
                        schema["required"] = Value::Bool(attribute.is_always_present());
                        (attribute.name.clone(), schema)
                    })
                    .collect();
                json!({"type": "Record", "attributes": attributes})
            }
        }
    }

    /// The names of its attributes; empty if it is not a record.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let attributes = match self {
            Self::Record(attributes) => attributes.as_slice(),
            _ => &[],
        };
        attributes.iter().map(|attribute| attribute.name.as_str())
    }

    /// The shape at the end of a path.
    ///
    /// # Errors
    /// How many names of the path exist, and the shape of the last of them.
    pub(crate) fn resolve<'a>(&'a self, path: &[String]) -> Result<&'a Self, (usize, &'a Self)> {
        let mut shape = self;
        for (depth, name) in path.iter().enumerate() {
            let Self::Record(attributes) = shape else {
                return Err((depth, shape));
            };
            match attributes.iter().find(|attribute| attribute.name == *name) {
                Some(attribute) => shape = &attribute.shape,
                None => return Err((depth, shape)),
            }
        }
        Ok(shape)
    }
}

impl Shape {
    /// Whether a path leads through an attribute that may be absent.
    pub(crate) fn may_be_absent(&self, path: &[String]) -> bool {
        let mut shape = self;
        for name in path {
            let Self::Record(attributes) = shape else {
                return false;
            };
            match attributes.iter().find(|attribute| attribute.name == *name) {
                Some(attribute) if attribute.is_always_present() => shape = &attribute.shape,
                found => return found.is_some(),
            }
        }
        false
    }
}

impl Attribute {
    fn is_always_present(&self) -> bool {
        match self.presence {
            Presence::Required | Presence::Default(_) => true,
            Presence::Optional => false,
        }
    }
}

/// The attributes of an object without a declared type.
pub(crate) fn guess_attributes(object: &Map<String, Value>) -> Option<Vec<Attribute>> {
    let attributes = object.iter();
    attributes
        .map(|(name, value)| Some(Attribute::required(name, Shape::guess(value)?)))
        .collect()
}

/// The attributes of the fields that can be represented.
pub(crate) fn attributes(fields: &[Field]) -> Vec<Attribute> {
    fields
        .iter()
        .filter_map(|field| {
            Some(Attribute {
                name: field.name.clone(),
                shape: Shape::of(&field.ty)?,
                presence: field.presence.clone(),
            })
        })
        .collect()
}
