//! The worker: resumes the runs of a store that can continue, so that a decision needs no command to resume.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::{Id, JoinError, JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use windlass_core::approval::TenantPrincipal;
use windlass_core::durable::{ResumableRun, ResumeReason};
use windlass_core::run::{Next, Run};
use windlass_core::stop::StopOrders;
use windlass_runtime::{Durable as _, Progress, RunMonitor as _, Stop, Watch};
use windlass_spec::{NonEmptyText, RunId};
use windlass_store::{RetentionPlace, RunState, RunSummary, Store};

use crate::assembly::BoundAgent;
use crate::binding::StoredBinding;
use crate::error::ServiceError;
use crate::file_changes::FileChange;
use crate::identity::{Identity, Scope, user};
use crate::libraries::{files_of, library_texts};
use crate::options::{Attachment, Notice};
use crate::retention::RetainedRound;
use crate::runs::{ProgramWait, answered};
use crate::service::Service;
use crate::stops::work_of;
use crate::webhooks::WebhookSender;

/// The file that every worker of a data directory holds a shared lock on.
const LOCK: &str = "worker.lock";

/// How often a worker looks for runs.
const PERIOD: Duration = Duration::from_millis(200);

/// How often it ends the questions that expired.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);

/// How long a worker waits between two rounds of the retention while there is more to remove.
const RETENTION_PAUSE: Duration = Duration::from_secs(1);

/// How long it waits before it looks at all runs again.
const RETENTION_PERIOD: Duration = Duration::from_secs(600);

/// The first back-off of a run that could not be bound or driven, or made no progress. It doubles each time.
const BACK_OFF: Duration = Duration::from_secs(1);

/// The longest back-off.
const MAX_BACK_OFF: Duration = Duration::from_secs(300);

/// How long a worker waits until a run is bound.
const BIND_TIMEOUT: Duration = Duration::from_secs(60);

/// How often a lock is tried before it counts as a worker's, and how long to wait in between.
const PROBES: u32 = 3;
const PROBE_PAUSE: Duration = Duration::from_millis(3);

/// The options of a worker.
#[derive(Clone)]
pub struct WorkerOptions {
    /// How many runs it drives at the same time, at least 1.
    pub jobs: usize,
    /// Stops it: `after_step` lets the current steps end, `at_once` aborts them. Either way its runs are not
    /// cancelled but left to the next worker.
    pub stop: Stop,
    /// Whether it stops when there is nothing to do.
    pub until_idle: bool,
    /// Whose runs it drives.
    pub tenants: WorkerTenants,
    /// Receives the progress of the runs it drives.
    pub watch: Option<Watch>,
}

/// The tenants whose runs a worker drives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WorkerTenants {
    /// That of its identity.
    #[default]
    Own,
    /// All: its identity is an administrator.
    All,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            jobs: 4,
            stop: Stop::default(),
            until_idle: false,
            tenants: WorkerTenants::Own,
            watch: None,
        }
    }
}

impl fmt::Debug for WorkerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerOptions")
            .field("jobs", &self.jobs)
            .field("until_idle", &self.until_idle)
            .finish_non_exhaustive()
    }
}

impl Service {
    /// Whether a worker drives the runs of this store, in this process or another.
    ///
    /// # Errors
    /// If the identity may not read, or the lock file cannot be read.
    pub fn has_worker(&self, identity: &Identity) -> Result<bool, ServiceError> {
        identity.require(Scope::Read)?;
        self.is_worked()
    }

    /// Whether a worker drives the runs of this store.
    pub(crate) fn is_worked(&self) -> Result<bool, ServiceError> {
        is_locked(&self.data_directory()?.join(LOCK))
    }

    /// Drives the runs of this store that can continue: a decision arrived, an undo window is over, a question
    /// expired, or their process died. Sends events to webhooks meanwhile. Only runs that can be bound here identically are taken; the others are
    /// reported once. Runs that a person stopped wait for `runs resume`.
    ///
    /// Two workers never drive the same run: its lease belongs to one process.
    ///
    /// # Errors
    /// If the identity is not an operator, or the store cannot be used.
    pub async fn work(
        &self,
        identity: &Identity,
        options: WorkerOptions,
    ) -> Result<(), ServiceError> {
        identity.require(Scope::Operate)?;
        identity.require(Scope::Run)?;
        if options.tenants == WorkerTenants::All {
            identity.require(Scope::Admin)?;
        }
        // The store creates the directory.
        let store = self.store()?;
        if let Some(error) = store.authentication_error() {
            return Err(error.into());
        }
        let _lock = lock_shared(&self.data_directory()?.join(LOCK))?;
        let tenant = match options.tenants {
            WorkerTenants::Own => Some(identity.tenant().to_string()),
            WorkerTenants::All => None,
        };
        let sender = WebhookSender::new(self, &store, tenant)?;
        let (stopped, idle) = (CancellationToken::new(), CancellationToken::new());
        let sender = tokio::spawn(sender.run(stopped.clone(), idle.clone()));
        // Also if this future is dropped.
        let stopped = stopped.drop_guard();
        let stop = options.stop.clone();
        let mut worker = Worker {
            service: self.clone(),
            store,
            tenant: identity.tenant().clone(),
            backing_off: HashMap::new(),
            stopped: HashSet::new(),
            stops_revision: None,
            driving: HashMap::new(),
            running: JoinSet::new(),
            retention: Retention::default(),
            options,
        };
        let worked = worker.work().await;
        let is_stopped = stop.after_step.is_cancelled() || stop.at_once.is_cancelled();
        if worked.is_err() || is_stopped {
            drop(stopped);
        } else {
            idle.cancel();
        }
        sender
            .await
            .map_err(|error| ServiceError::failed(error.to_string()))?;
        worked
    }

    /// Binds a stored run identically, or returns why that is not possible here.
    pub(crate) fn bind_identically(
        &self,
        identity: &Identity,
        run: &Run,
    ) -> Result<BoundAgent, Refusal> {
        let mut options = match StoredBinding::of(run) {
            StoredBinding::Options(options) => *options,
            StoredBinding::Program(program) => {
                return Err(Refusal::Program(ProgramWait::Functions(program)));
            }
        };
        let store = self.store()?;
        options.answered = answered(&store, run)?;
        let Some(stored) = options.binding.clone() else {
            let why = "it was stored without a record of its binding";
            return Err(ServiceError::failed(why).into());
        };
        // The files are compared before and after binding, so that a change in between is detected.
        let changed = stored.changed_files();
        if !changed.is_empty() {
            return Err(Refusal::Program(ProgramWait::Changed(changed)));
        }
        let project = self.project_of(&options)?;
        let written = self.written_files(&project, &options, None)?;
        if !written.is_empty() {
            let written = written.iter().map(FileChange::to_string).collect();
            return Err(Refusal::Program(ProgramWait::Changed(written)));
        }
        let bound = self.bind_again(identity, run, &options)?;
        let texts = library_texts(&files_of(&options.library, project.configuration()));
        let now = self.binding_record(bound.crew(), &options, &project, bound.model(), &texts);
        let differences = stored.differences(&now);
        match differences.is_empty() {
            true => Ok(bound),
            false => Err(Refusal::Program(ProgramWait::Changed(differences))),
        }
    }
}

/// Why a worker does not resume a run.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It cannot be bound identically.
    Program(ProgramWait),
    /// It cannot be bound or driven at all.
    Failed(ServiceError),
}

impl<E: Into<ServiceError>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Refusal {
    /// The reason without what it is a reason for.
    fn reason(&self) -> String {
        match self {
            Self::Program(wait) => wait.to_string(),
            Self::Failed(error) => error.to_string(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(wait) => write!(f, "waiting for its program: {wait}"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

/// A running worker.
struct Worker {
    service: Service,
    store: Arc<Store>,
    tenant: NonEmptyText,
    /// Runs that could not be bound or driven, or made no progress.
    backing_off: HashMap<RunId, BackOff>,
    /// Runs that were suspended because of a stop, until something is stopped or started.
    stopped: HashSet<RunId>,
    /// The revision of the stops when it last looked.
    stops_revision: Option<u64>,
    /// The runs it drives, by task.
    driving: HashMap<Id, (RunId, ResumeReason)>,
    running: JoinSet<Result<Driven, ServiceError>>,
    retention: Retention,
    options: WorkerOptions,
}

/// How far a worker has come with removing what the retention does not keep.
#[derive(Default)]
struct Retention {
    /// The round that is under way.
    round: Option<JoinHandle<Result<RetainedRound, ServiceError>>>,
    /// Where the next round begins.
    place: RetentionPlace,
    /// When it begins; at once if there was none.
    next: Option<Instant>,
    /// Whether anything was removed since the file was last shrunk.
    has_removed: bool,
    /// Whether all runs were looked at since the worker started.
    is_complete: bool,
    /// Whether the last round failed, which is reported once.
    has_failed: bool,
}

/// The back-off of a run. It ends early if there is another reason to resume the run.
struct BackOff {
    reason: ResumeReason,
    until: Instant,
    delay: Duration,
}

/// The result of driving a run.
struct Driven {
    run: Run,
    /// Whether it has more new events than that it was resumed.
    has_progressed: bool,
}

impl Worker {
    async fn work(&mut self) -> Result<(), ServiceError> {
        let worked = self.work_until_stopped().await;
        if worked.is_err() {
            self.running.abort_all();
        }
        worked.and(self.stop_runs().await)
    }

    async fn work_until_stopped(&mut self) -> Result<(), ServiceError> {
        let mut swept: Option<Instant> = None;
        let mut failed: Option<Duration> = None;
        while !self.is_stopped() {
            let is_due = swept.is_none_or(|at| at.elapsed() >= SWEEP_PERIOD);
            match self.look_once(is_due).await {
                Ok(has_taken) => {
                    failed = None;
                    if is_due {
                        swept = Some(Instant::now());
                    }
                    let is_retained = self.retain().await;
                    let is_idle = !has_taken && self.running.is_empty() && is_retained;
                    if self.options.until_idle && is_idle {
                        return Ok(());
                    }
                }
                Err(error) if self.options.until_idle => return Err(error),
                // The store may be usable again later: a full disk is emptied, a lock is released.
                Err(error) => {
                    if failed.is_none() {
                        self.service.notify(&Notice::Warning(format!(
                            "warning: the store cannot be used, trying again: {error}"
                        )));
                    }
                    failed = Some(failed.map_or(BACK_OFF, |delay| (delay * 2).min(MAX_BACK_OFF)));
                }
            }
            let pause = failed.unwrap_or(PERIOD);
            let (after_step, at_once) = (&self.options.stop.after_step, &self.options.stop.at_once);
            tokio::select! {
                Some(done) = self.running.join_next_with_id() => self.settle(done),
                () = after_step.cancelled() => {}
                () = at_once.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        Ok(())
    }

    /// Ends questions that expired, if that is due, and takes the runs that can continue. Returns whether it
    /// took any.
    async fn look_once(&mut self, is_sweep_due: bool) -> Result<bool, ServiceError> {
        if is_sweep_due {
            self.service.stored()?.sweep().await?;
        }
        self.take_runs().await
    }

    /// Begins or ends a round of the retention, on a thread of its own, so that no run waits for it. Returns whether all
    /// runs were looked at.
    async fn retain(&mut self) -> bool {
        let retention = &mut self.retention;
        if let Some(round) = retention.round.take_if(|round| round.is_finished()) {
            let ended = round.await;
            let ended = ended.unwrap_or_else(|error| Err(ServiceError::failed(error.to_string())));
            let pause = match ended {
                Ok(round) => {
                    retention.has_failed = false;
                    retention.has_removed = round.has_removed;
                    let is_over = round.next.is_none();
                    retention.is_complete |= is_over;
                    retention.place = round.next.unwrap_or_default();
                    match is_over {
                        true => RETENTION_PERIOD,
                        false => RETENTION_PAUSE,
                    }
                }
                Err(error) => {
                    // What cannot be removed now is removed later; the runs go on.
                    if !std::mem::replace(&mut retention.has_failed, true) {
                        self.service.notify(&Notice::Warning(format!(
                            "warning: what is older than the retention cannot be removed, trying again: {error}"
                        )));
                    }
                    retention.is_complete = true;
                    RETENTION_PERIOD
                }
            };
            retention.next = Some(Instant::now() + pause);
        }
        let is_due = retention.next.is_none_or(|next| Instant::now() >= next)
            || (self.options.until_idle && !retention.is_complete);
        if retention.round.is_none() && is_due {
            let service = self.service.clone();
            let tenant = match self.options.tenants {
                WorkerTenants::Own => Some(self.tenant.to_string()),
                WorkerTenants::All => None,
            };
            let (place, had_removed) = (retention.place.clone(), retention.has_removed);
            retention.round = Some(tokio::task::spawn_blocking(move || {
                let mut round = service.retain(tenant.as_deref(), place)?;
                round.has_removed |= had_removed;
                // Once at the end: the log still holds what was removed.
                if round.next.is_none() && round.has_removed {
                    service.store()?.shrink_some()?;
                    round.has_removed = false;
                }
                Ok(round)
            }));
        }
        retention.is_complete
    }

    /// Lets the runs end their step, or aborts it, and leaves them to the next worker.
    async fn stop_runs(&mut self) -> Result<(), ServiceError> {
        let at_once = self.options.stop.at_once.clone();
        loop {
            let done = tokio::select! {
                done = self.running.join_next_with_id() => done,
                () = at_once.cancelled(), if !self.running.is_empty() => {
                    // As if the process had died: running calls are settled when the run is resumed.
                    self.running.shutdown().await;
                    None
                }
            };
            let Some(done) = done else {
                break;
            };
            self.settle(done);
        }
        // Those whose steps were aborted.
        for (_, (run, _)) in self.driving.drain() {
            self.store.mark_abandoned(&run)?;
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        let stop = &self.options.stop;
        stop.after_step.is_cancelled() || stop.at_once.is_cancelled()
    }

    /// Takes as many resumable runs as may be driven. Returns whether it took any.
    async fn take_runs(&mut self) -> Result<bool, ServiceError> {
        let stored = self.service.stored()?;
        let stops = stored.stops().await?;
        if self.stops_revision.replace(stops.revision) != Some(stops.revision) {
            // What was started again goes on at once.
            self.stopped.clear();
            self.backing_off.clear();
        }
        let found = stored.resumable().await?;
        let mut has_taken = false;
        for found in found {
            if self.running.len() >= self.options.jobs.max(1) {
                break;
            }
            let is_backing_off = self
                .backing_off
                .get(&found.run)
                .is_some_and(|left| left.reason == found.reason && Instant::now() < left.until);
            if is_backing_off
                || (self.options.tenants == WorkerTenants::Own
                    && found.tenant != self.tenant.as_str())
                || self.driving.values().any(|(run, _)| *run == found.run)
                || self.stopped.contains(&found.run)
                || self.is_stopped_by(&stops, &found.run)?
                || self.was_stopped(&found)?
            {
                continue;
            }
            has_taken |= self.take(&found.run, found.reason).await;
        }
        Ok(has_taken)
    }

    /// Whether a stop covers a run. One that covers only a tool is found when the run gets to a call of it.
    fn is_stopped_by(&self, stops: &StopOrders, run: &RunId) -> Result<bool, ServiceError> {
        if stops.orders.is_empty() {
            return Ok(false);
        }
        let work = work_of(&self.store.summary(run)?);
        Ok(work.is_some_and(|work| stops.covering(&work).is_some()))
    }

    /// Whether a person stopped a run and sent no command since. It waits for `runs resume`.
    fn was_stopped(&self, found: &ResumableRun) -> Result<bool, ServiceError> {
        Ok(found.reason != ResumeReason::Command
            && self.store.summary(&found.run)?.state == RunState::Open
            && self.store.was_released(&found.run))
    }

    /// Takes one run, if it can be bound as it was.
    async fn take(&mut self, run: &RunId, reason: ResumeReason) -> bool {
        // A refusal is about the run as it is now, not as another worker leaves it.
        let epoch = self.store.summary(run).map_or(0, |summary| summary.epoch);
        let (service, store, id) = (self.service.clone(), Arc::clone(&self.store), run.clone());
        let bound = tokio::task::spawn_blocking(move || bind(&service, &store, &id, reason));
        let failed = |why: String| Err(ServiceError::failed(why).into());
        let bound = match tokio::time::timeout(BIND_TIMEOUT, bound).await {
            Ok(bound) => bound.unwrap_or_else(|error| failed(error.to_string())),
            Err(_) => failed("its files or servers do not answer in time".to_owned()),
        };
        let (bound, identity, events) = match bound {
            Ok(Some(bound)) => bound,
            // The due call has to wait for a person first.
            Ok(None) => {
                self.back_off(run.clone(), reason);
                return false;
            }
            Err(why) => {
                self.refuse(run.clone(), epoch, reason, &why);
                return false;
            }
        };
        let attachment = Attachment {
            // Stopping the worker does not cancel its runs.
            stop: Stop {
                after_step: self.options.stop.after_step.clone(),
                ..Stop::default()
            },
            watch: Some(self.watch(run, reason)),
            ..Attachment::default()
        };
        let (service, store, id) = (self.service.clone(), Arc::clone(&self.store), run.clone());
        let task = self.running.spawn(async move {
            let driver = bound.driver(&identity, attachment)?;
            let driven = service.keep_answer_of(driver.resume(&id).await?).await?;
            Ok(Driven {
                // One new event is that it was resumed.
                has_progressed: store.summary(&id)?.events > events + 1,
                run: driven,
            })
        });
        self.driving.insert(task.id(), (run.clone(), reason));
        true
    }

    /// A watcher that reports the run as taken at its first event, then passes on its progress.
    fn watch(&self, run: &RunId, reason: ResumeReason) -> Watch {
        let (service, inner) = (self.service.clone(), self.options.watch.clone());
        let (run, is_reported) = (run.clone(), AtomicBool::new(false));
        Arc::new(move |id: &RunId, progress: Progress<'_>| {
            if !is_reported.swap(true, Ordering::Relaxed) {
                service.notify(&Notice::RunTaken {
                    run: run.clone(),
                    reason: reason.as_str(),
                });
            }
            if let Some(inner) = &inner {
                inner(id, progress);
            }
        })
    }

    /// Takes note of how far a run was driven. One that was aborted is left to the next worker.
    fn settle(&mut self, done: Result<(Id, Result<Driven, ServiceError>), JoinError>) {
        let (task, result) = match done {
            Ok((task, result)) => (task, result),
            Err(error) => (error.id(), Err(ServiceError::failed(error.to_string()))),
        };
        let Some((run, reason)) = self.driving.remove(&task) else {
            return;
        };
        let result = result.and_then(|driven| {
            if driven.run.end_or_waiting().is_none() {
                self.store.mark_abandoned(&run)?;
            }
            Ok(driven)
        });
        match result {
            Ok(driven) if driven.run.stopped().is_some() => {
                self.stopped.insert(run);
            }
            Ok(driven) if driven.has_progressed || driven.run.end().is_some() => {
                self.backing_off.remove(&run);
            }
            Ok(_) => {
                self.back_off(run, reason);
            }
            // Another process has it now, or it has ended.
            Err(error) if ["owned_elsewhere", "ended"].contains(&error.code()) => {}
            Err(error) => {
                let left = self.store.mark_abandoned(&run);
                let why = match left {
                    Ok(()) => error.to_string(),
                    Err(left) => format!("{error}; {left}"),
                };
                let epoch = self.store.summary(&run).map_or(0, |summary| summary.epoch);
                self.refuse(run, epoch, reason, &ServiceError::failed(why).into());
            }
        }
    }

    /// Backs off from a run that cannot be driven here, and reports why the first time.
    fn refuse(&mut self, run: RunId, epoch: i64, reason: ResumeReason, why: &Refusal) {
        // `runs show` prints it too. A store that cannot be written is reported elsewhere.
        let _ = self.store.refuse(&run, epoch, &why.reason());
        if self.back_off(run.clone(), reason) {
            self.service.notify(&Notice::RunNotTaken {
                run,
                reason: why.to_string(),
            });
        }
    }

    /// Backs off from a run for a while. Returns whether this is the first time.
    fn back_off(&mut self, run: RunId, reason: ResumeReason) -> bool {
        let before = self.backing_off.get(&run);
        let delay = match before {
            Some(before) if before.reason == reason => (before.delay * 2).min(MAX_BACK_OFF),
            _ => BACK_OFF,
        };
        let is_new = before.is_none();
        let until = Instant::now() + delay;
        let left = BackOff {
            reason,
            until,
            delay,
        };
        self.backing_off.insert(run, left);
        is_new
    }
}

/// Binds a run identically, with its identity and its number of events; `None` if it could only wait.
fn bind(
    service: &Service,
    store: &Store,
    run: &RunId,
    reason: ResumeReason,
) -> Result<Option<(BoundAgent, Identity, u64)>, Refusal> {
    let folded = store.fold(run)?;
    let is_due = || folded.held_calls().any(|(_, until)| until <= service.now());
    if reason == ResumeReason::HoldDue
        && matches!(folded.next(), Next::Wait(waiting) if waiting.for_person)
        && !is_due()
    {
        return Ok(None);
    }
    service.reread()?;
    let summary = store.summary(run)?;
    let identity = owner(&summary)?;
    let bound = match folded.outside() {
        Some(_) => service.bind_outside(&identity, &folded)?,
        None => service.bind_identically(&identity, &folded)?,
    };
    Ok(Some((bound, identity, summary.events)))
}

/// The identity that a run acts for.
pub(crate) fn owner(summary: &RunSummary) -> Result<Identity, ServiceError> {
    let TenantPrincipal { tenant, principal } = user(&summary.tenant, &summary.principal)?;
    Ok(Identity::new(tenant, principal, [Scope::Run]))
}

fn lock_shared(path: &Path) -> Result<File, ServiceError> {
    let mut options = windlass_files::options();
    options.create(true).truncate(false).read(true).write(true);
    let file = windlass_files::open(&options, path)?;
    file.lock_shared()?;
    Ok(file)
}

fn is_locked(path: &Path) -> Result<bool, ServiceError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    // Another process that asks the same has the lock for a moment; a worker has it as long as it lives.
    for _ in 0..PROBES {
        match file.try_lock() {
            Ok(()) => return Ok(false),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PROBE_PAUSE),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
    Ok(true)
}
