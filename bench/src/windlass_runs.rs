//! The run of the loop benchmark in Windlass, as `windlass run` makes it: with the gate, and with a
//! durable journal in SQLite. Agent, tools, model and store are created once.

use std::sync::Arc;

use anyhow::Context as _;
use windlass_core::run::{Event, RunEnd, Settings, Task};
use windlass_model::{HostedModel, HostedSettings};
use windlass_runtime::{Crew, CrewMember, Driver, NewTask, Stored, local_identity, now};
use windlass_spec::{Agent, RunId};
use windlass_store::{Options, Redactor, Store};
use windlass_tools::{BindingMode, ToolLibrary, bind, tool};

use crate::workers::run_workers;

/// The agent file.
pub const AGENT: &str = r#"
[weather_agent:Agent {
  description: "Answers questions about the weather",
  instruction: "You answer questions about the weather. Look before you answer.",
  model: "OpenAI/fake"
} |
  [weather:Tool {description: "Tells the weather of a city for the coming days", risk: "reversible"} |
    (city::Text)==>(days::Integer)==>(::Text)
  ]
]
"#;

/// The task.
pub const TASK: &str = "Which city has the worse weather today, Oslo or Bergen?";

/// The API key, which must not be in the journal.
const KEY: &str = "no-key";

/// Tells the weather of a city for the coming days
#[tool(crate = windlass_tools)]
fn weather(city: String, days: i64) -> String {
    format!("{city}: rain on each of the next {days} days")
}

/// The agent of [`AGENT`].
pub fn agent() -> anyhow::Result<Agent> {
    let reading = windlass_spec::read(AGENT);
    let file = reading.file.context("the agent has errors")?;
    file.agents().first().cloned().context("there is no agent")
}

fn task() -> Task {
    Task {
        description: TASK.to_owned(),
        ..Task::default()
    }
}

/// The first event of a run.
pub fn started(id: RunId, agent: &Agent) -> Event {
    Event::Started {
        run: id,
        agent: Box::new(agent.clone()),
        agents: Vec::new(),
        assembly: serde_json::Map::new(),
        parent: None,
        holds: None,
        task: task(),
        settings: Settings::default(),
        at: now(),
    }
}

/// Makes `total` runs, `at_once` at a time.
pub fn make(url: &str, at_once: usize, total: usize) -> anyhow::Result<()> {
    let agent = agent()?;
    let library = ToolLibrary::new("bench").with(weather_tool()?);
    let tools = bind(&agent, &library, BindingMode::Exact).map_err(|failures| {
        let messages: Vec<String> = failures.iter().map(ToString::to_string).collect();
        anyhow::anyhow!(messages.join("\n"))
    })?;
    let settings = HostedSettings {
        base_url: Some(format!("{url}/")),
        ..HostedSettings::default()
    };
    let key = |name: &str| (name == "OPENAI_API_KEY").then(|| KEY.to_owned());
    let model = HostedModel::with_variables(agent.model(), settings, &key)?;
    let options = Options {
        redactor: Redactor::new([KEY]),
        ..Options::default()
    };
    let directory = tempfile::tempdir()?;
    let store = Arc::new(Store::open_with(
        directory.path().join("windlass.db"),
        options,
    )?);
    let who = local_identity()?;
    let crew = Crew::new(CrewMember {
        agent,
        tools,
        model: Arc::new(model),
    });
    let driver = Arc::new(Driver::new(crew, Arc::new(Stored::new(store, who))));
    run_workers(at_once, total, |claims| {
        let driver = Arc::clone(&driver);
        async move {
            while claims.claim() {
                one(&driver).await?;
            }
            Ok(())
        }
    })
}

async fn one(driver: &Driver) -> anyhow::Result<()> {
    let new = NewTask {
        task: task(),
        ..NewTask::default()
    };
    let run = driver.start(new).await?;
    let response = run.response();
    anyhow::ensure!(
        run.end() == Some(&RunEnd::Completed)
            && run.calls().count() == 1
            && response.answer().as_str().contains("Bergen"),
        "no answer: {:?}",
        run.end()
    );
    Ok(())
}
