//! Drives the run machine: takes the next step, performs it, and applies the resulting events. All
//! events go through the journal, so another process can resume the run where this one stopped.
//!
//! An event is redacted once, applied to the run, and stored ([`record`]). It is applied first, so that an event
//! that does not fit never reaches the journal: what is stored must fold again. If it then cannot be stored, the
//! run is ahead of its journal. After an error it must not be used any more, and every caller gives up. After a
//! refusal, because another process was faster, the run is restored from the journal. That is rare and reads the
//! journal once more; the usual case copies nothing, however long the run is.

mod budget;
mod calls;
mod gate;
#[cfg_attr(not(feature = "learn"), path = "without_learn/driver_learning.rs")]
mod learning;
mod offering;
mod outside;
mod plans;
mod proof;
mod spans;
mod stops;
mod waiting;

use std::collections::{BTreeMap, HashMap, HashSet};
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
use windlass_core::run::{
    Entry, Event, FoldError, KeptTurns, Next, PermitError, Run, Settings, Task,
};
use windlass_model::ModelEvent;
use windlass_spawn::Isolation;
use windlass_spec::registry::{ContextError, Environment};
use windlass_spec::{AgentName, CallId, CallState, RunId};
use windlass_store::crash_point;
use windlass_tools::FileWatch;

use self::outside::Caller;
use self::spans::TurnSpan;
use self::waiting::{DeclinedQuestions, Flow, INBOX_POLL};
use crate::crew::{Crew, CrewError, CrewMember};
use crate::durable::{AppendOutcome, Durable, DurableError, Journal, TakenOver};
use crate::gap::during_run;
use crate::isolation::isolation;
use crate::limiter::Limiter;
use crate::playbook::PlaybookPort;
use crate::progress::{Progress, Watch, watch_nothing};

pub use self::outside::CallerAnswer;
pub use self::waiting::{AskOutcome, Asker, WaitPolicy};
pub(crate) use self::waiting::{Misfit, take_command};

/// The most turns of a run that is learned from. What a longer one did is no strategy that a model can follow,
/// and comparing all its calls takes long.
const MAX_LEARNED_TURNS: usize = 1_000;

/// Why a run could not be driven on. Its journal is as it was.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The journal cannot be written or read.
    #[error("the journal cannot be used: {0}")]
    Durable(DurableError),
    /// There is no such run.
    #[error("there is no run `{0}`")]
    NoSuchRun(RunId),
    /// The crew has no agent of that name.
    #[error("the run belongs to the agent `{0}`, which is not in this crew")]
    NotInCrew(AgentName),
    /// The machine refused an event, which is a defect, or the journal is damaged.
    #[error("the run refused an event: {0}")]
    Fold(FoldError),
    /// The task's context is invalid.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The rules for the agent's calls cannot be used.
    #[error(transparent)]
    Rules(#[from] CrewError),
    /// A permit was refused, which is a defect.
    #[error(transparent)]
    Permit(#[from] PermitError),
}

// The messages of both include their cause, so it is not a source as well.
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
    /// Stops after the current step. The run stays open and can be resumed.
    pub after_step: CancellationToken,
    /// Stops at once: the current step is aborted and the run is cancelled.
    pub at_once: CancellationToken,
}

/// A task to start a run for.
#[derive(Debug, Clone, Default)]
pub struct NewTask {
    /// The id of the run, if it was chosen before; a new one otherwise.
    pub run: Option<RunId>,
    /// The task's id, if its sender gave it one.
    pub task_id: Option<String>,
    /// The task.
    pub task: Task,
    /// Its limits.
    pub settings: Settings,
    /// How the crew was assembled, for the process that resumes the run.
    pub assembly: Map<String, Value>,
}

/// A run whose start is recorded and that is not driven yet. If it is dropped, it waits until it is resumed.
pub struct RecordedStart {
    run: Run,
    journal: Box<dyn Journal>,
}

impl RecordedStart {
    /// The run's id.
    #[must_use]
    pub fn id(&self) -> &RunId {
        self.run.id()
    }
}

impl fmt::Debug for RecordedStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedStart")
            .field("run", self.run.id())
            .finish_non_exhaustive()
    }
}

/// Drives runs, one or many at the same time.
#[derive(Clone)]
pub struct Driver {
    crew: Arc<Crew>,
    limiter: Arc<Limiter>,
    durable: Arc<dyn Durable>,
    stop: Stop,
    watch: Watch,
    wait_policy: WaitPolicy,
    asker: Option<Asker>,
    /// Held by the one irreversible call that executes, across the concurrent runs of one plan.
    irreversible_lock: Option<Arc<Mutex<()>>>,
    /// Where the strategies learned from runs are stored.
    playbooks: Option<Arc<dyn PlaybookPort>>,
    /// Whether finished runs are learned from only when [`Driver::learn`] is called.
    learns_later: bool,
    /// Whether runs are returned with the turns that the model is not shown any more.
    reads_back: bool,
    /// The files that govern the agents.
    watched: Option<FileWatch>,
    /// What the journal of the run lost that the driven runs work for.
    damage: Option<String>,
    /// The agents of the runs that the driven runs work for.
    outer_agents: Vec<AgentName>,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("crew", &self.crew)
            .finish_non_exhaustive()
    }
}

impl Driver {
    /// How the programs of its crew are isolated.
    pub(crate) fn isolation(&self) -> Isolation {
        let kept = self.watched.iter().flat_map(FileWatch::paths);
        isolation(self.crew.intake().isolation, self.durable.data()).keeping(kept.cloned())
    }

    /// The same driver, whose programs cannot change these files unnoticed.
    #[must_use]
    pub fn watching_files(mut self, watch: FileWatch) -> Self {
        self.watched = Some(watch);
        self
    }

    /// The files that programs must not change.
    pub(crate) fn watched(&self) -> Option<FileWatch> {
        self.watched.clone()
    }

    /// A driver without a watcher.
    pub fn new(crew: impl Into<Arc<Crew>>, durable: Arc<dyn Durable>) -> Self {
        Self {
            playbooks: durable.playbooks(),
            learns_later: false,
            reads_back: false,
            watched: None,
            crew: crew.into(),
            limiter: Arc::default(),
            durable,
            stop: Stop::default(),
            watch: watch_nothing(),
            wait_policy: WaitPolicy::default(),
            asker: None,
            irreversible_lock: None,
            damage: None,
            outer_agents: Vec::new(),
        }
    }

    /// The same driver, for the runs that work for this one. What stops the agent of this one stops theirs. If its journal
    /// lost entries, theirs may be lost as a whole.
    fn working_for(mut self, run: &Run) -> Self {
        self.outer_agents.push(run.agent().name().clone());
        self.damage = run.damage().map(str::to_owned).or(self.damage);
        self
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

    /// The same driver, which asks an approver who is present.
    #[must_use]
    pub fn asking(mut self, asker: Asker) -> Self {
        self.asker = Some(asker);
        self
    }

    /// The same driver, with what it does when a run can only wait for a person.
    #[must_use]
    pub fn with_wait_policy(mut self, wait_policy: WaitPolicy) -> Self {
        self.wait_policy = wait_policy;
        self
    }

    /// The same driver, which learns from runs only when [`Driver::learn`] is called. The caller then
    /// chooses the order, whichever run ends first.
    #[must_use]
    pub fn learning_later(mut self) -> Self {
        self.learns_later = true;
        self
    }

    /// The same driver, which returns runs with all their turns, read back from the journal. Others return long runs
    /// without the turns that the model is not shown any more, so that memory does not grow with the length of a run.
    pub(crate) fn reading_back(mut self) -> Self {
        self.reads_back = true;
        self
    }

    /// The crew.
    #[must_use]
    pub fn crew(&self) -> &Arc<Crew> {
        &self.crew
    }

    /// Drives a new run to its end, or until it is stopped after a step. A stopped run has no end.
    ///
    /// # Errors
    /// As [`Driver::begin`]. A run whose journal could not be written can be resumed later.
    pub async fn start(&self, new: NewTask) -> Result<Run, DriveError> {
        self.drive(self.record_new(new).await?).await
    }

    /// Records the start of a new run, which has an id from then on: others see it when this returns, and a crash
    /// does not lose it. [`Driver::drive`] drives it.
    ///
    /// # Errors
    /// If the channel, the user or the thread of the task is malformed, or the journal cannot be written.
    pub async fn begin(&self, new: NewTask) -> Result<RecordedStart, DriveError> {
        let mut begun = self.record_new(new).await?;
        begun.journal.sync().await?;
        Ok(begun)
    }

    async fn record_new(&self, new: NewTask) -> Result<RecordedStart, DriveError> {
        let lead = self.crew.lead();
        new.task.context(Environment::DEVELOPMENT, [])?;
        let started = Event::Started {
            run: match new.run {
                Some(run) => run,
                None => self.durable.new_id()?,
            },
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

    /// Drives a run that was begun to its end, or until it is stopped after a step. A stopped run has no end.
    ///
    /// # Errors
    /// If the journal cannot be written. The run can be resumed later.
    pub async fn drive(&self, begun: RecordedStart) -> Result<Run, DriveError> {
        self.finish(self.new_drive(begun.run, begun.journal)?).await
    }

    /// Resumes a run and drives it as [`Driver::start`] does. One that has ended is only read back.
    ///
    /// # Errors
    /// If there is no such run, another process owns it, or the journal cannot be used.
    pub async fn resume(&self, run: &RunId) -> Result<Run, DriveError> {
        self.resume_accepting(run, BTreeMap::new()).await
    }

    /// Like [`Driver::resume`], and records the changed files that the user accepted, each with its digest.
    ///
    /// # Errors
    /// As [`Driver::resume`].
    pub async fn resume_accepting(
        &self,
        run: &RunId,
        accepted: BTreeMap<String, String>,
    ) -> Result<Run, DriveError> {
        let taken = self.durable.take_over(run).await?;
        let taken = taken.ok_or_else(|| DriveError::NoSuchRun(run.clone()))?;
        self.resume_taken(taken, accepted).await
    }

    async fn record_start(
        &self,
        task_id: Option<String>,
        mut started: Event,
    ) -> Result<RecordedStart, DriveError> {
        if let Event::Started {
            agent, settings, ..
        } = &mut started
        {
            let money = &self.crew.intake().money;
            let given = std::mem::take(settings);
            *settings = money.limit(given, agent.name(), &self.durable.identity()?);
        }
        let (started, mut journal) = self.durable.start(task_id, started).await?;
        let mut run = Run::fold([&started])?;
        (self.watch)(run.id(), Progress::Event(&started));
        if let Some(reason) = self.damage.clone() {
            let at = self.durable.now();
            let event = Event::JournalDamaged { reason, at };
            let event = record(&mut run, &mut *journal, event, Durability::Relaxed).await?;
            (self.watch)(run.id(), Progress::Event(event.event()));
        }
        Ok(RecordedStart { run, journal })
    }

    async fn resume_taken(
        &self,
        taken: TakenOver,
        accepted: BTreeMap<String, String>,
    ) -> Result<Run, DriveError> {
        match self.take_up(taken, accepted).await? {
            Ok(drive) => self.finish(drive).await,
            Err(run) => Ok(*run),
        }
    }

    /// Prepares to drive a run that was taken over; the run itself if it has ended.
    async fn take_up(
        &self,
        taken: TakenOver,
        accepted: BTreeMap<String, String>,
    ) -> Result<Result<Drive<'_>, Box<Run>>, DriveError> {
        let Some(journal) = taken.journal else {
            return Ok(Err(Box::new(taken.run)));
        };
        let mut drive = self.new_drive(taken.run, journal)?;
        if drive.run.end().is_none() {
            let damage = taken.damage.or_else(|| self.damage.clone());
            if let Some(reason) = damage.filter(|_| drive.run.damage().is_none()) {
                let at = self.durable.now();
                let event = Event::JournalDamaged { reason, at };
                drive.record(event, Durability::Relaxed).await?;
            }
            let at = self.durable.now();
            drive
                .record(Event::Resumed { accepted, at }, Durability::Relaxed)
                .await?;
            // It may have been stopped while no process drove it.
            drive.take_commands().await?;
        }
        Ok(Ok(drive))
    }

    fn new_drive(&self, run: Run, journal: Box<dyn Journal>) -> Result<Drive<'_>, DriveError> {
        let name = run.agent().name();
        let member = self.crew.get(name);
        let member = member.ok_or_else(|| DriveError::NotInCrew(name.clone()))?;
        Ok(Drive {
            driver: self,
            member,
            rules: self.crew.rules(name)?,
            run,
            journal,
            fresh: HashMap::new(),
            parked: HashSet::new(),
            offered: None,
            has_recalled: false,
            declined: DeclinedQuestions::new(),
            caller: Caller::default(),
        })
    }

    async fn finish(&self, mut drive: Drive<'_>) -> Result<Run, DriveError> {
        self.finish_drive(&mut drive).await?;
        Ok(drive.run)
    }

    async fn finish_drive(&self, drive: &mut Drive<'_>) -> Result<(), DriveError> {
        let span = spans::run(&drive.run);
        drive.drive_to_end().instrument(span).await?;
        if self.reads_back {
            drive.read_back().await?;
        }
        (self.watch)(drive.run.id(), Progress::Done(&drive.run));
        Ok(())
    }
}

/// One run that a driver drives.
struct Drive<'d> {
    driver: &'d Driver,
    member: &'d CrewMember,
    rules: Arc<Rules>,
    run: Run,
    journal: Box<dyn Journal>,
    /// Calls that were decided in this process and have not waited since, and whether each is the trial
    /// of a tool that kept failing.
    fresh: HashMap<CallId, bool>,
    /// Calls that this process keeps open while a person fills in their form.
    parked: HashSet<CallId>,
    /// The rules and the number of found tools for which the offered tools were last selected.
    offered: Option<(Arc<Rules>, usize)>,
    /// Whether strategies were looked for.
    has_recalled: bool,
    /// Questions that the present approver left open.
    declined: DeclinedQuestions,
    /// The program that makes the call, if it is not Windlass.
    caller: Caller,
}

impl Drive<'_> {
    async fn drive_to_end(&mut self) -> Result<(), DriveError> {
        let mut turn = TurnSpan::new();
        loop {
            self.run.release_turns();
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
                        self.suspend().await?;
                    }
                    return Ok(());
                }
                if !self.has_reported()
                    && let Some(stop) = self.stop_covering(None).await?
                {
                    match self.halt(stop).await? {
                        Flow::Continue => continue,
                        Flow::Yield => return Ok(()),
                    }
                }
            }
            let turn = turn.of(&self.run, &next);
            let flow = match next {
                Next::CallModel(request) => {
                    // If what it is shown has changed, the request is built again.
                    if !self.recall().await? && !self.offer().await? {
                        self.ask_model(&request).instrument(turn).await?;
                    }
                    Flow::Continue
                }
                Next::Gate(calls) => {
                    for call in &calls {
                        self.pass_gate(call).instrument(turn.clone()).await?;
                    }
                    Flow::Continue
                }
                Next::RunCalls(calls) if self.run.outside().is_some() => {
                    self.serve_call(&calls).instrument(turn).await?
                }
                Next::RunCalls(calls) => self.run_calls(&calls).instrument(turn).await?,
                Next::Wait(waiting) => self.wait(waiting).await?,
                Next::Done(end) => {
                    self.stop_children().await?;
                    if let Some(gap) = during_run(&self.run) {
                        // Stored before the end, because a run that is over is not resumed.
                        let who = self.journal.who();
                        self.driver.durable.note_gap(&self.run, who, gap).await?;
                    }
                    let is_learned = self.run.turn_count() <= MAX_LEARNED_TURNS
                        && !self.driver.learns_later
                        && self.driver.is_learning();
                    if is_learned {
                        // The events that are learned from must survive a crash.
                        self.journal.sync().await?;
                        self.read_back().await?;
                        self.driver.learn(&self.run).await;
                    }
                    self.journal.end(&end).await?;
                    return Ok(());
                }
            };
            if flow == Flow::Yield {
                return Ok(());
            }
        }
    }

    /// Cancels the open child runs of sub-agents and tasks of this run, which is over: nothing would resume
    /// them. A child that another process owns is left to that process.
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
                Box::pin(driver.resume_taken(taken, BTreeMap::new())).await?;
            }
        }
        Ok(())
    }

    /// Reads back the turns that were released, if any were.
    async fn read_back(&mut self) -> Result<(), DriveError> {
        if self.run.has_released_turns() {
            self.journal.sync().await?;
            let whole = self.journal.fold(KeptTurns::All).await?;
            self.run.restore(whole);
        }
        Ok(())
    }

    /// Records an event: applies and stores it without secrets. After an error the run must not be used
    /// any more, so every caller returns the error.
    async fn record(&mut self, event: Event, durability: Durability) -> Result<(), DriveError> {
        let event = record(&mut self.run, &mut *self.journal, event, durability).await?;
        (self.driver.watch)(self.run.id(), Progress::Event(event.event()));
        if matches!(event.event(), Event::ModelAnswered { .. }) {
            self.report_mistakes();
        }
        Ok(())
    }

    /// Reports the calls of the last turn that are mistakes.
    fn report_mistakes(&self) {
        let last = self.run.turns().last();
        for entry in last.iter().flat_map(|turn| &turn.entries) {
            if let Entry::Mistake { mistake, record } = entry {
                (self.driver.watch)(self.run.id(), Progress::Refused(record, mistake));
            }
        }
    }

    /// Records an event together with a write, both or neither. Returns false, with the run as before, if
    /// another process was faster.
    async fn record_with(&mut self, event: Event, write: AtomicWrite) -> Result<bool, DriveError> {
        self.record_with_all(event, vec![write]).await
    }

    /// Records an event together with these writes, as [`Drive::record_with`] does.
    async fn record_with_all(
        &mut self,
        event: Event,
        writes: Vec<AtomicWrite>,
    ) -> Result<bool, DriveError> {
        let event = self.journal.redact(event)?;
        self.record_redacted_with(event, writes).await
    }

    async fn record_redacted_with(
        &mut self,
        event: RedactedEvent,
        writes: Vec<AtomicWrite>,
    ) -> Result<bool, DriveError> {
        self.run.apply(event.event())?;
        let recorded = store_applied(&mut self.run, &mut *self.journal, event, writes).await?;
        if let Some(event) = &recorded {
            (self.driver.watch)(self.run.id(), Progress::Event(event.event()));
        }
        Ok(recorded.is_some())
    }

    async fn ask_model(&mut self, request: &ModelRequest) -> Result<(), DriveError> {
        let turn = self.run.current_turn();
        if let Some(answer) = self.run.direct_answer() {
            let at = self.driver.durable.now();
            let event = Event::ModelAnswered { turn, answer, at };
            return self.record(event, Durability::Relaxed).await;
        }
        if self.is_over_budget(request).await? {
            return Ok(());
        }
        let cancel = self.driver.stop.at_once.child_token();
        crash_point!("model.before");
        let span = spans::model_request(&self.run, self.member.model.name(), request);
        let answer = {
            let (watch, id) = (&self.driver.watch, self.run.id());
            let mut events = |event: ModelEvent| watch(id, Progress::Model(&event));
            let answer = self.member.model.answer(request, &cancel, &mut events);
            let answer = answer.instrument(span.clone());
            let mut answer = std::pin::pin!(answer);
            loop {
                let left = self.run.time_left(self.driver.durable.now());
                let left = left.unwrap_or(Duration::MAX);
                match tokio::time::timeout(left.min(INBOX_POLL), &mut answer).await {
                    Ok(answer) => {
                        spans::record_answer(&span, &answer);
                        break Some(answer);
                    }
                    Err(_) if left <= INBOX_POLL => break None,
                    Err(_) => {
                        if !cancel.is_cancelled() && self.is_cancel_requested().await? {
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
            Some(Ok(answer)) => {
                let money = &self.driver.crew.intake().money;
                let answer = money.priced(answer, &*self.member.model);
                Event::ModelAnswered { turn, answer, at }
            }
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
        // If it is lost in a crash, the model is asked again: the events that follow from it are stored
        // only after it.
        self.record(event, Durability::Relaxed).await
    }
}

/// Applies and stores an event. Returns it as it is stored.
pub(crate) async fn record(
    run: &mut Run,
    journal: &mut dyn Journal,
    event: Event,
    durability: Durability,
) -> Result<RedactedEvent, DriveError> {
    let event = journal.redact(event)?;
    run.apply(event.event())?;
    journal.append(&event, durability).await?;
    Ok(event)
}

/// Stores an event that was applied, and writes, all or none. Returns the event; `None` if a write is not possible any
/// more, in which case the run is as before.
async fn store_applied(
    run: &mut Run,
    journal: &mut dyn Journal,
    event: RedactedEvent,
    writes: Vec<AtomicWrite>,
) -> Result<Option<RedactedEvent>, DriveError> {
    match journal.append_with(&event, writes).await? {
        AppendOutcome::Stored => Ok(Some(event)),
        AppendOutcome::Refused => {
            run.restore(journal.fold(KeptTurns::Shown).await?);
            Ok(None)
        }
    }
}
