//! Rules that say who approves, how long they have, and who decides if they do not.

use std::collections::BTreeSet;

use windlass_policy::{Policies, PolicyError, Problem, Verdict};

use serde_json::json;

use super::support::{load, payment, test_tools};

const ALL: &str = "@id(\"all\") permit (principal, action, resource);\n";

fn with(annotations: &str) -> String {
    format!(
        "{ALL}@id(\"payments\") {annotations}\n\
         forbid (principal, action == Action::\"pay\", resource) unless {{ context.approved }};"
    )
}

fn errors(annotations: &str) -> Vec<PolicyError> {
    let tools = test_tools();
    Policies::load(&with(annotations), &tools)
        .err()
        .unwrap_or_default()
}

#[test]
fn the_rules_that_decide_say_who_approves() {
    let policies = load(&with(
        "@approvers(\"finance\", 2) @expires(\"4h\") @escalate(\"leads\", \"1h\")",
    ));
    let decided = policies.decide(&payment(json!(1)));
    assert_eq!(decided.verdict, Verdict::Ask);
    assert_eq!(decided.expires_seconds, Some(4 * 3_600));
    let [demand] = decided.approvers.as_slice() else {
        panic!("{decided:?}")
    };
    assert_eq!((demand.group.as_str(), demand.count), ("finance", 2));
    assert_eq!(demand.escalation, Some(("leads".to_owned(), 3_600)));
    let recorded = serde_json::to_string(&decided).unwrap();
    assert_eq!(
        serde_json::from_str::<windlass_policy::Decision>(&recorded).unwrap(),
        decided
    );
    let explained = policies.explain(&payment(json!(1))).to_string();
    for line in [
        "  approvers: 2 of `finance`, and `leads` after 3600 s\n",
        "  expires after: 14400 s\n",
    ] {
        assert!(explained.contains(line), "{explained}");
    }
    // The rule is shown as it is written.
    let rule = policies.rule("payments").unwrap();
    assert!(
        rule.text.contains("@approvers(\"finance\", 2)"),
        "{}",
        rule.text
    );
    let plain = load(&with("")).decide(&payment(json!(1)));
    assert!(plain.approvers.is_empty() && plain.expires_seconds.is_none());
    assert!(!serde_json::to_string(&plain).unwrap().contains("approvers"));
}

#[test]
fn wrong_values_are_refused_with_their_place() {
    for wrong in [
        "@approvers(\"finance\", 0)",
        "@approvers(\"finance\", 17)",
        "@approvers(\"\", 1)",
        "@approvers(\"a b\")",
        "@expires(\"4\")",
        "@expires(\"31d\")",
        "@approvers(\"a\") @escalate(\"leads\")",
        "@approvers(\"a\") @escalate(\"leads\", \"soon\")",
    ] {
        let found = errors(wrong);
        let [error] = found.as_slice() else {
            panic!("{wrong}: {found:?}")
        };
        assert!(
            matches!(error.problem, Problem::InvalidAnnotation(_)),
            "{error}"
        );
        assert_eq!(error.place.unwrap().line, 2, "{error}");
        assert!(error.hint.is_some());
    }
    let lonely = errors("@escalate(\"leads\", \"1h\")");
    assert_eq!(lonely[0].problem, Problem::EscalationWithoutGroup);
    let misspelt = errors("@aprovers(\"finance\")");
    assert_eq!(misspelt[0].nearest, ["approvers"]);
    // Two values are only for annotations that have two.
    assert!(matches!(
        errors("@expires(\"4h\", 2)")[0].problem,
        Problem::Syntax(_)
    ));
}

#[test]
fn errors_after_a_pair_of_values_have_the_place_of_the_file() {
    let text = format!(
        "{ALL}@id(\"a\") @approvers(\"finance\", 2)\n\
         forbid (principal, action == Action::\"pai\", resource) unless {{ context.approved }};"
    );
    let tools = test_tools();
    let found = Policies::load(&text, &tools).unwrap_err();
    let place = found[0].place.unwrap();
    assert_eq!(place.line, 3);
    assert!(text[place.offset..].contains("pai"), "{found:?}");
}

#[test]
fn groups_that_do_not_exist_are_errors() {
    let policies = load(&with(
        "@approvers(\"finance\", 2) @escalate(\"leads\", \"1h\")",
    ));
    policies
        .check_groups(&BTreeSet::from(["finance", "leads"]))
        .unwrap();
    let found = policies
        .check_groups(&BTreeSet::from(["finances"]))
        .unwrap_err();
    let unknown: Vec<String> = found
        .iter()
        .map(|error| error.problem.to_string())
        .collect();
    assert_eq!(
        unknown,
        [
            "there is no group of approvers `finance`",
            "there is no group of approvers `leads`"
        ]
    );
    assert_eq!(found[0].nearest, ["finances"]);
}
