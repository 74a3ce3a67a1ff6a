//! A task given to an agent: its tools, limits and settings, and the answer, awaited or streamed.

use std::fmt;
use std::future::IntoFuture;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::{
    AskOutcome, Configured, CrewError, Driver, GapAtLoad, InMemory, Learning, NewTask, Progress,
    Stop, Stored, choose_model, local_identity, now, watch_nothing,
};
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use windlass_core::approval::{Approval, PersonDecision};
use windlass_core::gate::Governance;
use windlass_core::run::{Event, Run, RunEnd, Settings, Task};
use windlass_model::{HostedSettings, ModelClient, ModelEvent};
use windlass_spec::{AgentResponse, CallId, Message, RunId};
use windlass_tools::{BindingMode, ToolLibrary, ToolProgress};

use crate::agent::{Agent, Error};
use crate::assembly::program_assembly;
use crate::crew::{Models, assemble};

/// A task given to an agent. Awaiting it does the task; [`Work::stream`] also reports progress.
#[must_use = "nothing happens until the work is awaited or streamed"]
pub struct Work {
    agent: Agent,
    library: ToolLibrary,
    mode: BindingMode,
    model: Option<Arc<dyn ModelClient>>,
    task: Task,
    settings: Settings,
    stop: Stop,
    data: Option<PathBuf>,
    governance: Governance,
    configured: Option<Configured>,
    learning: Option<Learning>,
    decider: Option<Decider>,
}

/// Decides about a run's questions to people; `None` leaves the question open.
type Decider = Arc<dyn Fn(&Approval) -> Option<PersonDecision> + Send + Sync>;

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("agent", self.agent.declaration().name())
            .field("task", &self.task.description)
            .finish_non_exhaustive()
    }
}

impl Work {
    pub(crate) fn new(agent: Agent, library: ToolLibrary, description: String) -> Self {
        Self {
            agent,
            library,
            mode: BindingMode::Exact,
            model: None,
            task: Task {
                description,
                ..Task::default()
            },
            settings: Settings::default(),
            stop: Stop::default(),
            data: None,
            governance: Governance::default(),
            configured: None,
            learning: Learning::usual(),
            decider: None,
        }
    }

    /// Uses this model instead of the declared ones, also for the sub-agents.
    pub fn model(mut self, model: impl ModelClient + 'static) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// Sets the conversation before the task, oldest message first.
    pub fn after(mut self, messages: impl IntoIterator<Item = Message>) -> Self {
        self.task.conversation = messages.into_iter().map(Into::into).collect();
        self
    }

    /// Restricts the agent to these of its tools.
    pub fn available_tools<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.task.available_tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets how closely implementations must follow their specifications.
    pub fn binding(mut self, mode: BindingMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the largest number of turns, instead of 10.
    pub fn max_iterations(mut self, limit: u32) -> Self {
        self.settings.max_iterations = limit;
        self
    }

    /// Sets how long it may take, in whole seconds.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.settings.max_seconds = Some(limit.as_secs().max(1));
        self
    }

    /// Sets all limits at once.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Lets another task or thread stop the work.
    pub fn stopped_by(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Stores the run in this directory, where `windlass trace` finds it. Without it, the run is only in
    /// memory and gone when it is over.
    pub fn kept_in(mut self, directory: impl Into<PathBuf>) -> Self {
        self.data = Some(directory.into());
        self
    }

    /// Sets the rules for the agent's calls: policies, environment, undo window. The default are the
    /// built-in policies.
    pub fn governed_by(mut self, governance: Governance) -> Self {
        self.governance = governance;
        self
    }

    /// Applies a configuration with its policies. It replaces what [`Work::governed_by`] sets. A project's file that
    /// is found needs trust: `Configured::untrusted` has the settings without effect.
    ///
    /// ```
    /// # use windlass::{Agent, ReflexModel, builtin_library};
    /// use windlass::{ConfigurationFiles, FileTexts};
    /// # fn show(agent: &Agent) -> Result<(), Box<dyn std::error::Error>> {
    /// # let library = builtin_library("hello").ok_or("no library")?;
    /// let files = ConfigurationFiles::find(None, std::path::Path::new("."));
    /// let (configured, _) = files.read(&FileTexts::default())?;
    /// let work = agent.run_with(&library, "Greet Ada.").configured(configured);
    /// # Ok(()) }
    /// ```
    pub fn configured(mut self, configured: Configured) -> Self {
        self.configured = Some(configured);
        self
    }

    /// Sets what is recalled for the task and learned from the run, if the run is stored in a directory;
    /// `None` for neither. A configuration overrides this.
    ///
    /// ```
    /// # use windlass::{Agent, Learning, builtin_library};
    /// # fn show(agent: &Agent) -> Option<()> {
    /// # let library = builtin_library("hello")?;
    /// // The playbook in the directory is read and stays as it is.
    /// let frozen = Learning { learns: false, ..Learning::default() };
    /// let work = agent.run_with(&library, "Greet Ada.").kept_in("data").learning(Some(frozen));
    /// # drop(work);
    /// # Some(())
    /// # }
    /// ```
    pub fn learning(mut self, learning: Option<Learning>) -> Self {
        self.learning = learning;
        self
    }

    /// Sets a function that decides about the run's questions, on behalf of the user this program runs as.
    /// With an open question the work ends as waiting for a person. If the run is stored,
    /// `windlass approvals` can decide it later.
    ///
    /// ```
    /// # use windlass::{Agent, PersonDecision, ReflexModel, builtin_library};
    /// # fn show(agent: &Agent) -> Option<()> {
    /// # let library = builtin_library("hello")?;
    /// let work = agent.run_with(&library, "Greet Ada.").deciding(|asked| {
    ///     let call = asked.question().authorize()?;
    ///     (call.tool_name.as_str() == "sayHello").then_some(PersonDecision::Approve)
    /// });
    /// # drop(work);
    /// # Some(())
    /// # }
    /// ```
    pub fn deciding(
        mut self,
        decider: impl Fn(&Approval) -> Option<PersonDecision> + Send + Sync + 'static,
    ) -> Self {
        self.decider = Some(Arc::new(decider));
        self
    }

    /// Starts the work and streams its progress up to the answer. Must be called within a tokio
    /// runtime; dropping the stream stops the work.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use windlass::{Agent, ReflexModel, Update, builtin_library};
    /// # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hello.gram");
    /// # let library = builtin_library("hello").ok_or("there is no such library")?;
    /// # let model = ReflexModel::new();
    /// let work = Agent::from_file(file)?.run_with(&library, "Greet Ada.").model(model);
    /// let mut updates = work.stream();
    /// while let Some(update) = updates.next().await {
    ///     match update? {
    ///         Update::Text(text) => print!("{text}"),
    ///         Update::Event { event, .. } => println!("{event:?}"),
    ///         Update::ToolProgress { progress, .. } => println!("{progress:?}"),
    ///         Update::Done(done) => assert_eq!(done.answer(), "Hello, Ada! Nice to meet you."),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(self) -> Updates {
        let (sender, receiver) = mpsc::unbounded_channel();
        let stop = self.stop.clone();
        let updates = sender.clone();
        let watch = Arc::new(move |run: &RunId, progress: Progress<'_>| {
            let update = match progress {
                Progress::Model(ModelEvent::Text { text }) => Update::Text(text.clone()),
                Progress::Event(event) => Update::Event {
                    run: run.clone(),
                    event: Box::new(event.clone()),
                },
                Progress::Tool(call, progress) => Update::ToolProgress {
                    call: call.clone(),
                    progress: progress.clone(),
                },
                Progress::Model(_)
                | Progress::Warning(_)
                | Progress::Refused(..)
                | Progress::Done(_) => return,
            };
            // The receiver may have been dropped.
            let _ = updates.send(Ok(update));
        });
        tokio::spawn(async move {
            let done = self.finish(watch).await;
            let _ = sender.send(done.map(|done| Update::Done(Box::new(done))));
        });
        Updates { receiver, stop }
    }

    async fn finish(self, watch: crate::Watch) -> Result<Completed, Error> {
        let driver = self.driver()?.watched_by(watch);
        let new = NewTask {
            run: None,
            task_id: None,
            task: self.task,
            settings: self.settings,
            // Its tools are functions of this program: no other can resume it.
            assembly: program_assembly(driver.crew()),
        };
        let run = driver.start(new).await?;
        match run.end() {
            Some(RunEnd::Failed { category, message }) => Err(Error::Failed {
                run: run.id().clone(),
                category: *category,
                message: message.clone(),
            }),
            _ => Ok(Completed {
                response: run.response(),
                run,
            }),
        }
    }

    fn driver(&self) -> Result<Driver, Error> {
        if self.task.description.trim().is_empty() {
            return Err(Error::Task(
                "the task is empty; describe what to do".to_owned(),
            ));
        }
        let (agents, lead) = (self.agent.file().agents(), self.agent.declaration());
        let override_model = match &self.model {
            Some(model) => Some(Arc::clone(model)),
            None => choose_model(agents, lead, None)?.override_model,
        };
        let models = Models {
            override_model,
            settings: HostedSettings::default(),
        };
        let crew = assemble(agents, lead, &self.library, self.mode, &models);
        let crew = crew.inspect_err(|error| self.note_gap(error))?;
        let mut crew = crew
            .governed_by(self.governance.clone())
            .with_usual_intents();
        if let Some(learning) = &self.learning {
            crew = crew.learning(learning.clone());
        }
        match &self.configured {
            Some(configured) => crew.configure(configured)?,
            None => crew.check_rules()?,
        }
        let driver = match &self.data {
            None => {
                let kept = InMemory::default();
                let driver = Driver::new(crew, Arc::new(kept.clone()));
                self.with_decider(driver, move |call, decision| {
                    let by = local_identity().ok()?;
                    kept.decide(call, &by, decision, now())?.ok().map(drop)
                })
            }
            Some(directory) => {
                let stored = Stored::open(directory)?;
                let driver = Driver::new(crew, Arc::new(stored.clone()));
                self.with_decider(driver, move |call, decision| {
                    stored.decide(call, decision).ok().map(drop)
                })
            }
        };
        Ok(driver.stopped_by(self.stop.clone()))
    }

    /// Stores the agent's missing tools, where runs are stored. An error of the store is ignored, because it
    /// would hide the error that the caller gets.
    fn note_gap(&self, error: &CrewError) {
        let (agents, lead) = (self.agent.file().agents(), self.agent.declaration());
        let gap = GapAtLoad::of(error, agents, lead, &self.library);
        if let (Some(gap), Some(directory)) = (gap, &self.data) {
            let stored = Stored::open(directory);
            let _ = stored.and_then(|stored| stored.note_gap_at_load(&gap));
        }
    }

    /// The driver with the decider. `take` stores its decisions.
    fn with_decider(
        &self,
        driver: Driver,
        take: impl Fn(&CallId, PersonDecision) -> Option<()> + Send + Sync + 'static,
    ) -> Driver {
        let Some(decider) = self.decider.clone() else {
            return driver;
        };
        let take = Arc::new(take);
        driver.asking(Arc::new(move |asked: Approval| {
            let (decider, take) = (Arc::clone(&decider), Arc::clone(&take));
            Box::pin(async move {
                // Both may block: on a person or on the disk.
                let decided =
                    tokio::task::spawn_blocking(move || take(asked.call(), decider(&asked)?));
                match decided.await {
                    Ok(Some(())) => AskOutcome::Decided,
                    _ => AskOutcome::NotDecided,
                }
            })
        }))
    }
}

impl IntoFuture for Work {
    type Output = Result<Completed, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.finish(watch_nothing()))
    }
}

/// A run that ended with an answer. The answer may be partial if the run exceeded a limit; see
/// [`Completed::end`].
#[derive(Debug)]
pub struct Completed {
    response: AgentResponse,
    run: Run,
}

impl Completed {
    /// The answer.
    #[must_use]
    pub fn answer(&self) -> &str {
        self.response.answer().as_str()
    }

    /// The answer with its reasoning, its calls and its confidence.
    #[must_use]
    pub fn response(&self) -> &AgentResponse {
        &self.response
    }

    /// How the run ended.
    #[must_use]
    pub fn end(&self) -> RunEnd {
        self.run.end_or_waiting().unwrap_or(RunEnd::Cancelled)
    }

    /// The questions that wait for a person's decision.
    pub fn questions(&self) -> impl Iterator<Item = &Approval> {
        self.run.questions()
    }

    /// The whole run: turns, calls, costs.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }
}

/// A progress report of an agent's work.
#[derive(Debug)]
pub enum Update {
    /// More text from the model.
    Text(String),
    /// An event was recorded in the journal of the run or of a sub-agent's run.
    Event {
        /// The run.
        run: RunId,
        /// The event.
        event: Box<Event>,
    },
    /// A tool reports the progress of a call.
    ToolProgress {
        /// The call.
        call: CallId,
        /// Its progress.
        progress: ToolProgress,
    },
    /// The work is done; nothing follows.
    Done(Box<Completed>),
}

/// The updates of an agent's work, in order. Dropping it stops the work.
#[derive(Debug)]
pub struct Updates {
    receiver: mpsc::UnboundedReceiver<Result<Update, Error>>,
    stop: Stop,
}

impl Updates {
    /// The next update; `None` after the last.
    pub async fn next(&mut self) -> Option<Result<Update, Error>> {
        self.receiver.recv().await
    }
}

impl futures::Stream for Updates {
    type Item = Result<Update, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(context)
    }
}

impl Drop for Updates {
    fn drop(&mut self) {
        self.stop.at_once.cancel();
    }
}
