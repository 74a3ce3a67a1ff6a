//! Simulated processes and the state they share: a manual clock, the effects of tools, and the moment at which
//! a process crashes. [`SimulatedProcess`] stores runs as any process does, but holds back relaxed writes until
//! the driver waits, so that a simulated crash loses exactly what a real one may lose.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use serde_json::Value;
use tokio::sync::Notify;
use windlass_core::approval::{Approval, Principal, StandingCall, TenantPrincipal};
use windlass_core::durable::CallEvidence;
use windlass_core::model::Usage;
use windlass_core::run::{Event, KeptTurns, Run, RunEnd};
use windlass_core::stop::StopOrders;
use windlass_runtime::{
    AppendOutcome, Durable, DurableError, DurableFuture, Journal, LimitedCall, PlaybookPort,
    RateLimitPort, Stored, TakenOver, TurnRequest, UsageOf,
};
use windlass_spec::{CallId, RunId, Timestamp, ToolGapReport, ToolName};
use windlass_store::{
    AtomicWrite, Durability, ExhaustedLimit, InboxCommand, NewUsage, RedactedEvent,
};

use windlass_tools::MemoryPort;

use super::reference::TransitionResult;

/// After this many consecutive reads of an empty inbox, a process only waits.
const IDLE_POLLS: usize = 3;

/// An interruption of a process at a moment.
pub(super) struct Interruption {
    pub(super) at: String,
    pub(super) how: InterruptionKind,
}

pub(super) enum InterruptionKind {
    Crash { flushes: bool },
    Concurrent(Box<dyn FnOnce() -> TransitionResult + Send>),
}

/// The state that all processes share.
#[derive(Default)]
pub(super) struct SharedState {
    seconds: AtomicI64,
    next_id: AtomicUsize,
    interruption: Mutex<Option<Interruption>>,
    /// The result of the concurrent transition.
    pub(super) concurrent_result: Mutex<Option<TransitionResult>>,
    is_dead: AtomicBool,
    /// Whether relaxed writes of a process reach the disk when it crashes.
    flushes: AtomicBool,
    empty_polls: AtomicUsize,
    /// Notified when a process crashed or has nothing to do.
    pub(super) stopped: Notify,
    pub(super) effects: Mutex<Vec<String>>,
    /// The events of each run, as its last driver knew them.
    pub(super) seen: Mutex<HashMap<RunId, Vec<Event>>>,
}

pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_microseconds((1_000_000 + seconds) * 1_000_000)
}

impl SharedState {
    pub(super) fn now(&self) -> Timestamp {
        at(self.seconds.load(Ordering::SeqCst))
    }

    pub(super) fn set_clock(&self, seconds: i64) {
        self.seconds.store(seconds, Ordering::SeqCst);
    }

    /// Prepares for the next transition, with an interruption.
    pub(super) fn arm(&self, interruption: Option<Interruption>) {
        *self.interruption.lock().unwrap() = interruption;
        *self.concurrent_result.lock().unwrap() = None;
        self.is_dead.store(false, Ordering::SeqCst);
        self.flushes.store(false, Ordering::SeqCst);
        self.empty_polls.store(0, Ordering::SeqCst);
    }

    /// Sets whether relaxed writes reach the disk if the process crashes now.
    pub(super) fn set_flushes(&self, flushes: bool) {
        self.flushes.store(flushes, Ordering::SeqCst);
    }

    /// Reaches a moment. If the process crashes there, this never returns.
    pub(super) async fn reach(&self, moment: &str) {
        let is_now = |interruption: &mut Interruption| interruption.at == moment;
        let interruption = self.interruption.lock().unwrap().take_if(is_now);
        match interruption.map(|interruption| interruption.how) {
            None => {}
            Some(InterruptionKind::Crash { flushes }) => {
                self.set_flushes(flushes);
                self.is_dead.store(true, Ordering::SeqCst);
            }
            Some(InterruptionKind::Concurrent(act)) => {
                *self.concurrent_result.lock().unwrap() = Some(act());
            }
        }
        if self.is_dead() {
            self.stopped.notify_one();
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::SeqCst)
    }

    /// Whether the process only waits.
    pub(super) fn is_idle(&self) -> bool {
        self.empty_polls.load(Ordering::SeqCst) >= IDLE_POLLS
    }

    fn reset_empty_polls(&self) {
        self.empty_polls.store(0, Ordering::SeqCst);
    }

    fn count_empty_poll(&self) {
        self.empty_polls.fetch_add(1, Ordering::SeqCst);
        if self.is_idle() {
            self.stopped.notify_one();
        }
    }
}

/// Stores runs by the shared clock.
pub(super) struct SimulatedProcess {
    pub(super) stored: Stored,
    pub(super) shared: Arc<SharedState>,
}

impl SimulatedProcess {
    fn journal(&self, run: RunId, inner: Box<dyn Journal>) -> Box<dyn Journal> {
        Box::new(SimulatedJournal {
            run,
            inner,
            shared: Arc::clone(&self.shared),
            waiting: Vec::new(),
        })
    }
}

impl Durable for SimulatedProcess {
    fn start(
        &self,
        task_id: Option<String>,
        started: Event,
    ) -> DurableFuture<'_, (Event, Box<dyn Journal>)> {
        Box::pin(async move {
            let (started, journal) = self.stored.start(task_id, started).await?;
            let Event::Started { run, .. } = &started else {
                panic!("{started:?} does not start a run")
            };
            let run = run.clone();
            // The row of a new run is written without waiting; other processes must find it here.
            while self.stored.store().summary(&run).is_err() {
                std::thread::yield_now();
            }
            let mut seen = self.shared.seen.lock().unwrap();
            seen.insert(run.clone(), vec![started.clone()]);
            Ok((started, self.journal(run, journal)))
        })
    }

    fn take_over<'d>(&'d self, run: &'d RunId) -> DurableFuture<'d, Option<TakenOver>> {
        Box::pin(async move {
            let Some(taken) = self.stored.take_over(run).await? else {
                return Ok(None);
            };
            let events = self.stored.store().events(run).unwrap();
            let events: Vec<Event> = events.into_iter().map(|(_, event)| event).collect();
            let mut seen = self.shared.seen.lock().unwrap();
            let seen = seen.entry(run.clone()).or_default();
            assert!(seen.starts_with(&events), "the journal has other events");
            *seen = events;
            Ok(Some(TakenOver {
                journal: taken.journal.map(|inner| self.journal(run.clone(), inner)),
                run: taken.run,
                damage: taken.damage,
            }))
        })
    }

    fn covering<'d>(&'d self, call: StandingCall<'d>) -> DurableFuture<'d, Option<i64>> {
        self.stored.covering(call)
    }

    fn note_gap<'d>(
        &'d self,
        run: &'d Run,
        who: &'d TenantPrincipal,
        report: ToolGapReport,
    ) -> DurableFuture<'d, ()> {
        self.stored.note_gap(run, who, report)
    }

    fn memory(&self) -> Option<Arc<dyn MemoryPort>> {
        self.stored.memory()
    }

    fn identity(&self) -> Result<TenantPrincipal, DurableError> {
        self.stored.identity()
    }

    fn usage<'d>(&'d self, of: UsageOf<'d>) -> DurableFuture<'d, Usage> {
        self.stored.usage(of)
    }

    fn note_usage<'d>(&'d self, new: NewUsage<'d>) -> DurableFuture<'d, ()> {
        self.stored.note_usage(new)
    }

    fn stops(&self) -> DurableFuture<'_, Arc<StopOrders>> {
        self.stored.stops()
    }

    fn data(&self) -> Option<&Path> {
        self.stored.data()
    }

    fn playbooks(&self) -> Option<Arc<dyn PlaybookPort>> {
        self.stored.playbooks()
    }

    fn sweep(&self) -> DurableFuture<'_, ()> {
        self.shared.reset_empty_polls();
        let (store, now) = (Arc::clone(self.stored.store()), self.shared.now());
        Box::pin(async move {
            let swept = tokio::task::spawn_blocking(move || store.sweep(now)).await;
            swept.map_err(|_| DurableError::Closed)??;
            Ok(())
        })
    }

    fn new_id(&self) -> Result<RunId, DurableError> {
        let number = self.shared.next_id.fetch_add(1, Ordering::SeqCst) + 1;
        RunId::new(format!("r{number}")).map_err(|error| DurableError::Invalid(error.to_string()))
    }

    fn now(&self) -> Timestamp {
        self.shared.now()
    }
}

impl RateLimitPort for SimulatedProcess {
    fn used_up<'d>(&'d self, call: LimitedCall<'d>) -> DurableFuture<'d, Option<ExhaustedLimit>> {
        self.stored.used_up(call)
    }

    fn take<'d>(&'d self, call: LimitedCall<'d>) -> DurableFuture<'d, Option<ExhaustedLimit>> {
        self.stored.take(call)
    }

    fn take_turn<'d>(&'d self, turn: TurnRequest<'d>) -> DurableFuture<'d, Option<Timestamp>> {
        self.stored.take_turn(turn)
    }

    fn latest_ends<'d>(
        &'d self,
        tenant: &'d str,
        tool: &'d ToolName,
        limit: u32,
    ) -> DurableFuture<'d, Vec<(CallId, bool, Timestamp)>> {
        self.stored.latest_ends(tenant, tool, limit)
    }
}

struct SimulatedJournal {
    run: RunId,
    inner: Box<dyn Journal>,
    shared: Arc<SharedState>,
    /// The relaxed writes.
    waiting: Vec<RedactedEvent>,
}

impl SimulatedJournal {
    async fn flush(&mut self) -> Result<(), DurableError> {
        for event in std::mem::take(&mut self.waiting) {
            self.inner.append(&event, Durability::Relaxed).await?;
        }
        Ok(())
    }

    fn remember_event(&self, event: &RedactedEvent) {
        let mut seen = self.shared.seen.lock().unwrap();
        let seen = seen.entry(self.run.clone()).or_default();
        seen.push(event.event().clone());
    }
}

impl Drop for SimulatedJournal {
    fn drop(&mut self) {
        if self.shared.flushes.load(Ordering::SeqCst) {
            let flushed = self.flush().now_or_never();
            assert!(matches!(flushed, Some(Ok(()))), "{flushed:?}");
        }
    }
}

impl Journal for SimulatedJournal {
    fn who(&self) -> &TenantPrincipal {
        self.inner.who()
    }

    fn redact(&self, event: Event) -> Result<RedactedEvent, DurableError> {
        self.inner.redact(event)
    }

    fn seal(&self, secret: &str) -> String {
        self.inner.seal(secret)
    }

    fn opened(&self, question: &Approval) -> Approval {
        self.inner.opened(question)
    }

    fn statement(&self, kind: &str, claims: &Value) -> Option<String> {
        self.inner.statement(kind, claims)
    }

    fn append<'j>(
        &'j mut self,
        event: &'j RedactedEvent,
        durability: Durability,
    ) -> DurableFuture<'j, ()> {
        Box::pin(async move {
            self.shared.reset_empty_polls();
            let name = name(event.event());
            self.shared.reach(&format!("before {name}")).await;
            match durability {
                Durability::Relaxed => self.waiting.push(event.clone()),
                Durability::Synced => {
                    self.flush().await?;
                    self.inner.append(event, durability).await?;
                }
            }
            self.remember_event(event);
            self.shared.reach(&format!("after {name}")).await;
            Ok(())
        })
    }

    fn append_with<'j>(
        &'j mut self,
        event: &'j RedactedEvent,
        writes: Vec<AtomicWrite>,
    ) -> DurableFuture<'j, AppendOutcome> {
        Box::pin(async move {
            self.shared.reset_empty_polls();
            let name = name(event.event());
            self.shared.reach(&format!("before {name}")).await;
            self.flush().await?;
            let outcome = self.inner.append_with(event, writes).await?;
            if outcome == AppendOutcome::Stored {
                self.remember_event(event);
            }
            self.shared.reach(&format!("after {name}")).await;
            Ok(outcome)
        })
    }

    fn leave_to_worker(&mut self) {
        self.inner.leave_to_worker();
    }

    fn inbox(&self) -> DurableFuture<'_, Vec<InboxCommand>> {
        Box::pin(async move {
            let inbox = self.inner.inbox().await?;
            match inbox.is_empty() {
                true => self.shared.count_empty_poll(),
                false => self.shared.reset_empty_polls(),
            }
            Ok(inbox)
        })
    }

    fn evidence<'j>(&'j self, call: &'j CallId) -> DurableFuture<'j, CallEvidence> {
        self.inner.evidence(call)
    }

    fn approvers(&self) -> DurableFuture<'_, Option<Vec<Principal>>> {
        self.inner.approvers()
    }

    fn fold(&self, kept: KeptTurns) -> DurableFuture<'_, Run> {
        self.inner.fold(kept)
    }

    fn sync(&mut self) -> DurableFuture<'_, ()> {
        Box::pin(async move {
            self.flush().await?;
            self.inner.sync().await
        })
    }

    fn end<'j>(&'j mut self, end: &'j RunEnd) -> DurableFuture<'j, ()> {
        Box::pin(async move {
            self.shared.reset_empty_polls();
            self.shared.reach("before end").await;
            self.flush().await?;
            self.inner.end(end).await?;
            self.shared.reach("after end").await;
            Ok(())
        })
    }
}

/// The name of an event in moments.
fn name(event: &Event) -> String {
    let of = |what: &str, call: &CallId| format!("{what} {call}");
    match event {
        Event::ModelAnswered { .. } => "answered".to_owned(),
        Event::Decided { call, .. } => of("decided", call),
        Event::Asked { approval, .. } => of("asked", approval.call()),
        Event::Settled { approval, .. } => of("settled", approval.call()),
        Event::Held { call, .. } => of("held", call),
        Event::Released { call, .. } => of("released", call),
        Event::Undone { call, .. } => of("undone", call),
        Event::CallStarted { call, .. } => of("started", call),
        Event::CallEnded { call, .. } => of("ended", call),
        Event::Cancelled { .. } => "cancelled".to_owned(),
        Event::Resumed { .. } => "resumed".to_owned(),
        Event::JournalDamaged { .. } => "journal_damaged".to_owned(),
        Event::TimePassed { .. } => "passed".to_owned(),
        _ => panic!("{event:?} was not expected"),
    }
}
