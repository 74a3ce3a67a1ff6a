//! Takes calls through the gate: decides, asks people, holds; and decides once more before a call
//! starts.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument as _;
use windlass_core::approval::{Approval, Hold};
use windlass_core::durable::{AtomicWrite, Durability};
use windlass_core::gate::{Decision, Verdict};
use windlass_core::limits::Readiness;
use windlass_core::run::{CallEnd, CallKind, Event, GateStep, ToolQuestion};
use windlass_spec::{
    CallId, CallState, Effect, ErrorCategory, Failure, RiskLevel, Timestamp, ToolName,
};

use super::waiting::{LOOK_CLOSELY, Took};
use super::{Drive, DriveError, spans};
use crate::limiter::{Admitted, lasting};

impl Drive<'_> {
    /// Takes a call one step further.
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

    /// Puts the question of a tool that runs to a person.
    pub(super) async fn ask_for_tool(
        &mut self,
        call: &CallId,
        asked: ToolQuestion,
    ) -> Result<(), DriveError> {
        let at = self.driver.durable.now();
        let who = self.journal.who();
        match self.run.asked_by_tool(call, who, asked, at)? {
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

    /// Asks a person. The question of the event is what is stored for people to see, and what the run
    /// holds their answer against: all three are the same value, redacted with the event.
    async fn ask(&mut self, approval: Box<Approval>, at: Timestamp) -> Result<(), DriveError> {
        self.fresh.remove(approval.call());
        let event = self.journal.redact(Event::Asked { approval, at })?;
        let Event::Asked { approval, .. } = event.event() else {
            return Ok(());
        };
        let write = AtomicWrite::Question(approval.clone());
        self.record_redacted_with(event, write).await.map(drop)
    }

    /// What the gate decides about a call now, leave given beforehand included; and whether a tool that
    /// kept failing would be tried again by it.
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

    /// Takes the rules as they are now. What was decided under others is decided again before it
    /// starts.
    pub(super) fn take_rules(&mut self) -> Result<(), DriveError> {
        let rules = self.driver.crew.rules(self.worker.agent.name())?;
        if !Arc::ptr_eq(&rules, &self.rules) {
            self.rules = rules;
            self.fresh.clear();
        }
        Ok(())
    }

    /// Whether a call comes too often, or its tool keeps failing. Questions to people are neither
    /// counted nor do they fail.
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
            let used_up = driver
                .durable
                .used_up(tenant, &lasting(&limits), now)
                .await?;
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

    /// Whether it is this call by which a tool that kept failing is tried again; nobody else does
    /// meanwhile.
    async fn try_again(&self, tool: &ToolName, now: Timestamp) -> Result<Readiness, DriveError> {
        let Readiness::Trial { failures } = self.health(tool, now).await? else {
            return Ok(Readiness::Ready);
        };
        let (driver, tenant) = (self.driver, self.journal.who().tenant.as_str());
        let cooldown = self.rules.breaker().cooldown;
        let micros = i64::try_from(cooldown.as_micros()).unwrap_or(i64::MAX);
        let until = now.as_microseconds().saturating_add(micros);
        let (key, until) = (format!("trial:{tool}"), Timestamp::from_microseconds(until));
        let taken = match driver.limiter.take_turn(tenant, &key, now, until) {
            Some(taken) => Some(taken),
            None => driver.durable.take_turn(tenant, &key, now, until).await?,
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

    /// Takes a call from the limits that count it, or refuses it.
    async fn admit(
        &mut self,
        call: &CallId,
        is_trial: bool,
    ) -> Result<Option<Admitted>, DriveError> {
        let (record, _) = self.run.call(call)?;
        let tool = record.tool_name();
        let limits = match self.is_counted(call) {
            true => self.rules.limits(tool, self.journal.who()),
            false => Vec::new(),
        };
        let (driver, now) = (self.driver, self.driver.durable.now());
        let tenant = self.journal.who().tenant.as_str();
        let readiness = match driver.limiter.admit(tenant, &limits, now) {
            Ok(admitted) => {
                let trial = match is_trial {
                    true => self.try_again(tool, now).await?,
                    false => Readiness::Ready,
                };
                let refused = match trial {
                    Readiness::Ready => driver
                        .durable
                        .take(tenant, &lasting(&limits), now)
                        .await?
                        .map(|used_up| Readiness::limited(used_up.limit, used_up.until, now)),
                    failing => Some(failing),
                };
                match refused {
                    None => return Ok(Some(admitted)),
                    Some(readiness) => {
                        admitted.give_back();
                        readiness
                    }
                }
            }
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

    /// Writes down that a call starts, if it still may. What stands for that it was counted; nothing
    /// if it does not start.
    pub(super) async fn may_run(&mut self, call: &CallId) -> Result<Option<Admitted>, DriveError> {
        if self.run.end().is_some() {
            return Ok(None);
        }
        self.take_rules()?;
        let (record, _) = self.run.call(call)?;
        let risk = self.run.risk(call);
        let is_under_way = record.state() == CallState::Running;
        if is_under_way && !self.may_go_on(call).await? {
            return Ok(None);
        }
        // Who wants the run stopped wants no further effect.
        if risk != RiskLevel::Reversible && self.stop_if_told().await? {
            return Ok(None);
        }
        if is_under_way {
            // Rules may have changed since. A call that may not be made now is not made again.
            let (_, decision) = self.run.call(call)?;
            let now = self.decide_if(call, &Readiness::Ready).await?;
            let is_stricter =
                decision.is_none_or(|earlier| self.run.is_stricter(call, earlier, &now));
            if is_stricter {
                let why = "the call was under way when its process died, and is not made again";
                let denied = now.failure().unwrap_or_else(|| {
                    let message = "it needs more leave now than it had";
                    Failure::new(ErrorCategory::PermissionDenied, Effect::None, message)
                });
                let failure = Failure {
                    operator_message: format!("{why}: {}", denied.operator_message),
                    model_message: format!("{why}: {}", denied.model_message),
                    // What can be undone at any time counts as not done.
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
        let (_, decision) = self.run.call(call)?;
        let Some(decision) = decision else {
            return Ok(None);
        };
        let is_held = decision.verdict() == Verdict::Hold;
        // What was decided a moment ago is not decided again. Everything else is: rules may have
        // changed since, and may only have become stricter for this call.
        let mut is_trial = self.fresh.get(call).copied();
        if is_trial.is_none() {
            let (now, tries) = self.decide(call).await?;
            is_trial = Some(tries);
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
        let Some(admitted) = self.admit(call, is_trial == Some(true)).await? else {
            return Ok(None);
        };
        let event = Event::CallStarted {
            call: call.clone(),
            variant: self.assigned(call),
            at: self.driver.durable.now(),
        };
        if is_held {
            // Somebody may undo it at this very moment; only one of the two can be.
            let is_started = self
                .record_with(event, AtomicWrite::Start(call.clone()))
                .await?;
            if !is_started && self.take_commands().await? == Took::Nothing {
                // The clock was set back, and the store still counts the window: no hurry.
                tokio::time::sleep(LOOK_CLOSELY).await;
            }
            return Ok(is_started.then_some(admitted));
        }
        // Only what may have an effect must be known to have started, whatever happens.
        let durability = match risk {
            RiskLevel::Reversible => Durability::Relaxed,
            RiskLevel::ReversibleWithDelay | RiskLevel::Irreversible => Durability::Synced,
        };
        self.record(event, durability).await?;
        Ok(Some(admitted))
    }

    /// Whether a call may run again whose start an earlier process wrote down and whose end it did
    /// not. What may have had an effect may not, unless twice is the same as once; a person is asked
    /// what became of it.
    async fn may_go_on(&mut self, call: &CallId) -> Result<bool, DriveError> {
        if self.run.may_be_repeated(call) {
            return Ok(true);
        }
        let failure = Failure::new(
            ErrorCategory::Internal,
            Effect::Unknown,
            "the process died while the call was under way; nobody knows whether it had an effect",
        );
        self.end_call(call, CallEnd::Unknown(failure).into())
            .await?;
        Ok(false)
    }
}
