//! Compatibility of types: each rule, and a counterexample for each rejection.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::generate::{fields, nullable_types, sample, sample_fields, unlisted, values};
use crate::signature::{
    Field, Mismatch, Presence, Signature, Type, accepts_parameters, parameters_from_schema,
};

fn ty(text: &str) -> Type {
    let (ty, optional) = Type::parse(text).unwrap();
    if optional { Type::nullable(ty) } else { ty }
}

fn mismatches(ours: &str, theirs: &str) -> Vec<String> {
    let found = ty(ours).accepts(&ty(theirs)).err().unwrap_or_default();
    found.iter().map(Mismatch::to_string).collect()
}

#[test]
fn any_accepts_every_type_and_only_any_accepts_any() {
    let signature = Signature::parse("(a: Any, b: Maybe Any) --> IO Any").unwrap();
    let (takes, gives) = signature.clone().into_parts();
    assert_eq!(gives, Type::Any);
    assert_eq!(
        parameters_from_schema(&signature.parameters_schema()),
        Ok(takes)
    );
    assert_eq!(Type::from_schema(&Type::Any.schema()), Ok(Type::Any));
    assert_eq!(Type::nullable(Type::Any), Type::Any);
    let others = [
        Type::Text,
        Type::list(Type::Integer),
        Type::nullable(Type::Boolean),
        Type::Any,
    ];
    for other in others {
        assert_eq!(Type::Any.accepts(&other), Ok(()), "{other}");
        assert_eq!(other.accepts(&Type::Any).is_ok(), other == Type::Any);
    }
    assert!(Type::Any.misfits(&json!(null)).is_empty());
    // `oneOf` rejects values that both branches accept.
    let either = json!({"oneOf": [{}, {"type": "null"}]});
    assert!(Type::from_schema(&either).is_err());
}

#[test]
fn wider_types_accept_narrower_ones() {
    for (ours, theirs) in [
        ("Double", "Int"),
        ("Text", "\"a\" | \"b\""),
        ("\"a\" | \"b\"", "\"b\""),
        ("Object", "{a: Int}"),
        ("Array", "[Int]"),
        ("[Double]", "[Int]"),
        ("Maybe Double", "Int"),
        ("Maybe Double", "Maybe Int"),
        ("[Maybe Int]", "[Int]"),
        ("{a: Int, b: Maybe Int}", "{a: Int}"),
        ("{a: Maybe Int}", "{a: Int}"),
        ("{a: Int = 3}", "{a: Maybe Int}"),
        ("{}", "{}"),
    ] {
        assert_eq!(
            mismatches(ours, theirs),
            Vec::<String>::new(),
            "{ours} accepts {theirs}"
        );
    }
}

#[test]
fn narrower_types_reject_wider_ones_with_the_place() {
    let rejected = |ours, theirs, expected: &[&str]| {
        assert_eq!(
            mismatches(ours, theirs),
            expected,
            "{ours} rejects {theirs}"
        );
    };
    rejected(
        "Int",
        "Double",
        &["takes Int, the specification allows Double"],
    );
    rejected(
        "\"a\"",
        "Text",
        &["takes \"a\", the specification allows Text"],
    );
    rejected(
        "\"a\"",
        "\"a\" | \"b\"",
        &["does not take \"b\", which the specification allows"],
    );
    rejected(
        "Int",
        "Maybe Int",
        &["takes Int, the specification allows null as well"],
    );
    rejected(
        "[Int]",
        "Array",
        &["takes [Int], the specification allows Array"],
    );
    rejected(
        "{}",
        "Object",
        &["takes {}, the specification allows Object"],
    );
    rejected(
        "[Int]",
        "[Text]",
        &["`[]`: takes Int, the specification allows Text"],
    );
    rejected(
        "{a: Int}",
        "{a: Maybe Int}",
        &["`a`: is required, but the specification lets it be left out"],
    );
    rejected(
        "{a: Int}",
        "{a: Int = 1}",
        &["`a`: is required, but the specification lets it be left out"],
    );
    rejected(
        "{address: {zip: Int, city: Text}, tags: [Int]}",
        "{address: {zip: Text}, tags: [Text], more: Int}",
        &[
            "`address.zip`: takes Int, the specification allows Text",
            "`address.city`: is required, but the specification does not have it",
            "`tags[]`: takes Int, the specification allows Text",
            "`more`: is allowed by the specification, but not taken",
        ],
    );
}

#[test]
fn parameter_lists_compare_like_records() {
    let ours = [
        Field::required("a", Type::Number),
        Field::optional("b", Type::Text),
    ];
    let theirs = [Field::required("a", Type::Integer)];
    assert_eq!(accepts_parameters(&ours, &theirs), Ok(()));
    let found = accepts_parameters(&theirs, &ours).unwrap_err();
    assert_eq!(
        found
            .iter()
            .map(|mismatch| mismatch.path.as_str())
            .collect::<Vec<_>>(),
        ["a", "b"]
    );
}

#[test]
fn comparing_types_of_any_depth_does_not_overflow() {
    let mut deep = Type::Integer;
    for _ in 0..5_000 {
        deep = Type::list(deep);
    }
    let found = deep.accepts(&deep).unwrap_err();
    assert!(found[0].message.contains("deeper than 32"), "{found:?}");
}

/// A value of `theirs` that is not of `ours`, if there is one.
fn counterexample(ours: &Type, theirs: &Type) -> Option<Value> {
    match (ours, theirs) {
        (Type::Nullable(ours), Type::Nullable(theirs)) => counterexample(ours, theirs),
        (_, Type::Nullable(_)) => Some(Value::Null),
        (Type::Nullable(ours), theirs) => counterexample(ours, theirs),
        (Type::Text, Type::Text | Type::Enum(_))
        | (Type::Number, Type::Number | Type::Integer)
        | (Type::Integer, Type::Integer)
        | (Type::Boolean, Type::Boolean)
        | (Type::Object, Type::Object | Type::Record(_))
        | (Type::Array, Type::Array | Type::List(_)) => None,
        (Type::Integer, Type::Number) => Some(json!(0.5)),
        (Type::Enum(ours), Type::Enum(theirs)) => theirs
            .iter()
            .find(|option| !ours.contains(option))
            .map(|option| json!(option)),
        (Type::Enum(options), Type::Text) => Some(json!(unlisted(options))),
        (Type::List(item), Type::Array) => {
            Some(json!([super::generate::value_of_other_type(item)]))
        }
        (Type::Record(fields), Type::Object) => {
            let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
            Some(json!({ unlisted(&names): 1 }))
        }
        (Type::List(ours), Type::List(theirs)) => {
            counterexample(ours, theirs).map(|item| json!([item]))
        }
        (Type::Record(ours), Type::Record(theirs)) => counterexample_record(ours, theirs),
        (_, theirs) => Some(sample(theirs, true)),
    }
}

fn counterexample_record(ours: &[Field], theirs: &[Field]) -> Option<Value> {
    let find =
        |fields: &[Field], name: &str| fields.iter().find(|field| field.name == name).cloned();
    for field in theirs {
        let Some(counterpart) = find(ours, &field.name) else {
            return Some(Value::Object(sample_fields(theirs, true)));
        };
        if let Some(value) = counterexample(&counterpart.ty, &field.ty) {
            let mut object = sample_fields(theirs, true);
            object.insert(field.name.clone(), value);
            return Some(Value::Object(object));
        }
    }
    let absent = ours.iter().any(|field| {
        field.is_required()
            && !find(theirs, &field.name).is_some_and(|counterpart| counterpart.is_required())
    });
    absent.then(|| Value::Object(sample_fields(theirs, false)))
}

/// A variation of `ty`: sometimes wider, sometimes narrower, sometimes neither. `choice` is consumed
/// digit by digit.
fn varied(ty: &Type, choice: &mut u64) -> Type {
    let digit = *choice % 8;
    *choice /= 8;
    match (ty, digit) {
        (_, 0) => ty.clone(),
        (Type::Integer, 1 | 2) => Type::Number,
        (Type::Number, 1) => Type::Integer,
        (Type::Enum(_), 1) | (Type::Text, 1..) => Type::Text,
        (Type::Enum(options), 2 | 3) => Type::options(options.iter().skip(1).chain([&options[0]])),
        (Type::Enum(options), 4) => Type::options(&options[..1]),
        (Type::Enum(options), 5) => {
            Type::options(options.iter().cloned().chain([unlisted(options)]))
        }
        (Type::List(_), 1) => Type::Array,
        (Type::List(item), 2) => match varied(item, choice) {
            Type::Nullable(item) => Type::list(*item),
            item => Type::list(Type::nullable(item)),
        },
        (Type::List(item), _) => Type::list(varied(item, choice)),
        (Type::Nullable(inner), 1) => varied(inner, choice),
        (Type::Nullable(inner), _) => Type::nullable(varied(inner, choice)),
        (Type::Record(_), 1) => Type::Object,
        (Type::Record(fields), _) => Type::Record(varied_fields(fields, choice)),
        _ => ty.clone(),
    }
}

fn varied_fields(fields: &[Field], choice: &mut u64) -> Vec<Field> {
    let mut varied_fields = Vec::new();
    for field in fields {
        let digit = *choice % 8;
        *choice /= 8;
        let field = Field {
            ty: varied(&field.ty, choice),
            ..field.clone()
        };
        match digit {
            0 => {}
            1 => varied_fields.push(Field {
                presence: Presence::Optional,
                ..field
            }),
            2 => varied_fields.push(Field {
                presence: Presence::Required,
                ..field
            }),
            _ => varied_fields.push(field),
        }
    }
    if *choice % 8 == 1 {
        varied_fields.push(Field::optional("another one", Type::Text));
    }
    varied_fields
}

fn check(ours: &Type, theirs: &Type, value: &Value) -> Result<(), TestCaseError> {
    let valid = |ty: &Type, value: &Value| {
        jsonschema::validator_for(&ty.schema())
            .unwrap()
            .is_valid(value)
    };
    match (ours.accepts(theirs), counterexample(ours, theirs)) {
        (Ok(()), None) => {
            prop_assert!(valid(theirs, value));
            prop_assert!(valid(ours, value), "{ours} should take {value} of {theirs}");
        }
        (Err(_), Some(example)) => {
            prop_assert!(valid(theirs, &example), "{theirs} should take {example}");
            prop_assert!(!valid(ours, &example), "{ours} should not take {example}");
        }
        (verdict, example) => {
            prop_assert!(
                false,
                "{ours} accepts {theirs}: {verdict:?}, but {example:?}"
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn a_type_accepts_another_exactly_if_no_value_contradicts(
        ours in nullable_types(2),
        (theirs, value) in nullable_types(2).prop_flat_map(|ty| {
            let value = values(&ty);
            (Just(ty), value)
        }),
        mut choice in any::<u64>(),
    ) {
        check(&ours, &theirs, &value)?;
        let near = varied(&theirs, &mut choice);
        check(&near, &theirs, &value)?;
        check(&theirs, &near, &sample(&near, true))?;
        check(&theirs, &theirs, &value)?;
    }

    #[test]
    fn parameter_lists_accept_others_exactly_if_records_of_them_do(
        theirs in fields(1), mut choice in any::<u64>()
    ) {
        let ours = varied_fields(&theirs, &mut choice);
        prop_assert_eq!(
            accepts_parameters(&ours, &theirs),
            Type::Record(ours).accepts(&Type::Record(theirs))
        );
    }
}
