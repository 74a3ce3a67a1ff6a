//! A project with hostile servers: a real database, a real gate, an agent with all usable tools, and a
//! record of the effects of the servers' tools.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_core::approval::{Approval, PersonDecision, Principal, TenantPrincipal};
use windlass_core::gate::Governance;
use windlass_core::model::{ModelAnswer, RequestedArguments, RequestedCall};
use windlass_core::run::{Run, Task};
use windlass_mcp::{
    ConnectError, GovernedServer, Ledger, Pin, PinState, Program, ServerInfo, ServerOptions,
    Servers, program_of,
};
use windlass_model::ScriptedModel;
use windlass_runtime::{Clock, Crew, Driver, NewTask, Stored, now};
use windlass_spec::server::{CommandTransport, ServerName, ServerSettings, Transport};
use windlass_spec::{Agent, AgentName, CallRecord, Failure, NonEmptyText};
use windlass_store::{ApprovalFilter, Store};
use windlass_tools::{BindingMode, ToolLibrary};

use super::scripted;

pub(crate) struct TestProject {
    directory: TempDir,
    pub(crate) governance: Governance,
    /// The shortest TTL of a list of tools, whatever the server says.
    pub(crate) shortest_ttl: Option<Duration>,
}

impl TestProject {
    pub(crate) fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
            governance: Governance::default(),
            shortest_ttl: None,
        }
    }

    fn options(&self) -> ServerOptions {
        let mut options = scripted::options();
        if let Some(shortest) = self.shortest_ttl {
            options.limits.shortest_ttl = shortest;
        }
        options
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn store(&self) -> Arc<Store> {
        Arc::new(Store::open(self.path("windlass.db")).unwrap())
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::new(self.store(), "local")
    }

    /// A hostile server with that name and these arguments.
    pub(crate) fn server(&self, name: &str, words: &[&str]) -> ServerSettings {
        let mut arguments: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        for file in ["effects", "seen"] {
            arguments.extend([format!("--{file}"), self.path(file).display().to_string()]);
        }
        let transport = Transport::Command(CommandTransport {
            program: env!("CARGO_BIN_EXE_windlass-mcp-hostile").to_owned(),
            arguments,
            directory: None,
            environment: std::collections::BTreeMap::new(),
            parts: Vec::new(),
            access: Default::default(),
        });
        ServerSettings::new(ServerName::new(name).unwrap(), transport)
    }

    /// Accepts the program of a server, connects to it and returns its pins.
    pub(crate) async fn connect(&self, settings: &ServerSettings) -> Vec<Pin> {
        self.try_connect(settings).await.unwrap()
    }

    /// The current program of a server.
    pub(crate) fn program_of(&self, settings: &ServerSettings) -> Option<Program> {
        program_of(settings, &self.options().lookup).unwrap()
    }

    pub(crate) async fn try_connect(
        &self,
        settings: &ServerSettings,
    ) -> Result<Vec<Pin>, ConnectError> {
        let program = self.program_of(settings);
        let accepted = self.ledger().accept_program(settings, program.as_ref());
        accepted.unwrap();
        let connected = connect_once(settings.clone(), self.ledger(), self.options()).await;
        Ok(connected?.1)
    }

    pub(crate) fn servers(&self, settings: &[ServerSettings]) -> Servers {
        Servers::new(settings.to_vec(), &self.ledger(), |_| self.options()).unwrap()
    }

    /// The driver of an agent with all tools of the library that gives these answers and then finishes.
    pub(crate) fn driver(&self, library: &ToolLibrary, answers: Vec<ModelAnswer>) -> Driver {
        self.driver_with_clock(Arc::new(now), library, answers)
    }

    /// Like [`TestProject::driver`], with another clock.
    pub(crate) fn driver_with_clock(
        &self,
        clock: Clock,
        library: &ToolLibrary,
        answers: Vec<ModelAnswer>,
    ) -> Driver {
        let name = AgentName::new("tester").unwrap();
        let instruction = NonEmptyText::new("Try it.").unwrap();
        let mut agent = Agent::new(name, "by_hand/none".parse().unwrap(), instruction);
        for tool in library {
            let specification = tool.specification().unwrap();
            agent = agent.with_tool(Arc::new(specification)).unwrap();
        }
        let finish = call(
            "finish",
            json!({"answer": "Done.", "reasoning": "It was asked for.", "confidence": 0.9}),
        );
        let model = Arc::new(ScriptedModel::answers(answers.into_iter().chain([finish])));
        let crew = Crew::assemble(
            std::slice::from_ref(&agent),
            &agent,
            library,
            BindingMode::Exact,
            &|_| Ok(Arc::clone(&model) as _),
        );
        let crew = crew.unwrap().governed_by(self.governance.clone());
        let stored = Stored::new(self.store(), identity("ann")).with_clock(clock);
        Driver::new(crew, Arc::new(stored))
    }

    /// Runs an agent that makes these calls, with the accepted tools of these servers.
    pub(crate) async fn run(&self, settings: &[ServerSettings], answers: Vec<ModelAnswer>) -> Run {
        let servers = self.servers(settings);
        let library = servers.accepted_tools().unwrap().library;
        let run = self
            .driver(&library, answers)
            .start(new_task())
            .await
            .unwrap();
        servers.close().await;
        run
    }

    /// Decides the first pending approval.
    pub(crate) fn decide(&self, decision: PersonDecision) {
        let store = self.store();
        let pending = store.approvals(&ApprovalFilter::pending(), now()).unwrap();
        let bob = identity("bob");
        store
            .decide(pending[0].call(), None, &bob, decision, now())
            .unwrap();
    }

    fn lines(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The effects of the servers' tools, by tool name.
    pub(crate) fn effects(&self) -> Vec<String> {
        let tool = |line: &Value| line["tool"].as_str().unwrap().to_owned();
        self.lines("effects").iter().map(tool).collect()
    }

    /// The pending approvals.
    pub(crate) fn pending(&self) -> Vec<Approval> {
        let filter = ApprovalFilter::pending();
        self.store().approvals(&filter, now()).unwrap()
    }

    /// The events that the servers recorded under a word.
    pub(crate) fn seen(&self, word: &str) -> Vec<Value> {
        let mut lines = self.lines("seen");
        lines.retain(|line| line["seen"] == word);
        lines
    }

    /// How often the servers were called.
    pub(crate) fn calls(&self) -> usize {
        self.seen("called").len()
    }
}

pub(crate) fn identity(name: &str) -> TenantPrincipal {
    let tenant = NonEmptyText::new("local").unwrap();
    TenantPrincipal::new(tenant, Principal::new(name).unwrap())
}

pub(crate) fn new_task() -> NewTask {
    NewTask {
        task: Task {
            description: "Try it.".to_owned(),
            ..Task::default()
        },
        ..NewTask::default()
    }
}

/// Connects to a server, pins its tools and stops it.
pub(crate) async fn connect_once(
    settings: ServerSettings,
    ledger: Ledger,
    options: ServerOptions,
) -> Result<(ServerInfo, Vec<Pin>), ConnectError> {
    let governed = GovernedServer::new(settings, ledger, options)?;
    let connected = governed.connect().await;
    governed.close().await;
    connected
}

pub(crate) fn call(tool: &str, arguments: Value) -> ModelAnswer {
    ModelAnswer {
        calls: vec![RequestedCall {
            tool: tool.to_owned(),
            arguments: RequestedArguments::Json(arguments),
            confidence: Some(0.9),
        }],
        ..ModelAnswer::default()
    }
}

/// The pin state of a tool.
pub(crate) fn state(pins: &[Pin], tool: &str) -> PinState {
    let found = pins.iter().find(|pin| pin.tool == tool);
    found
        .unwrap_or_else(|| panic!("there is no `{tool}`"))
        .state()
}

/// The outcomes of the calls of a run.
pub(crate) fn outcomes(run: &Run) -> Vec<Result<Value, Failure>> {
    run.calls()
        .map(CallRecord::outcome)
        .map(|outcome| outcome.unwrap().cloned().map_err(Failure::clone))
        .collect()
}
