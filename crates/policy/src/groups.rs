//! Groups of forbidding rules: each group is one rule that forbids if any of its members does. Most
//! calls are forbidden by none; then one evaluation for each group is enough, at about half the cost of
//! evaluating every rule. Where a group forbids or cannot be evaluated, its members are evaluated one by
//! one, so that a decision and its reasons always come from the rules.

use std::collections::HashMap;
use std::sync::Arc;

use cedar_policy::pst::{
    ActionConstraint, BinaryOp, Clause, Effect, Expr, Literal, Policy as Tree, PrincipalConstraint,
    ResourceConstraint, StaticPolicy, Template, UnaryOp,
};
use cedar_policy::{Policy, PolicySet};

use crate::error::Internal;

/// The prefix of the ids of groups. Ids of rules never start with a space.
const PREFIX: &str = " group ";

/// The maximum number of rules in a group: enough to save work, few enough to evaluate one by one.
const MAX_GROUP_SIZE: usize = 16;

/// The minimum number of rules for which groups are made.
const MIN_RULES: usize = 3;

/// Rules in groups.
#[derive(Debug, Clone)]
pub(crate) struct RuleGroups {
    /// The groups, and the rules that are in none.
    pub(crate) rules: PolicySet,
    groups: HashMap<String, PolicySet>,
}

impl RuleGroups {
    /// Groups the rules; `None` if there are too few.
    pub(crate) fn new(rules: &PolicySet) -> Result<Option<Self>, Internal> {
        let mut alone = PolicySet::new();
        let mut members = Vec::new();
        for policy in rules.policies() {
            let tree = policy.to_pst().map_err(Internal::new)?;
            match condition(tree.body()) {
                Some(condition) => members.push((policy, condition)),
                None => alone.add(policy.clone()).map_err(Internal::new)?,
            }
        }
        if members.len() < MIN_RULES {
            return Ok(None);
        }
        // Cedar keeps no order; sorting makes the groups deterministic.
        members.sort_by_key(|(policy, _)| policy.id().to_string());
        let mut grouped = Self {
            rules: alone,
            groups: HashMap::new(),
        };
        for (number, members) in members.chunks(MAX_GROUP_SIZE).enumerate() {
            let id = format!("{PREFIX}{number}");
            let conditions: Vec<_> = members.iter().map(|(_, condition)| condition).collect();
            grouped
                .rules
                .add(group(&id, &conditions)?)
                .map_err(Internal::new)?;
            let rules = members.iter().map(|(policy, _)| (*policy).clone());
            let rules = PolicySet::from_policies(rules).map_err(Internal::new)?;
            grouped.groups.insert(id, rules);
        }
        Ok(Some(grouped))
    }

    /// The members of a group; `None` if the id is that of a rule.
    pub(crate) fn members(&self, id: &str) -> Option<&PolicySet> {
        self.groups.get(id)
    }
}

/// A rule that forbids if any of the conditions holds.
fn group(id: &str, conditions: &[&Arc<Expr>]) -> Result<Policy, Internal> {
    let group = Template::new(
        id,
        Effect::Forbid,
        PrincipalConstraint::Any,
        ActionConstraint::Any,
        ResourceConstraint::Any,
    );
    let group = group
        .try_with_clauses([Clause::When(any(conditions))])
        .map_err(Internal::new)?;
    let group = StaticPolicy::try_from(group).map_err(Internal::new)?;
    Policy::from_pst(Tree::Static(group)).map_err(Internal::new)
}

/// The condition under which a rule forbids; `None` if it permits, or if it has a scope besides its
/// conditions.
fn condition(rule: &Template) -> Option<Arc<Expr>> {
    let has_no_scope = rule.principal == PrincipalConstraint::Any
        && rule.action == ActionConstraint::Any
        && rule.resource == ResourceConstraint::Any;
    if rule.effect != Effect::Forbid || !has_no_scope {
        return None;
    }
    let conditions = rule.clauses().iter().map(|clause| match clause {
        Clause::When(condition) => Arc::clone(condition),
        Clause::Unless(condition) => Arc::new(Expr::UnaryOp {
            op: UnaryOp::Not,
            expr: Arc::clone(condition),
        }),
    });
    let always = || Arc::new(Expr::Literal(Literal::Bool(true)));
    let conditions = conditions.reduce(|left, right| joined(BinaryOp::And, left, right));
    Some(conditions.unwrap_or_else(always))
}

fn joined(op: BinaryOp, left: Arc<Expr>, right: Arc<Expr>) -> Arc<Expr> {
    Arc::new(Expr::BinaryOp { op, left, right })
}

/// Whether any of the conditions holds. The tree is balanced to limit the depth of evaluation.
fn any(conditions: &[&Arc<Expr>]) -> Arc<Expr> {
    match conditions {
        [] => Arc::new(Expr::Literal(Literal::Bool(false))),
        [condition] => Arc::clone(condition),
        several => {
            let (left, right) = several.split_at(several.len() / 2);
            joined(BinaryOp::Or, any(left), any(right))
        }
    }
}

#[cfg(test)]
mod tests;
