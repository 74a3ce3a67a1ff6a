//! The rules that can apply to one tool, sorted at load so that a decision looks at no others, and
//! asks again about an approved call only those that an approval makes a difference to.

use cedar_policy::{ActionConstraint, EntityUid, Policy, PolicyId, PolicySet, pst};

use crate::analysis::{APPROVED, Analysis, Mentions};
use crate::error::Internal;
use crate::quick::Quick;
use crate::schema::{EntityTypes, Tool};

/// The rules that can apply to one tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slice {
    /// Rules that are the same with and without an approval.
    pub(crate) steady: Part,
    /// Rules that look at the approval, to be asked without one.
    pub(crate) unapproved: Part,
    /// Those of them to be asked again with one. The others end with an approval. Leaving these out
    /// hides no error, since without the approval all their conditions have been evaluated.
    pub(crate) approved: Part,
    /// What any of them looks at.
    pub(crate) mentions: Mentions,
}

/// Rules that are evaluated together, and what they look at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    pub(crate) rules: PolicySet,
    /// The same rules in a form that is cheaper where none forbids.
    pub(crate) quick: Option<Quick>,
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
        if !analysis.ends_with_approval {
            self.approved.add(policy.clone(), analysis)?;
        }
        self.unapproved.add(policy, analysis)
    }

    /// To be called once all rules are there.
    pub(crate) fn finish(&mut self) -> Result<(), Internal> {
        for part in [&mut self.steady, &mut self.unapproved, &mut self.approved] {
            part.quick = Quick::new(&part.rules)?;
        }
        Ok(())
    }
}

/// A rule as it is evaluated: under its id and without the places of its parts, which every step of
/// an evaluation would carry along.
pub(crate) fn compiled(policy: &Policy, id: &str) -> Result<Policy, Internal> {
    let tree = policy.to_pst().map_err(Internal::new)?.body().clone();
    built(tree, id)
}

/// A rule as it is evaluated in the slice of a tool, which its action is known to hold.
pub(crate) fn compiled_for_tool(policy: &Policy, id: &str) -> Result<Policy, Internal> {
    let mut tree = policy.to_pst().map_err(Internal::new)?.body().clone();
    tree.action = pst::ActionConstraint::Any;
    built(tree, id)
}

fn built(tree: pst::Template, id: &str) -> Result<Policy, Internal> {
    let tree = pst::StaticPolicy::try_from(tree).map_err(Internal::new)?;
    let policy = Policy::from_pst(pst::Policy::Static(tree)).map_err(Internal::new)?;
    Ok(policy.new_id(PolicyId::new(id)))
}

/// Whether the scope of a rule lets it apply to a tool.
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
