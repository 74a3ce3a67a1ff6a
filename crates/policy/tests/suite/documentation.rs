//! What docs/policy.md shows is true.

use windlass_policy::Policies;

use super::support::tool;

const GUIDE: &str = include_str!("../../../../docs/policy.md");

#[test]
fn the_rule_that_the_guide_begins_with_loads_and_its_examples_hold() {
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
fn the_error_that_the_guide_shows_is_the_one_reported() {
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
fn the_guide_lists_what_the_context_holds() {
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
