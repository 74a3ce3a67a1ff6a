//! The worker: resumes the runs of a store that can continue, so that a decision needs no command to resume.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use windlass_core::approval::Principal;
use windlass_core::durable::{ResumableRun, ResumeReason};
use windlass_core::run::{Next, Run};
use windlass_runtime::{Durable as _, Progress, Stop, Watch};
use windlass_spec::{NonEmptyText, RunId};
use windlass_store::{RunState, RunSummary, Store};

use crate::assembly::BoundAgent;
use crate::binding::StoredBinding;
use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::options::{Attachment, Notice};
use crate::runs::{answered, functions_of};
use crate::service::Service;

/// The file that every worker of a data directory holds a shared lock on.
const LOCK: &str = "worker.lock";

/// How often a worker looks for runs.
const PERIOD: Duration = Duration::from_millis(200);

/// How often it ends the questions that expired.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);

/// The first back-off of a run that could not be bound or driven, or made no progress. It doubles each time.
const BACK_OFF: Duration = Duration::from_secs(1);

/// The longest back-off.
const MAX_BACK_OFF: Duration = Duration::from_secs(300);

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
    /// Receives the progress of the runs it drives.
    pub watch: Option<Watch>,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            jobs: 4,
            stop: Stop::default(),
            until_idle: false,
            watch: None,
        }
    }
}

impl std::fmt::Debug for WorkerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
    /// If the lock file cannot be read.
    pub fn has_worker(&self) -> Result<bool, ServiceError> {
        is_locked(&self.data_directory()?.join(LOCK))
    }

    /// Drives the runs of this store that can continue: a decision arrived, an undo window is over, a question
    /// expired, or their process died. Only runs that can be bound here identically are taken; the others are
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
        // The store creates the directory.
        let store = self.store()?;
        let _lock = lock_shared(&self.data_directory()?.join(LOCK))?;
        let mut worker = Worker {
            service: self.clone(),
            store,
            tenant: identity.tenant().clone(),
            backing_off: HashMap::new(),
            driving: HashSet::new(),
            running: JoinSet::new(),
            options,
        };
        worker.work().await
    }

    /// Binds a stored run identically, or returns why that is not possible here.
    pub(crate) fn bind_identically(
        &self,
        identity: &Identity,
        run: &Run,
    ) -> Result<BoundAgent, String> {
        let mut options = match StoredBinding::of(run) {
            StoredBinding::Options(options) => *options,
            StoredBinding::Program(program) => {
                return Err(format!(
                    "waiting for its program: {}",
                    functions_of(program.as_deref())
                ));
            }
        };
        let store = self.store().map_err(|error| error.to_string())?;
        options.answered = answered(&store, run).map_err(|error| error.to_string())?;
        let Some(stored) = options.binding.clone() else {
            return Err("it was stored without a record of its binding".to_owned());
        };
        // The files are compared before and after binding, so that a change in between is detected.
        let changed = stored.changed_files();
        if !changed.is_empty() {
            return Err(format!("waiting for its program: {}", changed.join(", ")));
        }
        let bound = self
            .bind_again(identity, run, &options)
            .map_err(|error| error.to_string())?;
        let project = self
            .project_of(&options)
            .map_err(|error| error.to_string())?;
        let now = self.binding_record(bound.crew(), &options, &project);
        match stored.differences(&now).as_slice() {
            [] => Ok(bound),
            differences => Err(format!(
                "waiting for its program: {}",
                differences.join(", ")
            )),
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
    driving: HashSet<RunId>,
    running: JoinSet<(RunId, ResumeReason, Result<Driven, ServiceError>)>,
    options: WorkerOptions,
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
        let mut swept: Option<Instant> = None;
        while !self.is_stopped() {
            if swept.is_none_or(|at| at.elapsed() >= SWEEP_PERIOD) {
                self.service.stored()?.sweep().await?;
                swept = Some(Instant::now());
            }
            let has_taken = self.take_runs().await?;
            if self.options.until_idle && !has_taken && self.running.is_empty() {
                return Ok(());
            }
            let (after_step, at_once) = (&self.options.stop.after_step, &self.options.stop.at_once);
            tokio::select! {
                Some(done) = self.running.join_next() => {
                    if let Ok((run, reason, result)) = done {
                        self.settle(run, reason, result);
                    }
                }
                () = after_step.cancelled() => {}
                () = at_once.cancelled() => {}
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
        self.stop_runs().await
    }

    /// Lets the runs end their step, or aborts it, and leaves them to the next worker.
    async fn stop_runs(&mut self) -> Result<(), ServiceError> {
        let at_once = self.options.stop.at_once.clone();
        let mut left = self.driving.clone();
        loop {
            let done = tokio::select! {
                done = self.running.join_next() => done,
                () = at_once.cancelled(), if !self.running.is_empty() => {
                    // As if the process had died: running calls are settled when the run is resumed.
                    self.running.shutdown().await;
                    None
                }
            };
            let Some(done) = done else {
                break;
            };
            if let Ok((run, reason, result)) = done {
                let is_settled = |driven: &Driven| driven.run.standing().is_some();
                if result.as_ref().is_ok_and(is_settled) {
                    left.remove(&run);
                }
                self.settle(run, reason, result);
            }
        }
        for run in left {
            self.store.leave(&run)?;
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        let stop = &self.options.stop;
        stop.after_step.is_cancelled() || stop.at_once.is_cancelled()
    }

    /// Takes as many resumable runs as may be driven. Returns whether it took any.
    async fn take_runs(&mut self) -> Result<bool, ServiceError> {
        let (store, now) = (Arc::clone(&self.store), self.service.now());
        let found = tokio::task::spawn_blocking(move || store.resumable(now)).await;
        let found = found.map_err(|error| ServiceError::failed(error.to_string()))??;
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
                || found.tenant != self.tenant.as_str()
                || self.driving.contains(&found.run)
                || self.was_stopped(&found)?
            {
                continue;
            }
            has_taken |= self.take(&found.run, found.reason).await;
        }
        Ok(has_taken)
    }

    /// Whether a person stopped a run and sent no command since. It waits for `runs resume`.
    fn was_stopped(&self, found: &ResumableRun) -> Result<bool, ServiceError> {
        Ok(found.reason != ResumeReason::Command
            && self.store.summary(&found.run)?.state == RunState::Open
            && self.store.was_let_go(&found.run))
    }

    /// Takes one run, if it can be bound as it was.
    async fn take(&mut self, run: &RunId, reason: ResumeReason) -> bool {
        let (service, store, id) = (self.service.clone(), Arc::clone(&self.store), run.clone());
        let bound = tokio::task::spawn_blocking(move || bind(&service, &store, &id, reason)).await;
        let bound = bound.unwrap_or_else(|error| Err(error.to_string()));
        let (bound, identity, events) = match bound {
            Ok(Some(bound)) => bound,
            // The due call has to wait for a person first.
            Ok(None) => {
                self.back_off(run.clone(), reason);
                return false;
            }
            Err(why) => {
                self.refuse(run.clone(), reason, why);
                return false;
            }
        };
        self.driving.insert(run.clone());
        let attachment = Attachment {
            // Stopping the worker does not cancel its runs.
            stop: Stop {
                after_step: self.options.stop.after_step.clone(),
                ..Stop::default()
            },
            watch: Some(self.watch(run, reason)),
            ..Attachment::default()
        };
        let (store, run) = (Arc::clone(&self.store), run.clone());
        self.running.spawn(async move {
            let resumed = async {
                let driver = bound.driver(&identity, attachment)?;
                let driven = driver.resume(&run).await?;
                Ok(Driven {
                    // One new event is that it was resumed.
                    has_progressed: store.summary(&run)?.events > events + 1,
                    run: driven,
                })
            };
            let result = resumed.await;
            (run, reason, result)
        });
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

    fn settle(&mut self, run: RunId, reason: ResumeReason, result: Result<Driven, ServiceError>) {
        self.driving.remove(&run);
        match result {
            Ok(driven) if driven.has_progressed || driven.run.end().is_some() => {
                self.backing_off.remove(&run);
            }
            Ok(_) => {
                self.back_off(run, reason);
            }
            // Another process has it now, or it has ended.
            Err(error) if ["owned_elsewhere", "ended"].contains(&error.code()) => {}
            Err(error) => self.refuse(run, reason, error.to_string()),
        }
    }

    /// Backs off from a run that cannot be driven here, and reports why the first time.
    fn refuse(&mut self, run: RunId, reason: ResumeReason, why: String) {
        if self.back_off(run.clone(), reason) {
            self.service
                .notify(&Notice::RunNotTaken { run, reason: why });
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
#[expect(clippy::type_complexity, reason = "used once")]
fn bind(
    service: &Service,
    store: &Store,
    run: &RunId,
    reason: ResumeReason,
) -> Result<Option<(BoundAgent, Identity, u64)>, String> {
    let folded = store.fold(run).map_err(|error| error.to_string())?;
    let is_due = || folded.held_calls().any(|(_, until)| until <= service.now());
    if reason == ResumeReason::HoldDue
        && matches!(folded.next(), Next::Wait(waiting) if waiting.for_person)
        && !is_due()
    {
        return Ok(None);
    }
    service.reload().map_err(|error| error.to_string())?;
    let summary = store.summary(run).map_err(|error| error.to_string())?;
    let identity = owner(&summary)?;
    let bound = service.bind_identically(&identity, &folded)?;
    Ok(Some((bound, identity, summary.events)))
}

/// The identity that a run acts for.
fn owner(summary: &RunSummary) -> Result<Identity, String> {
    let tenant = NonEmptyText::new(summary.tenant.clone()).map_err(|error| error.to_string())?;
    let principal = Principal::new(summary.principal.clone()).map_err(|error| error.to_string())?;
    Ok(Identity::new(tenant, principal, [Scope::Run]))
}

fn lock_shared(path: &Path) -> Result<File, ServiceError> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path)?;
    file.lock_shared()?;
    Ok(file)
}

fn is_locked(path: &Path) -> Result<bool, ServiceError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    match file.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}
