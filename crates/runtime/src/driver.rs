//! Drives the run machine: does what it says is next and tells it what came of it. Everything that
//! happens goes through the journal first, so another process can take the run up where this one
//! stopped.

mod calls;
mod gate;
mod learning;
mod offering;
mod plans;
mod spans;
mod waiting;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use windlass_core::durable::{AtomicWrite, Durability};
use windlass_core::gate::Rules;
use windlass_core::model::{ModelErrorKind, ModelRequest};
use windlass_core::redact::RedactedEvent;
use windlass_core::run::{Event, FoldError, Next, PermitError, Run, Settings, Task};
use windlass_model::ModelEvent;
use windlass_spec::{AgentName, CallId, CallState, RunId};
use windlass_store::crash_point;

use self::spans::TurnSpan;
use self::waiting::{Goes, LOOK, Put};
use crate::crew::{Crew, CrewError, Worker};
use crate::durable::{Durable, DurableError, Journal, TakenOver};
use crate::gap::during_run;
use crate::limiter::Limiter;
use crate::playbook::PlaybookPort;
use crate::progress::{Progress, Watch, watch_nothing};
use crate::recording::{record, record_with};

pub use self::waiting::{Asked, Asker, Patience};

/// Why a run could not be driven on. Its journal is as it was.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The journal cannot be written or read.
    #[error("the journal cannot be used: {0}")]
    Durable(DurableError),
    /// There is no such run.
    #[error("there is no run `{0}`")]
    NoSuchRun(RunId),
    /// Nobody of that name is there.
    #[error("the run is the work of the agent `{0}`, who is not in the crew")]
    NoSuchWorker(AgentName),
    /// The machine refused an event, which is a defect, or the journal is damaged.
    #[error("the run refused an event: {0}")]
    Fold(FoldError),
    /// The rules for the agent's calls cannot be used.
    #[error(transparent)]
    Rules(#[from] CrewError),
    /// A permit was refused, which is a defect.
    #[error(transparent)]
    Permit(#[from] PermitError),
}

// Both tell their cause in their own words, so it is not told again as a source.
impl From<DurableError> for DriveError {
    fn from(error: DurableError) -> Self {
        Self::Durable(error)
    }
}

impl From<FoldError> for DriveError {
    fn from(error: FoldError) -> Self {
        Self::Fold(error)
    }
}

/// How a run is stopped by hand.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// After what is under way now. The run is left as it is then, to be taken up again.
    pub after_step: CancellationToken,
    /// At once, for good: what is under way is broken off and the run is cancelled.
    pub at_once: CancellationToken,
}

/// What is to be done.
#[derive(Debug, Clone, Default)]
pub struct NewTask {
    /// The task's id, if whoever set it gave it one.
    pub task_id: Option<String>,
    /// The task.
    pub task: Task,
    /// Its limits.
    pub settings: Settings,
    /// How the crew was put to work, for whoever takes the run up again.
    pub assembly: Map<String, Value>,
}

/// A run whose start is recorded and that is not driven yet. If it is dropped, it waits until it is resumed.
pub struct BegunRun {
    run: Run,
    journal: Box<dyn Journal>,
}

impl BegunRun {
    /// The run's id.
    #[must_use]
    pub fn id(&self) -> &RunId {
        self.run.id()
    }
}

impl fmt::Debug for BegunRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BegunRun")
            .field("run", self.run.id())
            .finish_non_exhaustive()
    }
}

/// Works on tasks, one or many at the same time.
#[derive(Clone)]
pub struct Driver {
    crew: Arc<Crew>,
    limiter: Arc<Limiter>,
    durable: Arc<dyn Durable>,
    stop: Stop,
    watch: Watch,
    patience: Patience,
    asker: Option<Asker>,
    /// Held by the one irreversible call that runs, where runs go on beside each other for one plan.
    alone: Option<Arc<Mutex<()>>>,
    /// Where what runs teach is kept.
    playbooks: Option<Arc<dyn PlaybookPort>>,
    /// Whether runs that are over are learned from only when [`Driver::learn`] says so.
    learns_later: bool,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("crew", &self.crew)
            .finish_non_exhaustive()
    }
}

impl Driver {
    /// A driver with nobody watching.
    pub fn new(crew: impl Into<Arc<Crew>>, durable: Arc<dyn Durable>) -> Self {
        Self {
            playbooks: durable.playbooks(),
            learns_later: false,
            crew: crew.into(),
            limiter: Arc::default(),
            durable,
            stop: Stop::default(),
            watch: watch_nothing(),
            patience: Patience::default(),
            asker: None,
            alone: None,
        }
    }

    /// The same driver, stopped by this.
    #[must_use]
    pub fn stopped_by(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// The same driver, watched by this.
    #[must_use]
    pub fn watched_by(mut self, watch: Watch) -> Self {
        self.watch = watch;
        self
    }

    /// The same driver, which puts questions to a person who is there.
    #[must_use]
    pub fn asking(mut self, asker: Asker) -> Self {
        self.asker = Some(asker);
        self
    }

    /// The same driver, which waits for people as long as this.
    #[must_use]
    pub fn waiting(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// The same driver, which keeps what runs teach here.
    #[must_use]
    pub fn with_playbooks(mut self, playbooks: Arc<dyn PlaybookPort>) -> Self {
        self.playbooks = Some(playbooks);
        self
    }

    /// The same driver, which learns from runs only when [`Driver::learn`] says so: in an order that does
    /// not depend on which is done first.
    #[must_use]
    pub fn learning_later(mut self) -> Self {
        self.learns_later = true;
        self
    }

    /// Who works.
    #[must_use]
    pub fn crew(&self) -> &Arc<Crew> {
        &self.crew
    }

    /// Drives a new run to its end, or until it is stopped after a step; then it has none.
    ///
    /// # Errors
    /// If the journal cannot be written. The run can be taken up again later.
    pub async fn start(&self, new: NewTask) -> Result<Run, DriveError> {
        self.drive(self.begin(new).await?).await
    }

    /// Records the start of a new run, which has an id from then on. [`Driver::drive`] drives it.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub async fn begin(&self, new: NewTask) -> Result<BegunRun, DriveError> {
        let lead = self.crew.lead();
        let started = Event::Started {
            run: self.durable.new_id()?,
            agent: Box::new(lead.agent.clone()),
            agents: self.crew.declarations(),
            assembly: new.assembly,
            parent: None,
            holds: None,
            task: new.task,
            settings: new.settings,
            at: self.durable.now(),
        };
        self.record_start(new.task_id, started).await
    }

    /// Drives a run that was begun to its end, or until it is stopped after a step; then it has none.
    ///
    /// # Errors
    /// If the journal cannot be written. The run can be resumed later.
    pub async fn drive(&self, begun: BegunRun) -> Result<Run, DriveError> {
        self.finish(self.drive_of(begun.run, begun.journal)?).await
    }

    /// Drives a run that was begun before, as [`Driver::start`] does. One that has ended is only read
    /// back.
    ///
    /// # Errors
    /// If there is no such run, somebody else is at it, or the journal cannot be used.
    pub async fn resume(&self, run: &RunId) -> Result<Run, DriveError> {
        let taken = self.durable.take_over(run).await?;
        let taken = taken.ok_or_else(|| DriveError::NoSuchRun(run.clone()))?;
        self.go_on(taken).await
    }

    async fn record_start(
        &self,
        task_id: Option<String>,
        started: Event,
    ) -> Result<BegunRun, DriveError> {
        let (started, journal) = self.durable.start(task_id, started).await?;
        let run = Run::fold([&started])?;
        (self.watch)(run.id(), Progress::Event(&started));
        Ok(BegunRun { run, journal })
    }

    async fn go_on(&self, taken: TakenOver) -> Result<Run, DriveError> {
        let run = Run::fold(&taken.events)?;
        let Some(journal) = taken.journal else {
            return Ok(run);
        };
        let mut drive = self.drive_of(run, journal)?;
        if drive.run.end().is_none() {
            let at = self.durable.now();
            drive
                .record(Event::Resumed { at }, Durability::Relaxed)
                .await?;
            // Somebody may have stopped it while nobody was at it.
            drive.take_commands().await?;
        }
        self.finish(drive).await
    }

    fn drive_of(&self, run: Run, journal: Box<dyn Journal>) -> Result<Drive<'_>, DriveError> {
        let name = run.agent().name();
        let worker = self.crew.get(name);
        let worker = worker.ok_or_else(|| DriveError::NoSuchWorker(name.clone()))?;
        Ok(Drive {
            driver: self,
            worker,
            rules: self.crew.rules(name)?,
            run,
            journal,
            fresh: HashMap::new(),
            parked: HashSet::new(),
            offered: None,
            has_recalled: false,
            put: Put::new(),
        })
    }

    async fn finish(&self, mut drive: Drive<'_>) -> Result<Run, DriveError> {
        let span = spans::run(&drive.run);
        drive.until_it_ends().instrument(span).await?;
        let Drive { run, .. } = drive;
        (self.watch)(run.id(), Progress::Done(&run));
        Ok(run)
    }
}

/// One run in the hands of a driver.
struct Drive<'d> {
    driver: &'d Driver,
    worker: &'d Worker,
    rules: Arc<Rules>,
    run: Run,
    journal: Box<dyn Journal>,
    /// Calls that were decided about in this process and have not waited since, and whether a tool that
    /// kept failing is tried again by them.
    fresh: HashMap<CallId, bool>,
    /// Calls that this process keeps open while a person fills in what they ask for.
    parked: HashSet<CallId>,
    /// Under which rules, and after how many finds, it was last decided what the model is shown.
    offered: Option<(Arc<Rules>, usize)>,
    /// Whether strategies were looked for.
    has_recalled: bool,
    /// Questions that were put to a person who is there, and left open by them.
    put: Put,
}

impl Drive<'_> {
    async fn until_it_ends(&mut self) -> Result<(), DriveError> {
        let mut turn = TurnSpan::new();
        loop {
            let next = self.run.next();
            if !matches!(next, Next::Done(_)) {
                if self.driver.stop.at_once.is_cancelled() {
                    let at = self.driver.durable.now();
                    let event = Event::Cancelled { by: None, at };
                    self.record(event, Durability::Relaxed).await?;
                    continue;
                }
                if self.driver.stop.after_step.is_cancelled() {
                    if matches!(next, Next::Wait(waiting) if waiting.for_person) {
                        self.leave_waiting().await?;
                    }
                    return Ok(());
                }
            }
            let turn = turn.of(&self.run, &next);
            let goes = match next {
                Next::CallModel(request) => {
                    // What it is shown may have changed; then the request is made anew.
                    if !self.recall().await? && !self.offer().await? {
                        self.ask_model(&request).instrument(turn).await?;
                    }
                    Goes::On
                }
                Next::Gate(calls) => {
                    for call in &calls {
                        self.pass_gate(call).instrument(turn.clone()).await?;
                    }
                    Goes::On
                }
                Next::RunCalls(calls) => self.run_calls(&calls).instrument(turn).await?,
                Next::Wait(waiting) => self.wait(waiting).await?,
                Next::Done(end) => {
                    self.stop_children().await?;
                    if let Some(gap) = during_run(&self.run) {
                        // Kept before the end: a run that is over is not taken up again.
                        let who = self.journal.who();
                        self.driver.durable.note_gap(&self.run, who, gap).await?;
                    }
                    if !self.driver.learns_later && self.driver.is_learning() {
                        // What is learned from must have happened, whoever dies now.
                        self.journal.sync().await?;
                        self.driver.learn(&self.run).await;
                    }
                    self.journal.end(&end).await?;
                    return Ok(());
                }
            };
            if goes == Goes::Away {
                return Ok(());
            }
        }
    }

    /// Stops the runs of sub-agents and of tasks that still work for this one, which is over: nobody would go on
    /// with them. One that another process has in hand is left to that.
    async fn stop_children(&self) -> Result<(), DriveError> {
        let under_way = self.run.calls();
        let under_way = under_way.filter(|call| call.state() == CallState::Running);
        let children: Vec<RunId> = under_way
            .filter_map(|call| self.run.child_run(call))
            .chain(self.run.task_runs())
            .collect();
        for child in children {
            let stop = Stop::default();
            stop.at_once.cancel();
            let driver = self.driver.clone().stopped_by(stop);
            if let Ok(Some(taken)) = self.driver.durable.take_over(&child).await {
                Box::pin(driver.go_on(taken)).await?;
            }
        }
        Ok(())
    }

    /// Records an event: applies and stores it without secrets. After an error the run must not be used
    /// any more, which is why every caller gives up.
    async fn record(&mut self, event: Event, durability: Durability) -> Result<(), DriveError> {
        let event = record(&mut self.run, &mut *self.journal, event, durability).await?;
        (self.driver.watch)(self.run.id(), Progress::Event(event.event()));
        Ok(())
    }

    /// Records an event together with a write, both or neither. Returns false, with the run as before, if
    /// another process was faster.
    async fn record_with(&mut self, event: Event, write: AtomicWrite) -> Result<bool, DriveError> {
        let event = self.journal.redact(event)?;
        self.record_redacted_with(event, write).await
    }

    async fn record_redacted_with(
        &mut self,
        event: RedactedEvent,
        write: AtomicWrite,
    ) -> Result<bool, DriveError> {
        let recorded = record_with(&mut self.run, &mut *self.journal, event, write).await?;
        if let Some(event) = &recorded {
            (self.driver.watch)(self.run.id(), Progress::Event(event.event()));
        }
        Ok(recorded.is_some())
    }

    async fn ask_model(&mut self, request: &ModelRequest) -> Result<(), DriveError> {
        let turn = self.run.current_turn();
        if let Some(answer) = self.run.own_answer() {
            let at = self.driver.durable.now();
            let event = Event::ModelAnswered { turn, answer, at };
            return self.record(event, Durability::Relaxed).await;
        }
        let cancel = self.driver.stop.at_once.child_token();
        crash_point!("model.before");
        let span = spans::model_request(&self.run, self.worker.model.name(), request);
        let answer = {
            let (watch, id) = (&self.driver.watch, self.run.id());
            let mut events = |event: ModelEvent| watch(id, Progress::Model(&event));
            let answer = self.worker.model.answer(request, &cancel, &mut events);
            let answer = answer.instrument(span.clone());
            let mut answer = std::pin::pin!(answer);
            loop {
                let left = self.run.time_left(self.driver.durable.now());
                let left = left.unwrap_or(Duration::MAX);
                match tokio::time::timeout(left.min(LOOK), &mut answer).await {
                    Ok(answer) => {
                        spans::record_answer(&span, &answer);
                        break Some(answer);
                    }
                    Err(_) if left <= LOOK => break None,
                    Err(_) => {
                        if !cancel.is_cancelled() && self.is_to_be_cancelled().await? {
                            cancel.cancel();
                        }
                    }
                }
            }
        };
        crash_point!("model.after");
        if cancel.is_cancelled() && !self.driver.stop.at_once.is_cancelled() {
            self.take_commands().await?;
            return Ok(());
        }
        let at = self.driver.durable.now();
        let event = match answer {
            None => Event::TimePassed { at },
            Some(Ok(answer)) => Event::ModelAnswered { turn, answer, at },
            Some(Err(error)) if error.kind == ModelErrorKind::Cancelled => {
                Event::Cancelled { by: None, at }
            }
            Some(Err(error)) => Event::ModelFailed {
                turn,
                kind: error.kind,
                message: error.message,
                at,
            },
        };
        // If it is lost in a crash, the model is asked again; what was done because of it is kept
        // only after it.
        self.record(event, Durability::Relaxed).await
    }
}
