use cedar_policy::PolicySet;

use super::Quick;

fn quick(text: &str) -> Option<Quick> {
    let rules: PolicySet = text.parse().unwrap();
    Quick::new(&rules).unwrap()
}

#[test]
fn only_rules_that_forbid_whoever_asks_are_put_together() {
    let quick = quick(
        "permit (principal, action, resource);
         forbid (principal == User::\"a\", action, resource);
         forbid (principal, action, resource) when { context.a };
         forbid (principal, action, resource) when { context.b } unless { context.c };
         forbid (principal, action, resource);",
    )
    .unwrap();
    assert_eq!(quick.rules.policies().count(), 3);
    assert_eq!(quick.groups.len(), 1);
    let (id, members) = quick.groups.iter().next().unwrap();
    assert_eq!(members.policies().count(), 3);
    let group = quick
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
fn few_rules_are_left_as_they_are() {
    assert!(quick("forbid (principal, action, resource) when { context.a };").is_none());
    assert!(quick("").is_none());
}

#[test]
fn every_rule_of_many_is_in_one_group() {
    let quick = quick(&"forbid (principal, action, resource) when { context.a };".repeat(100));
    let quick = quick.unwrap();
    let members: usize = quick
        .groups
        .values()
        .map(|rules| rules.policies().count())
        .sum();
    assert_eq!(members, 100);
    assert_eq!(quick.rules.policies().count(), quick.groups.len());
}
