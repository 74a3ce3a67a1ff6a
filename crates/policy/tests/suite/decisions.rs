//! Allow, ask and deny come from the rules with and without an approval, and errors deny.

use std::borrow::Cow;

use serde_json::json;
use windlass_policy::{Fault, FloorSettings, Policies, Request, Unstated, Verdict};
use windlass_spec::{RiskLevel, SecurityLevel};

use super::support::{brief, call, confidence, email, load, payment, test_tools};

const PERMIT_ALL: &str = "@id(\"all\") permit (principal, action, resource);\n";

fn with(rules: &str) -> Policies {
    load(&format!("{PERMIT_ALL}{rules}"))
}

#[test]
fn call_permitted_without_approval_is_allowed() {
    assert_eq!(brief(&with("").decide(&email())), "allow by all");
}

fn set_cents(request: &mut Request<'_>, cents: i64) {
    let input = request.input.to_mut();
    input.insert("cents".to_owned(), json!(cents));
}

#[test]
fn call_permitted_only_with_approval_is_asked() {
    let forbidding = with(
        "@id(\"ask\") forbid (principal, action == Action::\"send_email\", resource) unless { context.approved };",
    );
    assert_eq!(brief(&forbidding.decide(&email())), "ask by ask");
    let permitting =
        load("@id(\"ok\") permit (principal, action, resource) when { context.approved };");
    assert_eq!(brief(&permitting.decide(&email())), "ask by ok");
}

#[test]
fn call_that_is_never_permitted_is_denied() {
    let forbidding =
        with("@id(\"no\") forbid (principal, action == Action::\"send_email\", resource);");
    assert_eq!(brief(&forbidding.decide(&email())), "deny by no");
    assert_eq!(
        brief(&forbidding.decide(&payment(json!(1)))),
        "allow by all"
    );
    let nothing = load("@id(\"x\") permit (principal, action == Action::\"pay\", resource);");
    assert_eq!(brief(&nothing.decide(&email())), "deny by ");
}

#[test]
fn call_that_needs_approval_must_be_permitted_when_approved() {
    let policies =
        with("@id(\"odd\") forbid (principal, action, resource) when { context.approved };");
    let mut request = email();
    assert_eq!(policies.decide(&request).verdict, Verdict::Allow);
    request.risk = RiskLevel::Irreversible;
    assert_eq!(brief(&policies.decide(&request)), "deny by odd");
}

#[test]
fn an_error_in_a_forbid_denies() {
    let policies = with(
        "@id(\"sum\") forbid (principal, action == Action::\"pay\", resource) when { context.input.cents * 2 > 100 };",
    );
    let mut request = payment(json!(1));
    assert_eq!(policies.decide(&request).verdict, Verdict::Allow);
    set_cents(&mut request, i64::MAX);
    let decision = policies.decide(&request);
    assert_eq!(decision.verdict, Verdict::Deny);
    assert!(
        matches!(decision.faults.as_slice(), [Fault::Evaluation { rule, .. }] if rule == "sum")
    );
}

#[test]
fn an_error_in_a_permit_denies_even_if_another_rule_permits() {
    let policies = with(
        "@id(\"sum\") permit (principal, action == Action::\"pay\", resource) when { context.input.cents + 1 > 100 };",
    );
    let mut request = payment(json!(1));
    set_cents(&mut request, i64::MAX);
    assert_eq!(policies.decide(&request).verdict, Verdict::Deny);
}

#[test]
fn error_that_occurs_only_when_approved_denies() {
    let policies = with(
        "@id(\"ask\") forbid (principal, action == Action::\"pay\", resource) unless { context.approved };
         @id(\"sum\") forbid (principal, action == Action::\"pay\", resource) when { context.approved && context.input.cents + 1 < 0 };",
    );
    let mut request = payment(json!(1));
    assert_eq!(brief(&policies.decide(&request)), "ask by ask");
    set_cents(&mut request, i64::MAX);
    assert_eq!(policies.decide(&request).verdict, Verdict::Deny);
}

#[test]
fn value_without_exact_representation_denies_if_a_rule_uses_it() {
    let policies = with(
        "@id(\"big\") forbid (principal, action, resource) when { context.input has amount && context.input.amount.greaterThan(decimal(\"500.0\")) };",
    );
    assert_eq!(
        policies.decide(&payment(json!(499.99))).verdict,
        Verdict::Allow
    );
    assert_eq!(
        policies.decide(&payment(json!(500.01))).verdict,
        Verdict::Deny
    );
    for amount in [json!(1e30), json!(0.000_01), json!(u64::MAX), json!(-1e15)] {
        let decision = policies.decide(&payment(amount.clone()));
        assert_eq!(decision.verdict, Verdict::Deny, "{amount}");
        let fault = Fault::Inexpressible {
            argument: "amount".to_owned(),
        };
        assert_eq!(decision.faults, [fault], "{amount}");
    }
    // No rule uses it here.
    assert_eq!(
        with("").decide(&payment(json!(1e30))).verdict,
        Verdict::Allow
    );
}

#[test]
fn arguments_that_do_not_fit_deny() {
    let policies = with(
        "@id(\"to\") forbid (principal, action == Action::\"send_email\", resource) when { context.input.to == \"x\" };",
    );
    for input in [json!({"subject": "a"}), json!({"to": 1, "subject": "a"})] {
        let decision = policies.decide(&call("send_email", input));
        assert_eq!(decision.verdict, Verdict::Deny);
        assert!(matches!(decision.faults.as_slice(), [Fault::Misfit { .. }]));
    }
    let undeclared = json!({"to": "a", "subject": "b", "bcc": "c"});
    let decision = policies.decide(&call("send_email", undeclared));
    assert!(
        matches!(decision.faults.as_slice(), [Fault::UndeclaredArgument { argument }] if argument == "bcc")
    );
    assert_eq!(decision.verdict, Verdict::Deny);
}

#[test]
fn an_unknown_tool_is_denied() {
    let decision = with("").decide(&call("format_disk", json!({})));
    assert_eq!(decision.verdict, Verdict::Deny);
    assert!(matches!(
        decision.faults.as_slice(),
        [Fault::UnknownTool { .. }]
    ));
}

#[test]
fn rules_can_use_principal_agent_and_environment() {
    let policies = load(
        r#"
@id("acme") permit (principal in Tenant::"acme", action, resource);
@id("bob") forbid (principal == User::"bob", action, resource);
@id("intern") forbid (principal, action == Action::"send_email", resource == Agent::"intern");
@id("staging") forbid (principal, action, resource) when { context.environment == "staging" };
@id("tenant") forbid (principal, action, resource) when { principal.tenant == "acme" && principal.name == "eve" && resource.name == "clerk" };
"#,
    );
    let verdict = |change: &dyn Fn(&mut Request<'_>)| {
        let mut request = email();
        change(&mut request);
        brief(&policies.decide(&request))
    };
    assert_eq!(verdict(&|_| {}), "allow by acme");
    assert_eq!(
        verdict(&|call| call.tenant = Cow::Borrowed("other")),
        "deny by "
    );
    assert_eq!(
        verdict(&|call| call.principal = Cow::Borrowed("bob")),
        "deny by bob"
    );
    assert_eq!(
        verdict(&|call| call.principal = Cow::Borrowed("eve")),
        "deny by tenant"
    );
    assert_eq!(
        verdict(&|call| call.agent = Cow::Borrowed("intern")),
        "deny by intern"
    );
    assert_eq!(
        verdict(&|call| call.environment = Cow::Borrowed("staging")),
        "deny by staging"
    );
}

#[test]
fn rules_can_use_category_session_and_declared_attributes() {
    let policies = with(
        r#"
@id("money") forbid (principal, action in Action::"category:money", resource) when { context.session.calls >= 3 };
@id("often") forbid (principal, action, resource) when { context.session.tool_calls > 5 || context.session.irreversible_calls > 1 || context.session.denied_calls > 2 };
@id("open") forbid (principal, action, resource) when { context.tool has open_world && context.tool.open_world && context.session.sensitive_read };
@id("mail") forbid (principal, action, resource) when { context.tool has category && context.tool.category == "mail" && context.tainted };
"#,
    );
    let verdict = |request: &Request<'_>| brief(&policies.decide(request));
    let mut request = payment(json!(1));
    request.session.calls = 3;
    assert_eq!(verdict(&request), "deny by money");
    request.tool = Cow::Borrowed("export");
    request.input = Cow::Owned(json!({"format": "pdf"}).as_object().unwrap().clone());
    request.session.sensitive_read = true;
    request.tainted = true;
    assert_eq!(verdict(&request), "allow by all");
    request.session.denied_calls = 3;
    assert_eq!(verdict(&request), "deny by often");
    let mut request = email();
    request.session.sensitive_read = true;
    assert_eq!(verdict(&request), "deny by open");
    request.tainted = true;
    assert_eq!(verdict(&request), "deny by open, mail");
}

#[test]
fn rule_can_raise_but_not_lower_the_security_level() {
    let policies = with(
        r#"
@id("low") @security_level("LOW") forbid (principal, action == Action::"pay", resource) unless { context.approved };
@id("critical") @security_level("CRITICAL") @reason("outside mail") forbid (principal, action == Action::"send_email", resource) unless { context.approved };
"#,
    );
    let mut request = payment(json!(1));
    request.risk = RiskLevel::ReversibleWithDelay;
    assert_eq!(
        policies.decide(&request).security_level,
        SecurityLevel::Medium
    );
    let decision = policies.decide(&email());
    assert_eq!(decision.security_level, SecurityLevel::Critical);
    assert_eq!(decision.reasons, ["outside mail"]);
    for (risk, level) in [
        (RiskLevel::Reversible, SecurityLevel::Low),
        (RiskLevel::ReversibleWithDelay, SecurityLevel::Medium),
        (RiskLevel::Irreversible, SecurityLevel::High),
    ] {
        let mut request = call("export", json!({"format": "pdf"}));
        request.risk = risk;
        assert_eq!(policies.decide(&request).security_level, level);
    }
}

#[test]
fn floor_applies_to_permitted_calls() {
    let policies = with("");
    let mut request = email();
    request.risk = RiskLevel::Irreversible;
    request.confidence = Some(confidence(1.0));
    assert_eq!(policies.decide(&request).verdict, Verdict::Ask);
    request.risk = RiskLevel::ReversibleWithDelay;
    assert_eq!(policies.decide(&request).verdict, Verdict::Hold);
    request.confidence = Some(confidence(0.8));
    assert_eq!(policies.decide(&request).verdict, Verdict::Hold);
    request.confidence = Some(confidence(0.79));
    assert_eq!(policies.decide(&request).verdict, Verdict::Ask);
    request.confidence = None;
    assert_eq!(policies.decide(&request).verdict, Verdict::Hold);
    let strict = policies.clone().with_floor(FloorSettings {
        unstated_confidence: Unstated::Ask,
        ..FloorSettings::default()
    });
    assert_eq!(strict.decide(&request).verdict, Verdict::Ask);
    request.confidence = Some(confidence(0.9));
    request.tainted = true;
    assert_eq!(policies.decide(&request).verdict, Verdict::Ask);
}

#[test]
fn rules_compare_the_confidence_that_was_stated() {
    let policies = with(
        "@id(\"unsure\") forbid (principal, action, resource) when { context has confidence && context.confidence.lessThan(decimal(\"0.29\")) };",
    );
    let mut request = email();
    for (stated, verdict) in [
        (0.29, Verdict::Allow),
        (0.289_999, Verdict::Deny),
        (1e-9, Verdict::Deny),
    ] {
        request.confidence = Some(confidence(stated));
        assert_eq!(policies.decide(&request).verdict, verdict, "{stated}");
    }
}

#[test]
fn a_decision_is_recorded_and_read_back() {
    let decision = with("").decide(&call("nothing", json!({})));
    let json = serde_json::to_string(&decision).unwrap();
    assert_eq!(
        serde_json::from_str::<windlass_policy::Decision>(&json).unwrap(),
        decision
    );
}

#[test]
fn names_with_quotes_work() {
    let odd = super::support::tool("say \"hi\"", "(a: Text) --> Text", Default::default());
    let text = r#"@id("a") permit (principal, action == Action::"say \"hi\"", resource) when { context.input.a == "x" };"#;
    let policies = Policies::load(text, [&odd].into_iter().chain(&test_tools())).unwrap();
    assert_eq!(
        brief(&policies.decide(&call("say \"hi\"", json!({"a": "x"})))),
        "allow by a"
    );
}

#[test]
fn error_without_approval_denies_even_if_approval_lifts_the_rule() {
    let policies = with(
        "@id(\"ask\") forbid (principal, action == Action::\"pay\", resource) when { context.input.cents + 1 > 9 } unless { context.approved };",
    );
    let mut request = payment(json!(1));
    request.risk = RiskLevel::Irreversible;
    set_cents(&mut request, 9);
    assert_eq!(brief(&policies.decide(&request)), "ask by ask");
    set_cents(&mut request, i64::MAX);
    assert_eq!(policies.decide(&request).verdict, Verdict::Deny);
}

#[test]
fn error_caused_by_approval_denies_in_a_rule_that_approval_lifts() {
    let policies = with(
        "@id(\"ask\") forbid (principal, action == Action::\"pay\", resource) when { if context.approved then context.input.cents + 1 > 0 else true } unless { context.approved };",
    );
    let mut request = payment(json!(1));
    assert_eq!(brief(&policies.decide(&request)), "ask by ask");
    set_cents(&mut request, i64::MAX);
    assert_eq!(policies.decide(&request).verdict, Verdict::Deny);
}

/// Many rules are evaluated in groups. Deciding rules and faults are reported for each rule.
#[test]
fn deciding_rules_are_named_among_many() {
    let rules: String = (0..=50)
        .map(|number| {
            let asks = if number % 2 == 0 { " unless { context.approved }" } else { "" };
            format!(
                "@id(\"limit-{number:02}\") forbid (principal, action == Action::\"pay\", resource) when {{ context.input.cents * {number} > 999 }}{asks};\n"
            )
        })
        .collect();
    let policies = with(&rules);
    let decide = |cents: i64| {
        let mut request = payment(json!(1));
        set_cents(&mut request, cents);
        policies.decide(&request)
    };
    assert_eq!(brief(&decide(19)), "allow by all");
    assert_eq!(brief(&decide(20)), "ask by limit-50");
    let decision = decide(21);
    assert_eq!(brief(&decision), "deny by limit-48, limit-49, limit-50");
    let decision = decide(i64::MAX / 40);
    assert_eq!(decision.verdict, Verdict::Deny);
    let rules: Vec<_> = decision
        .faults
        .iter()
        .map(|fault| match fault {
            Fault::Evaluation { rule, .. } => rule.as_str(),
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(
        rules,
        ["limit-41", "limit-43", "limit-45", "limit-47", "limit-49"]
    );
}
