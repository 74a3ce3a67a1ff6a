//! Puts a call before rules. The context is built typed, straight from the arguments, and holds
//! only what the rules at hand look at; what they do not look at cannot change what they say.

use cedar_policy::{
    AuthorizationError, Authorizer, Context, Decision, Entities, Entity, EntityUid, PolicySet,
    Request as CedarRequest, Response, RestrictedExpression,
};

use crate::analysis::{APPROVED, INPUT, Mentions};
use crate::decision::Fault;
use crate::quick::Quick;
use crate::request::Request;
use crate::schema::{EntityTypes, Tool};
use crate::seen::Seen;
use crate::slice::Part;
use crate::value::{self, Unfit};

/// What some rules say to a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The rules that permit it; unknown, and left empty, where one forbids it.
    pub(crate) permits: Vec<String>,
    /// The rules that forbid it.
    pub(crate) forbids: Vec<String>,
}

/// Who asks whom for what: the same for all rules of a decision.
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

/// A call as the rules see it: what they look at, and whether it is approved.
pub(crate) struct Case<'a> {
    parties: &'a Parties,
    request: CedarRequest,
}

impl<'a> Case<'a> {
    /// # Errors
    /// What the rules look at and cannot see.
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

    /// Puts it before rules.
    ///
    /// # Errors
    /// Everything that went wrong; what the other rules say is of no account then.
    pub(crate) fn before(
        &self,
        authorizer: &Authorizer,
        part: &Part,
    ) -> Result<Outcome, Vec<Fault>> {
        let ask = |rules: &PolicySet| {
            let entities = &self.parties.entities;
            Answer::new(&authorizer.is_authorized(&self.request, rules, entities))
        };
        let answer = match &part.quick {
            Some(quick) => ask(&quick.rules).of_members(quick, ask),
            None if part.rules.is_empty() => return Ok(Outcome::default()),
            None => ask(&part.rules),
        };
        if answer.faults.is_empty() {
            Ok(answer.outcome)
        } else {
            Err(answer.faults)
        }
    }
}

/// What rules say, errors and all.
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

    /// The same with what the members say in the place of every group that says something. A group
    /// that says nothing has none that does.
    fn of_members(self, quick: &Quick, ask: impl Fn(&PolicySet) -> Self) -> Self {
        let mut answer = Self::default();
        answer.outcome.permits = self.outcome.permits;
        let mut speaking = Vec::new();
        for id in self.outcome.forbids {
            match quick.group(&id) {
                Some(members) => speaking.push(members),
                None => answer.outcome.forbids.push(id),
            }
        }
        for fault in self.faults {
            let group = match &fault {
                Fault::Evaluation { rule, .. } => quick.group(rule),
                _ => None,
            };
            match group {
                Some(members) => speaking.push(members),
                None => answer.faults.push(fault),
            }
        }
        for members in speaking {
            let said = ask(members);
            if said.outcome.forbids.is_empty() && said.faults.is_empty() {
                // It cannot be. If it is, the call is denied.
                let fault = refused("a group of rules forbids it, but none of the rules does");
                answer.faults.push(fault);
            }
            answer.outcome.forbids.extend(said.outcome.forbids);
            answer.faults.extend(said.faults);
        }
        answer
    }
}

/// The parts of the context that are looked at.
fn context(
    mentions: &Mentions,
    tool: &Tool,
    request: &Request<'_>,
    approved: bool,
) -> Result<Context, Vec<Fault>> {
    let mut pairs = Seen::of(mentions, request).pairs();
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

/// The arguments that are looked at. One that cannot be expressed is a fault: were it left out, a
/// rule that asks whether it is there would pass the call by.
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
