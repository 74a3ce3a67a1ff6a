//! Questions to people: the two that a model may ask as if that were a tool, and those that the gate, a
//! tool or a lost call leads to. Each is made once, here; what the answers change is in `calls/settling.rs`.

use std::time::Duration;

use serde_json::{Map, Value};
use windlass_spec::{
    CallId, CallRecord, CallState, Effect, ErrorCategory, Failure, NonEmptyText, RiskLevel, RunId,
    SecurityLevel, Timestamp, ToolSpecification,
};

use super::outcome::FoldError;
use super::plan::TASK_OF_PLAN;
use super::progress::{NOTHING_HAPPENED, Step};
use super::{CallKind, Entry, Run};
use crate::approval::{
    Approval, Ask, Authorize, CredentialUse, Identity, Intervene, Question, Request, canonical,
    least_security_level,
};
use crate::gate::{Decision, Rules, Verdict};
use crate::limits::Readiness;

/// How long a form may stay unanswered: the tool that wants it filled in waits for it with a call open.
const FORM_EXPIRY: Duration = Duration::from_secs(15 * 60);

/// What a person answers if a call whose end nobody knew took effect.
const IT_HAPPENED: &str = "It happened";

/// What the gate has to do about a call now.
#[derive(Debug, Clone, PartialEq)]
pub enum GateStep {
    /// Decide about it.
    Decide,
    /// Ask a person this question, which is ready to be recorded.
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

impl Run {
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
            kind,
            specification: tool,
            record,
            decision,
            progress,
        } = entry
        else {
            return None;
        };
        if entry.step(self.allowance.now()) != Some(Step::AtGate) {
            return None;
        }
        let Some(decision) = decision else {
            return Some(GateStep::Decide);
        };
        let question = if record.state() == CallState::Unknown {
            Ok(lost(record))
        } else if decision.verdict() == Verdict::Ask && !progress.is_approved() {
            Ok(authorize(record, decision))
        } else {
            match kind {
                CallKind::Question => asked_by_model(record),
                CallKind::Authorization => self.authorization(record, principal, rules),
                CallKind::Tool
                | CallKind::Plan(_)
                | CallKind::ToolSearch
                | CallKind::SubAgent
                | CallKind::Finish => {
                    return Some(GateStep::Hold {
                        until: later(now, decision.undo_window().unwrap_or_default()),
                        deferred: tool.attributes().deferred == Some(true),
                    });
                }
            }
        };
        Some(match question {
            // A question that cannot be put is found out here and not when it is recorded.
            Ok(question) => self.ask(call, principal, question, now, |error| {
                Failure::new(ErrorCategory::InvalidArguments, Effect::None, error)
            }),
            Err(failure) => GateStep::Refuse(failure),
        })
    }

    /// Makes a question about a call, or the failure of the call if nobody can be asked that.
    fn ask(
        &self,
        call: &CallId,
        principal: &Identity,
        question: Question,
        now: Timestamp,
        refused: impl FnOnce(String) -> Failure,
    ) -> GateStep {
        match Approval::ask(self.request_about(call, principal, question, now)) {
            Ok(approval) => GateStep::Ask(Box::new(approval)),
            Err(error) => GateStep::Refuse(refused(error.to_string())),
        }
    }

    /// A question about a call.
    fn request_about(
        &self,
        call: &CallId,
        principal: &Identity,
        question: Question,
        now: Timestamp,
    ) -> Request {
        let mut request = Request::new(call.clone(), principal.clone(), question, now);
        request.parents = parents(&self.id);
        let turn = self.turns().get(call.turn.number() as usize - 1);
        let thought = turn.and_then(|turn| {
            let thought = turn.answer.thought.as_deref().unwrap_or(&turn.answer.text);
            let thought = thought.trim();
            (!thought.is_empty()).then(|| format!("The agent `{}`: {thought}", self.agent().name()))
        });
        if request.question.form().is_some() {
            request.expires_at = later(now, FORM_EXPIRY);
        }
        if request.question.authorize().is_some() {
            request.message = thought.and_then(|thought| NonEmptyText::new(thought).ok());
        }
        request
    }

    /// The question of a tool that runs, or the failure of its call if nobody can answer that.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn asked_by_tool(
        &self,
        call: &CallId,
        principal: &Identity,
        asked: ToolQuestion,
        now: Timestamp,
    ) -> Result<GateStep, FoldError> {
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
        Ok(self.ask(call, principal, question, now, |error| {
            let message = format!("the tool asks what nobody can answer: {error}");
            Failure::new(ErrorCategory::InvalidOutput, Effect::None, message)
        }))
    }

    /// What a call of `request_authorization` asks.
    fn authorization(
        &self,
        record: &CallRecord,
        principal: &Identity,
        rules: &Rules,
    ) -> Result<Question, Failure> {
        let arguments = record.arguments();
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let name = text("tool_name").unwrap_or_default();
        let tool = self.authorizable(name)?;
        let empty = Map::new();
        let tool_args = arguments.get("tool_args").and_then(Value::as_object);
        let tool_args = tool_args.unwrap_or(&empty);
        let misfits = tool.signature().misfits(&Value::Object(tool_args.clone()));
        if !misfits.is_empty() {
            let misfits: Vec<String> = misfits.iter().map(ToString::to_string).collect();
            return Err(wrong(format!(
                "the arguments of `{name}` do not fit: {}",
                misfits.join("; ")
            )));
        }
        // What the call would be decided like if it were made now, so that nobody is asked for an
        // approval that is not enough, or that nobody can give.
        let wanted = CallRecord::requested(
            record.id().clone(),
            tool.name().clone(),
            tool_args.clone(),
            record.requested_at(),
        );
        let decision = self.decide_about(&wanted, tool, principal, rules, &Readiness::Ready);
        if let Some(failure) = decision.failure() {
            return Err(failure);
        }
        let risk = decision.risk_level().unwrap_or(RiskLevel::Irreversible);
        let stated = text("security_level").and_then(|word| word.parse().ok());
        let level = stated.unwrap_or(SecurityLevel::Low);
        Ok(Question::Authorize(Authorize {
            tool_name: tool.name().clone(),
            tool_args: tool_args.clone(),
            reason: needed(record, "reason")?,
            risk,
            security_level: level
                .max(decision.security_level())
                .max(least_security_level(risk)),
            rule: None,
            credentials: None,
        }))
    }

    /// The tool of that name, if calls of it can be authorized beforehand.
    fn authorizable(&self, name: &str) -> Result<&ToolSpecification, Failure> {
        match self.resolve(name) {
            Some((kind, tool)) if !kind.is_answered_by_person() => Ok(tool),
            _ => Err(wrong(format!("there is no tool `{name}` to ask leave for"))),
        }
    }
}

/// May this call run?
fn authorize(record: &CallRecord, decision: &Decision) -> Question {
    let risk = decision.risk_level().unwrap_or(RiskLevel::Irreversible);
    let mut reason = decision.reason().to_owned();
    if !decision.marked().is_empty() {
        reason += &format!(
            "; taken from what others wrote: `{}`",
            decision.marked().join("`, `")
        );
    }
    let rules = decision.rules().join(", ");
    Question::Authorize(Authorize {
        tool_name: record.tool_name().clone(),
        tool_args: record.arguments().clone(),
        reason: NonEmptyText::or(&reason, "a person has to agree"),
        risk,
        security_level: decision.security_level().max(least_security_level(risk)),
        rule: (!rules.is_empty()).then_some(rules),
        credentials: None,
    })
}

/// What a call of `ask_human` asks.
fn asked_by_model(record: &CallRecord) -> Result<Question, Failure> {
    let arguments = record.arguments();
    let context = arguments.get("context").and_then(Value::as_str);
    let options = arguments.get("options").and_then(Value::as_array);
    let options = options.into_iter().flatten().filter_map(Value::as_str);
    Ok(Question::Ask(Ask {
        question: needed(record, "question")?,
        context: context.map(str::to_owned),
        options: options
            .filter_map(|option| NonEmptyText::new(option.trim()).ok())
            .collect(),
        free_text: true,
        form: None,
    }))
}

/// A text among the arguments of a call that must not be empty.
fn needed(record: &CallRecord, name: &str) -> Result<NonEmptyText, Failure> {
    let text = record.arguments().get(name).and_then(Value::as_str);
    NonEmptyText::new(text.unwrap_or_default().trim())
        .map_err(|_| wrong(format!("`{name}` is empty")))
}

/// The failure of a call that asks a person something wrongly.
fn wrong(why: String) -> Failure {
    Failure::new(ErrorCategory::InvalidArguments, Effect::None, why)
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
