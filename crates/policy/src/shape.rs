//! What of a JSON type the policy language can express. A [`Shape`] is read off the type of an
//! argument; the schema the rules are checked against and the values they are evaluated on both
//! follow from it, so the two cannot differ.

use serde_json::{Map, Value, json};
use windlass_spec::{Field, Presence, Type};

/// A set of values in the policy language.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// Any text.
    Text,
    /// One of these texts; for the policy language a text like any other, but a rule that compares
    /// it with another word is wrong.
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
    /// The shape of a type; `None` if the policy language has nothing like it.
    pub(crate) fn of(ty: &Type) -> Option<Self> {
        match ty {
            Type::Text => Some(Self::Text),
            Type::Integer => Some(Self::Long),
            Type::Number => Some(Self::Decimal),
            Type::Boolean => Some(Self::Bool),
            Type::Enum(options) => Some(Self::Words(options.clone())),
            Type::List(item) => Some(Self::Set(Box::new(Self::of(item)?))),
            Type::Record(fields) => Some(Self::Record(attributes(fields))),
            // There are no records of unknown attributes, no sets of mixed items and no null.
            Type::Object | Type::Array | Type::Any | Type::Nullable(_) => None,
        }
    }

    /// The shape a value of no declared type seems to have; `None` for `null` and what holds one.
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

    /// The shape as Cedar's JSON schema writes it.
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
                        schema["required"] = Value::Bool(attribute.is_always_there());
                        (attribute.name.clone(), schema)
                    })
                    .collect();
                json!({"type": "Record", "attributes": attributes})
            }
        }
    }

    /// The names of its attributes; none if it is no record.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let attributes = match self {
            Self::Record(attributes) => attributes.as_slice(),
            _ => &[],
        };
        attributes.iter().map(|attribute| attribute.name.as_str())
    }

    /// What stands at the end of a path.
    ///
    /// # Errors
    /// How many names of the path exist, and the shape the last of them has.
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
                Some(attribute) if attribute.is_always_there() => shape = &attribute.shape,
                found => return found.is_some(),
            }
        }
        false
    }
}

impl Attribute {
    fn is_always_there(&self) -> bool {
        match self.presence {
            Presence::Required | Presence::Default(_) => true,
            Presence::Optional => false,
        }
    }
}

/// The attributes that an object of no declared type seems to have.
pub(crate) fn guess_attributes(object: &Map<String, Value>) -> Option<Vec<Attribute>> {
    let attributes = object.iter();
    attributes
        .map(|(name, value)| Some(Attribute::required(name, Shape::guess(value)?)))
        .collect()
}

/// Those of the fields that can be expressed.
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
