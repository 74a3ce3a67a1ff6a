//! The default policies load with any tools and decide as documented.

use serde_json::json;
use windlass_policy::{DEFAULT_POLICIES, Policies, Verdict};
use windlass_spec::{RiskLevel, ToolSpecification};

use super::support::{brief, call, email, payment, test_tools};

fn defaults() -> Policies {
    Policies::defaults(&test_tools()).unwrap()
}

#[test]
fn the_defaults_load_with_any_tools_and_with_none() {
    let none: [ToolSpecification; 0] = [];
    assert!(Policies::defaults(&none).is_ok());
    assert!(defaults().warnings().is_empty());
}

#[test]
fn every_default_rule_has_a_reason_and_examples() {
    for rule in defaults().rules() {
        assert!(rule.reason.is_some(), "{}", rule.id);
    }
    let examples = DEFAULT_POLICIES.matches("@match").count();
    assert!(examples >= defaults().rules().len());
}

#[test]
fn a_broken_example_in_the_defaults_would_be_noticed() {
    let broken = DEFAULT_POLICIES.replacen("@not_match", "@match", 1);
    assert!(Policies::load(&broken, &test_tools()).is_err());
}

#[test]
fn reversible_calls_are_allowed_and_irreversible_ones_asked() {
    let policies = defaults();
    assert_eq!(
        brief(&policies.decide(&call("export", json!({"format": "pdf"})))),
        "allow by calls"
    );
    let mut request = payment(json!(1));
    request.risk = RiskLevel::Irreversible;
    assert_eq!(
        brief(&policies.decide(&request)),
        "ask by irreversible-asks"
    );
    request.risk = RiskLevel::ReversibleWithDelay;
    assert_eq!(policies.decide(&request).verdict, Verdict::Hold);
    request.tainted = true;
    assert_eq!(brief(&policies.decide(&request)), "ask by tainted-asks");
}

#[test]
fn confidential_data_does_not_leave_without_approval() {
    let policies = defaults();
    let mut request = email();
    assert_eq!(policies.decide(&request).verdict, Verdict::Allow);
    request.session.sensitive_read = true;
    assert_eq!(
        brief(&policies.decide(&request)),
        "ask by sensitive-data-leaves"
    );
    let mut request = call("export", json!({"format": "pdf"}));
    request.session.sensitive_read = true;
    assert_eq!(policies.decide(&request).verdict, Verdict::Allow);
}
