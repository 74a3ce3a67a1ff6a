//! The examples of docs/policy.md are correct.

use windlass_policy::Policies;

use super::support::tool;

const GUIDE: &str = include_str!("../../../../docs/policy.md");

#[test]
fn first_rule_of_the_guide_loads_and_its_examples_pass() {
    let rule = GUIDE.split("```cedar\n").nth(1).unwrap();
    let rule = rule.split("```").next().unwrap();
    let pay = tool(
        "pay",
        "(amount: Number, to: Text) --> IO Text",
        Default::default(),
    );
    let policies = Policies::load(rule, [&pay]).unwrap_or_else(|errors| panic!("{}", errors[0]));
    assert_eq!(policies.rules().len(), 1);
    let broken = rule.replace("\"500.0\"", "\"800.0\"");
    assert!(Policies::load(&broken, [&pay]).is_err());
}

#[test]
fn error_shown_in_the_guide_is_the_reported_one() {
    let rule = GUIDE.split("```cedar\n").nth(1).unwrap();
    let rule = rule
        .split("```")
        .next()
        .unwrap()
        .replace("input.amount", "input.amout");
    let pay = tool(
        "pay",
        "(amount: Number, to: Text) --> IO Text",
        Default::default(),
    );
    let errors = Policies::load(&rule, [&pay]).unwrap_err();
    assert!(GUIDE.contains(&errors[0].to_string()), "{}", errors[0]);
}

#[test]
fn guide_lists_all_attributes_of_the_context() {
    for attribute in [
        "input",
        "risk",
        "confidence",
        "environment",
        "tainted",
        "approved",
        "session.calls",
        "session.tool_calls",
        "session.irreversible_calls",
        "session.denied_calls",
        "session.sensitive_read",
        "tool.category",
        "tool.open_world",
        "tool.sensitive",
        "tool.idempotent",
    ] {
        assert!(GUIDE.contains(&format!("`{attribute}`")), "{attribute}");
    }
}

#[test]
fn policies_can_be_shared_between_threads() {
    fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<Policies>();
}
