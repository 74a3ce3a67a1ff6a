//! The keywords of JSON Schema: the kinds of value each restricts, and the settings that restrict
//! nothing. A keyword not named here is an annotation.

use serde_json::{Map, Value};

/// A kind of JSON value, as `type` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Integer,
    Number,
    Text,
    Array,
    Object,
}

impl Kind {
    /// The kind with that name in `type`.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::Text,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    /// The keywords that reject some values of this kind and that no type expresses.
    pub(super) fn restrictions(self) -> &'static [&'static str] {
        match self {
            Self::Null | Self::Boolean => &[],
            Self::Integer | Self::Number => &[
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "multipleOf",
            ],
            Self::Text => &["minLength", "maxLength", "pattern"],
            Self::Array => &[
                "minItems",
                "maxItems",
                "uniqueItems",
                "contains",
                "minContains",
                "maxContains",
                "prefixItems",
                "unevaluatedItems",
            ],
            Self::Object => &[
                "minProperties",
                "maxProperties",
                "patternProperties",
                "propertyNames",
                "dependentRequired",
                "dependentSchemas",
                "dependencies",
                "unevaluatedProperties",
            ],
        }
    }
}

/// Keywords for all kinds of values that no type expresses. The ones that describe choices by
/// listing schemas are read elsewhere.
pub(super) const LOGICAL: [&str; 4] = ["not", "if", "$dynamicRef", "$recursiveRef"];

/// Keywords that describe a value by whole schemas for the same value.
pub(super) const COMBINING: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Keywords that describe a value directly and that types can express.
const DESCRIPTIVE: [&str; 8] = [
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "$ref",
];

/// Whether a keyword with this setting rejects no value.
pub(super) fn is_without_effect(keyword: &str, setting: &Value) -> bool {
    match keyword {
        "minLength" | "minItems" | "minProperties" => setting.as_f64() == Some(0.0),
        "uniqueItems" => *setting == Value::Bool(false),
        "patternProperties" | "dependentRequired" | "dependentSchemas" | "dependencies" => {
            setting.as_object().is_some_and(Map::is_empty)
        }
        // Only the top level is examined, because a schema of any depth may be here.
        "unevaluatedItems" | "unevaluatedProperties" | "propertyNames" => {
            *setting == Value::Bool(true) || setting.as_object().is_some_and(Map::is_empty)
        }
        // Both only qualify `contains`, which is reported itself.
        "minContains" | "maxContains" => true,
        _ => false,
    }
}

/// Keywords of `schema`, other than `except`, that may reject values.
pub(super) fn effective<'s>(schema: &'s Map<String, Value>, except: &str) -> Vec<&'s str> {
    let every_kind = [Kind::Number, Kind::Text, Kind::Array, Kind::Object];
    let known = |keyword: &str| {
        LOGICAL.contains(&keyword)
            || COMBINING.contains(&keyword)
            || DESCRIPTIVE.contains(&keyword)
            || every_kind
                .iter()
                .any(|kind| kind.restrictions().contains(&keyword))
    };
    schema
        .iter()
        .filter(|(keyword, setting)| {
            *keyword != except && known(keyword) && !is_without_effect(keyword, setting)
        })
        .map(|(keyword, _)| keyword.as_str())
        .collect()
}

/// Whether a schema obviously accepts every value.
pub(super) fn accepts_all(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(keywords) => effective(keywords, "").is_empty(),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

/// Whether a schema obviously accepts only `null`.
pub(super) fn accepts_only_null(schema: &Value) -> bool {
    let Some(keywords) = schema.as_object() else {
        return false;
    };
    let [keyword] = effective(keywords, "")[..] else {
        return false;
    };
    let is_only = |setting: &Value, only: &Value| {
        setting == only
            || setting
                .as_array()
                .is_some_and(|list| list.iter().eq([only]))
    };
    match (keyword, keywords.get(keyword)) {
        ("type", Some(setting)) => is_only(setting, &Value::from("null")),
        ("const", Some(setting)) => setting.is_null(),
        ("enum", Some(Value::Array(values))) => values.iter().eq([&Value::Null]),
        _ => false,
    }
}

/// Whether a schema obviously accepts no value.
pub(super) fn accepts_none(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => !accepts,
        Value::Object(keywords) => keywords.get("not").is_some_and(accepts_all),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}
