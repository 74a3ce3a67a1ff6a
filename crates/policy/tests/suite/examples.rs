//! Examples run at load, and a failing one is an error.

use windlass_policy::{Policies, PolicyError, Problem};

use super::support::{errors, format_errors, load, test_tools};

#[test]
fn rule_with_passing_examples_loads() {
    load(
        r#"
// A large payment needs a person.
// @match {"tool": "pay", "input": {"amount": 500.01, "cents": 0, "account": {"iban": "DE1"}}}
// @not_match {"tool": "pay",
//             "input": {"amount": 500, "cents": 0, "account": {"iban": "DE1"}}}
// and this line is for people.
@id("large-payment")
forbid (principal, action == Action::"pay", resource)
// @not_match {"tool": "pay", "input": {"amount": 900, "cents": 0, "account": {"iban": "DE1"}}, "approved": true}
when { context.input.amount.greaterThan(decimal("500.00")) }
unless { context.approved };
"#,
    );
}

#[test]
fn failing_example_is_refused() {
    let text = r#"
// @match {"tool": "pay", "input": {"amount": 500, "cents": 0, "account": {"iban": "DE1"}}}
// @not_match {"tool": "pay", "input": {"amount": 501, "cents": 0, "account": {"iban": "DE1"}}}
@id("large-payment")
forbid (principal, action == Action::"pay", resource)
when { context.input.amount.greaterThan(decimal("500.00")) };
"#;
    let errors = errors(text);
    assert!(
        errors
            .iter()
            .all(|error| matches!(error.problem, Problem::ExampleFailed { .. }))
    );
    insta::assert_snapshot!(format_errors(&errors));
}

#[test]
fn an_example_of_another_tool_does_not_match() {
    load(
        r#"
// @not_match {"tool": "send_email", "input": {"to": "a", "subject": "b"}}
// @match {"principal": "ann", "tool": "export", "input": {"format": "pdf"}}
// @not_match {"principal": "bob", "tool": "export", "input": {"format": "pdf"}}
@id("a") permit (principal == User::"ann", action == Action::"export", resource);
"#,
    );
}

#[test]
fn omitted_keys_of_an_example_come_from_the_tool() {
    load(
        r#"
// @match {"tool": "export", "input": {"format": "csv"}}
@id("a") permit (principal, action == Action::"export", resource)
when { context.risk == "reversible" && context.input.rows == 100 };
"#,
    );
}

#[test]
fn an_example_that_is_not_json_is_refused() {
    let errors = errors(
        r#"
// @match {"tool": pay}
// @match
// @match ({"tool": "export"})
// @match {"risk": "reversible"} because
@id("a") permit (principal, action, resource);
"#,
    );
    let is_expected = |error: &PolicyError| matches!(error.problem, Problem::ExampleNotJson(_));
    assert!(errors.iter().all(is_expected));
    insta::assert_snapshot!(format_errors(&errors));
}

#[test]
fn example_that_is_not_a_call_is_refused() {
    let errors = errors(
        r#"
// @match {"tol": "pay"}
// @match {"tool": "payy"}
// @match {"tool": "export", "input": {"format": "xml"}}
// @match {"tool": "export", "input": {"format": "pdf"}, "declared": {"open_world": true}}
// @match {"input": {"a": null}}
@id("a") permit (principal, action, resource);
"#,
    );
    let is_expected = |error: &PolicyError| matches!(error.problem, Problem::ExampleNotACall(_));
    assert!(errors.iter().all(is_expected));
    insta::assert_snapshot!(format_errors(&errors));
}

#[test]
fn an_example_that_cannot_be_evaluated_is_refused() {
    let errors = errors(
        r#"
// @not_match {"tool": "pay", "input": {"amount": 0.00001, "cents": 0, "account": {"iban": "DE1"}}}
@id("a") permit (principal, action == Action::"pay", resource)
when { context.input.amount.greaterThan(decimal("500.00")) };
"#,
    );
    insta::assert_snapshot!(format_errors(&errors));
}

#[test]
fn a_misspelt_or_stray_example_is_refused() {
    let errors = errors(
        r#"
// @mach {"risk": "reversible"}
@id("a") permit (principal, action, resource);
// @match {"risk": "reversible"}
"#,
    );
    insta::assert_snapshot!(format_errors(&errors));
}

#[test]
fn an_example_written_as_an_annotation_is_refused() {
    let errors = errors("@id(\"a\") @match(\"{}\") permit (principal, action, resource);");
    insta::assert_snapshot!(format_errors(&errors));
}

#[test]
fn commented_out_rule_is_not_an_example() {
    let text = "// @id(\"b\")\n// permit (principal, action, resource);\n@id(\"a\") permit (principal, action, resource) when { \"// @match\" == \"// @match\" };";
    assert!(Policies::load(text, &test_tools()).is_ok());
}

#[test]
fn tools_are_named_in_rules_and_examples_and_nowhere_else() {
    let text = r#"
        // The tool "commented" is not meant.
        // @match {"tool": "exemplary"}
        @id("one")
        @reason("not \"reasoned\"")
        forbid (principal, action in [Action::"send", Action::"tools"], resource)
        when { context.input has to && context.input.to == "quoted" };
        @id("two")
        permit (principal == User::"ada", action, resource) unless { action == Action::"post \"it\"" };
    "#;
    let named = windlass_policy::named_tools(text).unwrap();
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    assert_eq!(named, ["exemplary", "post \"it\"", "send", "tools"]);
    assert!(windlass_policy::named_tools("permit (").is_err());
}
