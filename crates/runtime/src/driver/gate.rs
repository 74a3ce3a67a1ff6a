//! Takes calls through the gate: decides, asks approvers, holds. Decides once more before a call
//! starts.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument as _;
use windlass_core::approval::{Approval, Hold};
use windlass_core::durable::{AtomicWrite, Durability};
use windlass_core::gate::{Decision, Verdict};
use windlass_core::limits::Readiness;
use windlass_core::run::{CallEnd, CallKind, Event, GateStep, ToolQuestion, undecidable};
use windlass_spec::{
    CallId, CallState, Deprecation, Effect, ErrorCategory, Failure, RiskLevel, Timestamp, ToolName,
};

use super::waiting::{INBOX_POLL_IDLE, InboxState};
use super::{Drive, DriveError, spans};
use crate::durable::{DurableError, LimitedCall, TurnRequest};
use crate::limiter::{Admitted, lasting};

impl Drive<'_> {
    /// Takes a call one step further through the gate.
    pub(super) async fn pass_gate(&mut self, call: &CallId) -> Result<(), DriveError> {
        self.take_rules()?;
        let now = self.driver.durable.now();
        let who = self.journal.who();
        match self.run.at_gate(call, who, &self.rules, now) {
            None => Ok(()),
            Some(GateStep::Decide) => {
                let span = spans::gate_decision(call);
                let (decision, is_trial) = self.decide(call).instrument(span.clone()).await?;
                spans::record_decision(&span, &decision);
                let event = Event::Decided {
                    call: call.clone(),
                    decision,
                    at: now,
                };
                self.fresh.insert(call.clone(), is_trial);
                self.record(event, Durability::Relaxed).await
            }
            Some(GateStep::Ask(question)) => self.ask(question, now).await,
            Some(GateStep::Hold { until, deferred }) => {
                let (record, _) = self.run.call(call)?;
                let window = until.microseconds_since(now);
                let hold = Hold::new(
                    call.clone(),
                    who.clone(),
                    record.tool_name().clone(),
                    record.arguments().clone(),
                    now,
                    Duration::from_micros(window),
                );
                self.fresh.remove(call);
                let event = Event::Held {
                    call: call.clone(),
                    until,
                    deferred,
                    at: now,
                };
                self.record_with(event, AtomicWrite::Hold(Box::new(hold)))
                    .await
                    .map(drop)
            }
            Some(GateStep::Refuse(failure)) => {
                self.end_call(call, CallEnd::Error(failure).into()).await
            }
        }
    }

    /// Asks a person the question of a running tool.
    pub(super) async fn ask_for_tool(
        &mut self,
        call: &CallId,
        mut asked: ToolQuestion,
        notices: Vec<Deprecation>,
    ) -> Result<(), DriveError> {
        let at = self.driver.durable.now();
        let who = self.journal.who();
        asked.seal(|secret| self.journal.seal(secret));
        match self
            .run
            .tool_question(call, who, &self.rules, (asked, notices), at)?
        {
            GateStep::Ask(question) => {
                if question.question().form().is_some() {
                    self.parked.insert(call.clone());
                }
                self.ask(question, at).await
            }
            GateStep::Refuse(failure) => self.end_call(call, CallEnd::Error(failure).into()).await,
            GateStep::Decide | GateStep::Hold { .. } => Ok(()),
        }
    }

    /// Asks a person. The stored question, the question in the event, and the one that the run compares
    /// the answer with are the same value, redacted with the event.
    async fn ask(&mut self, approval: Box<Approval>, at: Timestamp) -> Result<(), DriveError> {
        self.fresh.remove(approval.call());
        if let Some(people) = self.journal.approvers().await?
            && let Err(few) = approval.check_candidates(&people)
        {
            let call = approval.call().clone();
            let (record, _) = self.run.call(&call)?;
            if record.state() == CallState::Unknown {
                // The call has ended. Whether it had an effect stays open until somebody can be asked.
                let why = format!("whether the call {call} had an effect cannot be asked: {few}");
                return Err(DurableError::Conflict(why).into());
            }
            return self
                .end_call(&call, CallEnd::Error(undecidable(&few)).into())
                .await;
        }
        let event = self.journal.redact(Event::Asked { approval, at })?;
        let Event::Asked { approval, .. } = event.event() else {
            return Ok(());
        };
        let write = AtomicWrite::Question(approval.clone());
        self.record_redacted_with(event, vec![write])
            .await
            .map(drop)
    }

    /// The gate's current decision about a call, standing approvals included, and whether the call is the
    /// trial of a tool that kept failing.
    async fn decide(&self, call: &CallId) -> Result<(Decision, bool), DriveError> {
        let readiness = self.readiness(call).await?;
        let is_trial = matches!(readiness, Readiness::Trial { .. });
        Ok((self.decide_if(call, &readiness).await?, is_trial))
    }

    async fn decide_if(
        &self,
        call: &CallId,
        readiness: &Readiness,
    ) -> Result<Decision, DriveError> {
        let who = self.journal.who();
        let decision = self.run.decide(call, who, &self.rules, readiness)?;
        let now = self.driver.durable.now();
        let Some(standing) = self.run.standing_call(call, &decision, who, now) else {
            return Ok(decision);
        };
        Ok(match self.driver.durable.covering(standing).await? {
            Some(number) => self
                .run
                .decide_with_standing(call, decision, number, &self.rules),
            None => decision,
        })
    }

    /// Takes the current rules. Calls that were decided under other rules are decided again before they
    /// start.
    pub(super) fn take_rules(&mut self) -> Result<(), DriveError> {
        let rules = self.driver.crew.rules(self.member.agent.name())?;
        if !Arc::ptr_eq(&rules, &self.rules) {
            self.rules = rules;
            self.fresh.clear();
        }
        Ok(())
    }

    /// Whether a call exceeds a rate limit, or its tool keeps failing. Questions to people are not
    /// counted and cannot fail.
    async fn readiness(&self, call: &CallId) -> Result<Readiness, DriveError> {
        let (record, _) = self.run.call(call)?;
        let tool = record.tool_name();
        if !self.is_counted(call) {
            return Ok(Readiness::Ready);
        }
        let (driver, who) = (self.driver, self.journal.who());
        let (tenant, now) = (who.tenant.as_str(), driver.durable.now());
        let limits = self.rules.limits(tool, who);
        if !limits.is_empty() {
            let readiness = driver.limiter.readiness(tenant, &limits, now);
            if readiness != Readiness::Ready {
                return Ok(readiness);
            }
            let limits = &lasting(&limits);
            let call = LimitedCall {
                tenant,
                limits,
                now,
            };
            let used_up = driver.durable.used_up(call).await?;
            if let Some(used_up) = used_up {
                return Ok(Readiness::limited(used_up.limit, used_up.until, now));
            }
        }
        self.health(tool, now).await
    }

    /// Whether a tool keeps failing.
    async fn health(&self, tool: &ToolName, now: Timestamp) -> Result<Readiness, DriveError> {
        let (driver, tenant) = (self.driver, self.journal.who().tenant.as_str());
        let breaker = self.rules.breaker();
        let ends = match driver.limiter.stored(tenant, tool) {
            Some(ends) => ends,
            None => {
                let count = breaker.failures.get();
                let ends = driver.durable.latest_ends(tenant, tool, count).await?;
                driver.limiter.note_stored(tenant, tool, &ends);
                ends
            }
        };
        Ok(driver.limiter.health(tenant, tool, ends, breaker, now))
    }

    /// Claims the trial of a tool that kept failing. Ready if this call may make it; no other call may
    /// until the cooldown is over.
    async fn claim_trial(&self, tool: &ToolName, now: Timestamp) -> Result<Readiness, DriveError> {
        let Readiness::Trial { failures } = self.health(tool, now).await? else {
            return Ok(Readiness::Ready);
        };
        let (driver, tenant) = (self.driver, self.journal.who().tenant.as_str());
        let cooldown = self.rules.breaker().cooldown;
        let micros = i64::try_from(cooldown.as_micros()).unwrap_or(i64::MAX);
        let until = now.as_microseconds().saturating_add(micros);
        let turn = TurnRequest {
            tenant,
            key: &format!("trial:{tool}"),
            now,
            until: Timestamp::from_microseconds(until),
        };
        let taken = match driver.limiter.take_turn(turn) {
            Some(taken) => Some(taken),
            None => driver.durable.take_turn(turn).await?,
        };
        Ok(match taken {
            None => Readiness::Ready,
            Some(until) => Readiness::Failing {
                failures,
                until,
                wait: Duration::from_micros(until.microseconds_since(now)),
            },
        })
    }

    fn is_counted(&self, call: &CallId) -> bool {
        !matches!(
            self.run.kind(call),
            Some(CallKind::Question | CallKind::Authorization | CallKind::ToolSearch)
        )
    }

    /// Takes a call from its rate limits, or refuses it.
    async fn admit(
        &mut self,
        call: &CallId,
        is_trial: bool,
    ) -> Result<Option<Admitted>, DriveError> {
        let now = self.driver.durable.now();
        let readiness = match self.take_from_limits(call, is_trial, now).await? {
            Ok(admitted) => return Ok(Some(admitted)),
            Err(readiness) => readiness,
        };
        let decision = self
            .run
            .decide(call, self.journal.who(), &self.rules, &readiness)?;
        let event = Event::Decided {
            call: call.clone(),
            decision,
            at: now,
        };
        self.record_with(event, AtomicWrite::Withdraw(call.clone()))
            .await?;
        Ok(None)
    }

    /// Takes one attempt at a call from its rate limits. Returns why it is not admitted, if it is not.
    async fn take_from_limits(
        &self,
        call: &CallId,
        is_trial: bool,
        now: Timestamp,
    ) -> Result<Result<Admitted, Readiness>, DriveError> {
        let (record, _) = self.run.call(call)?;
        let tool = record.tool_name();
        let limits = match self.is_counted(call) {
            true => self.rules.limits(tool, self.journal.who()),
            false => Vec::new(),
        };
        let (driver, tenant) = (self.driver, self.journal.who().tenant.as_str());
        let admitted = match driver.limiter.admit(tenant, &limits, now) {
            Ok(admitted) => admitted,
            Err(readiness) => return Ok(Err(readiness)),
        };
        let trial = match is_trial {
            true => self.claim_trial(tool, now).await?,
            false => Readiness::Ready,
        };
        let limits = &lasting(&limits);
        let limited = LimitedCall {
            tenant,
            limits,
            now,
        };
        let refused = match trial {
            Readiness::Ready => driver
                .durable
                .take(limited)
                .await?
                .map(|used_up| Readiness::limited(used_up.limit, used_up.until, now)),
            failing => Some(failing),
        };
        Ok(match refused {
            None => Ok(admitted),
            Some(readiness) => {
                admitted.give_back();
                Err(readiness)
            }
        })
    }

    /// Records that a failed call is tried again, if it may be: its risk, the time and the limits allow it, and
    /// the rules do not forbid it now. Returns its admission and how long to wait.
    pub(super) async fn retry_call(
        &mut self,
        call: &CallId,
        failure: &Failure,
    ) -> Result<Option<(Admitted, Duration)>, DriveError> {
        let Some(delay) = self.run.retry_delay(call, failure) else {
            return Ok(None);
        };
        let now = self.driver.durable.now();
        if self.run.time_left(now).is_some_and(|left| left <= delay) {
            return Ok(None);
        }
        self.take_rules()?;
        let (_, decision) = self.run.call(call)?;
        let current = self.decide_if(call, &Readiness::Ready).await?;
        if decision.is_none_or(|earlier| self.run.is_stricter(call, earlier, &current)) {
            return Ok(None);
        }
        let Ok(admitted) = self.take_from_limits(call, false, now).await? else {
            return Ok(None);
        };
        let micros = i64::try_from(delay.as_micros()).unwrap_or(i64::MAX);
        let event = Event::CallRetried {
            call: call.clone(),
            failure: failure.clone(),
            until: Timestamp::from_microseconds(now.as_microseconds().saturating_add(micros)),
            at: now,
        };
        self.record(event, Durability::Relaxed).await?;
        Ok(Some((admitted, delay)))
    }

    /// Records the start of a call, if it is still allowed. Returns its admission; `None` if it does not
    /// start.
    pub(super) async fn start_call(
        &mut self,
        call: &CallId,
    ) -> Result<Option<Admitted>, DriveError> {
        if self.run.end().is_some() {
            return Ok(None);
        }
        if let Some(end) = self.run.answered_end(call).cloned() {
            self.end_call(call, end.into()).await?;
            return Ok(None);
        }
        self.take_rules()?;
        let (record, _) = self.run.call(call)?;
        let risk = self.run.risk(call);
        let is_under_way = record.state() == CallState::Running;
        if is_under_way && !self.can_run_again(call).await? {
            return Ok(None);
        }
        // A run that is to be cancelled has no further effects.
        if risk != RiskLevel::Reversible && self.cancel_if_requested().await? {
            return Ok(None);
        }
        let refused = self.contradiction(call).await?;
        if is_under_way {
            // The rules may have changed since. A call that they forbid now is not made again.
            let (_, decision) = self.run.call(call)?;
            let now = match refused {
                Some(refused) => refused,
                None => self.decide_if(call, &Readiness::Ready).await?,
            };
            let is_stricter =
                decision.is_none_or(|earlier| self.run.is_stricter(call, earlier, &now));
            if is_stricter {
                let why = "the call was running when its process died, and is not made again";
                let denied = now.failure().unwrap_or_else(|| {
                    let message = "it now needs more approval than it had";
                    Failure::new(ErrorCategory::PermissionDenied, Effect::None, message)
                });
                let failure = Failure {
                    operator_message: format!("{why}: {}", denied.operator_message),
                    model_message: format!("{why}: {}", denied.model_message),
                    // A reversible call counts as not done.
                    effect: match risk {
                        RiskLevel::Reversible => Effect::None,
                        _ => Effect::Unknown,
                    },
                    ..denied
                };
                self.end_call(call, CallEnd::Error(failure).into()).await?;
                return Ok(None);
            }
            // It was counted when it started.
            return Ok(Some(Admitted::uncounted(&self.driver.limiter)));
        }
        if risk != RiskLevel::Reversible && self.run.may_have_run(call) {
            return self.end_unknown(call).await;
        }
        let (_, decision) = self.run.call(call)?;
        let Some(decision) = decision else {
            return Ok(None);
        };
        // A call that is made again for its tool was released before.
        let is_held =
            decision.verdict() == Verdict::Hold && self.run.approval_proof(call).is_none();
        // A fresh decision is not repeated. All others are: the rules may have changed since, and only a
        // stricter decision counts.
        let mut is_trial = self.fresh.get(call).copied();
        if is_trial.is_none() || refused.is_some() {
            let (now, tries_again) = match refused {
                Some(refused) => (refused, false),
                None => self.decide(call).await?,
            };
            is_trial = Some(tries_again);
            if self.run.is_stricter(call, decision, &now) {
                let event = Event::Decided {
                    call: call.clone(),
                    decision: now,
                    at: self.driver.durable.now(),
                };
                self.record_with(event, AtomicWrite::Withdraw(call.clone()))
                    .await?;
                return Ok(None);
            }
        }
        self.fresh.remove(call);
        if let Some(of) = self.run.reusable(call) {
            let event = Event::Reused {
                call: call.clone(),
                of,
                at: self.driver.durable.now(),
            };
            self.record(event, Durability::Relaxed).await?;
            return Ok(None);
        }
        let Some(admitted) = self.admit(call, is_trial == Some(true)).await? else {
            return Ok(None);
        };
        let event = Event::CallStarted {
            call: call.clone(),
            variant: self.assigned(call),
            at: self.driver.durable.now(),
        };
        // Only calls that may have an effect must be known to have started after a crash.
        if risk == RiskLevel::Reversible && !is_held {
            self.record(event, Durability::Relaxed).await?;
            return Ok(Some(admitted));
        }
        // It may be stopped at this moment. The store accepts only one of the two.
        let (record, _) = self.run.call(call)?;
        let work = self.stoppable(Some(record.tool_name()));
        let mut writes = vec![AtomicWrite::Unstopped(Box::new(work))];
        if is_held {
            // The user may undo it at this moment.
            writes.push(AtomicWrite::Start(call.clone()));
        }
        let is_started = self.record_with_all(event, writes).await?;
        if is_held && !is_started && self.take_commands().await? == InboxState::Empty {
            // The clock was set back and the undo window is still open in the store.
            tokio::time::sleep(INBOX_POLL_IDLE).await;
        }
        Ok(is_started.then_some(admitted))
    }

    /// Ends a call that may have been made before the journal was damaged, as one that was interrupted: an approver is
    /// asked for its outcome.
    async fn end_unknown(&mut self, call: &CallId) -> Result<Option<Admitted>, DriveError> {
        let event = Event::CallStarted {
            call: call.clone(),
            variant: None,
            at: self.driver.durable.now(),
        };
        self.record_with(event, AtomicWrite::Withdraw(call.clone()))
            .await?;
        let lost = self.run.damage().unwrap_or_default();
        let message = format!(
            "the journal lost entries ({lost}), so whether the call was made and had an effect is unknown"
        );
        let failure = Failure::new(ErrorCategory::Internal, Effect::Unknown, message);
        self.end_call(call, CallEnd::Unknown(failure).into())
            .await?;
        Ok(None)
    }

    /// Compares a call with what the store knows about it. Returns the decision that refuses the call if
    /// it is not the one that was approved or held, or if it has run before.
    async fn contradiction(&self, call: &CallId) -> Result<Option<Decision>, DriveError> {
        if self.run.risk(call) == RiskLevel::Reversible && self.run.authorized_by(call).is_none() {
            return Ok(None);
        }
        let own = self.journal.evidence(call).await?;
        let authorized = match self.run.authorized_by(call) {
            Some(by) if by == *call => Some(own.clone()),
            Some(by) => Some(self.journal.evidence(&by).await?),
            None => None,
        };
        Ok(self.run.contradiction(call, own, authorized)?)
    }

    /// Whether a call can run again that an earlier process started and did not end. A call that may have
    /// had an effect cannot, unless it is idempotent: it ends as unknown, and the approver is asked for its
    /// outcome. The risk is assessed again: the recorded one may have been changed.
    async fn can_run_again(&mut self, call: &CallId) -> Result<bool, DriveError> {
        let (record, _) = self.run.call(call)?;
        let assessed = self.rules.assess(record.tool_name(), record.arguments());
        if self.run.may_be_repeated_at(call, assessed.level) {
            return Ok(true);
        }
        let failure = Failure::new(
            ErrorCategory::Internal,
            Effect::Unknown,
            "the process died while the call was running; whether it had an effect is unknown",
        );
        self.end_call(call, CallEnd::Unknown(failure).into())
            .await?;
        Ok(false)
    }
}
