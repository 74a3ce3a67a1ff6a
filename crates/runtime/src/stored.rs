//! Runs in the store. Events are handed to the thread that writes; only what must be safe from a crash
//! is waited for, and no thread of the runtime waits with it unless the disk cannot keep up.

use std::env;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::oneshot;
use windlass_core::approval::{Identity, Principal, StandingCall};
use windlass_core::limits::Limit;
use windlass_core::run::{Event, Run, RunEnd};
use windlass_spec::{CallId, GapMoment, NonEmptyText, RunId, Timestamp, ToolGapReport, ToolName};
use windlass_store::{
    Durability, Error, Mail, NewGap, NewRun, Options, RedactedEvent, Redactor, RunJournal, Store,
    UsedUp,
};
use windlass_tools::MemoryPort;

use crate::durable::{Beside, Durable, DurableError, DurableFuture, Journal, TakenOver, now};
use crate::gap::GapAtLoad;
use crate::playbook::Playbooks;
use crate::remembering::Remembering;

/// The database in a data directory.
const FILE: &str = "windlass.db";

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Runs in a database file.
#[derive(Clone)]
pub struct Stored {
    store: Arc<Store>,
    who: Identity,
    clock: Clock,
    memory: Arc<Remembering>,
    playbooks: Option<Arc<Playbooks>>,
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored")
            .field("store", &self.store)
            .field("who", &self.who)
            .finish_non_exhaustive()
    }
}

/// The user of the operating system that this program runs as, of the tenant `local`. It goes by the
/// user's number, which nobody can choose, and not by the environment: two people who must agree are
/// two users.
///
/// # Errors
/// If the user has no name that can be used.
pub fn local_identity() -> Result<Identity, DurableError> {
    let name = tested_principal().unwrap_or_else(user_name);
    let principal = Principal::new(name).map_err(|error| DurableError(error.to_string()))?;
    let tenant = NonEmptyText::new("local").map_err(|error| DurableError(error.to_string()))?;
    Ok(Identity::new(tenant, principal))
}

/// Who acts in a test that needs several people. Not in releases, where this cannot be chosen.
fn tested_principal() -> Option<String> {
    match cfg!(debug_assertions) {
        true => env::var("WINDLASS_TEST_PRINCIPAL").ok(),
        false => None,
    }
}

/// The name of the user, from the list of users or from the system; their number if they have none.
fn user_name() -> String {
    let number = rustix::process::getuid().as_raw().to_string();
    let listed = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let listed = listed.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (id == number).then(|| name.to_owned())
    });
    let told = || {
        let output = std::process::Command::new("id").arg("-un").output().ok()?;
        let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !name.is_empty()).then_some(name)
    };
    listed
        .or_else(told)
        .unwrap_or_else(|| format!("user {number}"))
}

impl Stored {
    /// Keeps runs in the database of a directory, on behalf of the local user, without the values of
    /// environment variables that hold keys and the like.
    ///
    /// # Errors
    /// If the database cannot be opened.
    pub fn open(directory: &Path) -> Result<Self, DurableError> {
        let options = Options {
            redactor: Redactor::new(secrets()),
            now: Some(now()),
            ..Options::default()
        };
        let store = Store::open_with(directory.join(FILE), options)?;
        let mut stored = Self::new(Arc::new(store), local_identity()?);
        let playbooks = Playbooks::of(directory, stored.who.tenant.as_str());
        stored.playbooks = Some(Arc::new(playbooks));
        Ok(stored)
    }

    /// On whose behalf new runs act, and who decides when this program does.
    #[must_use]
    pub fn who(&self) -> &Identity {
        &self.who
    }

    /// The same store on behalf of another identity: new runs act for it, and what they teach is kept for
    /// its tenant.
    #[must_use]
    pub fn acting_for(&self, who: Identity) -> Self {
        let mut stored = self.clone();
        if who.tenant != self.who.tenant {
            let directory = self.playbooks.as_ref().and(self.store.path().parent());
            let playbooks = directory.map(|directory| Playbooks::of(directory, who.tenant.as_str()));
            stored.playbooks = playbooks.map(Arc::new);
        }
        stored.who = who;
        stored
    }

    /// Keeps what an agent lacks that could not be loaded.
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

    /// Keeps runs in `store`.
    #[must_use]
    pub fn new(store: Arc<Store>, who: Identity) -> Self {
        let clock: Clock = Arc::new(now);
        let memory = Remembering::new(Arc::clone(&store), Arc::clone(&clock));
        Self {
            store,
            who,
            clock,
            memory: Arc::new(memory),
            playbooks: None,
        }
    }

    /// With another clock than the system's.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.memory = Arc::new(Remembering::new(
            Arc::clone(&self.store),
            Arc::clone(&clock),
        ));
        self.clock = clock;
        self
    }
}

/// The values of environment variables that must never be written down.
fn secrets() -> impl Iterator<Item = String> {
    const ENDINGS: [&str; 4] = ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"];
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| ENDINGS.iter().any(|ending| name.ends_with(ending)))
        .map(|(_, value)| value)
}

impl Durable for Stored {
    fn memory(&self) -> Option<Arc<dyn MemoryPort>> {
        Some(Arc::clone(&self.memory) as Arc<dyn MemoryPort>)
    }

    fn playbooks(&self) -> Option<Arc<Playbooks>> {
        self.playbooks.clone()
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
            let started = self.store.redacted(started)?.into_event();
            // Nobody needs to wait: nothing that may have an effect starts before it is stored.
            let journal = self.store.start(new, &started, Durability::Relaxed)?;
            let journal: Box<dyn Journal> = Box::new(StoredJournal {
                journal: Arc::new(journal),
                who: self.who.clone(),
            });
            Ok((started, journal))
        })
    }

    fn take_over<'d>(&'d self, run: &'d RunId) -> DurableFuture<'d, Option<TakenOver>> {
        let (store, run) = (Arc::clone(&self.store), run.clone());
        waiting(move || {
            let journal: Option<Box<dyn Journal>> = match store.take_over(&run) {
                Ok(journal) => Some(Box::new(StoredJournal {
                    journal: Arc::new(journal),
                    who: owner(&store, &run)?,
                })),
                Err(Error::NoSuchRun(_)) => return Ok(None),
                Err(Error::Ended(_)) => None,
                Err(error) => return Err(error),
            };
            let events = store.events(&run)?;
            let events = events.into_iter().map(|(_, event)| event).collect();
            Ok(Some(TakenOver { events, journal }))
        })
    }

    fn covering<'d>(&'d self, call: StandingCall<'d>) -> DurableFuture<'d, Option<i64>> {
        let found = self.store.covering(&call);
        let number = found.map(|found| found.map(|stored| stored.id.number()));
        Box::pin(std::future::ready(number.map_err(DurableError::from)))
    }

    fn used_up<'d>(
        &'d self,
        tenant: &'d str,
        limits: &'d [Limit],
        now: Timestamp,
    ) -> DurableFuture<'d, Option<UsedUp>> {
        let used_up = self.store.used_up(tenant, limits, now);
        Box::pin(std::future::ready(used_up.map_err(DurableError::from)))
    }

    fn take<'d>(
        &'d self,
        tenant: &'d str,
        limits: &'d [Limit],
        now: Timestamp,
    ) -> DurableFuture<'d, Option<UsedUp>> {
        if limits.is_empty() {
            return Box::pin(std::future::ready(Ok(None)));
        }
        let (store, tenant) = (Arc::clone(&self.store), tenant.to_owned());
        let limits = limits.to_vec();
        waiting(move || Ok(store.take(&tenant, &limits, now)?.err()))
    }

    fn take_turn<'d>(
        &'d self,
        tenant: &'d str,
        key: &'d str,
        now: Timestamp,
        until: Timestamp,
    ) -> DurableFuture<'d, Option<Timestamp>> {
        let store = Arc::clone(&self.store);
        let (tenant, key) = (tenant.to_owned(), key.to_owned());
        waiting(move || store.take_turn(&tenant, &key, now, until))
    }

    fn latest_ends<'d>(
        &'d self,
        tenant: &'d str,
        tool: &'d ToolName,
        limit: u32,
    ) -> DurableFuture<'d, Vec<(CallId, bool, Timestamp)>> {
        let ends = self.store.latest_ends(tenant, tool, limit);
        Box::pin(std::future::ready(ends.map_err(DurableError::from)))
    }

    fn note_gap<'d>(
        &'d self,
        run: &'d Run,
        who: &'d Identity,
        report: ToolGapReport,
    ) -> DurableFuture<'d, ()> {
        let (store, at, who) = (Arc::clone(&self.store), self.now(), who.clone());
        let (run, agent) = (run.id().clone(), run.agent().name().clone());
        waiting(move || {
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

    fn sweep(&self) -> DurableFuture<'_, ()> {
        let (store, now) = (Arc::clone(&self.store), self.now());
        waiting(move || store.sweep(now).map(drop))
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

/// On whose behalf a run acts, whoever goes on with it.
fn owner(store: &Store, run: &RunId) -> Result<Identity, Error> {
    let summary = store.summary(run)?;
    let unreadable = |error: String| Error::Unreadable {
        place: format!("the owner of the run {run}"),
        reason: error,
    };
    let tenant =
        NonEmptyText::new(summary.tenant).map_err(|error| unreadable(error.to_string()))?;
    let principal =
        Principal::new(summary.principal).map_err(|error| unreadable(error.to_string()))?;
    Ok(Identity::new(tenant, principal))
}

struct StoredJournal {
    journal: Arc<RunJournal>,
    who: Identity,
}

impl Journal for StoredJournal {
    fn who(&self) -> &Identity {
        &self.who
    }

    fn append_beside<'j>(
        &'j mut self,
        event: &'j RedactedEvent,
        beside: Beside,
    ) -> DurableFuture<'j, bool> {
        let (journal, event) = (Arc::clone(&self.journal), event.clone());
        waiting(
            move || match journal.append_alongside(&event, &[beside.as_alongside()]) {
                Ok(_) => Ok(true),
                Err(error) if error.is_refusal() => Ok(false),
                Err(error) => Err(error),
            },
        )
    }

    fn mail(&self) -> DurableFuture<'_, Vec<Mail>> {
        let journal = Arc::clone(&self.journal);
        waiting(move || journal.mail())
    }

    fn redacted(&self, event: Event) -> Result<RedactedEvent, DurableError> {
        Ok(self.journal.redacted(event)?)
    }

    fn append<'j>(
        &'j mut self,
        event: &'j RedactedEvent,
        durability: Durability,
    ) -> DurableFuture<'j, ()> {
        if self.journal.is_crowded() {
            let (journal, event) = (Arc::clone(&self.journal), event.clone());
            return waiting(move || journal.append_redacted(&event, durability).map(drop));
        }
        match durability {
            Durability::Relaxed => {
                let sent = self.journal.append_redacted(event, durability);
                Box::pin(std::future::ready(
                    sent.map(drop).map_err(DurableError::from),
                ))
            }
            Durability::Synced => {
                let (tell, told) = oneshot::channel();
                let sent = self
                    .journal
                    .append_then(event, |done| drop(tell.send(done)));
                stored(sent, told)
            }
        }
    }

    fn sync(&mut self) -> DurableFuture<'_, ()> {
        let journal = Arc::clone(&self.journal);
        waiting(move || journal.sync())
    }

    fn end<'j>(&'j mut self, end: &'j RunEnd) -> DurableFuture<'j, ()> {
        if self.journal.is_crowded() {
            let (journal, end) = (Arc::clone(&self.journal), end.clone());
            return waiting(move || journal.end(&end));
        }
        let (tell, told) = oneshot::channel();
        let sent = self.journal.end_then(end, |done| drop(tell.send(done)));
        stored(sent, told)
    }
}

/// Waits for what was sent to be stored.
fn stored(
    sent: Result<(), Error>,
    told: oneshot::Receiver<Result<(), Error>>,
) -> DurableFuture<'static, ()> {
    Box::pin(async move {
        sent?;
        Ok(told.await.unwrap_or(Err(Error::Closed))?)
    })
}

/// Does something that waits for the disk on a thread that may.
fn waiting<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> DurableFuture<'static, T> {
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(work).await;
        Ok(done.map_err(|error| DurableError(error.to_string()))??)
    })
}
