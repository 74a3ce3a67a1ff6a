use cedar_policy::Policy;

use super::{Analysis, analyse};

fn of(condition: &str) -> Analysis {
    let text = format!("permit(principal, action, resource) when {{ {condition} }};");
    analyse(&Policy::parse(None, text).unwrap())
}

#[test]
fn a_rule_looks_at_what_it_names() {
    let analysis = of("context.input.a.b == 1 && context has risk && principal.tainted == 1");
    assert!(analysis.mentions.attribute("input"));
    assert!(analysis.mentions.attribute("risk"));
    assert!(!analysis.mentions.attribute("tainted"));
    assert!(analysis.mentions.argument("a"));
    assert!(!analysis.mentions.argument("b"));
}

#[test]
fn of_the_session_only_what_is_named_is_looked_at_unless_it_is_taken_as_a_whole() {
    for named in ["context.session.calls > 1", "context.session has calls"] {
        let mentions = of(named).mentions;
        assert!(mentions.attribute("session") && mentions.of_session("calls"));
        assert!(!mentions.of_session("denied_calls"), "{named}");
    }
    for whole in [
        "context.session == {a: 1}",
        "context has session",
        "context == {a: 1}",
    ] {
        assert!(of(whole).mentions.of_session("denied_calls"), "{whole}");
    }
}

#[test]
fn has_with_a_path_names_every_step() {
    let analysis = of("context.input has a.b");
    assert!(analysis.mentions.argument("a"));
    assert!(
        analysis
            .paths
            .contains(["input", "a", "b"].map(str::to_owned).as_slice())
    );
}

#[test]
fn a_rule_that_takes_the_context_as_a_whole_looks_at_everything() {
    for condition in [
        "context == {a: 1}",
        "(if true then context else context).approved",
        "[context].contains(context)",
        "{a: context}.a.approved",
    ] {
        let mentions = of(condition).mentions;
        assert!(mentions.attribute("approved"), "{condition}");
        assert!(mentions.argument("anything"), "{condition}");
    }
}

#[test]
fn a_rule_that_takes_the_input_as_a_whole_looks_at_every_argument() {
    for condition in [
        "context.input == {a: 1}",
        "(if context.input == {} then context.input else context.input).a == 1",
        "context[\"input\"] == {a: 1}",
    ] {
        let mentions = of(condition).mentions;
        assert!(mentions.argument("anything"), "{condition}");
        assert!(!mentions.attribute("approved"), "{condition}");
    }
}

#[test]
fn every_kind_of_expression_is_looked_into() {
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
        assert!(of(condition).mentions.attribute("x"), "{condition}");
    }
}

#[test]
fn words_are_found_on_both_sides_and_in_sets() {
    let analysis = of(
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
fn a_rule_ends_with_an_approval_if_nothing_else_in_it_looks_at_one() {
    let ends = |conditions: &str| {
        let text = format!("forbid(principal, action, resource) {conditions};");
        analyse(&Policy::parse(None, text).unwrap()).ends_with_approval
    };
    assert!(ends("unless { context.approved }"));
    assert!(ends("when { context.tainted } unless { context.approved }"));
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
        assert!(!ends(conditions), "{conditions}");
    }
}
