//! Rules that forbid, put together in groups: each group is one rule that forbids if any of its
//! members does. Most calls are forbidden by none; then one evaluation a group says so, at about
//! half the cost of asking every rule. Where a group forbids or cannot be evaluated, its members
//! are asked one by one, so that a decision and its reasons are always those of the rules.

use std::collections::HashMap;
use std::sync::Arc;

use cedar_policy::pst::{
    ActionConstraint, BinaryOp, Clause, Effect, Expr, Literal, Policy as Tree, PrincipalConstraint,
    ResourceConstraint, StaticPolicy, Template, UnaryOp,
};
use cedar_policy::{Policy, PolicySet};

use crate::error::Internal;

/// What the ids of groups begin with. Ids of rules neither begin nor end with a blank.
const PREFIX: &str = " group ";

/// How many rules a group has at most: enough to save work, few enough to be asked one by one.
const GROUP: usize = 16;

/// Fewer rules than these are not worth a second look.
const WORTHWHILE: usize = 3;

/// Rules in groups.
#[derive(Debug, Clone)]
pub(crate) struct Quick {
    /// The groups, and the rules that are in none.
    pub(crate) rules: PolicySet,
    groups: HashMap<String, PolicySet>,
}

impl Quick {
    /// The rules in groups; `None` if there is nothing to gain.
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
        if members.len() < WORTHWHILE {
            return Ok(None);
        }
        // The policy language keeps no order; the same rules shall make the same groups.
        members.sort_by_key(|(policy, _)| policy.id().to_string());
        let mut quick = Self {
            rules: alone,
            groups: HashMap::new(),
        };
        for (number, members) in members.chunks(GROUP).enumerate() {
            let id = format!("{PREFIX}{number}");
            let conditions: Vec<_> = members.iter().map(|(_, condition)| condition).collect();
            quick
                .rules
                .add(group(&id, &conditions)?)
                .map_err(Internal::new)?;
            let rules = members.iter().map(|(policy, _)| (*policy).clone());
            let rules = PolicySet::from_policies(rules).map_err(Internal::new)?;
            quick.groups.insert(id, rules);
        }
        Ok(Some(quick))
    }

    /// The members of a group; `None` if the id is that of a rule.
    pub(crate) fn group(&self, id: &str) -> Option<&PolicySet> {
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

/// When a rule forbids; `None` if it permits, or if its scope says more than its conditions.
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

/// Whether any of the conditions holds. The tree is balanced, because evaluation goes as deep as it.
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
