//! The canonical text form of types and signatures. The parser in `text` reads it back as the same
//! value.

use std::fmt;

use serde_json::Value;

use super::{Field, Presence, Signature, Type};

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        write_fields(f, self.parameters())?;
        match self.returns() {
            // `IO` looks as if it applies to one word; the parentheses keep `Maybe` with its type.
            nullable @ Type::Nullable(_) => write!(f, ") --> IO ({nullable})"),
            returns => write!(f, ") --> IO {returns}"),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("Text"),
            Self::Integer => f.write_str("Int"),
            Self::Number => f.write_str("Double"),
            Self::Boolean => f.write_str("Bool"),
            Self::Object => f.write_str("Object"),
            Self::Array => f.write_str("Array"),
            Self::Any => f.write_str("Any"),
            Self::List(item) => write!(f, "[{item}]"),
            Self::Record(fields) => {
                f.write_str("{")?;
                write_fields(f, fields)?;
                f.write_str("}")
            }
            Self::Enum(options) => {
                for (index, option) in options.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { " | " })?;
                    write_string(f, option)?;
                }
                Ok(())
            }
            Self::Nullable(inner) => write!(f, "Maybe {inner}"),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_bare_name(&self.name) {
            f.write_str(&self.name)?;
        } else {
            write_string(f, &self.name)?;
        }
        f.write_str(": ")?;
        match &self.presence {
            Presence::Required => write!(f, "{}", self.ty)?,
            Presence::Optional => write!(f, "Maybe {}", self.ty)?,
            Presence::Default(value) => write!(f, "{} = {value}", self.ty)?,
        }
        if let Some(description) = &self.description {
            f.write_str(" ")?;
            write_string(f, description)?;
        }
        Ok(())
    }
}

fn write_fields(f: &mut fmt::Formatter<'_>, fields: &[Field]) -> fmt::Result {
    for (index, field) in fields.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        write!(f, "{field}")?;
    }
    Ok(())
}

fn write_string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    write!(f, "{}", Value::from(text))
}

/// Whether a name needs no quotes in the text form.
pub(super) fn is_bare_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|next| next.is_ascii_alphanumeric() || matches!(next, '_' | '-' | '.'))
}
