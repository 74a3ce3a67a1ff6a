use cedar_policy::RestrictedExpression;
use serde_json::{Number, json};

use super::{Unfit, decimal, long};

fn number(value: serde_json::Value) -> Number {
    match value {
        serde_json::Value::Number(number) => number,
        other => panic!("{other} is no number"),
    }
}

#[test]
fn decimal_is_exact_or_refused() {
    let express = |value| decimal(&number(value));
    assert_eq!(express(json!(5)).unwrap(), "5.0");
    assert_eq!(express(json!(0.1)).unwrap(), "0.1");
    assert_eq!(express(json!(-12.3456)).unwrap(), "-12.3456");
    assert_eq!(express(json!(1e3)).unwrap(), "1000.0");
    assert_eq!(
        express(json!(922_337_203_685_477.5)).unwrap(),
        "922337203685477.5"
    );
    for value in [
        json!(0.123_45),
        json!(922_337_203_685_478_i64),
        json!(1e300),
        json!(1e-7),
        json!(u64::MAX),
    ] {
        assert_eq!(express(value.clone()), Err(Unfit::Inexpressible), "{value}");
    }
}

#[test]
fn generated_decimals_are_valid_in_cedar() {
    for value in [
        json!(0),
        json!(-0.0),
        json!(1.5),
        json!(-0.0001),
        json!(922_337_203_685_477.5),
    ] {
        let literal = decimal(&number(value)).unwrap();
        let pairs = [("a".to_owned(), RestrictedExpression::new_decimal(&literal))];
        assert!(
            cedar_policy::Context::from_pairs(pairs).is_ok(),
            "{literal}"
        );
    }
}

#[test]
fn integer_is_exact_or_refused() {
    let express = |value| long(&number(value));
    assert_eq!(express(json!(i64::MIN)).unwrap(), i64::MIN);
    assert_eq!(express(json!(3.0)).unwrap(), 3);
    assert_eq!(express(json!(1.5)), Err(Unfit::Misfit));
    assert_eq!(express(json!(1e17)), Err(Unfit::Inexpressible));
    assert_eq!(express(json!(u64::MAX)), Err(Unfit::Inexpressible));
}
