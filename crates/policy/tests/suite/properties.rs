//! Properties that hold for all inputs.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;
use windlass_policy::{FloorSettings, Policies, Request, Session, Unstated, Verdict, floor};
use windlass_spec::{Confidence, RiskLevel};

use super::reference;
use super::support::{call, payment, test_tools};

static DEFAULTS: LazyLock<Policies> = LazyLock::new(|| Policies::defaults(&test_tools()).unwrap());

fn risk() -> impl Strategy<Value = RiskLevel> {
    prop::sample::select(RiskLevel::ALL.to_vec())
}

fn stated() -> impl Strategy<Value = Confidence> {
    // Values around the threshold are more frequent.
    prop_oneof![0.0..=1.0_f64, 0.799..=0.801_f64, Just(0.8)]
        .prop_map(|number| Confidence::try_from(number).unwrap())
}

fn settings() -> impl Strategy<Value = FloorSettings> {
    let unstated = prop::sample::select(vec![Unstated::Hold, Unstated::Ask]);
    (stated(), unstated).prop_map(
        |(confidence_threshold, unstated_confidence)| FloorSettings {
            confidence_threshold,
            unstated_confidence,
        },
    )
}

fn request() -> impl Strategy<Value = Request<'static>> {
    let session = (0..9_u32, 0..9_u32, 0..9_u32, any::<bool>());
    let confidence = prop::option::of(stated());
    let known = (risk(), confidence, any::<bool>(), session);
    (
        any::<bool>(),
        prop::sample::select(vec!["production", "development"]),
        known,
    )
        .prop_map(
            |(pays, environment, (risk, confidence, tainted, session))| {
                let mut request = if pays {
                    let mut request = payment(json!(session.0));
                    let cents = json!(session.1);
                    request.input.to_mut().insert("cents".to_owned(), cents);
                    request
                } else {
                    call("send_email", json!({"to": "a", "subject": "b"}))
                };
                request.risk = risk;
                request.confidence = confidence;
                request.tainted = tainted;
                request.environment = environment.into();
                request.session = Session {
                    calls: session.0,
                    tool_calls: session.1,
                    irreversible_calls: session.2,
                    sensitive_read: session.3,
                    ..Session::default()
                };
                request
            },
        )
}

/// Whether the second confidence is at most the first. A confidence that is not stated counts as
/// less than one at or above the threshold; if the operator requires approval then, as less than all.
fn is_lower(
    first: Option<Confidence>,
    second: Option<Confidence>,
    settings: &FloorSettings,
) -> bool {
    match (first, second) {
        (Some(first), Some(second)) => second <= first,
        (Some(first), None) => {
            settings.unstated_confidence == Unstated::Ask || first >= settings.confidence_threshold
        }
        (None, None) => true,
        (None, Some(second)) => {
            settings.unstated_confidence == Unstated::Hold && second < settings.confidence_threshold
        }
    }
}

/// A random rule. Rules that forbid are narrower, or hardly anything would be permitted.
fn rule() -> impl Strategy<Value = String> {
    let action = prop::sample::select(vec![
        "action",
        "action in Action::\"tools\"",
        "action == Action::\"pay\"",
        "action in [Action::\"send_email\", Action::\"category:money\"]",
    ]);
    let narrow = prop::sample::select(vec![
        "context.risk == \"irreversible\"",
        "context.tainted && context.session.calls > 6",
        "context.session.tool_calls == 1",
        "context.session.irreversible_calls == 2",
        "context has confidence && context.confidence.lessThan(decimal(\"0.1\"))",
        "context.input has amount && context.input.amount.lessThan(decimal(\"2.0\"))",
        "context.input has cents && context.input.cents * 4611686018427387904 < 0",
        "context.input has cents && context.input.cents * 1152921504606846976 < 0",
        "context.input has cents && (if context.approved then context.input.cents * 4611686018427387904 < 0 else context.tainted)",
        "context.environment == \"production\" && context.session.calls == 3",
        "context.tool has open_world && context.tool.open_world && context.session.sensitive_read",
    ]);
    let approval = prop::sample::select(vec![
        "",
        "unless { context.approved }",
        "unless { context.approved }",
        "when { context.approved }",
        "when { !context.approved }",
    ]);
    let forbid = (action.clone(), narrow.clone(), approval.clone());
    let forbid = forbid.prop_map(|(action, condition, approval)| {
        format!("forbid (principal, {action}, resource) when {{ {condition} }} {approval};")
    });
    let permit = (action, prop::option::of(narrow), approval);
    let permit = permit.prop_map(|(action, condition, approval)| {
        let condition = condition.map_or(String::new(), |it| format!("when {{ {it} }}"));
        format!("permit (principal, {action}, resource) {condition} {approval};")
    });
    let for_one = Just(
        "forbid (principal == User::\"bob\", action, resource == Agent::\"clerk\");".to_owned(),
    );
    prop_oneof![6 => forbid, 3 => permit, 1 => for_one]
}

/// A random policy file. Some have enough rules to be evaluated in groups.
fn text() -> impl Strategy<Value = String> {
    let number = prop_oneof![0..6_usize, 6..40_usize];
    let rules = number.prop_flat_map(|number| prop::collection::vec(rule(), number));
    (any::<bool>(), rules).prop_map(|(permits, mut rules)| {
        if permits {
            rules.push("permit (principal, action, resource);".to_owned());
        }
        let rules = rules.iter().enumerate();
        rules
            .map(|(number, rule)| format!("@id(\"rule-{number}\") {rule}\n"))
            .collect()
    })
}

fn load(text: &str) -> Policies {
    Policies::load(text, &test_tools()).unwrap_or_else(|errors| panic!("{}", errors[0]))
}

fn policies() -> impl Strategy<Value = Policies> {
    text().prop_map(|text| load(&text))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn cached_answers_do_not_change_decisions(
        policies in policies(),
        requests in prop::collection::vec((request(), any::<bool>()), 2..20),
    ) {
        for (mut request, is_bob) in requests {
            if is_bob {
                request.principal = "bob".into();
            }
            // A copy has an empty cache.
            let alone = policies.clone().decide(&request);
            prop_assert_eq!(policies.decide(&request), alone.clone());
            prop_assert_eq!(policies.decide(&request), alone);
        }
    }

    #[test]
    fn raising_the_risk_never_weakens_the_floor(
        (one, other) in (risk(), risk()), confidence in prop::option::of(stated()),
        tainted: bool, settings in settings(),
    ) {
        let (low, high) = (one.min(other), one.max(other));
        prop_assert!(
            floor(low, confidence, tainted, &settings) <= floor(high, confidence, tainted, &settings)
        );
    }

    #[test]
    fn lowering_the_confidence_never_weakens_the_floor(
        risk in risk(), high in prop::option::of(stated()), low in prop::option::of(stated()),
        tainted: bool, settings in settings(),
    ) {
        prop_assume!(is_lower(high, low, &settings));
        prop_assert!(
            floor(risk, high, tainted, &settings) <= floor(risk, low, tainted, &settings)
        );
    }

    #[test]
    fn taint_never_weakens_the_floor(
        risk in risk(), confidence in prop::option::of(stated()), settings in settings(),
    ) {
        prop_assert!(
            floor(risk, confidence, false, &settings) <= floor(risk, confidence, true, &settings)
        );
    }

    #[test]
    fn with_the_default_policies_more_risk_less_confidence_and_taint_never_weaken_a_decision(
        request in request(), other in risk(), lower in prop::option::of(stated()), settings in settings(),
    ) {
        let policies = DEFAULTS.clone().with_floor(settings);
        let before = policies.decide(&request).verdict;
        let mut riskier = request.clone();
        riskier.risk = request.risk.max(other);
        prop_assert!(before <= policies.decide(&riskier).verdict);
        let mut tainted = request.clone();
        tainted.tainted = true;
        prop_assert!(before <= policies.decide(&tainted).verdict);
        if is_lower(request.confidence, lower, &settings) {
            let mut unsure = request.clone();
            unsure.confidence = lower;
            prop_assert!(before <= policies.decide(&unsure).verdict);
        }
    }

    #[test]
    fn no_policies_weaken_the_floor(
        policies in policies(), request in request(), settings in settings(),
    ) {
        let floor = floor(request.risk, request.confidence, request.tainted, &settings);
        let decision = policies.with_floor(settings).decide(&request);
        prop_assert!(decision.verdict >= floor);
        prop_assert!(decision.verdict >= decision.policies);
        prop_assert!(decision.faults.is_empty() || decision.verdict == Verdict::Deny);
    }

    #[test]
    fn a_decision_depends_on_nothing_but_policies_and_request(
        policies in policies(), request in request(),
    ) {
        prop_assert_eq!(policies.decide(&request), policies.clone().decide(&request));
    }

    #[test]
    fn policies_decide_like_plain_cedar(text in text(), request in request()) {
        let decision = load(&text).decide(&request);
        prop_assert_eq!(decision.policies, reference::verdict(&text, &request));
    }
}
