//! Runs in memory: for tests, and for programs that store nothing. People can decide about them as they can
//! about runs on disk, and rate limits count for all drivers that share them. Two drivers of one process can
//! drive the same run; nothing prevents it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use windlass_core::approval::{
    Approval, ApprovalOutcome, DecideError, DecisionEffect, Hold, HoldError, PersonDecision,
    Principal, StandingCall, TenantPrincipal,
};
use windlass_core::durable::{
    AtomicWrite, CallEvidence, Durability, InboxAction, InboxCommand, InboxCommandId,
};
use windlass_core::limits::{ExhaustedLimit, Limit, LimitState, indicates_tool_failure, take_all};
use windlass_core::model::Usage;
use windlass_core::redact::{RedactedEvent, Redactor};
use windlass_core::run::{Event, KeptTurns, Run, RunEnd};
use windlass_core::stop::StopOrders;
use windlass_spec::{CallId, NonEmptyText, RunId, Timestamp, ToolGapReport, ToolName};
use windlass_store::NewUsage;
use windlass_tools::MemoryPort;

use crate::durable::{
    AppendOutcome, Durable, DurableError, DurableFuture, Journal, LimitedCall, RateLimitPort,
    TakenOver, TurnRequest, UsageOf, now, ready,
};
use crate::limiter::{Key, Turns, take_turn};
use crate::playbook::PlaybookPort;

/// Runs in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct InMemory {
    runs: Arc<Mutex<HashMap<RunId, RunInMemory>>>,
    limits: Arc<Mutex<Limits>>,
    /// Usage that belongs to no event: of which agent, and when.
    noted: Arc<Mutex<Vec<(String, Timestamp, Usage)>>>,
}

#[derive(Debug, Default)]
struct Limits {
    /// The state of each limit.
    kept: HashMap<Key, LimitState>,
    /// Until when the turn of each key is taken.
    turns: Turns,
}

impl Limits {
    fn taken(
        &self,
        tenant: &str,
        limits: &[Limit],
        now: Timestamp,
    ) -> Result<Vec<LimitState>, ExhaustedLimit> {
        let kept = |limit: &Limit| {
            let key = (tenant.to_owned(), limit.key());
            Ok::<_, Infallible>(self.kept.get(&key).copied())
        };
        match take_all(limits, now, kept) {
            Ok(taken) => taken,
            Err(never) => match never {},
        }
    }
}

#[derive(Debug, Default)]
struct RunInMemory {
    events: Vec<Event>,
    is_over: bool,
    /// The latest question about each call.
    questions: BTreeMap<CallId, Approval>,
    holds: BTreeMap<CallId, Hold>,
    inbox: Vec<InboxCommand>,
    command_count: i64,
    /// The tools it lacked.
    gap: Option<ToolGapReport>,
}

impl InMemory {
    /// The events of a run so far; empty if there is none.
    #[must_use]
    pub fn events(&self, run: &RunId) -> Vec<Event> {
        self.with(run, |kept| kept.events.clone())
    }

    /// The ids of all runs.
    #[must_use]
    pub fn runs(&self) -> Vec<RunId> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ids: Vec<RunId> = runs.keys().cloned().collect();
        ids.sort();
        ids
    }

    /// The latest question about each call of a run.
    #[must_use]
    pub fn questions(&self, run: &RunId) -> Vec<Approval> {
        self.with(run, |kept| kept.questions.values().cloned().collect())
    }

    /// The tools that a run lacked, if any.
    #[must_use]
    pub fn gap(&self, run: &RunId) -> Option<ToolGapReport> {
        self.with(run, |kept| kept.gap.clone())
    }

    /// Takes a person's decision about a call. `None` if there is no question about it.
    ///
    /// # Errors
    /// If the decision cannot be taken.
    pub fn decide(
        &self,
        call: &CallId,
        by: &TenantPrincipal,
        decision: PersonDecision,
        now: Timestamp,
    ) -> Option<Result<DecisionEffect, DecideError>> {
        self.with(&call.run, |kept| {
            let question = kept.questions.get_mut(call)?;
            let changed = question.decide(by, decision, None, now);
            if changed == Ok(DecisionEffect::Settled) {
                let action = InboxAction::Settled(Box::new(question.clone()));
                kept.post(Some(by.principal.clone()), action, now);
            }
            Some(changed)
        })
    }

    /// Undoes a held call. `None` if it is not held.
    ///
    /// # Errors
    /// If it is too late.
    pub fn undo(
        &self,
        call: &CallId,
        by: &TenantPrincipal,
        now: Timestamp,
    ) -> Option<Result<(), HoldError>> {
        self.with(&call.run, |kept| {
            let undone = kept.holds.get_mut(call)?.undo(by, now);
            if undone.is_ok() {
                let action = InboxAction::Undo(call.clone());
                kept.post(Some(by.principal.clone()), action, now);
            }
            Some(undone)
        })
    }

    /// Requests that a run's driver cancels it.
    pub fn cancel(&self, run: &RunId, by: &TenantPrincipal, now: Timestamp) {
        self.with(run, |kept| {
            kept.post(Some(by.principal.clone()), InboxAction::Cancel, now);
        });
    }

    fn with<T>(&self, run: &RunId, take: impl FnOnce(&mut RunInMemory) -> T) -> T {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        take(runs.entry(run.clone()).or_default())
    }

    fn journal(&self, run: &RunId) -> Result<Box<dyn Journal>, DurableError> {
        Ok(Box::new(MemoryJournal {
            runs: self.clone(),
            run: run.clone(),
            who: this_program()?,
        }))
    }
}

/// The identity of runs in memory, which no other user sees.
fn this_program() -> Result<TenantPrincipal, DurableError> {
    let wrong = |error: &dyn ToString| DurableError::Invalid(error.to_string());
    let tenant = NonEmptyText::new("local").map_err(|error| wrong(&error))?;
    let principal = Principal::new("this program").map_err(|error| wrong(&error))?;
    Ok(TenantPrincipal::new(tenant, principal))
}

impl RunInMemory {
    fn post(&mut self, by: Option<Principal>, action: InboxAction, at: Timestamp) {
        self.command_count += 1;
        let id = InboxCommandId::new(self.command_count);
        self.inbox.push(InboxCommand { id, by, at, action });
    }

    /// Applies the writes that belong to an event, if they are possible. At most the last one can be refused.
    fn write_all(&mut self, writes: Vec<AtomicWrite>, at: Timestamp) -> AppendOutcome {
        let are_possible = writes
            .into_iter()
            .all(|write| self.write(write, at) == AppendOutcome::Stored);
        match are_possible {
            true => AppendOutcome::Stored,
            false => AppendOutcome::Refused,
        }
    }

    /// Applies a write that belongs to an event, if it is possible.
    fn write(&mut self, write: AtomicWrite, at: Timestamp) -> AppendOutcome {
        let is_possible = match write {
            AtomicWrite::Question(asked) => {
                let pending = self.questions.get(asked.call());
                let is_free = pending.is_none_or(|pending| pending.settled_at().is_some());
                if is_free {
                    self.questions.insert(asked.call().clone(), *asked);
                }
                is_free
            }
            AtomicWrite::Hold(held) => match self.holds.entry(held.call().clone()) {
                Entry::Occupied(_) => false,
                Entry::Vacant(place) => {
                    place.insert(*held);
                    true
                }
            },
            AtomicWrite::Start(call) => {
                let hold = self.holds.get_mut(&call);
                hold.is_some_and(|hold| hold.start(at).is_ok())
            }
            AtomicWrite::Take(id) => {
                let before = self.inbox.len();
                self.inbox.retain(|command| command.id != id);
                self.inbox.len() < before
            }
            // Nothing is stopped in memory.
            AtomicWrite::Unstopped(_) => true,
            AtomicWrite::Withdraw(call) => {
                if let Some(question) = self.questions.get_mut(&call) {
                    question.cancel(at);
                }
                if let Some(hold) = self.holds.get_mut(&call) {
                    hold.cancel(at);
                }
                true
            }
        };
        match is_possible {
            true => AppendOutcome::Stored,
            false => AppendOutcome::Refused,
        }
    }
}

fn known<'d, T: Send + 'd>(value: T) -> DurableFuture<'d, T> {
    ready(Ok::<_, DurableError>(value))
}

impl Durable for InMemory {
    fn start(
        &self,
        _: Option<String>,
        started: Event,
    ) -> DurableFuture<'_, (Event, Box<dyn Journal>)> {
        ready(match &started {
            Event::Started { run, .. } => {
                let is_new = self.with(run, |kept| {
                    let is_new = kept.events.is_empty();
                    if is_new {
                        kept.events.push(started.clone());
                    }
                    is_new
                });
                match is_new {
                    true => self.journal(run).map(|journal| (started, journal)),
                    false => Err(DurableError::RunExists(run.clone())),
                }
            }
            _ => Err(DurableError::Invalid(
                "the first event does not start a run".to_owned(),
            )),
        })
    }

    fn take_over<'d>(&'d self, run: &'d RunId) -> DurableFuture<'d, Option<TakenOver>> {
        let (events, is_over) = self.with(run, |kept| (kept.events.clone(), kept.is_over));
        Box::pin(async move {
            if events.is_empty() {
                return Ok(None);
            }
            let journal = match is_over {
                true => None,
                false => Some(self.journal(run)?),
            };
            let run = fold(&events)?;
            Ok(Some(TakenOver {
                run,
                journal,
                damage: None,
            }))
        })
    }

    /// None: standing approvals are not supported here.
    fn covering<'d>(&'d self, _: StandingCall<'d>) -> DurableFuture<'d, Option<i64>> {
        known(None)
    }

    fn note_gap<'d>(
        &'d self,
        run: &'d Run,
        _: &'d TenantPrincipal,
        report: ToolGapReport,
    ) -> DurableFuture<'d, ()> {
        self.with(run.id(), |kept| {
            kept.gap.get_or_insert(report);
        });
        known(())
    }

    /// None: memory must outlive the process.
    fn memory(&self) -> Option<Arc<dyn MemoryPort>> {
        None
    }

    /// None: an operator stops what is stored.
    fn stops(&self) -> DurableFuture<'_, Arc<StopOrders>> {
        ready(Ok::<_, DurableError>(Arc::default()))
    }

    /// None: nothing is stored on a disk.
    fn data(&self) -> Option<&Path> {
        None
    }

    /// None: playbooks must outlive the process.
    fn playbooks(&self) -> Option<Arc<dyn PlaybookPort>> {
        None
    }

    fn identity(&self) -> Result<TenantPrincipal, DurableError> {
        this_program()
    }

    fn usage<'d>(&'d self, of: UsageOf<'d>) -> DurableFuture<'d, Usage> {
        let mut sum = Usage::default();
        let is_of = |agent: &str| of.agent.is_none_or(|wanted| wanted == agent);
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        for kept in runs.values() {
            let agent = match kept.events.first() {
                Some(Event::Started { agent, .. }) => agent.name().as_str(),
                _ => continue,
            };
            for event in kept.events.iter().filter(|event| event.at() >= of.since) {
                match event {
                    Event::ModelAnswered { answer, .. } if is_of(agent) => sum += answer.usage,
                    Event::CostReported { cost, .. } if is_of(agent) => {
                        sum += Usage {
                            microdollars: Some(*cost),
                            ..Usage::default()
                        };
                    }
                    _ => {}
                }
            }
        }
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        for (agent, at, usage) in noted.iter() {
            if *at >= of.since && is_of(agent) {
                sum += *usage;
            }
        }
        known(sum)
    }

    fn note_usage<'d>(&'d self, new: NewUsage<'d>) -> DurableFuture<'d, ()> {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.push((new.agent.to_owned(), new.at, new.usage));
        known(())
    }

    fn sweep(&self) -> DurableFuture<'_, ()> {
        let at = now();
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        for kept in runs.values_mut() {
            let mut expired = Vec::new();
            for question in kept.questions.values_mut() {
                if question.expire(at) {
                    expired.push(question.clone());
                }
            }
            for question in expired {
                kept.post(None, InboxAction::Settled(Box::new(question)), at);
            }
        }
        known(())
    }
}

impl RateLimitPort for InMemory {
    fn used_up<'d>(&'d self, call: LimitedCall<'d>) -> DurableFuture<'d, Option<ExhaustedLimit>> {
        let state = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let used_up = state.taken(call.tenant, call.limits, call.now).err();
        known(used_up)
    }

    fn take<'d>(&'d self, call: LimitedCall<'d>) -> DurableFuture<'d, Option<ExhaustedLimit>> {
        let mut state = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let used_up = match state.taken(call.tenant, call.limits, call.now) {
            Ok(taken) => {
                let limits = call.limits.iter();
                let keys = limits.map(|limit| (call.tenant.to_owned(), limit.key()));
                state.kept.extend(keys.zip(taken));
                None
            }
            Err(used_up) => Some(used_up),
        };
        known(used_up)
    }

    fn take_turn<'d>(&'d self, turn: TurnRequest<'d>) -> DurableFuture<'d, Option<Timestamp>> {
        let mut state = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        known(take_turn(&mut state.turns, turn))
    }

    fn latest_ends<'d>(
        &'d self,
        _: &'d str,
        tool: &'d ToolName,
        limit: u32,
    ) -> DurableFuture<'d, Vec<(CallId, bool, Timestamp)>> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let events = runs.values().flat_map(|kept| &kept.events);
        let mut ends: Vec<_> = events
            .filter_map(|event| match event {
                Event::CallEnded {
                    call,
                    end,
                    ran: Some(ran),
                    at,
                    ..
                } if ran.tool == *tool => {
                    let has_failed = indicates_tool_failure(end.state(), end.category())?;
                    Some((call.clone(), has_failed, *at))
                }
                _ => None,
            })
            .collect();
        ends.sort_by_key(|(_, _, at)| std::cmp::Reverse(*at));
        ends.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        known(ends)
    }
}

fn fold(events: &[Event]) -> Result<Run, DurableError> {
    Run::fold(events).map_err(|error| DurableError::Corrupt(error.to_string()))
}

struct MemoryJournal {
    runs: InMemory,
    run: RunId,
    who: TenantPrincipal,
}

impl Journal for MemoryJournal {
    fn who(&self) -> &TenantPrincipal {
        &self.who
    }

    /// Nothing is stored, so nothing is sealed.
    fn seal(&self, secret: &str) -> String {
        secret.to_owned()
    }

    fn opened(&self, question: &Approval) -> Approval {
        question.clone()
    }

    fn statement(&self, _: &str, _: &Value) -> Option<String> {
        None
    }

    fn redact(&self, event: Event) -> Result<RedactedEvent, DurableError> {
        Ok(Redactor::default().event(event)?)
    }

    fn append<'j>(&'j mut self, event: &'j RedactedEvent, _: Durability) -> DurableFuture<'j, ()> {
        self.runs
            .with(&self.run, |kept| kept.events.push(event.event().clone()));
        known(())
    }

    fn append_with<'j>(
        &'j mut self,
        event: &'j RedactedEvent,
        writes: Vec<AtomicWrite>,
    ) -> DurableFuture<'j, AppendOutcome> {
        let outcome = self.runs.with(&self.run, |kept| {
            let outcome = kept.write_all(writes, event.event().at());
            if outcome == AppendOutcome::Stored {
                kept.events.push(event.event().clone());
            }
            outcome
        });
        known(outcome)
    }

    fn inbox(&self) -> DurableFuture<'_, Vec<InboxCommand>> {
        let inbox = self.runs.with(&self.run, |kept| kept.inbox.clone());
        known(inbox)
    }

    /// The events in memory cannot be changed, so only they show whether a call has run.
    fn evidence<'j>(&'j self, call: &'j CallId) -> DurableFuture<'j, CallEvidence> {
        let authorized = self.runs.with(&self.run, |kept| {
            match kept.questions.get(call).and_then(Approval::outcome) {
                Some(ApprovalOutcome::Run { digest, .. }) => Some(digest),
                _ => kept.holds.get(call).map(Hold::digest),
            }
        });
        let evidence = CallEvidence {
            authorized,
            ..CallEvidence::default()
        };
        Box::pin(std::future::ready(Ok(evidence)))
    }

    /// What is in memory is decided by the program that owns it.
    fn approvers(&self) -> DurableFuture<'_, Option<Vec<Principal>>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// All turns are kept: the events are in memory anyway.
    fn fold(&self, _: KeptTurns) -> DurableFuture<'_, Run> {
        Box::pin(std::future::ready(fold(&self.runs.events(&self.run))))
    }

    fn sync(&mut self) -> DurableFuture<'_, ()> {
        known(())
    }

    /// Nothing: what is in memory is gone with its process.
    fn leave_to_worker(&mut self) {}

    fn end<'j>(&'j mut self, end: &'j RunEnd) -> DurableFuture<'j, ()> {
        let is_over = end.is_final();
        self.runs.with(&self.run, |kept| kept.is_over = is_over);
        known(())
    }
}
