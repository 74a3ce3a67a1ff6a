//! Errors in a policy file are found at load and have a position.

use windlass_policy::{Policies, Problem};
use windlass_spec::ToolAttributes;

use super::support::{errors, format_errors, test_tools, tool};

/// The only error of a text.
fn only_error(text: &str) -> windlass_policy::PolicyError {
    let errors = errors(text);
    assert_eq!(errors.len(), 1, "{}", format_errors(&errors));
    errors.into_iter().next().unwrap()
}

#[test]
fn syntax_error_has_a_position() {
    let error = only_error("@id(\"a\")\npermit (principal, action resource);");
    assert!(matches!(error.problem, Problem::Syntax(_)));
    insta::assert_snapshot!(error);
}

#[test]
fn a_wrong_attribute_is_refused() {
    let error =
        only_error("@id(\"a\")\npermit (principal, action, resource)\nwhen { context.tained };");
    assert_eq!(
        error.problem,
        Problem::UnknownAttribute("context.tained".to_owned())
    );
    insta::assert_snapshot!(error);
}

#[test]
fn a_wrong_attribute_of_the_principal_is_refused() {
    let error = only_error(
        "@id(\"a\")\npermit (principal, action, resource)\nwhen { principal.tennant == \"acme\" };",
    );
    insta::assert_snapshot!(error);
}

#[test]
fn a_wrong_argument_is_refused() {
    let error = only_error(
        r#"@id("big")
forbid (principal, action == Action::"pay", resource)
when { context.input.cent > 5 };"#,
    );
    assert!(matches!(error.problem, Problem::UnknownArgument { .. }));
    insta::assert_snapshot!(error);
}

#[test]
fn a_wrong_field_of_a_record_argument_is_refused() {
    let error = only_error(
        r#"@id("big")
forbid (principal, action == Action::"pay", resource)
when { context.input.account.ibam == "DE1" };"#,
    );
    insta::assert_snapshot!(error);
}

#[test]
fn argument_of_some_tools_must_be_checked_with_has() {
    let error = only_error(
        r#"@id("big")
forbid (principal, action, resource)
when { context.input.cents > 5 };"#,
    );
    insta::assert_snapshot!(error);
}

#[test]
fn wrong_argument_after_has_is_refused() {
    let error = only_error(
        r#"@id("big")
forbid (principal, action, resource)
when { context.input has cent && context.input.cent > 5 };"#,
    );
    assert!(matches!(error.problem, Problem::UnknownArgument { .. }));
    insta::assert_snapshot!(error);
}

#[test]
fn argument_without_representation_cannot_be_named() {
    let error = only_error(
        r#"@id("filtered")
forbid (principal, action == Action::"export", resource)
when { context.input has filter };"#,
    );
    insta::assert_snapshot!(error);
}

#[test]
fn an_unknown_tool_is_refused() {
    let error =
        only_error("@id(\"mail\")\npermit (principal, action == Action::\"send_mail\", resource);");
    assert_eq!(error.problem, Problem::UnknownTool("send_mail".to_owned()));
    insta::assert_snapshot!(error);
}

#[test]
fn an_unknown_tool_in_a_list_and_in_a_condition_is_refused() {
    let errors = errors(
        r#"@id("list")
permit (principal, action in [Action::"pay", Action::"send_mail"], resource);
@id("condition")
permit (principal, action, resource) when { action == Action::"payy" };"#,
    );
    insta::assert_snapshot!(format_errors(&errors));
}

#[test]
fn risk_is_not_a_group_of_tools() {
    insta::assert_snapshot!(only_error(
        "@id(\"a\")\nforbid (principal, action in Action::\"irreversible\", resource);"
    ));
}

#[test]
fn an_unknown_entity_type_is_refused() {
    insta::assert_snapshot!(only_error(
        "@id(\"a\")\npermit (principal == Usr::\"ann\", action, resource);"
    ));
}

#[test]
fn a_rule_without_an_id_is_refused() {
    let error = only_error("\n  permit (principal, action, resource);");
    assert_eq!(error.problem, Problem::MissingId);
    insta::assert_snapshot!(error);
}

#[test]
fn empty_id_is_refused() {
    assert_eq!(
        only_error("@id(\" \") permit (principal, action, resource);").problem,
        Problem::MissingId
    );
}

#[test]
fn two_rules_cannot_share_an_id() {
    let error = only_error(
        "@id(\"a\")\npermit (principal, action, resource);\n\n@id(\"a\")\npermit (principal, action, resource);",
    );
    assert_eq!(error.problem, Problem::DuplicateId { first_line: 1 });
    insta::assert_snapshot!(error);
}

#[test]
fn optional_argument_must_be_checked_with_has() {
    let error = only_error(
        r#"@id("a")
forbid (principal, action == Action::"send_email", resource)
when { context.input.copies.contains("boss@example.org") };"#,
    );
    assert!(matches!(error.problem, Problem::MaybeAbsent(_)));
    insta::assert_snapshot!(error);
}

#[test]
fn optional_confidence_must_be_checked_with_has() {
    insta::assert_snapshot!(only_error(
        "@id(\"a\")\nforbid (principal, action, resource)\nwhen { context.confidence.lessThan(decimal(\"0.5\")) };"
    ));
}

#[test]
fn text_outside_a_closed_set_is_refused() {
    let errors = errors(
        r#"@id("risk")
forbid (principal, action, resource) when { context.risk == "irreversable" };
@id("format")
forbid (principal, action == Action::"export", resource) when { ["pdf", "xml"].contains(context.input.format) };
@id("category")
forbid (principal, action, resource) when { context.tool has category && context.tool.category == "monye" };"#,
    );
    insta::assert_snapshot!(format_errors(&errors));
}

#[test]
fn a_wrong_type_is_refused() {
    let error = only_error(
        r#"@id("a")
forbid (principal, action == Action::"pay", resource)
when { context.input.amount > 500 };"#,
    );
    assert!(matches!(error.problem, Problem::WrongType(_)));
    insta::assert_snapshot!(error);
}

#[test]
fn a_rule_that_can_never_apply_is_refused() {
    let error = only_error(
        "@id(\"a\")\npermit (principal, action, resource) when { principal == resource && false };",
    );
    assert_eq!(error.problem, Problem::NeverApplies);
}

#[test]
fn a_template_is_refused() {
    let error = only_error("\n@id(\"a\") permit (principal == ?principal, action, resource);");
    assert_eq!(error.problem, Problem::Template);
    insta::assert_snapshot!(error);
}

#[test]
fn a_misspelt_annotation_is_refused_and_a_foreign_one_is_not() {
    let error = only_error("@id(\"a\")\n@resaon(\"x\")\npermit (principal, action, resource);");
    insta::assert_snapshot!(error);
    let foreign = "@id(\"a\") @ticket(\"OPS-1\") permit (principal, action, resource);";
    assert!(Policies::load(foreign, &test_tools()).is_ok());
}

#[test]
fn unknown_security_level_is_refused() {
    let error =
        only_error("@id(\"a\")\n@security_level(\"HIHG\")\npermit (principal, action, resource);");
    insta::assert_snapshot!(error);
}

#[test]
fn all_errors_are_reported_at_once_in_the_order_of_the_text() {
    let errors = errors(
        r#"permit (principal, action, resource) when { context.nothing };
@id("b") permit (principal, action == Action::"nothing", resource);
// @match 1
@id("b") permit (principal, action, resource);"#,
    );
    let lines: Vec<usize> = errors
        .iter()
        .map(|error| error.place.unwrap().line)
        .collect();
    assert_eq!(lines, [1, 1, 2, 3, 4], "{}", format_errors(&errors));
}

#[test]
fn tools_that_contradict_each_other_are_refused() {
    let none = ToolAttributes::default;
    let tools = [
        tool("twice", "(a: Text) --> Text", none()),
        tool("twice", "(a: Int) --> Text", none()),
    ];
    let errors = Policies::defaults(&tools).unwrap_err();
    assert_eq!(
        errors[0].problem,
        Problem::ConflictingTools("twice".to_owned())
    );
    let same = [tools[0].clone(), tools[0].clone()];
    assert!(Policies::defaults(&same).is_ok());

    let errors = Policies::defaults(&[tool("tools", "() --> Text", none())]).unwrap_err();
    assert_eq!(
        errors[0].problem,
        Problem::ReservedToolName("tools".to_owned())
    );
}

#[test]
fn a_group_without_tools_is_a_warning() {
    let text = "@id(\"a\") permit (principal, action in Action::\"tools\", resource);";
    let none: [windlass_spec::ToolSpecification; 0] = [];
    let policies = Policies::load(text, &none).unwrap();
    assert_eq!(policies.warnings().len(), 1);
    assert!(
        Policies::load(text, &test_tools())
            .unwrap()
            .warnings()
            .is_empty()
    );
}

#[test]
fn the_same_mistake_in_two_rules_is_reported_twice() {
    let rule = "forbid (principal, action, resource) when { context.confidence.lessThan(decimal(\"0.5\")) };";
    let errors = errors(&format!("@id(\"a\") {rule}\n@id(\"b\") {rule}"));
    let rules: Vec<_> = errors
        .iter()
        .filter_map(|error| error.rule.as_deref())
        .collect();
    assert_eq!(rules, ["a", "b"], "{}", format_errors(&errors));
}
