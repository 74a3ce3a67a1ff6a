use cedar_policy::PolicySet;
use windlass_spec::{NonEmptyText, Signature, ToolAttributes, ToolName, ToolSpecification};

use super::Slice;
use crate::Policies;

fn tool(name: &str, category: Option<&str>) -> ToolSpecification {
    let attributes = ToolAttributes {
        category: category.map(|category| NonEmptyText::new(category).unwrap()),
        ..ToolAttributes::default()
    };
    ToolSpecification::new(
        ToolName::new(name).unwrap(),
        NonEmptyText::new("a tool").unwrap(),
        Signature::parse("(a: Int) --> Text").unwrap(),
    )
    .with_attributes(attributes)
    .unwrap()
}

fn ids(rules: &PolicySet) -> Vec<String> {
    let mut ids: Vec<String> = rules.policies().map(|rule| rule.id().to_string()).collect();
    ids.sort();
    ids
}

fn slice(policies: &Policies, tool: &str) -> [Vec<String>; 3] {
    let Slice {
        steady,
        unapproved,
        approved,
        ..
    } = &policies.slices[tool];
    [steady, unapproved, approved].map(|part| ids(&part.rules))
}

#[test]
fn slice_has_exactly_the_rules_that_can_apply_to_its_tool() {
    let text = r#"
@id("all") permit (principal, action, resource);
@id("group") permit (principal, action in Action::"tools", resource);
@id("category") permit (principal, action in Action::"category:mail", resource);
@id("one") forbid (principal, action == Action::"pay", resource) when { context.input.a > 1 };
@id("list") forbid (principal, action in [Action::"pay", Action::"read"], resource);
"#;
    let tools = [
        tool("pay", None),
        tool("read", None),
        tool("send", Some("mail")),
    ];
    let policies = Policies::load(text, &tools).unwrap();
    let steady = |tool| slice(&policies, tool)[0].join(" ");
    assert_eq!(steady("pay"), "all group list one");
    assert_eq!(steady("read"), "all group list");
    assert_eq!(steady("send"), "all category group");
    assert!(policies.slices["pay"].mentions.argument("a"));
    assert!(!policies.slices["read"].mentions.argument("a"));
}

#[test]
fn only_rules_that_depend_on_approval_are_evaluated_with_it() {
    let text = r#"
@id("steady") permit (principal, action, resource);
@id("ends") forbid (principal, action, resource) when { context.tainted } unless { context.approved };
@id("begins") permit (principal, action, resource) when { context.approved };
@id("both") forbid (principal, action, resource) when { context has approved } unless { context.approved };
"#;
    let policies = Policies::load(text, &[tool("pay", None)]).unwrap();
    let [steady, unapproved, approved] = slice(&policies, "pay");
    assert_eq!(steady, ["steady"]);
    assert_eq!(unapproved, ["begins", "both", "ends"]);
    assert_eq!(approved, ["begins", "both"]);
}
