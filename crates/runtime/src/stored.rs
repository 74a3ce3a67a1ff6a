//! Runs in the SQLite store. Events are sent to the writer thread. Only events that must survive a crash
//! are waited for, and no thread of the runtime blocks unless the disk cannot keep up.

use std::env;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;
use tokio::sync::oneshot;
use windlass_core::approval::{
    Approval, ApprovalOutcome, Principal, StandingCall, TenantPrincipal,
};
use windlass_core::durable::{
    AtomicWrite, CallEvidence, Durability, InboxAction, InboxCommand, ResumableRun,
};
use windlass_core::limits::ExhaustedLimit;
use windlass_core::model::Usage;
use windlass_core::redact::{RedactedEvent, Redactor};
use windlass_core::run::{Event, KeptTurns, Run, RunEnd};
use windlass_core::stop::StopOrders;
use windlass_keys::JournalKey;
use windlass_spec::{CallId, GapMoment, NonEmptyText, RunId, Timestamp, ToolGapReport, ToolName};
use windlass_store::{
    Authentication, Error, NewGap, NewRun, NewUsage, Options, RunJournal, Store, UsageFilter,
};
use windlass_tools::MemoryPort;

use crate::approver;
use crate::durable::{
    AppendOutcome, Durable, DurableError, DurableFuture, Journal, LimitedCall, RateLimitPort,
    RunMonitor, STOPS_AGE, TakenOver, TurnRequest, UsageOf, now, ready,
};
use crate::gap_at_load::GapAtLoad;
use crate::playbook::{PlaybookPort, Playbooks};
#[cfg(feature = "memory")]
use crate::stored_memory::StoredMemory;

/// The name of the database file in a data directory.
const FILE: &str = "windlass.db";

/// Returns the current time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Runs in a database file.
#[derive(Clone)]
pub struct Stored {
    store: Arc<Store>,
    who: TenantPrincipal,
    clock: Clock,
    #[cfg(feature = "memory")]
    memory: Arc<StoredMemory>,
    playbooks: Option<Arc<Playbooks>>,
    stops: Arc<KnownStops>,
}

/// What was stopped when it was last read, shared by all runs of a process. Reading it takes microseconds, but a run asks
/// before each step.
#[derive(Default)]
struct KnownStops(Mutex<Option<(Instant, Arc<StopOrders>)>>);

impl KnownStops {
    fn get(&self, store: &Store) -> Result<Arc<StopOrders>, Error> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, stops)) = &*known
            && at.elapsed() < STOPS_AGE
        {
            return Ok(Arc::clone(stops));
        }
        // Not kept if it cannot be read.
        *known = None;
        let stops = Arc::new(store.stops()?);
        *known = Some((Instant::now(), Arc::clone(&stops)));
        Ok(stops)
    }

    fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored")
            .field("store", &self.store)
            .field("who", &self.who)
            .finish_non_exhaustive()
    }
}

/// The user that the installation of this program belongs to, in the tenant `local`. Before there is a list of
/// approvers, that is the operating system's user. Neither the environment nor the user id of a namespace makes the same
/// person another one.
///
/// # Errors
/// If the user has no name that can be used.
pub fn local_identity() -> Result<TenantPrincipal, DurableError> {
    let name = tested_principal().or_else(approver::owner);
    let name = name.unwrap_or_else(user_name);
    let invalid = |error: &dyn ToString| DurableError::Invalid(error.to_string());
    let principal = Principal::new(name).map_err(|error| invalid(&error))?;
    let tenant = NonEmptyText::new("local").map_err(|error| invalid(&error))?;
    Ok(TenantPrincipal::new(tenant, principal))
}

/// The principal that a test sets to act as several people. Not available in release builds.
fn tested_principal() -> Option<String> {
    match cfg!(debug_assertions) {
        true => env::var("WINDLASS_TEST_PRINCIPAL").ok(),
        false => None,
    }
}

/// The user's name in `/etc/passwd`; the user id if it is not listed there.
fn user_name() -> String {
    let number = rustix::process::getuid().as_raw().to_string();
    let listed = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let listed = listed.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (id == number).then(|| name.to_owned())
    });
    listed.unwrap_or_else(|| format!("user {number}"))
}

impl Stored {
    /// Opens the database of a directory for runs on behalf of the local user. The values of environment
    /// variables that hold secrets are redacted.
    ///
    /// # Errors
    /// If the database cannot be opened.
    pub fn open(directory: &Path) -> Result<Self, DurableError> {
        let who = local_identity()?;
        let options = Options {
            redactor: Redactor::new(secrets()),
            now: Some(now()),
            approvers: approver::establish(who.principal.as_str(), now()),
            authentication: match JournalKey::of_user() {
                Ok(key) => Authentication::Key(key),
                Err(error) => Authentication::Unusable(error.to_string()),
            },
            ..Options::default()
        };
        let store = Store::open_with(directory.join(FILE), options)?;
        let mut stored = Self::new(Arc::new(store), who);
        let playbooks = Playbooks::of(directory, stored.who.tenant.as_str());
        stored.playbooks = Some(Arc::new(playbooks));
        Ok(stored)
    }

    /// The identity that new runs act for, and that decides when this program does.
    #[must_use]
    pub fn who(&self) -> &TenantPrincipal {
        &self.who
    }

    /// The same store on behalf of another identity: new runs act for it, and learned strategies are stored
    /// for its tenant.
    #[must_use]
    pub fn acting_for(&self, who: TenantPrincipal) -> Self {
        let mut stored = self.clone();
        if who.tenant != self.who.tenant {
            let directory = self.playbooks.as_ref().and(self.store.path().parent());
            let playbooks =
                directory.map(|directory| Playbooks::of(directory, who.tenant.as_str()));
            stored.playbooks = playbooks.map(Arc::new);
        }
        stored.who = who;
        stored
    }

    /// Stores the gap of an agent that could not be loaded.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn note_gap_at_load(&self, gap: &GapAtLoad) -> Result<(), DurableError> {
        let gap = NewGap {
            run: None,
            who: &self.who,
            agent: &gap.agent,
            moment: GapMoment::AtLoad,
            at: self.now(),
            report: &gap.report,
        };
        self.store.record_gap(&gap).map(drop).map_err(Into::into)
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Stores runs in `store`.
    #[must_use]
    pub fn new(store: Arc<Store>, who: TenantPrincipal) -> Self {
        let clock: Clock = Arc::new(now);
        #[cfg(feature = "memory")]
        let memory = StoredMemory::new(Arc::clone(&store), Arc::clone(&clock));
        Self {
            store,
            who,
            clock,
            #[cfg(feature = "memory")]
            memory: Arc::new(memory),
            playbooks: None,
            stops: Arc::default(),
        }
    }

    /// Replaces the system's clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        #[cfg(feature = "memory")]
        {
            let memory = StoredMemory::new(Arc::clone(&self.store), Arc::clone(&clock));
            self.memory = Arc::new(memory);
        }
        self.clock = clock;
        self
    }
}

/// The values of environment variables that must never be stored: those whose names end in
/// `_KEY`, `_TOKEN`, `_SECRET` or `_PASSWORD`, in any case.
pub fn secrets() -> impl Iterator<Item = String> {
    secret_variables().map(|(_, value)| value)
}

/// The length from which a secret is removed from everything that is stored and shown, in characters. Shorter ones
/// occur in other texts by chance.
const SAFE_SECRET: usize = 8;

/// The names of the environment variables with a secret that is too short to be removed from what is stored.
pub fn short_secrets() -> impl Iterator<Item = String> {
    let is_short = |value: &str| !value.is_empty() && value.chars().count() < SAFE_SECRET;
    secret_variables()
        .filter(move |(_, value)| is_short(value.trim()))
        .map(|(name, _)| name)
}

fn secret_variables() -> impl Iterator<Item = (String, String)> {
    const ENDINGS: [&str; 4] = ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"];
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| {
            let name = name.to_ascii_uppercase();
            ENDINGS.iter().any(|ending| name.ends_with(ending))
        })
}

impl Durable for Stored {
    #[cfg(feature = "memory")]
    fn memory(&self) -> Option<Arc<dyn MemoryPort>> {
        Some(Arc::clone(&self.memory) as Arc<dyn MemoryPort>)
    }

    #[cfg(not(feature = "memory"))]
    fn memory(&self) -> Option<Arc<dyn MemoryPort>> {
        None
    }

    fn data(&self) -> Option<&Path> {
        self.store.path().parent()
    }

    fn identity(&self) -> Result<TenantPrincipal, DurableError> {
        Ok(self.who.clone())
    }

    fn usage<'d>(&'d self, of: UsageOf<'d>) -> DurableFuture<'d, Usage> {
        let filter = UsageFilter {
            tenant: Some(of.tenant.to_owned()),
            agent: of.agent.map(str::to_owned),
            principal: of.principal.map(str::to_owned),
            since: Some(of.since),
        };
        let store = Arc::clone(&self.store);
        on_blocking_thread(move || Ok(store.usage(&filter)?.usage))
    }

    fn note_usage<'d>(&'d self, new: NewUsage<'d>) -> DurableFuture<'d, ()> {
        ready(self.store.record_usage(&new))
    }

    fn playbooks(&self) -> Option<Arc<dyn PlaybookPort>> {
        let playbooks = self.playbooks.clone();
        playbooks.map(|playbooks| playbooks as Arc<dyn PlaybookPort>)
    }

    fn start(
        &self,
        task_id: Option<String>,
        started: Event,
    ) -> DurableFuture<'_, (Event, Box<dyn Journal>)> {
        let new = NewRun {
            tenant: self.who.tenant.to_string(),
            principal: self.who.principal.to_string(),
            task_id,
        };
        Box::pin(async move {
            let started = self.store.redacted(started)?;
            // No need to wait: no call with an effect starts before it is stored.
            let journal = self
                .store
                .start_redacted(new, &started, Durability::Relaxed)?;
            let journal: Box<dyn Journal> = Box::new(StoredJournal {
                store: Arc::clone(&self.store),
                journal: Arc::new(journal),
                who: self.who.clone(),
                stops: Arc::clone(&self.stops),
            });
            Ok((started.into_event(), journal))
        })
    }

    fn take_over<'d>(&'d self, run: &'d RunId) -> DurableFuture<'d, Option<TakenOver>> {
        let (store, run) = (Arc::clone(&self.store), run.clone());
        let (tenant, stops) = (self.who.tenant.clone(), Arc::clone(&self.stops));
        on_blocking_thread(move || {
            // Runs of other tenants do not exist for this one.
            match store.summary(&run) {
                Ok(summary) if summary.tenant != tenant.as_str() => return Ok(None),
                Ok(_) => {}
                Err(Error::NoSuchRun(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
            let journal: Option<Box<dyn Journal>> = match store.take_over(&run) {
                Ok(journal) => Some(Box::new(StoredJournal {
                    store: Arc::clone(&store),
                    journal: Arc::new(journal),
                    who: owner(&store, &run)?,
                    stops,
                })),
                Err(Error::NoSuchRun(_)) => return Ok(None),
                Err(Error::Ended(_)) => None,
                Err(error) => return Err(error),
            };
            let kept = match journal {
                Some(_) => KeptTurns::Shown,
                None => KeptTurns::All,
            };
            let damage = store.damage(&run)?;
            let run = store.fold_keeping(&run, kept)?;
            Ok(Some(TakenOver {
                run,
                journal,
                damage,
            }))
        })
    }

    fn covering<'d>(&'d self, call: StandingCall<'d>) -> DurableFuture<'d, Option<i64>> {
        let found = self.store.covering(&call);
        let number = found.map(|found| found.map(|stored| stored.id.number()));
        ready(number)
    }

    fn note_gap<'d>(
        &'d self,
        run: &'d Run,
        who: &'d TenantPrincipal,
        report: ToolGapReport,
    ) -> DurableFuture<'d, ()> {
        let (store, at, who) = (Arc::clone(&self.store), self.now(), who.clone());
        let (run, agent) = (run.id().clone(), run.agent().name().clone());
        on_blocking_thread(move || {
            let gap = NewGap {
                run: Some(&run),
                who: &who,
                agent: &agent,
                moment: GapMoment::DuringRun,
                at,
                report: &report,
            };
            store.record_gap(&gap).map(drop)
        })
    }

    fn stops(&self) -> DurableFuture<'_, Arc<StopOrders>> {
        ready(self.stops.get(&self.store))
    }

    fn sweep(&self) -> DurableFuture<'_, ()> {
        let (store, now) = (Arc::clone(&self.store), self.now());
        on_blocking_thread(move || store.sweep(now).map(drop))
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

impl RateLimitPort for Stored {
    fn used_up<'d>(&'d self, call: LimitedCall<'d>) -> DurableFuture<'d, Option<ExhaustedLimit>> {
        ready(self.store.used_up(call.tenant, call.limits, call.now))
    }

    fn take<'d>(&'d self, call: LimitedCall<'d>) -> DurableFuture<'d, Option<ExhaustedLimit>> {
        if call.limits.is_empty() {
            return ready(Ok::<_, DurableError>(None));
        }
        let (store, tenant) = (Arc::clone(&self.store), call.tenant.to_owned());
        let (limits, now) = (call.limits.to_vec(), call.now);
        on_blocking_thread(move || Ok(store.take(&tenant, &limits, now)?.err()))
    }

    fn take_turn<'d>(&'d self, turn: TurnRequest<'d>) -> DurableFuture<'d, Option<Timestamp>> {
        let store = Arc::clone(&self.store);
        let (tenant, key) = (turn.tenant.to_owned(), turn.key.to_owned());
        on_blocking_thread(move || store.take_turn(&tenant, &key, turn.now, turn.until))
    }

    fn latest_ends<'d>(
        &'d self,
        tenant: &'d str,
        tool: &'d ToolName,
        limit: u32,
    ) -> DurableFuture<'d, Vec<(CallId, bool, Timestamp)>> {
        let ends = self.store.latest_ends(tenant, tool, limit);
        ready(ends)
    }
}

impl RunMonitor for Stored {
    fn resumable(&self) -> DurableFuture<'_, Vec<ResumableRun>> {
        let (store, now) = (Arc::clone(&self.store), self.now());
        on_blocking_thread(move || store.resumable(now))
    }

    fn events_from<'d>(
        &'d self,
        run: &'d RunId,
        position: u64,
    ) -> DurableFuture<'d, Vec<(u64, Event)>> {
        let (store, run) = (Arc::clone(&self.store), run.clone());
        on_blocking_thread(move || store.events_from(&run, position))
    }

    fn last_position<'d>(&'d self, run: &'d RunId) -> DurableFuture<'d, u64> {
        let last = self.store.last_position(run);
        ready(last)
    }
}

/// The only conversion of a store error to an error of the port. The store's message is kept where the port
/// has no variant of its own.
impl From<Error> for DurableError {
    fn from(error: Error) -> Self {
        match error {
            Error::NoSuchRun(run) => Self::RunNotFound(run),
            Error::RunExists(run) => Self::RunExists(run),
            Error::OwnedElsewhere(run) => Self::OwnedElsewhere(run),
            Error::TakenOver(run) => Self::OwnershipLost(run),
            Error::Ended(run) => Self::RunEnded(run),
            Error::Purged(run) => Self::RunPurged(run),
            Error::Closed => Self::Closed,
            // A caller can act on the cause; the message has both.
            Error::Broken { ref cause, .. } => match Self::from((**cause).clone()) {
                Self::Corrupt(_) => Self::Corrupt(error.to_string()),
                Self::Unavailable(_) => Self::Unavailable(error.to_string()),
                Self::Invalid(_) => Self::Invalid(error.to_string()),
                Self::Conflict(_) => Self::Conflict(error.to_string()),
                other => other,
            },
            Error::Damaged(_)
            | Error::NewerDatabase { .. }
            | Error::ForeignDatabase(_)
            | Error::Unreadable { .. }
            | Error::Altered { .. }
            | Error::KeyUnusable(_)
            | Error::Fold { .. } => Self::Corrupt(error.to_string()),
            Error::File { .. }
            | Error::DiskFull
            | Error::Gone(_)
            | Error::Busy
            | Error::ReadOnly(_)
            | Error::Database(_)
            | Error::Export(_) => Self::Unavailable(error.to_string()),
            Error::NotStarted
            | Error::SecretInStructure
            | Error::NoMatch(_)
            | Error::ConversationExists(_)
            | Error::SeveralMatch { .. }
            | Error::NotOfThisRun { .. } => Self::Invalid(error.to_string()),
            Error::NoSuchApproval(_)
            | Error::AlreadyDecided { .. }
            | Error::Expired { .. }
            | Error::DigestDiffers { .. }
            | Error::NotEntitled { .. }
            | Error::Undecided { .. }
            | Error::NotProven { .. }
            | Error::AlreadyAsked(_)
            | Error::NoSuchHold(_)
            | Error::AlreadyHeld(_)
            | Error::TooLate { .. }
            | Error::NotDue { .. }
            | Error::Stopped(_)
            | Error::NoSuchCommand(_)
            | Error::NoSuchStanding(_)
            | Error::NoSuchServer(_)
            | Error::NoSuchPin { .. }
            | Error::PinsChanged(_)
            | Error::OfferDiffers { .. } => Self::Conflict(error.to_string()),
        }
    }
}

/// The identity a run acts for, whichever process resumes it.
fn owner(store: &Store, run: &RunId) -> Result<TenantPrincipal, Error> {
    let summary = store.summary(run)?;
    let unreadable = |error: String| Error::Unreadable {
        place: format!("the owner of the run {run}"),
        reason: error,
    };
    let tenant =
        NonEmptyText::new(summary.tenant).map_err(|error| unreadable(error.to_string()))?;
    let principal =
        Principal::new(summary.principal).map_err(|error| unreadable(error.to_string()))?;
    Ok(TenantPrincipal::new(tenant, principal))
}

struct StoredJournal {
    store: Arc<Store>,
    journal: Arc<RunJournal>,
    who: TenantPrincipal,
    stops: Arc<KnownStops>,
}

impl Journal for StoredJournal {
    fn who(&self) -> &TenantPrincipal {
        &self.who
    }

    fn seal(&self, secret: &str) -> String {
        self.store.seal(secret)
    }

    fn opened(&self, question: &Approval) -> Approval {
        self.store.opened(question)
    }

    fn statement(&self, kind: &str, claims: &Value) -> Option<String> {
        self.store.statement(kind, claims)
    }

    fn append_with<'j>(
        &'j mut self,
        event: &'j RedactedEvent,
        writes: Vec<AtomicWrite>,
    ) -> DurableFuture<'j, AppendOutcome> {
        let (journal, event) = (Arc::clone(&self.journal), event.clone());
        let stops = Arc::clone(&self.stops);
        on_blocking_thread(move || match journal.append_with(&event, writes) {
            Ok(_) => Ok(AppendOutcome::Stored),
            Err(Error::Stopped(_)) => {
                stops.forget();
                Ok(AppendOutcome::Refused)
            }
            Err(error) if error.is_refusal() => Ok(AppendOutcome::Refused),
            Err(error) => Err(error),
        })
    }

    fn inbox(&self) -> DurableFuture<'_, Vec<InboxCommand>> {
        let (store, journal) = (Arc::clone(&self.store), Arc::clone(&self.journal));
        on_blocking_thread(move || {
            let inbox = journal.inbox()?;
            for command in &inbox {
                // Calls that were approved are checked when they start. All other answers take effect now.
                if let InboxAction::Settled(approval) = &command.action
                    && !matches!(approval.outcome(), Some(ApprovalOutcome::Run { .. }))
                {
                    store.check_decisions(approval)?;
                }
            }
            Ok(inbox)
        })
    }

    fn evidence<'j>(&'j self, call: &'j CallId) -> DurableFuture<'j, CallEvidence> {
        let (store, call) = (Arc::clone(&self.store), call.clone());
        on_blocking_thread(move || store.evidence(&call))
    }

    fn approvers(&self) -> DurableFuture<'_, Option<Vec<Principal>>> {
        let store = Arc::clone(&self.store);
        on_blocking_thread(move || store.approvers())
    }

    fn fold(&self, kept: KeptTurns) -> DurableFuture<'_, Run> {
        let (store, journal) = (Arc::clone(&self.store), Arc::clone(&self.journal));
        on_blocking_thread(move || store.fold_keeping(journal.lease().run(), kept))
    }

    fn redact(&self, event: Event) -> Result<RedactedEvent, DurableError> {
        Ok(self.journal.redacted(event)?)
    }

    fn append<'j>(
        &'j mut self,
        event: &'j RedactedEvent,
        durability: Durability,
    ) -> DurableFuture<'j, ()> {
        if self.journal.is_crowded() {
            let (journal, event) = (Arc::clone(&self.journal), event.clone());
            return on_blocking_thread(move || {
                journal.append_redacted(&event, durability).map(drop)
            });
        }
        match durability {
            Durability::Relaxed => {
                let sent = self.journal.append_redacted(event, durability);
                Box::pin(std::future::ready(
                    sent.map(drop).map_err(DurableError::from),
                ))
            }
            Durability::Synced => {
                let (sender, receiver) = oneshot::channel();
                let sent = self
                    .journal
                    .append_then(event, |done| drop(sender.send(done)));
                wait_until_stored(sent, receiver)
            }
        }
    }

    fn sync(&mut self) -> DurableFuture<'_, ()> {
        let journal = Arc::clone(&self.journal);
        on_blocking_thread(move || journal.sync())
    }

    fn leave_to_worker(&mut self) {
        self.journal.leave_to_worker();
    }

    fn end<'j>(&'j mut self, end: &'j RunEnd) -> DurableFuture<'j, ()> {
        if self.journal.is_crowded() {
            let (journal, end) = (Arc::clone(&self.journal), end.clone());
            return on_blocking_thread(move || journal.end(&end));
        }
        let (sender, receiver) = oneshot::channel();
        let sent = self.journal.end_then(end, |done| drop(sender.send(done)));
        wait_until_stored(sent, receiver)
    }
}

/// Waits until a sent event is stored.
fn wait_until_stored(
    sent: Result<(), Error>,
    receiver: oneshot::Receiver<Result<(), Error>>,
) -> DurableFuture<'static, ()> {
    Box::pin(async move {
        sent?;
        Ok(receiver.await.unwrap_or(Err(Error::Closed))?)
    })
}

/// Runs work that waits for the disk on a blocking thread.
fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> DurableFuture<'static, T> {
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(work).await;
        // The thread panicked, or the process is shutting down.
        Ok(done.map_err(|_| DurableError::Closed)??)
    })
}
