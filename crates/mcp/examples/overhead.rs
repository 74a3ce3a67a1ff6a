//! What a call costs more than one through the bare protocol library: through a `Server`, and governed,
//! that is as a turn of a run with its decision, its permit, its pin and its journal on the disk. The same
//! scripted server each time, by turns in one run; medians and ratios.
//!
//! `cargo xtask bench mcp` builds the scripted server and runs this.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Map, Value, json};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;
use windlass_core::approval::{Identity, Principal};
use windlass_core::gate::Governance;
use windlass_core::model::{ModelAnswer, RequestedArguments, RequestedCall};
use windlass_mcp::{CallRequest, Came, Era, Ledger, Server, ServerOptions, Servers};
use windlass_model::{ModelClient, ScriptedModel};
use windlass_runtime::{Crew, Driver, NewTask, Stored};
use windlass_spec::server::{CommandTransport, ServerName, ServerSettings, Transport};
use windlass_spec::{Agent, AgentName, CallRecord, NonEmptyText, RiskLevel};
use windlass_store::Store;
use windlass_tools::BindingMode;

const WARM_UP: usize = 200;
const ROUNDS: usize = 3_000;
const BATCHES: usize = 30;
const IN_A_RUN: usize = 40;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Beside the directory this program is in.
    let own = std::env::current_exe()?;
    let directory = own.parent().and_then(std::path::Path::parent);
    let directory = directory.context("this program is nowhere")?;
    let program = directory.join("windlass-mcp-fixture").display().to_string();
    let bare = ().serve(TokioChildProcess::new(Command::new(&program))?).await?;
    let command = CommandTransport {
        program,
        arguments: Vec::new(),
        directory: None,
        environment: Default::default(),
        parts: Vec::new(),
    };
    let settings = ServerSettings::new(ServerName::new("fixture")?, Transport::Command(command));
    let options = ServerOptions {
        era: Some(Era::Legacy),
        ..ServerOptions::default()
    };
    let server = Server::new(settings.clone(), options);
    server.connect().await?;

    let mut arguments = Map::new();
    arguments.insert("text".to_owned(), json!("x".repeat(200)));
    let promised = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let (mut of_bare, mut of_server) = (Vec::new(), Vec::new());
    for round in 0..WARM_UP + ROUNDS {
        let begun = Instant::now();
        let params = CallToolRequestParams::new("echo").with_arguments(arguments.clone());
        let answer = bare.call_tool(params).await?;
        let took = begun.elapsed();
        anyhow::ensure!(answer.structured_content.is_some());

        let begun = Instant::now();
        let request = CallRequest {
            key: "overhead".to_owned(),
            tool: "echo".to_owned(),
            arguments: arguments.clone(),
            cancel: CancellationToken::new(),
            progress: None,
            output_schema: Some(promised.clone()),
            max_output_bytes: 1 << 20,
        };
        let came = server.call(request).await?;
        let took_server = begun.elapsed();
        if !matches!(came, Came::Answered(_)) {
            bail!("the scripted server asks something");
        }
        if round >= WARM_UP {
            of_bare.push(took);
            of_server.push(took_server);
        }
    }
    let (bare_median, server_median) = (median(&mut of_bare), median(&mut of_server));
    let (governed, beside) = governed(&bare, &arguments, &settings).await?;
    #[allow(clippy::print_stdout)]
    {
        println!("bare library  {bare_median:?} (median of {ROUNDS})");
        println!("Server::call  {server_median:?} (with the check of the promised structure)");
        println!(
            "ratio         {:.3}",
            server_median.as_secs_f64() / bare_median.as_secs_f64()
        );
        println!("bare library  {beside:?} a call (median of {BATCHES} times {IN_A_RUN})");
        println!("governed      {governed:?} a call (a turn of a run, journaled)");
        println!(
            "overhead      {:?}, ratio {:.3}",
            governed.saturating_sub(beside),
            governed.as_secs_f64() / beside.as_secs_f64()
        );
    }
    server.close().await;
    bare.cancel().await?;
    Ok(())
}

/// What a governed call and a bare one cost, by turns.
async fn governed(
    bare: &RunningService<RoleClient, ()>,
    arguments: &Map<String, Value>,
    settings: &ServerSettings,
) -> anyhow::Result<(Duration, Duration)> {
    let directory = tempfile::tempdir()?;
    let store = Arc::new(Store::open(directory.path().join("windlass.db"))?);
    let ledger = Ledger::new(Arc::clone(&store), "local");
    let mut settings = settings.clone();
    settings.is_trusted = true;
    let servers = Servers::new([settings], &ledger, |_| ServerOptions::default())?;
    for governed in servers.iter() {
        governed.meet().await?;
    }
    let library = servers.offered()?.library;
    let echo = library
        .lookup("fixture__echo")
        .context("there is no echo")?;
    let instruction = NonEmptyText::new("Echo.")?;
    let agent = Agent::new(
        AgentName::new("echoing")?,
        "by_hand/none".parse()?,
        instruction,
    )
    .with_tool(Arc::new(echo.specification().map_err(anyhow::Error::msg)?))?;
    let tenant = NonEmptyText::new("local")?;
    let who = Identity::new(tenant, Principal::new("ann")?);
    // The scripted server says nothing of its tool, so the operator does.
    let mut governance = Governance::default();
    governance
        .overrides
        .insert("fixture__echo".to_owned(), RiskLevel::Reversible);
    let (mut of_bare, mut of_governed) = (Vec::new(), Vec::new());
    for batch in 0..=BATCHES {
        let begun = Instant::now();
        for _ in 0..IN_A_RUN {
            let params = CallToolRequestParams::new("echo").with_arguments(arguments.clone());
            bare.call_tool(params).await?;
        }
        let bare_took = begun.elapsed();
        // No two calls are the same: the same one again would be answered from what is known.
        let calls = (0..IN_A_RUN).map(|number| {
            let text = format!("{batch} {number} {}", "x".repeat(190));
            asked("fixture__echo", json!({ "text": text }))
        });
        let finish = json!({"answer": "Done.", "reasoning": "It was echoed.", "confidence": 1});
        let model: Arc<dyn ModelClient> = Arc::new(ScriptedModel::answers(
            calls.chain([asked("finish", finish)]),
        ));
        let one = std::slice::from_ref(&agent);
        let crew = Crew::assemble(one, &agent, &library, BindingMode::Exact, &|_| {
            Ok(Arc::clone(&model))
        })?;
        let stored = Stored::new(Arc::clone(&store), who.clone());
        let driver = Driver::new(crew.governed_by(governance.clone()), Arc::new(stored));
        let mut new = NewTask::default();
        new.task.description = "Echo.".to_owned();
        new.settings.max_iterations = u32::try_from(IN_A_RUN)? + 1;
        let begun = Instant::now();
        let run = driver.start(new).await?;
        let took = begun.elapsed();
        let mut outcomes = run.calls().map(CallRecord::outcome);
        let failed = outcomes.find(|outcome| !matches!(outcome, Some(Ok(_))));
        if let Some(failed) = failed {
            bail!("a call failed: {failed:?}");
        }
        anyhow::ensure!(run.calls().count() == IN_A_RUN, "{:?}", run.end());
        if batch > 0 {
            let calls = u32::try_from(IN_A_RUN)?;
            of_bare.push(bare_took / calls);
            of_governed.push(took / calls);
        }
    }
    servers.close().await;
    Ok((median(&mut of_governed), median(&mut of_bare)))
}

fn asked(tool: &str, arguments: Value) -> ModelAnswer {
    ModelAnswer {
        calls: vec![RequestedCall {
            tool: tool.to_owned(),
            arguments: RequestedArguments::Json(arguments),
            confidence: Some(1.0),
        }],
        ..ModelAnswer::default()
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
