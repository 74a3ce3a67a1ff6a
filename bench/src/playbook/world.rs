//! The environment of tasks: the server of the simulated APIs, the agents with its tools, and an ordinary driver.
//! One environment runs one task at a time.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use windlass_core::gate::Governance;
use windlass_core::limits::Breaker;
use windlass_core::model::ChatMessage;
use windlass_core::run::{self, Run, RunEnd, Settings};
use windlass_mcp::{
    CallOutcome, CallRequest, Era, GovernedServer, Ledger, ServerOptions, Servers, tool_name,
};
use windlass_model::ModelClient;
use windlass_runtime::{Crew, Driver, InMemory, NewTask};
use windlass_spec::server::{CommandTransport, ServerName, ServerSettings, Transport};
use windlass_spec::{Agent, AgentName, NonEmptyText, RiskLevel};
use windlass_store::Store;
use windlass_tools::{BindingMode, ToolLibrary};

use crate::arms::{Advice, TurnContext};
use crate::policy::{ExpectedCall, Policy};
use crate::tasks::Task;

/// The most iterations of a run. A failed task counts as if each of its turns had used them all.
pub const CAP: u32 = 40;

const SERVER: &str = "bfcl";
const INSTRUCTION: &str = "You do what the user asks for with the tools you have.";

/// A model that chooses calls and receives the expected ones.
pub trait Chooser: ModelClient {
    /// Sets the expected calls of the next run.
    fn expect(&self, calls: Vec<ExpectedCall>);
}

impl Chooser for Policy {
    fn expect(&self, calls: Vec<ExpectedCall>) {
        Policy::expect(self, calls);
    }
}

/// A server with its agents.
pub struct World {
    chooser: Arc<dyn Chooser>,
    server: ServerName,
    servers: Servers,
    governed: Arc<GovernedServer>,
    library: ToolLibrary,
    /// By the tools of their agent, under the server's names.
    crews: HashMap<Vec<String>, Arc<Crew>>,
    /// The directory of the store with the server's pins.
    _directory: tempfile::TempDir,
}

/// The outcome of a task.
#[derive(Debug)]
pub struct TaskOutcome {
    /// The turns that were run.
    pub turns: Vec<TurnOutcome>,
    /// Whether all turns were completed and the APIs reached the expected state.
    pub is_success: bool,
}

/// The outcome of one turn of a task, which is a run.
#[derive(Debug)]
pub struct TurnOutcome {
    /// The number of requests to the policy, including the finish.
    pub iterations: u32,
    /// The number of calls.
    pub calls: u32,
    /// The estimated number of input tokens.
    pub tokens: u64,
    /// The run itself.
    pub run: Run,
}

/// A loaded task, as the server reports it.
#[derive(Debug, Deserialize)]
struct LoadedTask {
    calls: Vec<Vec<LoadedCall>>,
    /// The tools of its APIs.
    tools: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct LoadedCall {
    name: String,
    arguments: Map<String, Value>,
}

/// The result of a check of the APIs' state.
#[derive(Debug, Deserialize)]
pub struct StateCheck {
    /// Whether they are in the expected state.
    pub equal: bool,
    /// The errors of the replay of the expected calls.
    pub errors: Vec<Value>,
}

/// A request that the server rejected.
#[derive(Debug, thiserror::Error)]
#[error("the API server rejected the request: {0}")]
struct RejectedRequest(String);

impl World {
    /// Starts the server.
    pub async fn start(
        python: &Path,
        server: &Path,
        chooser: Arc<dyn Chooser>,
    ) -> anyhow::Result<Self> {
        let command = CommandTransport {
            program: python.display().to_string(),
            arguments: vec![server.display().to_string()],
            directory: None,
            environment: Default::default(),
            parts: Vec::new(),
            access: Default::default(),
        };
        let name = ServerName::new(SERVER)?;
        let mut settings = ServerSettings::new(name.clone(), Transport::Command(command));
        settings.is_trusted = true;
        let directory = tempfile::tempdir()?;
        let store = Arc::new(Store::open(directory.path().join("windlass.db"))?);
        let ledger = Ledger::new(store, "local");
        let servers = Servers::new([settings], &ledger, |_| ServerOptions {
            era: Some(Era::Legacy),
            ..ServerOptions::default()
        })?;
        let governed = servers.get(&name).cloned().context("there is no server")?;
        governed
            .connect()
            .await
            .context("cannot connect to the API server")?;
        let offered = servers.accepted_tools()?;
        if let Some(notice) = offered.notices.first() {
            anyhow::bail!("{:?}: {}", notice.tool, notice.message);
        }
        Ok(Self {
            chooser,
            server: name,
            servers,
            governed,
            library: offered.library,
            crews: HashMap::new(),
            _directory: directory,
        })
    }

    /// Ends the server.
    pub async fn close(&self) {
        self.servers.close().await;
    }

    /// Runs a task with `advice` for each turn. The task fails at the first turn that is not completed.
    pub async fn run(&mut self, task: &Task, advice: &dyn Advice) -> anyhow::Result<TaskOutcome> {
        let about = || format!("task {}", task.id);
        let loaded = self.load(task).await.with_context(about)?;
        let crew = self.crew(&loaded.tools).with_context(about)?;
        let tools: Vec<String> = crew
            .lead()
            .agent
            .tools()
            .iter()
            .map(|tool| tool.name().to_string())
            .collect();
        let runs = InMemory::default();
        let mut conversation = Vec::new();
        let mut turns = Vec::new();
        for (turn, (text, expected)) in task.turns.iter().zip(&loaded.calls).enumerate() {
            self.chooser.expect(self.with_tool_names(expected)?);
            let context = TurnContext {
                task,
                turn,
                tools: &tools,
            };
            let new = NewTask {
                task: run::Task {
                    description: text.clone(),
                    conversation: conversation.clone(),
                    strategies: advice.lines(&context),
                    domain: Some(task.domain().to_owned()),
                    ..run::Task::default()
                },
                settings: settings(),
                ..NewTask::default()
            };
            // A new driver for each run, so that earlier tool failures do not matter.
            let driver = Driver::new(Arc::clone(&crew), Arc::new(runs.clone()));
            let run = driver.start(new).await.with_context(about)?;
            let is_completed = run.end() == Some(&RunEnd::Completed);
            conversation.push(ChatMessage::User {
                content: text.clone(),
            });
            conversation.push(ChatMessage::Assistant {
                content: run.response().answer().as_str().to_owned(),
                calls: Vec::new(),
            });
            turns.push(TurnOutcome {
                iterations: u32::try_from(run.turns().len())?,
                calls: u32::try_from(run.calls().count())?,
                tokens: run.usage().input_tokens,
                run,
            });
            if !is_completed {
                return Ok(TaskOutcome {
                    turns,
                    is_success: false,
                });
            }
        }
        let checked = self.check(task).await?;
        Ok(TaskOutcome {
            turns,
            is_success: checked.equal,
        })
    }

    /// Replays the expected calls of a task and returns the errors.
    pub async fn replay(&self, task: &Task) -> anyhow::Result<Vec<Value>> {
        match self.load(task).await {
            Ok(_) => Ok(self.check(task).await?.errors),
            Err(error) => Ok(vec![error.downcast::<RejectedRequest>()?.0.into()]),
        }
    }

    async fn load(&self, task: &Task) -> anyhow::Result<LoadedTask> {
        let loaded = self.control(
            "bench_load",
            json!({
                "classes": task.classes,
                "initial_config": task.initial_config,
                "expected": task.expected.calls,
            }),
        );
        Ok(serde_json::from_value(loaded.await?)?)
    }

    /// Compares the APIs with a copy in which all expected calls were made.
    async fn check(&self, task: &Task) -> anyhow::Result<StateCheck> {
        let turns = json!({"turns": task.turns.len()});
        Ok(serde_json::from_value(
            self.control("bench_check", turns).await?,
        )?)
    }

    /// Calls a control tool of the benchmark, which no agent has.
    async fn control(&self, tool: &str, arguments: Value) -> anyhow::Result<Value> {
        let Value::Object(arguments) = arguments else {
            anyhow::bail!("arguments must be an object");
        };
        let request = CallRequest {
            key: "bench".to_owned(),
            tool: tool.to_owned(),
            arguments,
            cancel: CancellationToken::new(),
            progress: None,
            output_schema: None,
            max_output_bytes: 1 << 24,
            approval: None,
        };
        match self.governed.server().call(request).await {
            Ok(CallOutcome::Answered(answered)) if !answered.is_error => Ok(answered.value),
            Ok(came) => Err(RejectedRequest(format!("{came:?}")).into()),
            Err(error) => anyhow::bail!("{tool} failed: {}", error.message),
        }
    }

    fn with_tool_names(&self, calls: &[LoadedCall]) -> anyhow::Result<Vec<ExpectedCall>> {
        let named = calls.iter().map(|call| {
            Ok(ExpectedCall {
                tool: tool_name(&self.server, &call.name)?.to_string(),
                arguments: call.arguments.clone(),
            })
        });
        named.collect()
    }

    /// The crew whose agent has these tools.
    fn crew(&mut self, tools: &[String]) -> anyhow::Result<Arc<Crew>> {
        if let Some(crew) = self.crews.get(tools) {
            return Ok(Arc::clone(crew));
        }
        let mut agent = Agent::new(
            AgentName::new("worker")?,
            "scripted/policy".parse()?,
            NonEmptyText::new(INSTRUCTION)?,
        );
        // The tools are simulated, so no call needs approval.
        let mut governance = Governance {
            breaker: Breaker {
                failures: std::num::NonZeroU32::MAX,
                ..Breaker::default()
            },
            ..Governance::default()
        };
        for own in tools {
            let name = tool_name(&self.server, own)?;
            let tool = self.library.lookup(name.as_str());
            let tool = tool.with_context(|| format!("there is no tool {name}"))?;
            let specification = tool.specification().map_err(anyhow::Error::msg)?;
            let mut attributes = specification.attributes().clone();
            attributes.risk = Some(RiskLevel::Reversible);
            agent = agent.with_tool(Arc::new(specification.with_attributes(attributes)?))?;
            governance
                .overrides
                .insert(name.to_string(), RiskLevel::Reversible);
        }
        let model: Arc<dyn ModelClient> = Arc::clone(&self.chooser) as _;
        let one = std::slice::from_ref(&agent);
        let crew = Crew::assemble(one, &agent, &self.library, BindingMode::Exact, &|_| {
            Ok(Arc::clone(&model))
        })?;
        let crew = Arc::new(crew.governed_by(governance));
        self.crews.insert(tools.to_vec(), Arc::clone(&crew));
        Ok(crew)
    }
}

/// The settings of a run. Only the iteration limit ends a run early, and the whole context is shown.
fn settings() -> Settings {
    Settings {
        max_iterations: CAP,
        max_calls: CAP * 2,
        max_mistaken_turns: CAP * 2,
        max_messages: 10_000,
        context_tokens: 10_000_000,
        ask_people: false,
        ..Settings::default()
    }
}
