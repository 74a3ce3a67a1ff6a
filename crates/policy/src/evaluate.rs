//! Puts a call before rules. The context is built typed, straight from the arguments, and holds
//! only what the rules at hand look at; what they do not look at cannot change what they say.

use cedar_policy::{
    AuthorizationError, Authorizer, Context, Decision as Answer, Entities, Entity, EntityUid,
    PolicySet, Request as CedarRequest, Response, RestrictedExpression,
};

use crate::analysis::{APPROVED, INPUT, Mentions};
use crate::decision::Fault;
use crate::quick::Quick;
use crate::request::Request;
use crate::schema::{EntityTypes, Tool};
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
            Answered::new(&authorizer.is_authorized(&self.request, rules, entities))
        };
        let answered = match &part.quick {
            Some(quick) => ask(&quick.rules).resolve(quick, ask),
            None if part.rules.is_empty() => return Ok(Outcome::default()),
            None => ask(&part.rules),
        };
        if answered.faults.is_empty() {
            Ok(answered.outcome)
        } else {
            Err(answered.faults)
        }
    }
}

/// What rules answer, errors and all.
struct Answered {
    outcome: Outcome,
    faults: Vec<Fault>,
}

impl Answered {
    fn new(response: &Response) -> Self {
        let rules = response.diagnostics().reason();
        let rules = rules.map(ToString::to_string).collect();
        let outcome = match response.decision() {
            Answer::Allow => Outcome {
                permits: rules,
                forbids: Vec::new(),
            },
            Answer::Deny => Outcome {
                permits: Vec::new(),
                forbids: rules,
            },
        };
        let faults = response.diagnostics().errors().map(|error| {
            let AuthorizationError::PolicyEvaluationError(error) = error;
            Fault::Evaluation {
                rule: error.policy_id().to_string(),
                message: error.inner().to_string(),
            }
        });
        Self {
            outcome,
            faults: faults.collect(),
        }
    }

    /// The answer of the rules themselves in the place of what their groups answered.
    fn resolve(self, quick: &Quick, ask: impl Fn(&PolicySet) -> Self) -> Self {
        let mut resolved = Self {
            outcome: Outcome {
                permits: self.outcome.permits,
                forbids: Vec::new(),
            },
            faults: Vec::new(),
        };
        let mut take = |members: &PolicySet, what: &str| {
            let answered = ask(members);
            // A group says nothing that none of its members says. Should it, the call is denied.
            if answered.outcome.forbids.is_empty() && answered.faults.is_empty() {
                resolved
                    .faults
                    .push(refused(format!("a group of rules {what}")));
            }
            resolved.outcome.forbids.extend(answered.outcome.forbids);
        };
        let mut alone = Vec::new();
        for id in self.outcome.forbids {
            match quick.group(&id) {
                Some(members) => take(members, "forbids the call and none of them does"),
                None => alone.push(id),
            }
        }
        let mut faults = Vec::new();
        for fault in self.faults {
            match &fault {
                Fault::Evaluation { rule, message } if quick.group(rule).is_some() => {
                    if let Some(members) = quick.group(rule) {
                        take(members, message);
                    }
                }
                _ => faults.push(fault),
            }
        }
        resolved.outcome.forbids.extend(alone);
        resolved.faults.extend(faults);
        resolved
    }
}

/// The parts of the context that are looked at.
fn context(
    mentions: &Mentions,
    tool: &Tool,
    request: &Request<'_>,
    approved: bool,
) -> Result<Context, Vec<Fault>> {
    let mut pairs: Vec<(String, RestrictedExpression)> = Vec::new();
    let mut add = |name: &str, value: &dyn Fn() -> Option<RestrictedExpression>| {
        if mentions.attribute(name) {
            pairs.extend(value().map(|value| (name.to_owned(), value)));
        }
    };
    let text = |text: &str| Some(RestrictedExpression::new_string(text.to_owned()));
    let truth = |truth| Some(RestrictedExpression::new_bool(truth));
    add("risk", &|| text(request.risk.as_str()));
    add("confidence", &|| request.confidence.map(value::confidence));
    add("environment", &|| text(&request.environment));
    add("tainted", &|| truth(request.tainted));
    add(APPROVED, &|| truth(approved));
    add("session", &|| session(request));
    add("tool", &|| {
        RestrictedExpression::new_record(tool.facts.iter().cloned()).ok()
    });
    if mentions.attribute(INPUT) {
        pairs.push((INPUT.to_owned(), input(mentions, tool, request)?));
    }
    Context::from_pairs(pairs).map_err(|error| vec![refused(error)])
}

fn session(request: &Request<'_>) -> Option<RestrictedExpression> {
    let session = &request.session;
    let count = |name: &str, count: u32| {
        let count = RestrictedExpression::new_long(i64::from(count));
        (name.to_owned(), count)
    };
    RestrictedExpression::new_record([
        count("calls", session.calls),
        count("tool_calls", session.tool_calls),
        count("irreversible_calls", session.irreversible_calls),
        count("denied_calls", session.denied_calls),
        (
            "sensitive_read".to_owned(),
            RestrictedExpression::new_bool(session.sensitive_read),
        ),
    ])
    .ok()
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
