//! Experiments that a front end drives in the background: where they are, and their findings. They are known to this
//! process. Their runs are in the store, so that an experiment can be continued after the process ended.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use windlass_runtime::Stop;
use windlass_spec::Timestamp;

use super::{Experiment, ExperimentFindings};
use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::names::not_known;
use crate::service::{Service, lock};

/// How many experiments run at the same time.
const MAX_RUNNING: usize = 8;

/// How many experiments are known after their end.
const MAX_ENDED: usize = 100;

/// The name that no experiment has, because the API has another object there.
const RESERVED: &str = "variants";

windlass_spec::word_set! {
    /// Where an experiment is.
    ExperimentState, "state" {
        /// Its pairs run.
        Running = "running",
        /// All pairs ran.
        Done = "done",
        /// Some runs wait for a person. Resume the experiment when they have ended.
        Waiting = "waiting",
        /// It was stopped before all pairs ran. It can be resumed.
        Stopped = "stopped",
        /// It failed.
        Failed = "failed",
    }
}

/// An experiment that was begun in this process.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentStatus {
    /// Its name.
    pub name: String,
    /// The agent.
    pub agent: String,
    /// Who began it.
    pub principal: String,
    /// Where it is.
    pub state: ExperimentState,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How many pairs of runs it has.
    pub pairs: usize,
    /// How many of them were run, or found in the store.
    pub pairs_done: usize,
    /// Its findings, after its end.
    pub findings: Option<ExperimentFindings>,
    /// Why it failed.
    pub error: Option<ServiceError>,
}

/// The experiments of this process, in the order in which they began.
pub(crate) type StartedExperiments = Mutex<Vec<Arc<StartedExperiment>>>;

#[derive(Debug)]
pub(crate) struct StartedExperiment {
    tenant: String,
    /// What names the request that began it.
    request: Option<String>,
    name: String,
    agent: String,
    principal: String,
    started_at: Timestamp,
    pairs: usize,
    pairs_done: AtomicUsize,
    stop: Stop,
    end: Mutex<Option<End>>,
}

#[derive(Debug, Clone)]
struct End {
    at: Timestamp,
    result: Result<Option<ExperimentFindings>, ServiceError>,
}

impl StartedExperiment {
    fn status(&self) -> ExperimentStatus {
        let end = lock(&self.end).clone();
        let (ended_at, result) = match end {
            Some(End { at, result }) => (Some(at), Some(result)),
            None => (None, None),
        };
        let state = match &result {
            None => ExperimentState::Running,
            Some(Err(_)) => ExperimentState::Failed,
            Some(Ok(None)) => ExperimentState::Stopped,
            Some(Ok(Some(findings))) => {
                let pairs = &findings.pairs;
                match (pairs.waiting, pairs.not_done) {
                    (_, 1..) if !findings.is_stopped_early => ExperimentState::Stopped,
                    (1.., _) => ExperimentState::Waiting,
                    _ => ExperimentState::Done,
                }
            }
        };
        let (findings, error) = match result {
            Some(Ok(findings)) => (findings, None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        ExperimentStatus {
            name: self.name.clone(),
            agent: self.agent.clone(),
            principal: self.principal.clone(),
            state,
            started_at: self.started_at,
            ended_at,
            pairs: self.pairs,
            pairs_done: self.pairs_done.load(Ordering::Relaxed),
            findings,
            error,
        }
    }

    fn is_running(&self) -> bool {
        lock(&self.end).is_none()
    }
}

/// An experiment that was begun and is not driven yet. If it is dropped, it is stopped.
#[derive(Debug)]
pub struct BegunExperiment {
    experiment: Experiment,
    started: Arc<StartedExperiment>,
    service: Service,
}

impl BegunExperiment {
    /// Where it is.
    #[must_use]
    pub fn status(&self) -> ExperimentStatus {
        self.started.status()
    }

    /// Runs it until it has ended or is stopped. Its status then has the findings.
    pub async fn drive(self) {
        let pair_done = || {
            self.started.pairs_done.fetch_add(1, Ordering::Relaxed);
        };
        let result = self.experiment.run(&self.started.stop, pair_done).await;
        self.end(result.map(Some));
    }

    fn end(&self, result: Result<Option<ExperimentFindings>, ServiceError>) {
        let at = self.service.now();
        lock(&self.started.end).get_or_insert(End { at, result });
    }
}

impl Drop for BegunExperiment {
    fn drop(&mut self) {
        self.end(Ok(None));
    }
}

impl Service {
    /// Begins an experiment that a front end drives in the background, until it ends or `stop` is cancelled. `request`
    /// names the request that begins it, for [`Service::experiment_of_request`].
    ///
    /// # Errors
    /// If it runs already, too many run, or its name is reserved.
    pub fn begin_experiment(
        &self,
        identity: &Identity,
        experiment: Experiment,
        request: Option<String>,
        stop: &Stop,
    ) -> Result<BegunExperiment, ServiceError> {
        identity.require(Scope::Run)?;
        let name = experiment.name().to_owned();
        if name == RESERVED {
            let message = format!("an experiment cannot have the name `{name}`");
            return Err(ServiceError::invalid("name_taken", message));
        }
        let tenant = identity.tenant().to_string();
        let mut all = lock(self.started_experiments());
        let is_same = |one: &Arc<StartedExperiment>| one.tenant == tenant && one.name == name;
        if all.iter().any(|one| is_same(one) && one.is_running()) {
            let message = format!("the experiment `{name}` is running");
            return Err(ServiceError::conflict("experiment_running", message)
                .with_hint("wait until it ends, or stop it"));
        }
        let running = all.iter().filter(|one| one.is_running()).count();
        if running >= MAX_RUNNING {
            let message = format!("{running} experiments are running");
            return Err(ServiceError::conflict("too_many_experiments", message)
                .with_hint("wait until one of them ends"));
        }
        all.retain(|one| !is_same(one));
        if all.len() >= MAX_ENDED
            && let Some(oldest) = all.iter().position(|one| !one.is_running())
        {
            all.remove(oldest);
        }
        let started = Arc::new(StartedExperiment {
            tenant,
            request,
            name,
            agent: experiment.agent().to_owned(),
            principal: identity.principal().to_string(),
            started_at: self.now(),
            pairs: experiment.pairs(),
            pairs_done: AtomicUsize::new(0),
            stop: Stop {
                after_step: stop.after_step.child_token(),
                at_once: stop.at_once.child_token(),
            },
            end: Mutex::default(),
        });
        all.push(Arc::clone(&started));
        Ok(BegunExperiment {
            experiment,
            started,
            service: self.clone(),
        })
    }

    /// The experiments of the tenant that were begun in this process, the latest first.
    ///
    /// # Errors
    /// If the identity may not read.
    pub fn list_experiments(
        &self,
        identity: &Identity,
    ) -> Result<Vec<ExperimentStatus>, ServiceError> {
        identity.require(Scope::Read)?;
        let tenant = identity.tenant().as_str();
        let all = lock(self.started_experiments());
        let own = all.iter().rev().filter(|one| one.tenant == tenant);
        Ok(own.map(|one| one.status()).collect())
    }

    /// The experiment with that name, if it was begun in this process.
    ///
    /// # Errors
    /// If the identity may not read, or there is none.
    pub fn show_experiment(
        &self,
        identity: &Identity,
        name: &str,
    ) -> Result<ExperimentStatus, ServiceError> {
        let all = self.list_experiments(identity)?;
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        let missing = || {
            not_known(
                "no_such_experiment",
                "experiment",
                name,
                &names,
                "this server",
            )
            .with_hint(
                "an experiment of before a restart is continued by starting it again with `resume`",
            )
        };
        let found = all.iter().find(|one| one.name == name).cloned();
        found.ok_or_else(missing)
    }

    /// The experiment that this request began in this process, if it did.
    ///
    /// # Errors
    /// If the identity may not read.
    pub fn experiment_of_request(
        &self,
        identity: &Identity,
        request: &str,
    ) -> Result<Option<ExperimentStatus>, ServiceError> {
        identity.require(Scope::Read)?;
        let tenant = identity.tenant().as_str();
        let all = lock(self.started_experiments());
        let mut own = all.iter().filter(|one| one.tenant == tenant);
        let found = own.find(|one| one.request.as_deref() == Some(request));
        Ok(found.map(|one| one.status()))
    }

    /// Stops an experiment after the present steps of its runs. What it has is kept, so that it can be resumed.
    ///
    /// # Errors
    /// If the identity may not run agents, or there is no such experiment.
    pub fn stop_experiment(
        &self,
        identity: &Identity,
        name: &str,
    ) -> Result<ExperimentStatus, ServiceError> {
        identity.require(Scope::Run)?;
        let shown = self.show_experiment(identity, name)?;
        let tenant = identity.tenant().as_str();
        let all = lock(self.started_experiments());
        for one in all
            .iter()
            .filter(|one| one.tenant == tenant && one.name == name)
        {
            one.stop.after_step.cancel();
        }
        Ok(shown)
    }
}
