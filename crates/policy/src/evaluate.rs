//! Evaluates rules for a call. The context is built with types, directly from the arguments, and has
//! only what the rules use. Unused data cannot change the result.

use cedar_policy::{
    AuthorizationError, Authorizer, Context, Decision, Entities, Entity, EntityUid, PolicySet,
    Request as CedarRequest, Response, RestrictedExpression,
};

use crate::analysis::{APPROVED, INPUT, Mentions};
use crate::cache::VisibleAttributes;
use crate::decision::Fault;
use crate::groups::RuleGroups;
use crate::request::Request;
use crate::schema::{EntityTypes, Tool};
use crate::slice::Part;
use crate::value::{self, Unfit};

/// The rules that apply to a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The rules that permit it; left empty where a rule forbids it.
    pub(crate) permits: Vec<String>,
    /// The rules that forbid it.
    pub(crate) forbids: Vec<String>,
}

/// The principal, action and resource of a call: the same for all rules of a decision.
pub(crate) struct Parties {
    principal: EntityUid,
    action: EntityUid,
    resource: EntityUid,
    entities: Entities,
}

impl Parties {
    pub(crate) fn new(
        types: &EntityTypes,
        tool: &Tool,
        request: &Request<'_>,
    ) -> Result<Self, Fault> {
        let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
        let principal = types.user(&request.principal);
        let resource = types.agent(&request.agent);
        let user = Entity::new(
            principal.clone(),
            [
                ("name".to_owned(), text(&request.principal)),
                ("tenant".to_owned(), text(&request.tenant)),
            ]
            .into(),
            [types.tenant(&request.tenant)].into(),
        );
        let agent = Entity::new(
            resource.clone(),
            [("name".to_owned(), text(&request.agent))].into(),
            [].into(),
        );
        let action = types.action_entity(&tool.name, &tool.groups);
        let (user, agent) = (user.map_err(refused)?, agent.map_err(refused)?);
        Ok(Self {
            principal,
            action: action.uid(),
            resource,
            entities: Entities::from_entities([user, agent, action], None).map_err(refused)?,
        })
    }
}

fn refused(error: impl std::fmt::Display) -> Fault {
    Fault::Request {
        message: error.to_string(),
    }
}

/// A call as the rules see it: the data they use, and whether it is approved.
pub(crate) struct Case<'a> {
    parties: &'a Parties,
    request: CedarRequest,
}

impl<'a> Case<'a> {
    /// # Errors
    /// The arguments that the rules use and that cannot be represented.
    pub(crate) fn new(
        parties: &'a Parties,
        mentions: &Mentions,
        tool: &Tool,
        request: &Request<'_>,
        approved: bool,
    ) -> Result<Self, Vec<Fault>> {
        let context = context(mentions, tool, request, approved)?;
        let request = CedarRequest::new(
            parties.principal.clone(),
            parties.action.clone(),
            parties.resource.clone(),
            context,
            None,
        );
        let request = request.map_err(|error| vec![refused(error)])?;
        Ok(Self { parties, request })
    }

    /// Evaluates rules for the call.
    ///
    /// # Errors
    /// All faults; the results of the other rules do not count then.
    pub(crate) fn evaluate(
        &self,
        authorizer: &Authorizer,
        part: &Part,
    ) -> Result<Outcome, Vec<Fault>> {
        let authorize = |rules: &PolicySet| {
            let entities = &self.parties.entities;
            Answer::new(&authorizer.is_authorized(&self.request, rules, entities))
        };
        let answer = match &part.groups {
            Some(groups) => authorize(&groups.rules).expand_groups(groups, authorize),
            None if part.rules.is_empty() => return Ok(Outcome::default()),
            None => authorize(&part.rules),
        };
        if answer.faults.is_empty() {
            Ok(answer.outcome)
        } else {
            Err(answer.faults)
        }
    }
}

/// The result of evaluating rules, with faults.
#[derive(Default)]
struct Answer {
    outcome: Outcome,
    faults: Vec<Fault>,
}

impl Answer {
    fn new(response: &Response) -> Self {
        let mut answer = Self::default();
        let rules = response.diagnostics().reason().map(ToString::to_string);
        match response.decision() {
            Decision::Allow => answer.outcome.permits = rules.collect(),
            Decision::Deny => answer.outcome.forbids = rules.collect(),
        }
        let errors = response.diagnostics().errors();
        answer.faults = errors
            .map(
                |AuthorizationError::PolicyEvaluationError(error)| Fault::Evaluation {
                    rule: error.policy_id().to_string(),
                    message: error.inner().to_string(),
                },
            )
            .collect();
        answer
    }

    /// Replaces every group that applies by those of its members that apply. In a group that does not
    /// apply, no member does.
    fn expand_groups(self, groups: &RuleGroups, authorize: impl Fn(&PolicySet) -> Self) -> Self {
        let mut answer = Self::default();
        answer.outcome.permits = self.outcome.permits;
        let mut applying = Vec::new();
        for id in self.outcome.forbids {
            match groups.members(&id) {
                Some(members) => applying.push(members),
                None => answer.outcome.forbids.push(id),
            }
        }
        for fault in self.faults {
            let group = match &fault {
                Fault::Evaluation { rule, .. } => groups.members(rule),
                _ => None,
            };
            match group {
                Some(members) => applying.push(members),
                None => answer.faults.push(fault),
            }
        }
        for members in applying {
            let result = authorize(members);
            if result.outcome.forbids.is_empty() && result.faults.is_empty() {
                // This cannot happen. If it does, the call is denied.
                let fault = refused("a group of rules forbids it, but none of the rules does");
                answer.faults.push(fault);
            }
            answer.outcome.forbids.extend(result.outcome.forbids);
            answer.faults.extend(result.faults);
        }
        answer
    }
}

/// Builds the parts of the context that the rules use.
fn context(
    mentions: &Mentions,
    tool: &Tool,
    request: &Request<'_>,
    approved: bool,
) -> Result<Context, Vec<Fault>> {
    let mut pairs = VisibleAttributes::of(mentions, request).pairs();
    if mentions.attribute(APPROVED) {
        let approved = RestrictedExpression::new_bool(approved);
        pairs.push((APPROVED.to_owned(), approved));
    }
    if mentions.attribute("tool") {
        let facts = RestrictedExpression::new_record(tool.facts.iter().cloned());
        pairs.extend(facts.ok().map(|facts| ("tool".to_owned(), facts)));
    }
    if mentions.attribute(INPUT) {
        pairs.push((INPUT.to_owned(), input(mentions, tool, request)?));
    }
    Context::from_pairs(pairs).map_err(|error| vec![refused(error)])
}

/// Builds the arguments that the rules use. One that cannot be represented is a fault: if it were
/// omitted, a rule that checks its presence would not apply.
fn input(
    mentions: &Mentions,
    tool: &Tool,
    request: &Request<'_>,
) -> Result<RestrictedExpression, Vec<Fault>> {
    let mut fields = Vec::new();
    let mut faults = Vec::new();
    for argument in &tool.arguments {
        if !mentions.argument(&argument.name) {
            continue;
        }
        let name = argument.name.clone();
        match value::attribute(argument, &request.input) {
            Ok(Some(value)) => fields.push((name, value)),
            Ok(None) => {}
            Err(Unfit::Misfit) => faults.push(Fault::Misfit { argument: name }),
            Err(Unfit::Inexpressible) => faults.push(Fault::Inexpressible { argument: name }),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    RestrictedExpression::new_record(fields).map_err(|error| vec![refused(error)])
}

#[cfg(test)]
mod tests;
