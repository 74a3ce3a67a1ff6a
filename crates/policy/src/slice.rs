//! The rules that can apply to one tool. They are sorted at load, so that a decision evaluates no
//! others, and evaluates again for an approved call only the rules that depend on the approval.

use cedar_policy::{ActionConstraint, EntityUid, Policy, PolicyId, PolicySet, pst};

use crate::analysis::{APPROVED, Analysis, Mentions};
use crate::error::Internal;
use crate::groups::RuleGroups;
use crate::schema::{EntityTypes, Tool};

/// The rules that can apply to one tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slice {
    /// Rules that do not depend on the approval.
    pub(crate) steady: Part,
    /// Rules that depend on the approval, to be evaluated without one.
    pub(crate) unapproved: Part,
    /// Those of them to be evaluated again with an approval. The others are lifted by an approval.
    /// Omitting these hides no error, because all their conditions have been evaluated without the
    /// approval.
    pub(crate) approved: Part,
    /// The data that any of them uses.
    pub(crate) mentions: Mentions,
}

/// Rules that are evaluated together, and the data they use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    pub(crate) rules: PolicySet,
    /// The same rules in groups, which is cheaper where none forbids.
    pub(crate) groups: Option<RuleGroups>,
    pub(crate) mentions: Mentions,
}

impl Part {
    pub(crate) fn add(&mut self, policy: Policy, analysis: &Analysis) -> Result<(), Internal> {
        self.mentions.add_all(&analysis.mentions);
        self.rules.add(policy).map_err(Internal::new)
    }
}

impl Slice {
    pub(crate) fn add(&mut self, policy: Policy, analysis: &Analysis) -> Result<(), Internal> {
        self.mentions.add_all(&analysis.mentions);
        if !analysis.mentions.attribute(APPROVED) {
            return self.steady.add(policy, analysis);
        }
        if !analysis.is_lifted_by_approval {
            self.approved.add(policy.clone(), analysis)?;
        }
        self.unapproved.add(policy, analysis)
    }

    /// Groups the rules. To be called once all rules are added.
    pub(crate) fn finish(&mut self) -> Result<(), Internal> {
        for part in [&mut self.steady, &mut self.unapproved, &mut self.approved] {
            part.groups = RuleGroups::new(&part.rules)?;
        }
        Ok(())
    }
}

/// A rule as it is evaluated: with its id and without source locations, which would slow down every step
/// of an evaluation.
pub(crate) fn compiled(tree: pst::Template, id: &str) -> Result<Policy, Internal> {
    let tree = pst::StaticPolicy::try_from(tree).map_err(Internal::new)?;
    let policy = Policy::from_pst(pst::Policy::Static(tree)).map_err(Internal::new)?;
    Ok(policy.new_id(PolicyId::new(id)))
}

/// A rule as it is evaluated for a tool that its action includes.
pub(crate) fn compiled_for_tool(mut tree: pst::Template, id: &str) -> Result<Policy, Internal> {
    tree.action = pst::ActionConstraint::Any;
    compiled(tree, id)
}

/// Whether the scope of a rule includes a tool.
pub(crate) fn can_apply(policy: &Policy, tool: &Tool, types: &EntityTypes) -> bool {
    let is_tool = |action: &EntityUid| *action == types.action(&tool.name);
    let holds_tool = |action: &EntityUid| {
        let mut groups = tool.groups.iter();
        is_tool(action) || groups.any(|group| *action == types.action(group))
    };
    match policy.action_constraint() {
        ActionConstraint::Any => true,
        ActionConstraint::Eq(action) => is_tool(&action),
        ActionConstraint::In(actions) => actions.iter().any(holds_tool),
    }
}

#[cfg(test)]
mod tests;
