//! What the processes of the test share and what may happen to them: a clock that is set by hand, the
//! effects that really came about, and the moment at which a process dies. [`Desk`] keeps runs in the
//! store as any process does; what is written without waiting it holds back until the driver waits
//! for something, so that a death can lose exactly what a crash may lose.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use tokio::sync::Notify;
use windlass_core::approval::{Identity, StandingCall};
use windlass_core::limits::Limit;
use windlass_core::run::{Event, Run, RunEnd};
use windlass_runtime::{
    AppendOutcome, Durable, DurableError, DurableFuture, Journal, PlaybookPort, RateLimits, Stored,
    TakenOver,
};
use windlass_spec::{CallId, RunId, Timestamp, ToolGapReport, ToolName};
use windlass_store::{AtomicWrite, Durability, InboxCommand, RedactedEvent, UsedUp};

use windlass_tools::MemoryPort;

use super::world::Came;

/// So many looks at an empty mailbox in a row mean that there is nothing to do but wait.
const IDLE: usize = 3;

/// Something that happens to a process when it comes by a moment.
pub(super) struct Interruption {
    pub(super) at: String,
    pub(super) how: How,
}

pub(super) enum How {
    Dies { keeps: bool },
    Meanwhile(Box<dyn FnOnce() -> Came + Send>),
}

/// What all processes share.
#[derive(Default)]
pub(super) struct Shop {
    seconds: AtomicI64,
    next_id: AtomicUsize,
    interruption: Mutex<Option<Interruption>>,
    /// What came of what somebody did meanwhile.
    pub(super) meanwhile: Mutex<Option<Came>>,
    is_dead: AtomicBool,
    /// Whether what a process wrote without waiting reaches the disk when it dies.
    keeps: AtomicBool,
    looks: AtomicUsize,
    /// Told when a process died or has nothing to do.
    pub(super) stands: Notify,
    pub(super) effects: Mutex<Vec<String>>,
    /// What happened to each run, as its last driver knew it.
    pub(super) seen: Mutex<HashMap<RunId, Vec<Event>>>,
}

pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_microseconds((1_000_000 + seconds) * 1_000_000)
}

impl Shop {
    pub(super) fn now(&self) -> Timestamp {
        at(self.seconds.load(Ordering::SeqCst))
    }

    pub(super) fn set_clock(&self, seconds: i64) {
        self.seconds.store(seconds, Ordering::SeqCst);
    }

    /// A process goes on, until it is interrupted.
    pub(super) fn arm(&self, interruption: Option<Interruption>) {
        *self.interruption.lock().unwrap() = interruption;
        *self.meanwhile.lock().unwrap() = None;
        self.is_dead.store(false, Ordering::SeqCst);
        self.keeps.store(false, Ordering::SeqCst);
        self.looks.store(0, Ordering::SeqCst);
    }

    /// What a process in hand wrote without waiting reaches the disk, or does not, if it dies now.
    pub(super) fn set_keeps(&self, keeps: bool) {
        self.keeps.store(keeps, Ordering::SeqCst);
    }

    /// Passes a moment, or dies at it: then nothing more comes of whoever asked.
    pub(super) async fn pass(&self, moment: &str) {
        let is_now = |interruption: &mut Interruption| interruption.at == moment;
        let interruption = self.interruption.lock().unwrap().take_if(is_now);
        match interruption.map(|interruption| interruption.how) {
            None => {}
            Some(How::Dies { keeps }) => {
                self.set_keeps(keeps);
                self.is_dead.store(true, Ordering::SeqCst);
            }
            Some(How::Meanwhile(act)) => *self.meanwhile.lock().unwrap() = Some(act()),
        }
        if self.is_dead() {
            self.stands.notify_one();
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::SeqCst)
    }

    /// Whether there is nothing to do but wait.
    pub(super) fn is_idle(&self) -> bool {
        self.looks.load(Ordering::SeqCst) >= IDLE
    }

    fn does_something(&self) {
        self.looks.store(0, Ordering::SeqCst);
    }

    fn looks_in_vain(&self) {
        self.looks.fetch_add(1, Ordering::SeqCst);
        if self.is_idle() {
            self.stands.notify_one();
        }
    }
}

/// Keeps runs in the store, by the clock of the shop.
pub(super) struct Desk {
    pub(super) stored: Stored,
    pub(super) shop: Arc<Shop>,
}

impl Desk {
    fn journal(&self, run: RunId, inner: Box<dyn Journal>) -> Box<dyn Journal> {
        Box::new(DeskJournal {
            run,
            inner,
            shop: Arc::clone(&self.shop),
            waiting: Vec::new(),
        })
    }
}

impl Durable for Desk {
    fn start(
        &self,
        task_id: Option<String>,
        started: Event,
    ) -> DurableFuture<'_, (Event, Box<dyn Journal>)> {
        Box::pin(async move {
            let (started, journal) = self.stored.start(task_id, started).await?;
            let Event::Started { run, .. } = &started else {
                panic!("{started:?} starts no run")
            };
            let run = run.clone();
            // Nobody waits for the row of a new run; others must be able to find it here.
            while self.stored.store().summary(&run).is_err() {
                std::thread::yield_now();
            }
            let mut seen = self.shop.seen.lock().unwrap();
            seen.insert(run.clone(), vec![started.clone()]);
            Ok((started, self.journal(run, journal)))
        })
    }

    fn take_over<'d>(&'d self, run: &'d RunId) -> DurableFuture<'d, Option<TakenOver>> {
        Box::pin(async move {
            let Some(taken) = self.stored.take_over(run).await? else {
                return Ok(None);
            };
            let mut seen = self.shop.seen.lock().unwrap();
            let seen = seen.entry(run.clone()).or_default();
            assert!(
                seen.starts_with(&taken.events),
                "the journal is another one"
            );
            seen.clone_from(&taken.events);
            Ok(Some(TakenOver {
                journal: taken.journal.map(|inner| self.journal(run.clone(), inner)),
                events: taken.events,
            }))
        })
    }

    fn covering<'d>(&'d self, call: StandingCall<'d>) -> DurableFuture<'d, Option<i64>> {
        self.stored.covering(call)
    }

    fn note_gap<'d>(
        &'d self,
        run: &'d Run,
        who: &'d Identity,
        report: ToolGapReport,
    ) -> DurableFuture<'d, ()> {
        self.stored.note_gap(run, who, report)
    }

    fn memory(&self) -> Option<Arc<dyn MemoryPort>> {
        self.stored.memory()
    }

    fn playbooks(&self) -> Option<Arc<dyn PlaybookPort>> {
        self.stored.playbooks()
    }

    fn sweep(&self) -> DurableFuture<'_, ()> {
        self.shop.does_something();
        let (store, now) = (Arc::clone(self.stored.store()), self.shop.now());
        Box::pin(async move {
            let swept = tokio::task::spawn_blocking(move || store.sweep(now)).await;
            swept.map_err(|_| DurableError::Closed)??;
            Ok(())
        })
    }

    fn new_id(&self) -> Result<RunId, DurableError> {
        let number = self.shop.next_id.fetch_add(1, Ordering::SeqCst) + 1;
        RunId::new(format!("r{number}")).map_err(|error| DurableError::Invalid(error.to_string()))
    }

    fn now(&self) -> Timestamp {
        self.shop.now()
    }
}

impl RateLimits for Desk {
    fn used_up<'d>(
        &'d self,
        tenant: &'d str,
        limits: &'d [Limit],
        now: Timestamp,
    ) -> DurableFuture<'d, Option<UsedUp>> {
        self.stored.used_up(tenant, limits, now)
    }

    fn take<'d>(
        &'d self,
        tenant: &'d str,
        limits: &'d [Limit],
        now: Timestamp,
    ) -> DurableFuture<'d, Option<UsedUp>> {
        self.stored.take(tenant, limits, now)
    }

    fn take_turn<'d>(
        &'d self,
        tenant: &'d str,
        key: &'d str,
        now: Timestamp,
        until: Timestamp,
    ) -> DurableFuture<'d, Option<Timestamp>> {
        self.stored.take_turn(tenant, key, now, until)
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

struct DeskJournal {
    run: RunId,
    inner: Box<dyn Journal>,
    shop: Arc<Shop>,
    /// What was written without waiting.
    waiting: Vec<RedactedEvent>,
}

impl DeskJournal {
    async fn flush(&mut self) -> Result<(), DurableError> {
        for event in std::mem::take(&mut self.waiting) {
            self.inner.append(&event, Durability::Relaxed).await?;
        }
        Ok(())
    }

    fn saw(&self, event: &RedactedEvent) {
        let mut seen = self.shop.seen.lock().unwrap();
        let seen = seen.entry(self.run.clone()).or_default();
        seen.push(event.event().clone());
    }
}

impl Drop for DeskJournal {
    fn drop(&mut self) {
        if self.shop.keeps.load(Ordering::SeqCst) {
            let flushed = self.flush().now_or_never();
            assert!(matches!(flushed, Some(Ok(()))), "{flushed:?}");
        }
    }
}

impl Journal for DeskJournal {
    fn who(&self) -> &Identity {
        self.inner.who()
    }

    fn redact(&self, event: Event) -> Result<RedactedEvent, DurableError> {
        self.inner.redact(event)
    }

    fn append<'j>(
        &'j mut self,
        event: &'j RedactedEvent,
        durability: Durability,
    ) -> DurableFuture<'j, ()> {
        Box::pin(async move {
            self.shop.does_something();
            let name = name(event.event());
            self.shop.pass(&format!("before {name}")).await;
            match durability {
                Durability::Relaxed => self.waiting.push(event.clone()),
                Durability::Synced => {
                    self.flush().await?;
                    self.inner.append(event, durability).await?;
                }
            }
            self.saw(event);
            self.shop.pass(&format!("after {name}")).await;
            Ok(())
        })
    }

    fn append_with<'j>(
        &'j mut self,
        event: &'j RedactedEvent,
        write: AtomicWrite,
    ) -> DurableFuture<'j, AppendOutcome> {
        Box::pin(async move {
            self.shop.does_something();
            let name = name(event.event());
            self.shop.pass(&format!("before {name}")).await;
            self.flush().await?;
            let outcome = self.inner.append_with(event, write).await?;
            if outcome == AppendOutcome::Stored {
                self.saw(event);
            }
            self.shop.pass(&format!("after {name}")).await;
            Ok(outcome)
        })
    }

    fn inbox(&self) -> DurableFuture<'_, Vec<InboxCommand>> {
        Box::pin(async move {
            let inbox = self.inner.inbox().await?;
            match inbox.is_empty() {
                true => self.shop.looks_in_vain(),
                false => self.shop.does_something(),
            }
            Ok(inbox)
        })
    }

    fn events(&self) -> DurableFuture<'_, Vec<Event>> {
        self.inner.events()
    }

    fn sync(&mut self) -> DurableFuture<'_, ()> {
        Box::pin(async move {
            self.flush().await?;
            self.inner.sync().await
        })
    }

    fn end<'j>(&'j mut self, end: &'j RunEnd) -> DurableFuture<'j, ()> {
        Box::pin(async move {
            self.shop.does_something();
            self.shop.pass("before end").await;
            self.flush().await?;
            self.inner.end(end).await?;
            self.shop.pass("after end").await;
            Ok(())
        })
    }
}

/// What an event is called when a process is to die at it.
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
        Event::TimePassed { .. } => "passed".to_owned(),
        _ => panic!("{event:?} was not expected"),
    }
}
