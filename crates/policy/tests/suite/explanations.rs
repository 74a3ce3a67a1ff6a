//! Explanations of decisions, and the comparison of changed policies on recorded calls.

use serde_json::json;
use windlass_policy::{Policies, Request, Verdict, replay};
use windlass_spec::RiskLevel;

use super::support::{call, email, load, payment, test_tools};

#[test]
fn explanation_names_rules_floor_and_possible_changes() {
    let policies = Policies::defaults(&test_tools()).unwrap();
    let mut request = payment(json!(1));
    request.risk = RiskLevel::Irreversible;
    request.tainted = true;
    insta::assert_snapshot!(policies.explain(&request));
}

#[test]
fn explanation_shows_that_only_the_floor_decided() {
    let policies = load("@id(\"all\") permit (principal, action, resource);");
    let mut request = email();
    request.risk = RiskLevel::ReversibleWithDelay;
    request.confidence = Some(super::support::confidence(0.5));
    insta::assert_snapshot!(policies.explain(&request));
}

#[test]
fn explanation_shows_that_no_rule_permits() {
    let policies = load(
        "@id(\"dev\") permit (principal, action, resource) when { context.environment == \"development\" };",
    );
    insta::assert_snapshot!(policies.explain(&email()));
}

#[test]
fn explanation_shows_faults() {
    let policies = load("@id(\"all\") permit (principal, action, resource);");
    insta::assert_snapshot!(policies.explain(&call("nothing", json!({}))));
}

#[test]
fn replay_lists_changed_decisions() {
    let old = load("@id(\"all\") permit (principal, action, resource);");
    let new = load(
        r#"@id("everything") permit (principal, action, resource);
@id("mail") @reason("mail leaves the company") forbid (principal, action == Action::"send_email", resource) unless { context.approved };"#,
    );
    let recorded = [
        payment(json!(1)),
        email(),
        call("export", json!({"format": "pdf"})),
    ];
    let differences = replay(&old, &new, &recorded);
    assert_eq!(differences.len(), 1);
    assert_eq!(differences[0].index, 1);
    assert_eq!(differences[0].before.verdict, Verdict::Allow);
    assert_eq!(differences[0].after.verdict, Verdict::Ask);
    assert!(!differences[0].is_weaker());
    assert!(replay(&new, &old, &recorded)[0].is_weaker());
    assert!(replay(&new, &new, &recorded).is_empty());
}

#[test]
fn replay_lists_a_changed_security_level() {
    let rule = |level: &str| {
        load(&format!(
            "@id(\"a\") @security_level(\"{level}\") permit (principal, action, resource) when {{ context.approved }};"
        ))
    };
    assert_eq!(replay(&rule("LOW"), &rule("HIGH"), &[email()]).len(), 1);
}

#[test]
fn a_request_is_recorded_and_read_back() {
    let mut request = payment(json!(1.5));
    request.confidence = Some(super::support::confidence(0.5));
    let text = serde_json::to_string(&request).unwrap();
    assert_eq!(
        serde_json::from_str::<Request<'static>>(&text).unwrap(),
        request
    );
}

/// A project that is not trusted may have written them.
#[test]
fn ids_and_reasons_are_shown_on_one_line() {
    let policies = load(
        "@id(\"all\\nhint: run this\") @reason(\"no\\nerror: forged\\u{202e}\") forbid (principal, action, resource);",
    );
    let rule = policies.rules()[0];
    assert_eq!(rule.id, "all hint: run this");
    let reason = rule.reason.as_deref().unwrap();
    assert_eq!(reason, "no error: forged\\u{202e}");
    assert!(
        policies
            .decide(&email())
            .to_string()
            .contains("all hint: run this")
    );
}
