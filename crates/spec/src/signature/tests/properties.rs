//! Properties that hold for every signature, and for every text.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::generate::{
    nullable_types, objects, sample_fields, signatures, unlisted, value_of_other_type, values,
};
use crate::signature::{Presence, Signature, Type, parameters_from_schema};

fn is_valid(schema: &Value, value: &Value) -> bool {
    jsonschema::validator_for(schema).unwrap().is_valid(value)
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_printed_signature_parses_back(signature in signatures()) {
        let text = signature.to_string();
        prop_assert_eq!(Signature::parse(&text), Ok(signature), "{}", text);
    }

    #[test]
    fn a_printed_type_parses_back(ty in nullable_types(3)) {
        let (read, optional) = Type::parse(&ty.to_string()).unwrap();
        let read = if optional { Type::nullable(read) } else { read };
        prop_assert_eq!(read, ty);
    }

    #[test]
    fn a_signature_round_trips_through_its_schemas(signature in signatures()) {
        let parameters = signature.parameters_schema();
        let returns = signature.returns_schema();
        let read = Signature::from_schemas(&parameters, &returns).unwrap();
        prop_assert_eq!(read.parameters_schema(), parameters);
        prop_assert_eq!(read.returns_schema(), returns);
        prop_assert_eq!(read, signature);
    }

    #[test]
    fn arguments_that_fit_are_accepted_by_the_schema(
        (signature, arguments) in signatures().prop_flat_map(|signature| {
            let arguments = objects(signature.parameters());
            (Just(signature), arguments)
        })
    ) {
        prop_assert!(is_valid(&signature.parameters_schema(), &arguments));
    }

    #[test]
    fn values_of_a_type_fit_its_schema(
        (ty, value) in nullable_types(2).prop_flat_map(|ty| {
            let value = values(&ty);
            (Just(ty), value)
        })
    ) {
        prop_assert!(is_valid(&ty.schema(), &value));
        prop_assert_eq!(crate::signature::check::misfit(&ty, &value), None);
    }

    #[test]
    fn checking_a_value_agrees_with_the_schema(
        ty in nullable_types(2),
        (_, value) in nullable_types(2).prop_flat_map(|other| {
            let value = values(&other);
            (Just(other), value)
        })
    ) {
        let fits = crate::signature::check::misfit(&ty, &value).is_none();
        prop_assert_eq!(fits, is_valid(&ty.schema(), &value));
    }

    #[test]
    fn arguments_that_do_not_fit_are_rejected_by_the_schema(signature in signatures()) {
        let schema = signature.parameters_schema();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let arguments = sample_fields(signature.parameters(), true);
        prop_assert!(validator.is_valid(&Value::Object(arguments.clone())));

        let mut extra = arguments.clone();
        let names: Vec<String> = arguments.keys().cloned().collect();
        extra.insert(unlisted(&names), json!(1));
        prop_assert!(!validator.is_valid(&Value::Object(extra)));

        for field in signature.parameters() {
            let mut changed = arguments.clone();
            changed.insert(field.name.clone(), value_of_other_type(&field.ty));
            prop_assert!(!validator.is_valid(&Value::Object(changed)));

            let mut null = arguments.clone();
            null.insert(field.name.clone(), Value::Null);
            prop_assert!(!validator.is_valid(&Value::Object(null)));

            let mut without = arguments.clone();
            without.shift_remove(&field.name);
            let allowed = field.presence != Presence::Required;
            prop_assert_eq!(validator.is_valid(&Value::Object(without)), allowed);

            if let Type::Enum(options) = &field.ty {
                let mut outside = arguments.clone();
                outside.insert(field.name.clone(), json!(unlisted(options)));
                prop_assert!(!validator.is_valid(&Value::Object(outside)));
            }
        }
    }

    #[test]
    fn a_closed_schema_without_required_keys_reads_as_one_with_an_empty_list(
        signature in signatures()
    ) {
        let mut schema = signature.parameters_schema();
        let required = schema.as_object_mut().unwrap().shift_remove("required").unwrap();
        let read = parameters_from_schema(&schema);
        if required == json!([]) {
            prop_assert_eq!(read.as_deref(), Ok(signature.parameters()));
        } else {
            prop_assert!(read.unwrap().iter().all(|field| !field.is_required()));
        }
    }
}

/// Random concatenations of fragments of the notation, which reach deep into the parser.
fn random_fragments() -> impl Strategy<Value = String> {
    let pieces = vec![
        "(", ")", "[", "]", "{", "}", ",", ":", "=", "|", "?", "-->", "->", "=>", "-", "IO",
        "Maybe", "Text", "Int", "List", "Optional", "or", "null", "true", "a", "b", "\"x\"", "\"",
        "'", "`", "\\", "\\u", "\\ud800", "12", "-1.5e3", "1e999", "<", ">", " ", "\n", "é", "“",
        "→", ".",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..60).prop_map(|pieces| pieces.concat())
}

fn check_any_text(text: &str) -> Result<(), TestCaseError> {
    let check_spans = |diagnostics: &[windlass_gram::Diagnostic]| {
        prop_assert!(!diagnostics.is_empty());
        for diagnostic in diagnostics {
            let (start, end) = (diagnostic.span.start as usize, diagnostic.span.end as usize);
            prop_assert!(text.get(start..end).is_some(), "{diagnostic:?} in {text:?}");
        }
        Ok(())
    };
    match Signature::parse(text) {
        Ok(signature) => prop_assert_eq!(Signature::parse(&signature.to_string()), Ok(signature)),
        Err(diagnostics) => check_spans(&diagnostics)?,
    }
    if let Err(diagnostics) = Type::parse(text) {
        check_spans(&diagnostics)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn texts_of_fragments_do_not_break_the_parser(text in random_fragments()) {
        check_any_text(&text)?;
        check_any_text(&format!("(a: {text}) --> IO Text"))?;
    }

    #[test]
    fn printable_texts_do_not_break_the_parser(text in "\\PC{0,40}") {
        check_any_text(&text)?;
        check_any_text(&format!("({text}"))?;
    }

    #[test]
    fn arbitrary_bytes_do_not_break_the_parser(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        check_any_text(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn a_signature_with_a_part_removed_does_not_break_the_parser(
        signature in signatures(), from in 0..200_usize, length in 1..20_usize
    ) {
        let text = signature.to_string();
        let kept = text.chars().enumerate();
        let kept = kept.filter(|(index, _)| !(from..from + length).contains(index));
        check_any_text(&kept.map(|(_, character)| character).collect::<String>())?;
    }
}
