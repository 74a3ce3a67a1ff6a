//! Questions to people: the two that a model may ask as if that were a tool, and those that the gate, a
//! tool or a lost call leads to. What the run makes of the answers is in `settling.rs`.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::{Map, Value};
use windlass_spec::{
    Agent, CallId, CallRecord, CallState, Effect, ErrorCategory, Failure, Field, NonEmptyText,
    RiskLevel, RunId, SecurityLevel, Signature, Timestamp, ToolAttributes, ToolName,
    ToolSpecification, Type,
};

use super::offer::find_tools;
use super::outcome::FoldError;
use super::plan::{TASK_OF_PLAN, plan_tools};
use super::stand::Step;
use super::state::{Entry, Run};
use super::sub_agent;
use crate::approval::{
    Approval, Ask, Authorize, CredentialUse, Identity, Intervene, Question, Request, canonical,
    least_security_level,
};
use crate::gate::{Decision, Rules, Verdict};

/// Asks a person a question.
pub const ASK_HUMAN: &str = "ask_human";

/// Asks a person for leave for one exact call.
pub const REQUEST_AUTHORIZATION: &str = "request_authorization";

/// What a person answers if a call whose end nobody knew has done nothing.
pub(super) const NOTHING_HAPPENED: &str = "It did not happen";

/// How long a form may stay unanswered: whoever wants it filled in waits for it with a call open.
const FORM_EXPIRY: Duration = Duration::from_secs(15 * 60);

/// What a person answers if it has.
const IT_HAPPENED: &str = "It happened";

/// What the gate has to do about a call now.
#[derive(Debug, Clone, PartialEq)]
pub enum GateStep {
    /// Decide about it.
    Decide,
    /// Put this to a person.
    Ask(Box<Approval>),
    /// Hold it until then.
    Hold {
        /// When its undo window is over.
        until: Timestamp,
        /// Whether the run goes on meanwhile.
        deferred: bool,
    },
    /// End it: nobody can be asked this.
    Refuse(Failure),
}

/// What a tool asks a person because it cannot go on without.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolQuestion {
    /// A question in words.
    Ask(Ask),
    /// Something that has to be done by hand.
    Intervene(Intervene),
    /// Leave to go on. Which call it is for is not the tool's to say.
    Leave {
        /// Why it is wanted.
        reason: NonEmptyText,
        /// How much care the decision needs, if more than usual.
        security_level: Option<SecurityLevel>,
        /// The stored credentials it would use.
        credentials: Option<CredentialUse>,
    },
}

/// What the model may ask people, as tools.
static PEOPLE: LazyLock<Vec<Arc<ToolSpecification>>> = LazyLock::new(|| {
    let question = vec![
        Field::required("question", Type::Text).described("The question"),
        Field::optional("context", Type::Text)
            .described("What the person should know to answer it"),
        Field::optional("options", Type::List(Box::new(Type::Text)))
            .described("Answers to choose from"),
    ];
    let levels = SecurityLevel::ALL.map(|level| level.as_str().to_owned());
    let leave = vec![
        Field::required("tool_name", Type::Text).described("The tool you want to call"),
        Field::required("tool_args", Type::Object)
            .described("Exactly what you want to call it with"),
        Field::required("reason", Type::Text).described("Why"),
        Field::optional("security_level", Type::Enum(levels.to_vec()))
            .described("How much care the decision needs, if more than usual"),
    ];
    [
        (
            ASK_HUMAN,
            "Asks a person a question and waits for the answer. Use it only for what the task and \
             the tools cannot tell you.",
            question,
        ),
        (
            REQUEST_AUTHORIZATION,
            "Asks a person for leave to make one exact call. Calls that need leave ask for it by \
             themselves; use this to explain one beforehand. If it is given, make the call.",
            leave,
        ),
    ]
    .into_iter()
    .filter_map(|(name, description, fields)| {
        let signature = Signature::new(fields, Type::Text).ok()?;
        // Asking changes nothing; what is asked for passes the gate when it is called.
        let attributes = ToolAttributes {
            risk: Some(RiskLevel::Reversible),
            ..ToolAttributes::default()
        };
        let name = ToolName::new(name).ok()?;
        let tool = ToolSpecification::new(name, NonEmptyText::or(description, "-"), signature);
        tool.with_attributes(attributes).ok().map(Arc::new)
    })
    .collect()
});

/// Everything the calls of an agent may name: its tools, the agents it may hand work to, and what it
/// may ask people or look for. What the agent declares itself goes before the rest.
pub(crate) fn offered(agent: &Agent, agents: &[Agent]) -> Vec<Arc<ToolSpecification>> {
    let mut offered = agent.tools().to_vec();
    for other in sub_agent::specifications(agent, agents)
        .iter()
        .chain(PEOPLE.iter())
        .chain(plan_tools())
        .chain(find_tools())
    {
        if offered.iter().all(|tool| tool.name() != other.name()) {
            offered.push(Arc::clone(other));
        }
    }
    offered
}

impl Run {
    /// What the model may ask people, as tools.
    pub(super) fn people(&self) -> impl Iterator<Item = &Arc<ToolSpecification>> {
        PEOPLE.iter().filter(|_| self.settings.ask_people)
    }

    /// Whether a call is a question to a person rather than a call of a tool.
    #[must_use]
    pub fn is_for_people(&self, name: &str) -> bool {
        self.agent.tool(name).is_none() && self.people().any(|tool| tool.name().as_str() == name)
    }

    /// What the gate has to do about a call at this time; `None` if nothing.
    #[must_use]
    pub fn at_gate(
        &self,
        call: &CallId,
        principal: &Identity,
        rules: &Rules,
        now: Timestamp,
    ) -> Option<GateStep> {
        let entry = self.entry(call).ok()?;
        let Entry::Call {
            record,
            decision,
            stand,
        } = entry
        else {
            return None;
        };
        if self.step_of(entry) != Some(Step::AtGate) {
            return None;
        }
        let Some(decision) = decision else {
            return Some(GateStep::Decide);
        };
        let question = if record.state() == CallState::Unknown {
            Ok(lost(record))
        } else if decision.verdict() == Verdict::Ask && stand.approved.is_none() {
            self.authorize(record, decision)
        } else if self.is_for_people(record.tool_name().as_str()) {
            self.asked_by_model(record, principal, rules)
        } else {
            return Some(GateStep::Hold {
                until: later(now, decision.undo_window().unwrap_or_default()),
                deferred: self.is_deferred(record),
            });
        };
        let approval = question.and_then(|question| {
            let request = self.request_about(call, principal, question, now);
            Approval::ask(request).map_err(|error| {
                let message = error.to_string();
                Failure::new(ErrorCategory::InvalidArguments, Effect::None, message)
            })
        });
        Some(match approval {
            Ok(approval) => GateStep::Ask(Box::new(approval)),
            Err(failure) => GateStep::Refuse(failure),
        })
    }

    /// A question about a call, from whoever has it.
    #[must_use]
    pub fn request_about(
        &self,
        call: &CallId,
        principal: &Identity,
        question: Question,
        now: Timestamp,
    ) -> Request {
        let mut request = Request::new(call.clone(), principal.clone(), question, now);
        request.parents = parents(&self.id);
        let turn = self.turns.get(call.turn.number() as usize - 1);
        let thought = turn.and_then(|turn| {
            let thought = turn.answer.thought.as_deref().unwrap_or(&turn.answer.text);
            let thought = thought.trim();
            (!thought.is_empty()).then(|| format!("The agent `{}`: {thought}", self.agent.name()))
        });
        if request.question.form().is_some() {
            request.expires_at = later(now, FORM_EXPIRY);
        }
        if request.question.authorize().is_some() {
            request.message = thought.and_then(|thought| NonEmptyText::new(thought).ok());
        }
        request
    }

    /// The question of a tool that runs, as it is put to a person.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn asked_by_tool(
        &self,
        call: &CallId,
        principal: &Identity,
        asked: ToolQuestion,
        now: Timestamp,
    ) -> Result<Request, FoldError> {
        let (record, decision) = self.call(call)?;
        let question = match asked {
            ToolQuestion::Ask(ask) => Question::Ask(ask),
            ToolQuestion::Intervene(work) => Question::Intervene(work),
            ToolQuestion::Leave {
                reason,
                security_level,
                credentials,
            } => {
                let risk = self.risk(call);
                let usual = decision.map_or(SecurityLevel::High, Decision::security_level);
                let level = security_level.unwrap_or(SecurityLevel::Low).max(usual);
                Question::Authorize(Authorize {
                    tool_name: record.tool_name().clone(),
                    tool_args: record.arguments().clone(),
                    reason,
                    risk,
                    security_level: level.max(least_security_level(risk)),
                    rule: None,
                    credentials,
                })
            }
        };
        Ok(self.request_about(call, principal, question, now))
    }

    fn is_deferred(&self, record: &CallRecord) -> bool {
        self.specification(record.tool_name().as_str())
            .is_some_and(|tool| tool.attributes().deferred == Some(true))
    }

    /// May this call run?
    fn authorize(&self, record: &CallRecord, decision: &Decision) -> Result<Question, Failure> {
        let risk = decision.risk_level().unwrap_or(RiskLevel::Irreversible);
        let mut reason = decision.reason().to_owned();
        if !decision.marked().is_empty() {
            reason += &format!(
                "; taken from what others wrote: `{}`",
                decision.marked().join("`, `")
            );
        }
        let rules = decision.rules().join(", ");
        Ok(Question::Authorize(Authorize {
            tool_name: record.tool_name().clone(),
            tool_args: record.arguments().clone(),
            reason: NonEmptyText::or(&reason, "a person has to agree"),
            risk,
            security_level: decision.security_level().max(least_security_level(risk)),
            rule: (!rules.is_empty()).then_some(rules),
            credentials: None,
        }))
    }

    /// What a call of `ask_human` or `request_authorization` asks.
    fn asked_by_model(
        &self,
        record: &CallRecord,
        principal: &Identity,
        rules: &Rules,
    ) -> Result<Question, Failure> {
        let arguments = record.arguments();
        let wrong = |why: String| Failure::new(ErrorCategory::InvalidArguments, Effect::None, why);
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let needed = |name: &str| {
            NonEmptyText::new(text(name).unwrap_or_default().trim())
                .map_err(|_| wrong(format!("`{name}` is empty")))
        };
        if record.tool_name().as_str() == ASK_HUMAN {
            let options = arguments.get("options").and_then(Value::as_array);
            let options = options.into_iter().flatten().filter_map(Value::as_str);
            return Ok(Question::Ask(Ask {
                question: needed("question")?,
                context: text("context").map(str::to_owned),
                options: options
                    .filter_map(|option| NonEmptyText::new(option.trim()).ok())
                    .collect(),
                free_text: true,
                form: None,
            }));
        }
        let name = text("tool_name").unwrap_or_default();
        let empty = Map::new();
        let tool_args = arguments.get("tool_args").and_then(Value::as_object);
        let tool_args = tool_args.unwrap_or(&empty);
        let tool = self
            .specification(name)
            .filter(|_| !self.is_for_people(name))
            .ok_or_else(|| wrong(format!("there is no tool `{name}` to ask leave for")))?;
        let misfits = tool.signature().misfits(&Value::Object(tool_args.clone()));
        if !misfits.is_empty() {
            let misfits: Vec<String> = misfits.iter().map(ToString::to_string).collect();
            return Err(wrong(format!(
                "the arguments of `{name}` do not fit: {}",
                misfits.join("; ")
            )));
        }
        // What the call would be decided like if it were made now, so that nobody is asked for
        // leave that is not enough, or that nobody can give.
        let wanted = CallRecord::requested(
            record.id().clone(),
            tool.name().clone(),
            tool_args.clone(),
            record.requested_at(),
        );
        let decision = self.decide_about(&wanted, principal, rules);
        if let Some(failure) = decision.failure() {
            return Err(failure);
        }
        let risk = decision.risk_level().unwrap_or(RiskLevel::Irreversible);
        let stated = text("security_level").and_then(|word| word.parse().ok());
        let level = stated.unwrap_or(SecurityLevel::Low);
        Ok(Question::Authorize(Authorize {
            tool_name: tool.name().clone(),
            tool_args: tool_args.clone(),
            reason: needed("reason")?,
            risk,
            security_level: level
                .max(decision.security_level())
                .max(least_security_level(risk)),
            rule: None,
            credentials: None,
        }))
    }
}

/// What became of this call?
fn lost(record: &CallRecord) -> Question {
    let question = format!(
        "Nobody knows whether `{}` took effect: the process died while it ran. Please find out. What \
         happened?",
        record.tool_name()
    );
    let arguments = canonical(&Value::Object(record.arguments().clone()));
    Question::Ask(Ask {
        question: NonEmptyText::or(&question, "What happened?"),
        context: Some(format!("It was called with {arguments}")),
        options: [IT_HAPPENED, NOTHING_HAPPENED]
            .into_iter()
            .filter_map(|option| NonEmptyText::new(option).ok())
            .collect(),
        free_text: true,
        form: None,
    })
}

/// The calls that led to a run through sub-agents, the outermost first. A child run is named after
/// the call it works for.
fn parents(run: &RunId) -> Vec<CallId> {
    let mut parents = Vec::new();
    let mut id = run.as_str().to_owned();
    while let Some((rest, index)) = id.rsplit_once('.')
        && let Some((parent, turn)) = rest.rsplit_once('.')
    {
        // A task of a plan works for the call that made the plan.
        if turn.starts_with(TASK_OF_PLAN) {
            id = parent.to_owned();
            continue;
        }
        let Ok(call) = format!("{parent}:{turn}:{index}").parse() else {
            break;
        };
        parents.push(call);
        id = parent.to_owned();
    }
    parents.reverse();
    parents
}

/// The point in time that much later.
fn later(at: Timestamp, duration: Duration) -> Timestamp {
    let duration = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_microseconds(at.as_microseconds().saturating_add(duration))
}
