//! What is known about a call that another program makes, from its run.

use serde_json::{Map, Value, json};
use windlass_core::approval::Digest;
use windlass_core::gate::{Decision, Verdict};
use windlass_core::run::{Entry, Next, Run};
use windlass_spec::{CallId, CallState, RiskLevel, RunId, Timestamp};
use windlass_store::RunSummary;

use crate::error::ServiceError;

windlass_spec::word_set! {
    /// Where a call is that another program makes.
    OutsideState, "state" {
        /// It may begin.
        Ready = "ready",
        /// It is held until its undo window ends.
        Held = "held",
        /// A person has to decide.
        Waiting = "waiting",
        /// It is stopped until an operator starts it again.
        Stopped = "stopped",
        /// It was refused, or was not begun in time.
        Denied = "denied",
        /// It has begun, and its outcome is not reported yet.
        Begun = "begun",
        /// It has ended.
        Ended = "ended",
        /// It has begun, and its outcome is unknown.
        Unknown = "unknown",
    }
}

/// The decision about a call that another program makes.
#[derive(Debug, Clone)]
pub struct OutsideDecision {
    /// The run of the call, which is the id of the decision.
    pub run: RunId,
    /// The call; `None` if it was refused before it was one.
    pub call: Option<CallId>,
    /// Where it is.
    pub state: OutsideState,
    /// Why it is refused, held or asked about, or how it failed.
    pub reason: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments to make the call with. An approver may have edited them.
    pub arguments: Map<String, Value>,
    /// Whether they are other ones than those that were requested.
    pub is_edited: bool,
    /// The digest of the call with these arguments.
    pub digest: Option<Digest>,
    /// The risk of the call.
    pub risk: Option<RiskLevel>,
    /// The open request about the call, for a person to decide.
    pub approval: Option<CallId>,
    /// When the undo window ends, or until when the call may begin, or its outcome be reported.
    pub until: Option<Timestamp>,
    /// When the same call may be requested again, if the refusal is temporary.
    pub retry_at: Option<Timestamp>,
    /// How it ended: `success`, `error`, `timeout`, `cancelled` or `unknown`.
    pub outcome: Option<CallState>,
}

impl OutsideDecision {
    pub(super) fn of(
        summary: &RunSummary,
        run: &Run,
        now: Timestamp,
        stop: Option<String>,
    ) -> Self {
        let requested = run.task().call.as_deref();
        let mut decision = Self {
            run: summary.run.clone(),
            call: None,
            state: OutsideState::Denied,
            reason: None,
            tool: requested.map_or_else(String::new, |call| call.tool.clone()),
            arguments: Map::new(),
            is_edited: false,
            digest: None,
            risk: None,
            approval: None,
            until: None,
            retry_at: None,
            outcome: None,
        };
        let entry = run.turns().first().and_then(|turn| turn.entries.first());
        match entry {
            Some(Entry::Call {
                record,
                decision: decided,
                progress,
                ..
            }) => {
                decision.call = Some(record.id().clone());
                decision.tool = record.tool_name().to_string();
                decision.arguments = record.arguments().clone();
                decision.is_edited = progress.before_edit().is_some();
                decision.digest = Some(Digest::of_call(record.tool_name(), record.arguments()));
                let decided = decided.as_deref();
                decision.risk = decided.and_then(Decision::risk_level);
                decision.retry_at = decided.and_then(Decision::retry_at);
                let why = decided.map(Decision::reason).filter(|why| !why.is_empty());
                decision.reason = why.map(str::to_owned);
                let failure = || {
                    let failure = record.outcome().and_then(Result::err);
                    failure.map(|failure| failure.model_message.clone())
                };
                match record.state() {
                    CallState::Pending => decision.before_beginning(run, now, stop),
                    CallState::Running => {
                        decision.state = OutsideState::Begun;
                        decision.reason = None;
                        decision.until = run.outside_deadline();
                    }
                    CallState::Unknown => {
                        decision.state = OutsideState::Unknown;
                        decision.reason = failure();
                        decision.approval =
                            run.questions().next().map(|asked| asked.call().clone());
                        decision.outcome = Some(CallState::Unknown);
                    }
                    ended if record.was_permitted() => {
                        decision.state = OutsideState::Ended;
                        decision.reason = failure();
                        decision.outcome = Some(ended);
                    }
                    _ => decision.reason = failure(),
                }
            }
            Some(Entry::Mistake { mistake, .. }) => decision.reason = Some(mistake.to_string()),
            Some(Entry::Finish) => decision.reason = Some("it is no call of a tool".to_owned()),
            None => match (run.end(), stop) {
                (None, Some(stop)) => {
                    decision.state = OutsideState::Stopped;
                    decision.reason = Some(stop);
                }
                (None, None) => {
                    decision.state = OutsideState::Waiting;
                    decision.reason = Some("it is being decided".to_owned());
                }
                (Some(_), _) => decision.reason = Some("the run of the call has ended".to_owned()),
            },
        }
        decision
    }

    /// The state of a call that was decided and has not begun.
    fn before_beginning(&mut self, run: &Run, now: Timestamp, stop: Option<String>) {
        if run.end().is_some() {
            self.reason = Some("the call was cancelled, or not begun in time".to_owned());
            return;
        }
        if let Some(stop) = stop {
            self.state = OutsideState::Stopped;
            self.reason = Some(stop);
            return;
        }
        self.state = match run.next() {
            Next::Wait(waiting) if waiting.for_person => {
                self.approval = run.questions().next().map(|asked| asked.call().clone());
                self.until = Some(waiting.until);
                OutsideState::Waiting
            }
            Next::Wait(waiting) if waiting.until > now => {
                self.until = Some(waiting.until);
                OutsideState::Held
            }
            Next::Wait(_) | Next::RunCalls(_) => {
                self.until = run.outside_deadline();
                match self.until.is_some_and(|until| until > now) {
                    true => {
                        self.reason = None;
                        OutsideState::Ready
                    }
                    false => {
                        self.reason = Some("the call was not begun in time".to_owned());
                        OutsideState::Denied
                    }
                }
            }
            _ => OutsideState::Waiting,
        };
    }

    /// What the program is answered: whether it may make the call.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.state {
            OutsideState::Ready
            | OutsideState::Begun
            | OutsideState::Ended
            | OutsideState::Unknown => Verdict::Allow,
            OutsideState::Held => Verdict::Hold,
            OutsideState::Waiting => Verdict::Ask,
            OutsideState::Stopped | OutsideState::Denied => Verdict::Deny,
        }
    }

    /// Whether it may change without the program.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        matches!(self.state, OutsideState::Held | OutsideState::Waiting)
    }

    pub(super) fn check_can_begin(&self) -> Result<(), ServiceError> {
        let reason = self
            .reason
            .as_deref()
            .unwrap_or("the gate did not allow it");
        match self.state {
            OutsideState::Ready => Ok(()),
            OutsideState::Begun | OutsideState::Ended | OutsideState::Unknown => {
                let message = "the call has begun before";
                Err(ServiceError::conflict("already_begun", message)
                    .with_hint("request another decision to make the same call again"))
            }
            OutsideState::Held | OutsideState::Waiting => {
                let message = format!("the call may not begin yet: {reason}");
                Err(ServiceError::conflict("not_allowed", message)
                    .with_hint("wait for the decision"))
            }
            OutsideState::Stopped => Err(ServiceError::conflict("stopped", reason)),
            OutsideState::Denied => {
                let message = format!("the call may not begin: {reason}");
                Err(ServiceError::conflict("not_allowed", message))
            }
        }
    }

    pub(super) fn check_can_end(&self) -> Result<(), ServiceError> {
        match self.state {
            OutsideState::Begun => Ok(()),
            OutsideState::Ended => Err(ServiceError::conflict("ended", "the call has ended")),
            OutsideState::Unknown => {
                let message = "the outcome was not reported in time and counts as unknown";
                Err(ServiceError::conflict("too_late", message)
                    .with_hint("a person is asked whether the call had an effect"))
            }
            _ => {
                let message = "the call has not begun";
                Err(ServiceError::conflict("not_begun", message)
                    .with_hint("begin it before it is made"))
            }
        }
    }

    /// The decision as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.run, "call": self.call, "verdict": self.verdict(), "state": self.state,
            "reason": self.reason, "tool": self.tool, "arguments": self.arguments, "edited": self.is_edited,
            "digest": self.digest, "risk": self.risk, "approval": self.approval, "until": self.until,
            "retry_at": self.retry_at, "outcome": self.outcome,
        })
    }
}
