//! The worker: drives the runs of a store that can go on, so that deciding is enough and nobody has to
//! resume them.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use windlass_core::approval::Principal;
use windlass_core::durable::ResumeReason;
use windlass_core::run::Run;
use windlass_runtime::{DriveError, Durable as _, DurableError, Stop, Watch};
use windlass_spec::{NonEmptyText, RunId};
use windlass_store::{RunSummary, Store};

use crate::assembly::BoundAgent;
use crate::binding::StoredBinding;
use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::options::{Attachment, Notice};
use crate::runs::answered;
use crate::service::Service;

/// The file that every worker of a data directory holds a shared lock on.
const LOCK: &str = "worker.lock";

/// How often a worker looks for runs.
const PERIOD: Duration = Duration::from_millis(200);

/// How often it ends the questions that nobody answered in time.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);

/// How long a run is left alone that could not be bound or driven.
const BACK_OFF: Duration = Duration::from_secs(30);

/// How a worker works.
#[derive(Clone)]
pub struct WorkerOptions {
    /// How many runs it drives at the same time, at least 1.
    pub jobs: usize,
    /// Stops it: `after_step` lets the steps under way end, `at_once` breaks them off. Either way its runs
    /// are not cancelled but left to the next worker.
    pub stop: Stop,
    /// Whether it stops by itself when there is nothing to do.
    pub until_idle: bool,
    /// Is told what happens in the runs it drives.
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
    /// If that cannot be found out.
    pub fn has_worker(&self) -> Result<bool, ServiceError> {
        is_locked(&self.data_directory()?.join(LOCK))
    }

    /// Drives the runs of this store that can go on: a decision arrived, an undo window is over, a question
    /// expired, or their process died. Only runs that can be bound here to the same things are taken; the
    /// others are reported once and left. Runs that a person stopped wait for `runs resume`.
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
        let _lock = lock_shared(&self.data_directory()?.join(LOCK))?;
        let mut worker = Worker {
            service: self.clone(),
            store: self.store()?,
            tenant: identity.tenant().clone(),
            left_alone: HashMap::new(),
            driving: HashSet::new(),
            running: JoinSet::new(),
            options,
        };
        worker.work().await
    }

    /// Binds a stored run to the things it was bound to, or says why that cannot be done here.
    pub(crate) fn bind_identically(
        &self,
        identity: &Identity,
        run: &Run,
    ) -> Result<BoundAgent, String> {
        let mut options = match StoredBinding::of(run) {
            StoredBinding::Options(options) => *options,
            StoredBinding::Program(program) => {
                let program = program.map(|program| format!(" `{program}`"));
                return Err(format!(
                    "waiting for its program{}: its tools are functions of that program",
                    program.unwrap_or_default()
                ));
            }
        };
        let store = self.store().map_err(|error| error.to_string())?;
        options.answered = answered(&store, run).map_err(|error| error.to_string())?;
        let Some(stored) = options.binding.clone() else {
            return Err("it was stored without what it was bound to".to_owned());
        };
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

/// A worker at work.
struct Worker {
    service: Service,
    store: Arc<Store>,
    tenant: NonEmptyText,
    /// Runs that could not be bound or driven, and until when they are left alone.
    left_alone: HashMap<RunId, Instant>,
    driving: HashSet<RunId>,
    running: JoinSet<(RunId, Result<Run, ServiceError>)>,
    options: WorkerOptions,
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
                    if let Ok((run, result)) = done {
                        self.settle(run, result);
                    }
                }
                () = after_step.cancelled() => {}
                () = at_once.cancelled() => {}
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
        self.stop_runs().await
    }

    /// Lets the runs end their step, or breaks it off, and leaves them to the next worker.
    async fn stop_runs(&mut self) -> Result<(), ServiceError> {
        let at_once = self.options.stop.at_once.clone();
        let mut left = self.driving.clone();
        loop {
            let done = tokio::select! {
                done = self.running.join_next() => done,
                () = at_once.cancelled(), if !self.running.is_empty() => {
                    // As if the process had died: what is under way is settled when the run is resumed.
                    self.running.shutdown().await;
                    None
                }
            };
            let Some(done) = done else {
                break;
            };
            if let Ok((run, result)) = done {
                if result.as_ref().is_ok_and(|run| run.standing().is_some()) {
                    left.remove(&run);
                }
                self.settle(run, result);
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

    /// Takes the runs that can go on, as many as may be driven. Whether it took any.
    async fn take_runs(&mut self) -> Result<bool, ServiceError> {
        let (store, now) = (Arc::clone(&self.store), self.service.now());
        let found = tokio::task::spawn_blocking(move || store.resumable(now)).await;
        let found = found.map_err(|error| ServiceError::failed(error.to_string()))??;
        let mut has_taken = false;
        for found in found {
            if self.running.len() >= self.options.jobs.max(1) {
                break;
            }
            let is_let_go =
                found.reason == ResumeReason::OwnerGone && self.store.was_let_go(&found.run);
            let is_left_alone = self
                .left_alone
                .get(&found.run)
                .is_some_and(|until| Instant::now() < *until);
            if is_let_go
                || is_left_alone
                || found.tenant != self.tenant.as_str()
                || self.driving.contains(&found.run)
            {
                continue;
            }
            has_taken |= self.take(&found.run, found.reason);
        }
        Ok(has_taken)
    }

    /// Takes one run, if it can be bound as it was.
    fn take(&mut self, run: &RunId, reason: ResumeReason) -> bool {
        let bound = self.bind(run);
        let (bound, identity) = match bound {
            Ok(bound) => bound,
            Err(why) => {
                let is_news = self.leave_alone(run.clone());
                if is_news {
                    self.service.notify(&Notice::RunNotTaken {
                        run: run.clone(),
                        reason: why,
                    });
                }
                return false;
            }
        };
        self.service.notify(&Notice::RunTaken {
            run: run.clone(),
            reason: reason.as_str(),
        });
        self.driving.insert(run.clone());
        let attachment = Attachment {
            // Who stops the worker does not cancel its runs.
            stop: Stop {
                after_step: self.options.stop.after_step.clone(),
                ..Stop::default()
            },
            watch: self.options.watch.clone(),
            ..Attachment::default()
        };
        let run = run.clone();
        self.running.spawn(async move {
            let result = match bound.driver(&identity, attachment) {
                Ok(driver) => driver.resume(&run).await.map_err(driven),
                Err(error) => Err(error),
            };
            (run, result)
        });
        true
    }

    fn bind(&self, run: &RunId) -> Result<(BoundAgent, Identity), String> {
        let folded = self.store.fold(run).map_err(|error| error.to_string())?;
        let summary = self.store.summary(run).map_err(|error| error.to_string())?;
        let identity = owner(&summary)?;
        let bound = self.service.bind_identically(&identity, &folded)?;
        Ok((bound, identity))
    }

    fn settle(&mut self, run: RunId, result: Result<Run, ServiceError>) {
        self.driving.remove(&run);
        match result {
            Ok(_) => {
                self.left_alone.remove(&run);
            }
            // Another process has it now, or it has ended.
            Err(error) if error.code() == "owned_elsewhere" => {}
            Err(error) => {
                if self.leave_alone(run.clone()) {
                    self.service.notify(&Notice::RunNotTaken {
                        run,
                        reason: error.to_string(),
                    });
                }
            }
        }
    }

    /// Leaves a run alone for a while. Whether that is new.
    fn leave_alone(&mut self, run: RunId) -> bool {
        let until = Instant::now() + BACK_OFF;
        self.left_alone.insert(run, until).is_none()
    }
}

fn driven(error: DriveError) -> ServiceError {
    match error {
        DriveError::Durable(DurableError::OwnedElsewhere(_) | DurableError::RunEnded(_)) => {
            ServiceError::conflict("owned_elsewhere", error.to_string())
        }
        other => other.into(),
    }
}

/// On whose behalf a run acts, whoever drives it.
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
