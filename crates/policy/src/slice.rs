//! The rules that can apply to one tool, sorted at load so that a decision looks at no others, and
//! at those that do not ask for an approval only once.

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
    /// Rules that look at the approval.
    pub(crate) approving: Part,
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
        let part = if analysis.mentions.attribute(APPROVED) {
            &mut self.approving
        } else {
            &mut self.steady
        };
        part.add(policy, analysis)
    }

    /// To be called once all rules are there.
    pub(crate) fn finish(&mut self) -> Result<(), Internal> {
        for part in [&mut self.steady, &mut self.approving] {
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
///
/// `unless { context.approved }` comes first: an approved call is past such a rule at once. It hides
/// no error of the other conditions, since a call is never put before the rules as approved unless
/// they have judged it as not approved, all conditions included, and without error.
pub(crate) fn compiled_for_tool(policy: &Policy, id: &str) -> Result<Policy, Internal> {
    let mut tree = policy.to_pst().map_err(Internal::new)?.body().clone();
    tree.action = pst::ActionConstraint::Any;
    let mut clauses = tree.clauses().clone();
    clauses.sort_by_key(|clause| !is_unless_approved(clause));
    built(tree.try_with_clauses(clauses).map_err(Internal::new)?, id)
}

fn is_unless_approved(clause: &pst::Clause) -> bool {
    let pst::Clause::Unless(condition) = clause else {
        return false;
    };
    let pst::Expr::GetAttr { expr, attr } = &**condition else {
        return false;
    };
    matches!(**expr, pst::Expr::Var(pst::Var::Context)) && *attr == APPROVED
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
