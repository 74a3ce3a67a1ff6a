use cedar_policy::Policy;

use super::{Analysis, analyse};

fn analyse_condition(condition: &str) -> Analysis {
    let text = format!("permit(principal, action, resource) when {{ {condition} }};");
    analyse(&Policy::parse(None, text).unwrap())
}

#[test]
fn rule_uses_the_attributes_it_names() {
    let analysis =
        analyse_condition("context.input.a.b == 1 && context has risk && principal.tainted == 1");
    assert!(analysis.mentions.attribute("input"));
    assert!(analysis.mentions.attribute("risk"));
    assert!(!analysis.mentions.attribute("tainted"));
    assert!(analysis.mentions.argument("a"));
    assert!(!analysis.mentions.argument("b"));
}

#[test]
fn session_attributes_are_used_by_name_or_as_a_whole() {
    for named in ["context.session.calls > 1", "context.session has calls"] {
        let mentions = analyse_condition(named).mentions;
        assert!(mentions.attribute("session") && mentions.of_session("calls"));
        assert!(!mentions.of_session("denied_calls"), "{named}");
    }
    for whole in [
        "context.session == {a: 1}",
        "context has session",
        "context == {a: 1}",
    ] {
        assert!(
            analyse_condition(whole).mentions.of_session("denied_calls"),
            "{whole}"
        );
    }
}

#[test]
fn has_with_a_path_names_every_step() {
    let analysis = analyse_condition("context.input has a.b");
    assert!(analysis.mentions.argument("a"));
    assert!(
        analysis
            .paths
            .contains(["input", "a", "b"].map(str::to_owned).as_slice())
    );
}

#[test]
fn rule_that_uses_the_whole_context_uses_everything() {
    for condition in [
        "context == {a: 1}",
        "(if true then context else context).approved",
        "[context].contains(context)",
        "{a: context}.a.approved",
    ] {
        let mentions = analyse_condition(condition).mentions;
        assert!(mentions.attribute("approved"), "{condition}");
        assert!(mentions.argument("anything"), "{condition}");
    }
}

#[test]
fn rule_that_uses_the_whole_input_uses_every_argument() {
    for condition in [
        "context.input == {a: 1}",
        "(if context.input == {} then context.input else context.input).a == 1",
        "context[\"input\"] == {a: 1}",
    ] {
        let mentions = analyse_condition(condition).mentions;
        assert!(mentions.argument("anything"), "{condition}");
        assert!(!mentions.attribute("approved"), "{condition}");
    }
}

#[test]
fn every_kind_of_expression_is_analysed() {
    for condition in [
        "!context.x",
        "-context.x == 1",
        "context.x like \"a\"",
        "context.x is User in context.x",
        "principal in context.x",
        "[1, context.x].contains(1)",
        "{a: context.x} == {a: 1}",
        "if context.x then true else false",
        "if true then context.x else false",
        "if true then true else context.x",
        "context.y.lessThan(context.x)",
        "decimal(context.x) == context.y",
        "context.x.isEmpty()",
        "context.y.containsAny(context.x)",
        "principal.getTag(context.x) == 1",
        "principal.hasTag(context.x)",
        "{a: context.x}.a == 1",
        "{a: context.x} has a",
    ] {
        assert!(
            analyse_condition(condition).mentions.attribute("x"),
            "{condition}"
        );
    }
}

#[test]
fn words_are_found_on_both_sides_and_in_sets() {
    let analysis = analyse_condition(
        "context.risk == \"a\" || \"b\" != context.risk || [\"c\", \"d\"].contains(context.risk)",
    );
    let words: Vec<&str> = analysis
        .words
        .iter()
        .map(|(_, word)| word.as_str())
        .collect();
    assert_eq!(words, ["a", "b", "c", "d"]);
}

#[test]
fn rule_is_lifted_by_approval_if_no_other_condition_uses_it() {
    let is_lifted = |conditions: &str| {
        let text = format!("forbid(principal, action, resource) {conditions};");
        analyse(&Policy::parse(None, text).unwrap()).is_lifted_by_approval
    };
    assert!(is_lifted("unless { context.approved }"));
    assert!(is_lifted(
        "when { context.tainted } unless { context.approved }"
    ));
    for conditions in [
        "",
        "when { context.approved }",
        "when { !context.approved }",
        "unless { context.approved && context.tainted }",
        "unless { principal.approved }",
        "unless { context.input.approved }",
        "when { context has approved } unless { context.approved }",
        "when { context == {a: 1} } unless { context.approved }",
    ] {
        assert!(!is_lifted(conditions), "{conditions}");
    }
}
