//! Strategies that generate valid types, signatures, and values that fit them.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::signature::{Field, Presence, Signature, Type};

/// Names: mostly from a small set, so that generated records resemble each other.
fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(vec!["a", "b", "c", "IO", "Maybe"]).prop_map(str::to_owned),
        2 => "[a-zA-Z_][a-z0-9_.-]{0,5}",
        1 => "\\PC{1,5}",
        1 => "[\"'`\\\\\n:é]{1,3}",
    ]
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(vec!["x", "y", "z", ""]).prop_map(str::to_owned),
        1 => any::<String>().prop_map(|text| text.chars().take(8).collect()),
    ]
}

fn numbers() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        Just(json!(0.5)),
    ]
}

fn integers() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        Just(json!(2.0)),
        Just(json!(u64::MAX))
    ]
}

pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        numbers(),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((names(), inner), 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Types allowed for a field.
pub(super) fn types(depth: u32) -> BoxedStrategy<Type> {
    let enums = prop::collection::vec(texts(), 1..4).prop_map(|options| {
        let mut seen = HashSet::new();
        Type::Enum(
            options
                .into_iter()
                .filter(|option| seen.insert(option.clone()))
                .collect(),
        )
    });
    let leaf = prop_oneof![
        Just(Type::Text),
        Just(Type::Integer),
        Just(Type::Number),
        Just(Type::Boolean),
        Just(Type::Object),
        Just(Type::Array),
        enums,
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    prop_oneof![
        3 => leaf,
        2 => nullable_types(depth - 1).prop_map(Type::list),
        2 => fields(depth - 1).prop_map(Type::Record),
    ]
    .boxed()
}

/// Types allowed for a list's item or as a return type.
pub(super) fn nullable_types(depth: u32) -> BoxedStrategy<Type> {
    let plain = types(depth);
    prop_oneof![3 => plain.clone(), 1 => plain.prop_map(Type::nullable)].boxed()
}

pub(super) fn fields(depth: u32) -> BoxedStrategy<Vec<Field>> {
    prop::collection::vec(field(depth), 0..4)
        .prop_map(|fields| {
            let mut seen = HashSet::new();
            fields
                .into_iter()
                .filter(|field| seen.insert(field.name.clone()))
                .collect()
        })
        .boxed()
}

fn field(depth: u32) -> impl Strategy<Value = Field> {
    (names(), types(depth), prop::option::of(texts())).prop_flat_map(|(name, ty, description)| {
        let presence = prop_oneof![
            2 => Just(Presence::Required),
            1 => Just(Presence::Optional),
            1 => values(&ty).prop_map(Presence::Default),
        ];
        presence.prop_map(move |presence| Field {
            name: name.clone(),
            ty: ty.clone(),
            presence,
            description: description.clone(),
        })
    })
}

pub(super) fn signatures() -> impl Strategy<Value = Signature> {
    (fields(2), nullable_types(2))
        .prop_map(|(parameters, returns)| Signature::new(parameters, returns).unwrap())
}

/// Values of a type.
pub(super) fn values(ty: &Type) -> BoxedStrategy<Value> {
    match ty {
        Type::Text => texts().prop_map(Value::from).boxed(),
        Type::Integer => integers().boxed(),
        Type::Number => numbers().boxed(),
        Type::Boolean => any::<bool>().prop_map(Value::from).boxed(),
        Type::Object => prop::collection::vec((names(), any_json()), 0..3)
            .prop_map(|entries| Value::Object(entries.into_iter().collect()))
            .boxed(),
        Type::Array => prop::collection::vec(any_json(), 0..3)
            .prop_map(Value::from)
            .boxed(),
        Type::Any => any_json().boxed(),
        Type::List(item) => prop::collection::vec(values(item), 0..3)
            .prop_map(Value::from)
            .boxed(),
        Type::Record(fields) => objects(fields),
        Type::Enum(options) => prop::sample::select(options.clone())
            .prop_map(Value::from)
            .boxed(),
        Type::Nullable(inner) => prop_oneof![Just(Value::Null), values(inner)].boxed(),
    }
}

/// Objects with these fields, sometimes without the optional ones.
pub(super) fn objects(fields: &[Field]) -> BoxedStrategy<Value> {
    let entries: Vec<BoxedStrategy<Option<(String, Value)>>> = fields
        .iter()
        .map(|field| {
            let name = field.name.clone();
            let entry = values(&field.ty).prop_map(move |value| Some((name.clone(), value)));
            if field.is_required() {
                entry.boxed()
            } else {
                prop_oneof![Just(None), entry].boxed()
            }
        })
        .collect();
    entries
        .prop_map(|entries| Value::Object(entries.into_iter().flatten().collect()))
        .boxed()
}

/// A fixed value of a type. Records have all their fields, or only the required ones.
pub(super) fn sample(ty: &Type, full: bool) -> Value {
    match ty {
        Type::Text => json!(""),
        Type::Integer | Type::Number => json!(1),
        Type::Boolean => json!(true),
        Type::Object => json!({}),
        Type::Array => json!([]),
        Type::Any => Value::Null,
        Type::List(item) => json!([sample(item, full)]),
        Type::Record(fields) => Value::Object(sample_fields(fields, full)),
        Type::Enum(options) => json!(options[0]),
        Type::Nullable(inner) => sample(inner, full),
    }
}

pub(super) fn sample_fields(fields: &[Field], full: bool) -> Map<String, Value> {
    fields
        .iter()
        .filter(|field| full || field.is_required())
        .map(|field| (field.name.clone(), sample(&field.ty, full)))
        .collect()
}

/// A value that is not of the type.
pub(super) fn value_of_other_type(ty: &Type) -> Value {
    match ty {
        Type::Text | Type::Enum(_) => json!(1),
        Type::Integer => json!(0.5),
        Type::Number
        | Type::Boolean
        | Type::Object
        | Type::Array
        | Type::List(_)
        | Type::Record(_) => json!("value_of_other_type"),
        Type::Nullable(inner) => value_of_other_type(inner),
        // There is no such value; no caller passes this type.
        Type::Any => Value::Null,
    }
}

/// A string that is none of the options.
pub(super) fn unlisted(options: &[String]) -> String {
    let mut text = "unlisted".to_owned();
    while options.contains(&text) {
        text.push('!');
    }
    text
}
