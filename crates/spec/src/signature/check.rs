//! Checks that the parts of a signature are valid, and that a value has a type. Values are checked
//! in batches (all items of a list at once) so that a long list against a long enum costs the sum
//! of their lengths, not the product.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{Field, MAX_DEPTH, Mismatch, Presence, Type, shortened};

/// Why parts are not a valid signature. `path` is the place, such as `address.zip` or `tags[]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// A parameter or field has the empty string as its name.
    #[error("a {} has no name", place(path, "parameter", "field of"))]
    EmptyName {
        /// The record it belongs to; empty for a parameter.
        path: String,
    },
    /// Two parameters, or two fields of one record, have the same name.
    #[error("`{path}` is declared twice")]
    DuplicateName {
        /// The repeated field.
        path: String,
    },
    /// An enum has no options, so it has no values.
    #[error("the enum at `{path}` has no options")]
    EmptyEnum {
        /// The place of the enum.
        path: String,
    },
    /// An enum lists one option twice.
    #[error("the enum at `{path}` lists \"{option}\" twice")]
    DuplicateOption {
        /// The place of the enum.
        path: String,
        /// The repeated option.
        option: String,
    },
    /// A default is not a value of its field's type.
    #[error("the default of `{path}` does not fit: {reason}")]
    DefaultType {
        /// The field with the default.
        path: String,
        /// What was expected and found.
        reason: String,
    },
    /// A field has a nullable type, or a nullable type contains another.
    #[error(
        "`{path}` cannot be nullable here; only list items and return types can, and only once"
    )]
    MisplacedNullable {
        /// The place of the type.
        path: String,
    },
    /// Types or a default value nest too deep.
    #[error("`{path}` is nested deeper than {MAX_DEPTH} levels")]
    TooDeep {
        /// The place where the limit was passed.
        path: String,
    },
}

fn place(path: &str, at_top: &str, below: &str) -> String {
    if path.is_empty() {
        at_top.to_owned()
    } else {
        format!("{below} `{path}`")
    }
}

/// Checks the fields of a record, or the parameters, whose types are at `level`.
pub(super) fn fields(fields: &[Field], path: &str, level: usize) -> Result<(), SignatureError> {
    let mut names = HashSet::with_capacity(fields.len());
    for field in fields {
        if field.name.is_empty() {
            return Err(SignatureError::EmptyName {
                path: path.to_owned(),
            });
        }
        let path = join(path, &field.name);
        if !names.insert(field.name.as_str()) {
            return Err(SignatureError::DuplicateName { path });
        }
        if matches!(field.ty, Type::Nullable(_)) {
            return Err(SignatureError::MisplacedNullable { path });
        }
        check_type(&field.ty, &path, level)?;
        if let Presence::Default(value) = &field.presence {
            if !nests_within(value, MAX_DEPTH) {
                return Err(SignatureError::TooDeep { path });
            }
            if let Some(mismatch) = misfit(&field.ty, value) {
                let reason = mismatch.to_string();
                return Err(SignatureError::DefaultType { path, reason });
            }
        }
    }
    Ok(())
}

/// Checks a type at `level`, at a place that allows a nullable type.
pub(super) fn check_type(ty: &Type, path: &str, level: usize) -> Result<(), SignatureError> {
    if level > MAX_DEPTH {
        return Err(SignatureError::TooDeep {
            path: path.to_owned(),
        });
    }
    match ty {
        Type::Text
        | Type::Integer
        | Type::Number
        | Type::Boolean
        | Type::Object
        | Type::Array
        | Type::Any => Ok(()),
        Type::List(item) => check_type(item, &format!("{path}[]"), level + 1),
        Type::Record(members) => fields(members, path, level + 1),
        Type::Enum(options) => enum_options(options, path),
        Type::Nullable(inner) => match **inner {
            Type::Nullable(_) | Type::Any => Err(SignatureError::MisplacedNullable {
                path: path.to_owned(),
            }),
            // Being nullable is a property of a level, not a level of its own.
            ref inner => check_type(inner, path, level),
        },
    }
}

fn enum_options(options: &[String], path: &str) -> Result<(), SignatureError> {
    if options.is_empty() {
        return Err(SignatureError::EmptyEnum {
            path: path.to_owned(),
        });
    }
    let mut seen = HashSet::with_capacity(options.len());
    match options.iter().find(|option| !seen.insert(option.as_str())) {
        None => Ok(()),
        Some(option) => Err(SignatureError::DuplicateOption {
            path: path.to_owned(),
            option: shortened(option),
        }),
    }
}

/// The path of `name` within `path`. Long names are cut: a path is built for every field, so it must
/// not cost more than a field.
pub(super) fn join(path: &str, name: &str) -> String {
    let name = shortened(name);
    if path.is_empty() {
        name
    } else {
        format!("{path}.{name}")
    }
}

/// Whether `value` nests at most `levels` deep.
pub(super) fn nests_within(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return false;
    };
    match value {
        Value::Array(items) => items.iter().all(|item| nests_within(item, below)),
        Value::Object(entries) => entries.values().all(|entry| nests_within(entry, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// The first reason why `value` is not of type `ty`, by the rules of JSON Schema; none if it is.
pub(super) fn misfit(ty: &Type, value: &Value) -> Option<Mismatch> {
    misfit_of_all(ty, &[value], "", MAX_DEPTH)
}

fn misfit_of_all(ty: &Type, values: &[&Value], path: &str, levels: usize) -> Option<Mismatch> {
    if values.is_empty() {
        return None;
    }
    let Some(below) = levels.checked_sub(1) else {
        return Some(Mismatch::new(
            path,
            format!("it is nested deeper than {MAX_DEPTH} levels"),
        ));
    };
    let first_mismatch = |belongs: &dyn Fn(&Value) -> bool| {
        let value = values.iter().find(|value| !belongs(value))?;
        let message = format!(
            "expected {}, found {}",
            shortened(&ty.to_string()),
            describe_value(value)
        );
        Some(Mismatch::new(path, message))
    };
    match ty {
        Type::Text => first_mismatch(&Value::is_string),
        Type::Integer => first_mismatch(&is_integer),
        Type::Number => first_mismatch(&Value::is_number),
        Type::Boolean => first_mismatch(&Value::is_boolean),
        Type::Object => first_mismatch(&Value::is_object),
        Type::Array => first_mismatch(&Value::is_array),
        Type::Any => None,
        Type::Enum(options) => {
            let options: HashSet<&str> = options.iter().map(String::as_str).collect();
            first_mismatch(&|value| value.as_str().is_some_and(|text| options.contains(text)))
        }
        Type::Nullable(inner) => {
            let present: Vec<&Value> = values
                .iter()
                .copied()
                .filter(|value| !value.is_null())
                .collect();
            // Being nullable is a property of a level, not a level of its own.
            let nested = matches!(**inner, Type::Nullable(_));
            misfit_of_all(inner, &present, path, if nested { below } else { levels })
        }
        Type::List(item) => first_mismatch(&Value::is_array).or_else(|| {
            let items: Vec<&Value> = values
                .iter()
                .filter_map(|value| value.as_array())
                .flatten()
                .collect();
            misfit_of_all(item, &items, &format!("{path}[]"), below)
        }),
        Type::Record(members) => first_mismatch(&Value::is_object)
            .or_else(|| misfit_of_records(members, values, path, below)),
    }
}

/// Groups the entries of all objects by field, so that each field's type is checked once.
fn misfit_of_records(
    members: &[Field],
    values: &[&Value],
    path: &str,
    levels: usize,
) -> Option<Mismatch> {
    let mut by_name: HashMap<&str, (&Field, Vec<&Value>)> = members
        .iter()
        .map(|field| (field.name.as_str(), (field, Vec::new())))
        .collect();
    let required = members.iter().filter(|field| field.is_required()).count();
    for object in values.iter().filter_map(|value| value.as_object()) {
        let mut given = 0;
        for (key, entry) in object {
            let Some((field, entries)) = by_name.get_mut(key.as_str()) else {
                let message = format!("there is no field `{}`", shortened(key));
                return Some(Mismatch::new(path, message));
            };
            given += usize::from(field.is_required());
            entries.push(entry);
        }
        if given < required {
            let absent = members
                .iter()
                .find(|field| field.is_required() && !object.contains_key(&field.name))?;
            let message = format!("the field `{}` is missing", shortened(&absent.name));
            return Some(Mismatch::new(path, message));
        }
    }
    members.iter().find_map(|field| {
        let (_, entries) = by_name.get(field.name.as_str())?;
        misfit_of_all(&field.ty, entries, &join(path, &field.name), levels)
    })
}

/// JSON Schema counts `1.0` as an integer.
pub(super) fn is_integer(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.is_i64()
                || number.is_u64()
                || number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            false
        }
    }
}

/// A value for a message; containers by kind, because they may be long.
fn describe_value(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            shortened(&value.to_string())
        }
    }
}
