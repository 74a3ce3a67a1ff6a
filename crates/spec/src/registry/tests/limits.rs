//! Rate limits, and the configuration of a tool.

use std::num::NonZeroU32;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::read_error;
use crate::Signature;
use crate::registry::*;

fn limits(value: Value) -> RateLimits {
    serde_json::from_value(value).unwrap()
}

#[test]
fn rate_limits_are_positive() {
    for bad in [0, -1, i64::from(u32::MAX) + 1] {
        let error = read_error::<RateLimits>(json!({ "per_minute": bad }));
        assert!(error.contains("positive integer"), "{error}");
    }
    assert!(serde_json::from_value::<RateLimits>(json!({ "per_minute": 1.5 })).is_err());
    let good = limits(json!({ "per_minute": 1 }));
    assert_eq!(good.get(Window::PerMinute), NonZeroU32::new(1));
    assert_eq!(good.get(Window::PerDay), None);
}

#[test]
fn windows_are_a_closed_set() {
    let words = [
        "per_second",
        "per_minute",
        "per_hour",
        "per_day",
        "concurrent",
    ];
    assert_eq!(Window::ALL.map(Window::as_str), words);
    let error = read_error::<RateLimits>(json!({ "per_week": 1 }));
    assert!(
        error.contains("`per_week` is not a valid window; write one of per_second"),
        "{error}"
    );
    let seconds = Window::ALL.map(Window::seconds);
    assert_eq!(seconds, [Some(1), Some(60), Some(3600), Some(86400), None]);
}

#[test]
fn a_ceiling_lowers_limits_and_never_raises_them() {
    let own = limits(json!({ "per_minute": 10, "per_hour": 20 }));
    let ceiling = limits(json!({ "per_minute": 5, "per_hour": 100, "concurrent": 2 }));
    let lowered = own.lowered_to(&ceiling);
    let expected = json!({ "per_minute": 5, "per_hour": 20, "concurrent": 2 });
    assert_eq!(lowered, limits(expected));
}

#[test]
fn capping_does_not_add_a_limit() {
    let own = limits(json!({ "per_minute": 10, "per_hour": 20 }));
    let ceiling = limits(json!({ "per_minute": 5, "concurrent": 2 }));
    let expected = json!({ "per_minute": 5, "per_hour": 20 });
    assert_eq!(own.capped_at(&ceiling), limits(expected));
}

fn any_limits() -> impl Strategy<Value = RateLimits> {
    let pair = (prop::sample::select(Window::ALL.to_vec()), 1u32..50);
    prop::collection::vec(pair, 0..6).prop_map(|pairs| {
        pairs
            .into_iter()
            .fold(RateLimits::none(), |limits, (window, limit)| {
                limits.with(window, NonZeroU32::new(limit).unwrap())
            })
    })
}

proptest! {
    #[test]
    fn lowered_limits_are_the_minimum_of_both(a in any_limits(), b in any_limits()) {
        let lowered = a.lowered_to(&b);
        prop_assert_eq!(&lowered, &b.lowered_to(&a));
        prop_assert_eq!(&lowered, &lowered.lowered_to(&a));
        for window in Window::ALL {
            let least = [a.get(window), b.get(window)].into_iter().flatten().min();
            prop_assert_eq!(lowered.get(window), least);
        }
    }
}

#[test]
fn timeout_is_1_to_300_seconds() {
    for bad in [0, -1, 301] {
        let error =
            read_error::<ToolConfiguration>(json!({ "tool_name": "t", "timeout_seconds": bad }));
        assert!(error.contains("1 to 300 seconds"), "{error}");
    }
    for good in [1, 300] {
        let read = json!({ "tool_name": "t", "timeout_seconds": good });
        let tool: ToolConfiguration = serde_json::from_value(read).unwrap();
        assert_eq!(tool.timeout_seconds.map(i64::from), Some(good));
    }
}

#[test]
fn a_configuration_has_exactly_these_keys() {
    let full = json!({
        "tool_name": "find_customer",
        "enabled": false,
        "parameters": { "page_size": 20 },
        "environment_overrides": {
            "production": {
                "enabled": true,
                "parameters": { "page_size": 50 },
                "rate_limits": { "per_minute": 5 },
                "timeout_seconds": 20,
            },
        },
        "rate_limits": { "per_minute": 30 },
        "timeout_seconds": 10,
    });
    let read: ToolConfiguration = serde_json::from_value(full.clone()).unwrap();
    assert_eq!(json!(read), full);
    let error = read_error::<ToolConfiguration>(json!({ "tool_name": "t", "timout": 1 }));
    assert!(error.contains("timout"), "{error}");
    let overridden = json!({ "tool_name": "t", "environment_overrides": { "qa": { "risk": 1 } } });
    assert!(read_error::<ToolConfiguration>(overridden).contains("risk"));
}

#[test]
fn a_tool_is_enabled_by_default() {
    let tool: ToolConfiguration = serde_json::from_value(json!({ "tool_name": "t" })).unwrap();
    assert!(tool.enabled);
    assert_eq!(tool, ToolConfiguration::new("t".parse().unwrap()));
}

#[test]
fn an_override_applies_only_in_its_environment() {
    let tool: ToolConfiguration = serde_json::from_value(json!({
        "tool_name": "t",
        "parameters": { "a": 1, "b": 2 },
        "rate_limits": { "per_minute": 30, "per_day": 100 },
        "timeout_seconds": 10,
        "environment_overrides": {
            "production": {
                "enabled": false,
                "parameters": { "b": 3 },
                "rate_limits": { "per_minute": 5 },
                "timeout_seconds": 20,
            },
            "staging": {},
        },
    }))
    .unwrap();
    let everywhere = tool.resolved(&Environment::DEVELOPMENT);
    assert_eq!(everywhere, tool.resolved(&Environment::STAGING));
    assert!(everywhere.enabled);
    assert_eq!(json!(everywhere.parameters), json!({ "a": 1, "b": 2 }));
    let production = tool.resolved(&Environment::PRODUCTION);
    assert!(!production.enabled);
    assert_eq!(json!(production.parameters), json!({ "a": 1, "b": 3 }));
    let lowered = limits(json!({ "per_minute": 5, "per_day": 100 }));
    assert_eq!(production.rate_limits, lowered);
    assert_eq!(production.timeout_seconds.map(i64::from), Some(20));
}

#[test]
fn the_key_of_an_override_must_be_an_environment_name() {
    let bad = json!({ "tool_name": "t", "environment_overrides": { "Prod": {} } });
    assert!(read_error::<ToolConfiguration>(bad).contains("is not the name of an environment"));
}

#[test]
fn parameters_must_fit_the_signature_of_the_tool() {
    let signature = Signature::parse("(query: Text, page_size: Int) --> Text").unwrap();
    let tool: ToolConfiguration = serde_json::from_value(json!({
        "tool_name": "t",
        "parameters": { "page_size": 20 },
        "environment_overrides": {
            "production": { "parameters": { "page_size": "many", "qery": "x" } },
        },
    }))
    .unwrap();
    let misfits: Vec<_> = tool
        .misfits(&signature)
        .iter()
        .map(ToString::to_string)
        .collect();
    let place = "/environment_overrides/production/parameters";
    assert_eq!(
        misfits,
        [
            format!("{place}/page_size: expected Int, got \"many\""),
            format!("{place}/qery: expected no such parameter (did you mean `query`?), got \"x\""),
        ]
    );
}
