use cedar_policy::PolicySet;

use super::RuleGroups;

fn groups(text: &str) -> Option<RuleGroups> {
    let rules: PolicySet = text.parse().unwrap();
    RuleGroups::new(&rules).unwrap()
}

#[test]
fn only_forbid_rules_without_a_scope_are_grouped() {
    let grouped = groups(
        "permit (principal, action, resource);
         forbid (principal == User::\"a\", action, resource);
         forbid (principal, action, resource) when { context.a };
         forbid (principal, action, resource) when { context.b } unless { context.c };
         forbid (principal, action, resource);",
    )
    .unwrap();
    assert_eq!(grouped.rules.policies().count(), 3);
    assert_eq!(grouped.groups.len(), 1);
    let (id, members) = grouped.groups.iter().next().unwrap();
    assert_eq!(members.policies().count(), 3);
    let group = grouped
        .rules
        .policies()
        .find(|rule| rule.id().to_string() == *id);
    let condition = "context.a || ((context.b && (!context.c)) || true)";
    assert!(
        group.unwrap().to_string().contains(condition),
        "{}",
        group.unwrap()
    );
}

#[test]
fn few_rules_are_not_grouped() {
    assert!(groups("forbid (principal, action, resource) when { context.a };").is_none());
    assert!(groups("").is_none());
}

#[test]
fn every_rule_of_many_is_in_one_group() {
    let grouped = groups(&"forbid (principal, action, resource) when { context.a };".repeat(100));
    let grouped = grouped.unwrap();
    let members: usize = grouped
        .groups
        .values()
        .map(|rules| rules.policies().count())
        .sum();
    assert_eq!(members, 100);
    assert_eq!(grouped.rules.policies().count(), grouped.groups.len());
}
