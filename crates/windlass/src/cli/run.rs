//! `windlass run`: one task, one agent, from the question to the answer. The answer goes to standard
//! output, everything else to standard error.

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::json;
use windlass_core::model::ModelAnswer;
use windlass_core::run::{CallEnd, Event, Run, RunEnd, Settings, Task};
use windlass_model::{
    HostedModel, HostedSettings, ModelClient, RecordingModel, ReplayModel, ScriptedModel,
};
use windlass_runtime::{Driver, Progress, Stop, StoredJournal, now};
use windlass_spec::{Agent, AgentFile, Model, RunId};
use windlass_store::{Durability, NewRun};
use windlass_tools::{BindingMode, BoundTools, bind};

use super::Outcome;
use super::arguments::{Mode, RunTask};
use super::report::Reporter;
use super::schema::{read_file, unknown};
use super::terminal::{complain, put, say};
use super::{data, libraries};

pub(super) fn run(command: &RunTask, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let Some(file) = read_file(&command.file, reporter)? else {
        return Ok(Outcome::Failed);
    };
    let agent = choose_agent(command, &file)?;
    let task = task(command, agent)?;
    let tools = tools(command, agent)?;
    let model = model(command, agent)?;
    let store = data::open_store(command.data.as_deref())?;
    let id = RunId::new(uuid::Uuid::now_v7().simple().to_string())?;
    let first = Event::Started {
        run: id.clone(),
        agent: Box::new(agent.clone()),
        task,
        settings: settings(command),
        at: now(),
    };
    let mut run = Run::fold([&first])?;
    let new = NewRun {
        tenant: "local".to_owned(),
        principal: data::principal(),
        task_id: None,
    };
    let journal = store.start(new, &first, Durability::Synced)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let stop = Stop::default();
        tokio::spawn(stop_on_interrupt(stop.clone()));
        let mut watch = |progress: Progress<'_>| show_progress(command, &progress);
        let mut journal = StoredJournal::new(journal);
        let mut driver = Driver {
            model,
            tools: &tools,
            journal: &mut journal,
            stop,
            watch: &mut watch,
        };
        driver.drive(&mut run).await
    })?;
    show_end(command, &run)
}

fn choose_agent<'f>(command: &RunTask, file: &'f AgentFile) -> anyhow::Result<&'f Agent> {
    let names: Vec<&str> = file
        .agents()
        .iter()
        .map(|agent| agent.name().as_str())
        .collect();
    if let Some(name) = &command.agent {
        let place = command.file.to_string_lossy();
        return file
            .agent(name)
            .ok_or_else(|| anyhow::anyhow!(unknown("agent", name, &names, &place)));
    }
    let mut roots = file.roots();
    match (roots.next(), roots.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => anyhow::bail!("the file declares no agent to run"),
        (Some(_), Some(_)) => anyhow::bail!(
            "the file declares several agents\nhint: choose one with `--agent`: {}",
            names.join(", ")
        ),
    }
}

fn task(command: &RunTask, agent: &Agent) -> anyhow::Result<Task> {
    let mut description = command.task.clone().unwrap_or_default();
    if command.task.is_none() {
        let mut stdin = std::io::stdin();
        anyhow::ensure!(
            !stdin.is_terminal(),
            "there is no task\nhint: windlass run {} \"what to do\"",
            command.file.display()
        );
        stdin
            .read_to_string(&mut description)
            .context("standard input cannot be read")?;
    }
    anyhow::ensure!(
        !description.trim().is_empty(),
        "the task is empty\nhint: say what to do"
    );
    if let Some(available) = &command.available_tools {
        let known: Vec<&str> = agent
            .tools()
            .iter()
            .map(|tool| tool.name().as_str())
            .collect();
        for name in available {
            let is_known = known.contains(&name.as_str());
            anyhow::ensure!(is_known, unknown("tool", name, &known, "this agent"));
        }
    }
    Ok(Task {
        description,
        available_tools: command.available_tools.clone(),
        ..Task::default()
    })
}

fn tools(command: &RunTask, agent: &Agent) -> anyhow::Result<BoundTools> {
    let library = match &command.library {
        Some(name) => libraries::find(name)?,
        None if agent.tools().is_empty() => windlass_tools::ToolLibrary::new("none"),
        None => anyhow::bail!(
            "the agent has tools, but there is no library with implementations\n\
             hint: name one with `--library`: a library file, or `hello`"
        ),
    };
    let mode = match command.mode {
        Mode::Exact => BindingMode::Exact,
        Mode::Compatible => BindingMode::Compatible,
    };
    bind(agent, &library, mode).map_err(|failures| {
        let told: Vec<String> = failures.iter().map(ToString::to_string).collect();
        anyhow::anyhow!(
            "tools cannot be bound to the library `{}`\n{}",
            library.name(),
            told.join("\n")
        )
    })
}

fn model(command: &RunTask, agent: &Agent) -> anyhow::Result<Arc<dyn ModelClient>> {
    let name = command
        .model
        .clone()
        .unwrap_or_else(|| agent.model().to_string());
    if let Some(path) = name.strip_prefix("scripted:") {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("the answers in `{path}` cannot be read"))?;
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let answers: Result<Vec<ModelAnswer>, _> = lines.map(serde_json::from_str).collect();
        let answers = answers.with_context(|| format!("`{path}` is not one answer a line"))?;
        return Ok(Arc::new(ScriptedModel::answers(answers)));
    }
    if let Some(path) = name.strip_prefix("replay:") {
        return Ok(Arc::new(ReplayModel::open(Path::new(path))?));
    }
    let model: Model = name
        .parse()
        .with_context(|| format!("`{name}` names no model"))?;
    let settings = HostedSettings {
        dialect: command.dialect,
        base_url: command.base_url.clone(),
        ..HostedSettings::default()
    };
    let hosted = HostedModel::new(&model, settings)
        .map_err(|error| anyhow::anyhow!("the model `{name}` cannot be used: {}", error.message))?;
    Ok(match &command.record {
        Some(path) => Arc::new(RecordingModel::create(hosted, path)?),
        None => Arc::new(hosted),
    })
}

fn settings(command: &RunTask) -> Settings {
    let defaults = Settings::default();
    Settings {
        max_iterations: command.max_iterations.unwrap_or(defaults.max_iterations),
        max_seconds: command.timeout,
        ..defaults
    }
}

/// The first interrupt stops the run after its step, the second at once.
async fn stop_on_interrupt(stop: Stop) {
    if tokio::signal::ctrl_c().await.is_ok() {
        let _ = complain("stopping after this step; interrupt again to stop at once");
        stop.after_step.cancel();
    }
    if tokio::signal::ctrl_c().await.is_ok() {
        stop.at_once.cancel();
    }
}

fn show_progress(command: &RunTask, progress: &Progress<'_>) {
    let Progress::Event(event) = progress else {
        return;
    };
    // Whoever watches may go away; the run goes on.
    if command.jsonl {
        if let Ok(line) = serde_json::to_string(event) {
            let _ = put(&format!("{line}\n"));
        }
        return;
    }
    let line = match event {
        Event::ModelAnswered { turn, answer, .. } => {
            let thought = answer.thought.as_deref().unwrap_or(&answer.text);
            let calls: Vec<&str> = answer.calls.iter().map(|call| call.tool.as_str()).collect();
            format!("{turn}. {} {}", calls.join(", "), shortened(thought))
        }
        Event::ModelFailed { message, .. } => {
            format!("   the model failed: {}", shortened(message))
        }
        Event::Decided { decision, .. } if decision.failure().is_some() => format!("   {decision}"),
        Event::CallEnded { call, end, .. } => format!("   call {}: {}", call.index, told_end(end)),
        _ => return,
    };
    let _ = complain(line.trim_end());
}

fn told_end(end: &CallEnd) -> String {
    match end {
        CallEnd::Success(serde_json::Value::String(text)) => shortened(text),
        CallEnd::Success(value) => shortened(&value.to_string()),
        CallEnd::Error(failure)
        | CallEnd::Timeout(failure)
        | CallEnd::Cancelled(failure)
        | CallEnd::Unknown(failure) => {
            format!(
                "{}: {}",
                failure.category,
                shortened(&failure.operator_message)
            )
        }
    }
}

/// The start of a text, on one line.
fn shortened(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn show_end(command: &RunTask, run: &Run) -> anyhow::Result<Outcome> {
    let end = run.end().cloned().unwrap_or(RunEnd::Cancelled);
    let response = run.response();
    if command.json || command.jsonl {
        let told = json!({"run": run.id(), "end": end, "response": response});
        put(&format!("{told}\n"))?;
    } else {
        say(response.answer.as_str())?;
        if let RunEnd::Failed { category, message } = &end {
            complain(&format!("error: {message}\nhint: {}", category.guidance()))?;
        } else if end != RunEnd::Completed {
            let told = serde_json::to_value(&end)?;
            complain(&format!("the run ended early: {told}"))?;
        }
        complain(&format!(
            "windlass trace show {} tells how it came about",
            run.id()
        ))?;
    }
    Ok(Outcome::Code(end.exit_code()))
}
