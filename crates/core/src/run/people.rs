//! Questions to people: the two that a model can ask through reserved tools, and those of the gate, of a
//! tool, or about a call with an unknown outcome. `calls/settling.rs` applies the answers.

use std::time::Duration;

use serde_json::{Map, Value};
use windlass_spec::{
    CallId, CallRecord, CallState, Deprecation, Effect, ErrorCategory, Failure, NonEmptyText,
    RiskLevel, RunId, SecurityLevel, Timestamp, ToolSpecification,
};

use super::outcome::FoldError;
use super::plan::TASK_OF_PLAN;
use super::progress::{IT_HAPPENED, NOTHING_HAPPENED, Step};
use super::{CallKind, Entry, Run, ToolQuestion};
use crate::approval::{
    Approval, ApprovalError, Ask, Authorize, Question, QuestionAuthor, Request, TenantPrincipal,
    TooFewCandidates, least_security_level, sorted_json,
};
use crate::gate::{ApprovalTerms, Decision, Rules, Stage, Verdict};
use crate::limits::Readiness;

/// How long a form may stay unanswered: the tool waits for it with an open call.
const FORM_EXPIRY: Duration = Duration::from_secs(15 * 60);

/// What the gate has to do about a call now.
#[derive(Debug, Clone, PartialEq)]
pub enum GateStep {
    /// Decide about it.
    Decide,
    /// Ask a person this question. It is ready to be recorded.
    Ask(Box<Approval>),
    /// Hold it until then.
    Hold {
        /// When its undo window ends.
        until: Timestamp,
        /// Whether the run continues meanwhile.
        deferred: bool,
    },
    /// End it: the question cannot be asked.
    Refuse(Failure),
}

impl Run {
    /// Returns what the gate has to do about a call now; `None` if nothing.
    #[must_use]
    pub fn at_gate(
        &self,
        call: &CallId,
        principal: &TenantPrincipal,
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
        let mut author = QuestionAuthor::Windlass;
        let none = ApprovalTerms::default();
        let question: Result<(Question, ApprovalTerms), Failure> =
            if record.state() == CallState::Unknown {
                let lost = self.damage().filter(|_| self.may_have_run(record.id()));
                Ok((unknown_outcome_question(record, lost), none))
            } else if decision.verdict() == Verdict::Ask && !progress.is_approved() {
                let question = approval_question(record, decision, self.doubt_about(record));
                Ok((question, decision.terms().clone()))
            } else {
                // The arguments of the model are the text of the question.
                author = QuestionAuthor::Agent(self.agent().name().clone());
                match kind {
                    CallKind::Question => model_question(record).map(|question| (question, none)),
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
            // An invalid question fails here and not when it is recorded.
            Ok((question, terms)) => {
                let asked = (question, author, terms);
                ask(
                    self.request_about(call, principal, rules, asked, now),
                    |error| Failure::new(ErrorCategory::InvalidArguments, Effect::None, error),
                )
            }
            Err(failure) => GateStep::Refuse(failure),
        })
    }

    /// Makes the request of a question about a call.
    fn request_about(
        &self,
        call: &CallId,
        principal: &TenantPrincipal,
        rules: &Rules,
        (question, author, terms): (Question, QuestionAuthor, ApprovalTerms),
        now: Timestamp,
    ) -> Request {
        let mut request = Request::new(call.clone(), principal.clone(), question, now);
        request.expires_at = later(now, rules.approval_expiry());
        request.parents = parents(&self.id);
        request.asked_by = Some(author);
        let thought = self.calls.turn_of(call).and_then(|turn| {
            let thought = turn.answer.thought.as_deref().unwrap_or(&turn.answer.text);
            let thought = thought.trim();
            (!thought.is_empty()).then(|| format!("The agent `{}`: {thought}", self.agent().name()))
        });
        if request.question.form().is_some() {
            request.expires_at = request.expires_at.min(later(now, FORM_EXPIRY));
        }
        if request.question.authorize().is_some() {
            terms.apply(&mut request);
            request.message = thought.and_then(|thought| NonEmptyText::new(thought).ok());
        }
        request
    }

    /// The question of a running tool, or the failure of its call if the question is invalid.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn tool_question(
        &self,
        call: &CallId,
        principal: &TenantPrincipal,
        rules: &Rules,
        (asked, notices): (ToolQuestion, Vec<Deprecation>),
        now: Timestamp,
    ) -> Result<GateStep, FoldError> {
        let (record, decision) = self.call(call)?;
        let author = QuestionAuthor::Tool(record.tool_name().clone());
        let stated = asked.clone();
        let usual = decision.map_or(SecurityLevel::High, Decision::security_level);
        let terms = decision.map(Decision::terms).cloned().unwrap_or_default();
        let (tool, arguments) = (record.tool_name(), record.arguments());
        let question = asked.into_question(tool, arguments, self.risk(call), usual);
        let about = (question, author, terms);
        let mut request = self.request_about(call, principal, rules, about, now);
        // A form is answered to the process that keeps the call open.
        request.resumes_call = request.question.form().is_none();
        request.notices = notices;
        request.user_id = stated.user_id;
        request.instruction = stated.instruction;
        request.message = stated.message;
        request.named_call = stated
            .named_call
            .filter(|named| named.tool_name != tool.as_str() || named.tool_args != *arguments);
        request.further = stated.further;
        if let Some(sooner) = stated.expires_at {
            request.expires_at = request.expires_at.min(sooner);
        }
        Ok(ask(request, |error| {
            let message = format!("the tool asked an invalid question: {error}");
            Failure::new(ErrorCategory::InvalidOutput, Effect::None, message)
        }))
    }

    /// The question of a call of `request_authorization`.
    fn authorization(
        &self,
        record: &CallRecord,
        principal: &TenantPrincipal,
        rules: &Rules,
    ) -> Result<(Question, ApprovalTerms), Failure> {
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
            return Err(invalid_question(format!(
                "the arguments of `{name}` do not fit: {}",
                misfits.join("; ")
            )));
        }
        // Decides about the call as if it were made now, so that an approver is not asked for an
        // approval that is insufficient or impossible.
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
        let stated_reason = required_text(record, "reason")?;
        let risk = decision.risk_level().unwrap_or(RiskLevel::Irreversible);
        let stated = text("security_level").and_then(|word| word.parse().ok());
        let level = stated.unwrap_or(SecurityLevel::Low);
        let question = Question::Authorize(Authorize {
            tool_name: tool.name().clone(),
            tool_args: tool_args.clone(),
            reason: match self.doubt_about(&wanted) {
                Some(doubt) => NonEmptyText::or(&format!("{stated_reason}; {doubt}"), "doubtful"),
                None => stated_reason,
            },
            risk,
            security_level: level
                .max(decision.security_level())
                .max(least_security_level(risk)),
            rule: None,
            credentials: None,
        });
        Ok((question, decision.terms().clone()))
    }

    /// The tool of that name, if calls of it can be authorized in advance.
    fn authorizable(&self, name: &str) -> Result<&ToolSpecification, Failure> {
        match self.resolve(name) {
            Some((kind, tool)) if !kind.is_answered_by_person() => Ok(tool),
            _ => Err(invalid_question(format!(
                "there is no tool `{name}` to request authorization for"
            ))),
        }
    }
}

/// The failure of a call that needs an approval that nobody can give.
#[must_use]
pub fn undecidable(few: &TooFewCandidates) -> Failure {
    let message = format!("the call needs approval, and nobody can give it: {few}");
    Failure {
        model_message: "the call needs approval, and nobody can give it; continue without it"
            .to_owned(),
        ..Failure::new(ErrorCategory::PermissionDenied, Effect::None, message)
    }
}

/// Asks a question, or fails its call if the question is invalid.
fn ask(request: Request, refused: impl FnOnce(String) -> Failure) -> GateStep {
    match Approval::ask(request) {
        Ok(approval) => GateStep::Ask(Box::new(approval)),
        Err(ApprovalError::TooFewCandidates(few)) => GateStep::Refuse(undecidable(&few)),
        Err(error) => GateStep::Refuse(refused(error.to_string())),
    }
}

/// The question whether a call may run. `doubt` describes earlier attempts that may have taken effect.
fn approval_question(record: &CallRecord, decision: &Decision, doubt: Option<String>) -> Question {
    let risk = decision.risk_level().unwrap_or(RiskLevel::Irreversible);
    let mut reason = decision.reason().to_owned();
    if !decision.tainted_arguments().is_empty() {
        reason += &format!(
            "; taken from untrusted content: `{}`",
            decision.tainted_arguments().join("`, `")
        );
    }
    if let Some(doubt) = doubt
        && !reason.contains(&doubt)
    {
        let separator = if reason.is_empty() { "" } else { "; " };
        reason += &format!("{separator}{doubt}");
    }
    // Rules that permit the call did not ask.
    let rules = match decision.stage() {
        Stage::Policy => decision.rules().join(", "),
        _ => String::new(),
    };
    Question::Authorize(Authorize {
        tool_name: record.tool_name().clone(),
        tool_args: record.arguments().clone(),
        reason: NonEmptyText::or(&reason, "needs approval"),
        risk,
        security_level: decision.security_level().max(least_security_level(risk)),
        rule: (!rules.is_empty()).then_some(rules),
        credentials: None,
    })
}

/// The question of a call of `ask_human`.
fn model_question(record: &CallRecord) -> Result<Question, Failure> {
    let arguments = record.arguments();
    let context = arguments.get("context").and_then(Value::as_str);
    let options = arguments.get("options").and_then(Value::as_array);
    let options = options.into_iter().flatten().filter_map(Value::as_str);
    Ok(Question::Ask(Ask {
        question: required_text(record, "question")?,
        context: context.map(str::to_owned),
        options: options
            .filter_map(|option| NonEmptyText::new(option.trim()).ok())
            .collect(),
        free_text: true,
        form: None,
    }))
}

/// A required text among the arguments of a call.
fn required_text(record: &CallRecord, name: &str) -> Result<NonEmptyText, Failure> {
    let text = record.arguments().get(name).and_then(Value::as_str);
    NonEmptyText::new(text.unwrap_or_default().trim())
        .map_err(|_| invalid_question(format!("`{name}` is empty")))
}

/// The failure of a call that asks an invalid question.
fn invalid_question(why: String) -> Failure {
    Failure::new(ErrorCategory::InvalidArguments, Effect::None, why)
}

/// The question about a call with an unknown outcome, with what is known about it. `lost` is what the journal lost, if the
/// call may have been made before.
fn unknown_outcome_question(record: &CallRecord, lost: Option<&str>) -> Question {
    let failure = record.outcome().and_then(Result::err);
    let cause = match (lost, failure.map(|failure| failure.category)) {
        (Some(lost), _) => format!("the journal lost entries ({lost})"),
        (_, Some(ErrorCategory::Timeout)) => "it took too long and was stopped".to_owned(),
        (_, Some(ErrorCategory::Cancelled)) => "it was stopped while it ran".to_owned(),
        (_, Some(ErrorCategory::Unavailable)) => "the connection broke while it ran".to_owned(),
        (_, Some(ErrorCategory::ToolFailure)) => "it ended unexpectedly".to_owned(),
        _ => "the process died while it ran".to_owned(),
    };
    let question = format!(
        "It is unknown whether `{}` took effect: {cause}. Please find out. What happened?",
        record.tool_name()
    );
    let arguments = sorted_json(&Value::Object(record.arguments().clone()));
    let mut known = format!("It was called with {arguments}");
    if let Some(started_at) = record.started_at() {
        known += &format!(" and started at {started_at}");
    }
    // If the process died, the call was found later, and how long it ran is not known.
    let is_observed = failure.is_some_and(|failure| failure.category != ErrorCategory::Internal);
    if let (true, Some(ran)) = (is_observed, record.duration()) {
        known += &format!(". It ran for {:.1} s", ran.as_secs_f64());
    }
    if let (true, Some(failure)) = (is_observed, failure) {
        known += &format!(". Recorded: {}", failure.operator_message);
    }
    Question::Ask(Ask {
        question: NonEmptyText::or(&question, "What happened?"),
        context: Some(known),
        options: [IT_HAPPENED, NOTHING_HAPPENED]
            .into_iter()
            .filter_map(|option| NonEmptyText::new(option).ok())
            .collect(),
        free_text: true,
        form: None,
    })
}

/// The calls that led to a run through sub-agents, outermost first. A child run is named after the call
/// it works for.
fn parents(run: &RunId) -> Vec<CallId> {
    let mut parents = Vec::new();
    let mut id = run.as_str().to_owned();
    while let Some((rest, index)) = id.rsplit_once('.')
        && let Some((parent, turn)) = rest.rsplit_once('.')
    {
        // The run of a task works for the call that made the plan.
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

/// The time `duration` after `at`.
fn later(at: Timestamp, duration: Duration) -> Timestamp {
    let duration = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_microseconds(at.as_microseconds().saturating_add(duration))
}
