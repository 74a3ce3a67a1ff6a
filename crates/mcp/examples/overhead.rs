//! Measures the overhead of a call compared with bare `rmcp`: through a `Server`, and governed in a run, from
//! the model's request to the result, with decision, permit, pin and journal. The whole turn, until the next
//! request to the model, is reported too. All use the same scripted server, alternating in one run; the
//! results are medians and ratios. A native tool called the same way shows the share of the loop.
//!
//! `cargo xtask bench mcp` builds the scripted server and runs this.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures::future::BoxFuture;
use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Map, Value, json};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;
use windlass_core::approval::{Principal, TenantPrincipal};
use windlass_core::gate::Governance;
use windlass_core::model::{ModelAnswer, ModelRequest, RequestedArguments, RequestedCall};
use windlass_core::run::Event;
use windlass_mcp::{CallOutcome, CallRequest, Era, Ledger, Server, ServerOptions, Servers};
use windlass_model::{ModelClient, ModelError, ModelEvent};
use windlass_runtime::{Crew, Driver, NewTask, Stored};
use windlass_spec::server::{CommandTransport, ServerName, ServerSettings, Transport};
use windlass_spec::{
    Agent, AgentName, CallRecord, NonEmptyText, RiskLevel, Signature, ToolName, ToolSpecification,
};
use windlass_store::Store;
use windlass_tools::{BindingMode, Tool, ToolLibrary};

const WARM_UP: usize = 200;
const ROUNDS: usize = 3_000;
const BATCHES: usize = 30;
const IN_A_RUN: usize = 40;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Next to the directory of this program.
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
        access: Default::default(),
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
            approval: None,
        };
        let outcome = server.call(request).await?;
        let took_server = begun.elapsed();
        if !matches!(outcome, CallOutcome::Answered(_)) {
            bail!("the scripted server asks something");
        }
        if round >= WARM_UP {
            of_bare.push(took);
            of_server.push(took_server);
        }
    }
    let (bare_median, server_median) = (median(&mut of_bare), median(&mut of_server));
    let found = governed(&bare, &arguments, &settings, "").await?;
    let spread = governed(&bare, &arguments, &settings, &spread_rules()).await?;
    let crowded = governed(&bare, &arguments, &settings, &crowded_rules()).await?;
    let more = |governed: Duration, than: Duration| {
        let ratio = governed.as_secs_f64() / than.as_secs_f64();
        format!("{:?} more, ratio {ratio:.3}", governed.saturating_sub(than))
    };
    #[allow(clippy::print_stdout)]
    {
        println!("bare library       {bare_median:?} (median of {ROUNDS})");
        println!(
            "Server::call       {server_median:?} (with the check of the promised structure): {}",
            more(server_median, bare_median)
        );
        let calls = BATCHES * IN_A_RUN;
        println!("bare library       {:?} (median of {calls})", found.bare);
        println!(
            "governed           {:?} (in a run, journaled): {}",
            found.governed,
            more(found.governed, found.bare)
        );
        println!(
            "  a whole turn     {:?} (until the model is asked again)",
            found.turn
        );
        println!(
            "governed, native   {:?} (the same without a server), a whole turn {:?}",
            found.native, found.native_turn
        );
        println!(
            "{RULES} rules over {TOOLS} tools: governed {:?}, {}",
            spread.governed,
            more(spread.governed, spread.bare)
        );
        println!(
            "{RULES} rules on every tool: governed {:?}, {}",
            crowded.governed,
            more(crowded.governed, crowded.bare)
        );
        for (name, found) in [("", &found), ("_spread", &spread), ("_crowded", &crowded)] {
            let added = found.governed.as_secs_f64() - found.bare.as_secs_f64();
            println!("= mcp_governed{name}_added_us {:.2}", added * 1e6);
        }
        println!("= mcp_native_us {:.2}", found.native.as_secs_f64() * 1e6);
        println!("= mcp_bare_us {:.2}", found.bare.as_secs_f64() * 1e6);
    }
    server.close().await;
    bare.cancel().await?;
    Ok(())
}

/// The costs of a call.
struct Found {
    bare: Duration,
    governed: Duration,
    turn: Duration,
    native: Duration,
    native_turn: Duration,
}

/// The costs of bare and governed calls, alternating.
async fn governed(
    bare: &RunningService<RoleClient, ()>,
    arguments: &Map<String, Value>,
    settings: &ServerSettings,
    rules: &str,
) -> anyhow::Result<Found> {
    let directory = tempfile::tempdir()?;
    let store = Arc::new(Store::open(directory.path().join("windlass.db"))?);
    let ledger = Ledger::new(Arc::clone(&store), "local");
    let mut settings = settings.clone();
    settings.is_trusted = true;
    let servers = Servers::new([settings], &ledger, |_| ServerOptions::default())?;
    for governed in servers.iter() {
        governed.connect().await?;
    }
    let mut library = servers.accepted_tools()?.library;
    let native = Tool::builder("native__echo")
        .description("Says the same again")
        .signature("(text: Text) --> IO Any")
        .handler(|arguments: Value| async move { Ok(arguments) })
        .build()?;
    library.register(native);
    let mut found = [const { Vec::new() }; 5];
    for batch in 0..=BATCHES {
        let mut of_bare = Vec::new();
        for _ in 0..IN_A_RUN {
            let begun = Instant::now();
            let params = CallToolRequestParams::new("echo").with_arguments(arguments.clone());
            bare.call_tool(params).await?;
            of_bare.push(begun.elapsed());
        }
        let (governed, turn) = turns("fixture__echo", batch, rules, &store, &library).await?;
        let (native, native_turn) = turns("native__echo", batch, rules, &store, &library).await?;
        if batch > 0 {
            let of_batch = [of_bare, governed, turn, native, native_turn];
            for (kept, new) in found.iter_mut().zip(of_batch) {
                kept.extend(new);
            }
        }
    }
    servers.close().await;
    let [bare, governed, turn, native, native_turn] = found.map(|mut times| median(&mut times));
    Ok(Found {
        bare,
        governed,
        turn,
        native,
        native_turn,
    })
}

/// How many rules are added to the default policies, and over how many tools they are spread.
const RULES: usize = 200;
const TOOLS: usize = 20;

/// The tools that the rules name, in addition to the one that is called.
fn other_tools(called: &str) -> anyhow::Result<Vec<Arc<ToolSpecification>>> {
    let names = ECHOES.into_iter().map(str::to_owned);
    let names = names.chain((ECHOES.len()..TOOLS).map(|number| format!("tool_{number}")));
    names
        .filter(|name| name != called)
        .map(|name| {
            let signature = Signature::parse("(text: Text) --> IO Any");
            let signature = signature.map_err(|_| anyhow::anyhow!("the signature is wrong"))?;
            let description = NonEmptyText::new("A tool")?;
            let tool = ToolSpecification::new(ToolName::new(name)?, description, signature);
            Ok(Arc::new(tool))
        })
        .collect()
}

/// The tools that are called.
const ECHOES: [&str; 2] = ["fixture__echo", "native__echo"];

/// A rule whose condition is never met. It reads an argument, so the decision about a call is not remembered.
fn rule(number: usize, action: &str) -> String {
    format!(
        "@id(\"rule-{number}\") forbid (principal, {action}, resource) \
         when {{ context.input has text && context.input.text == \"secret {number}\" }};\n"
    )
}

/// Rules that each apply to one tool.
fn spread_rules() -> String {
    let rules = (0..RULES).map(|number| {
        let tool = match number % TOOLS {
            echo if echo < ECHOES.len() => ECHOES[echo].to_owned(),
            other => format!("tool_{other}"),
        };
        rule(number, &format!("action == Action::\"{tool}\""))
    });
    rules.collect()
}

/// Rules that each apply to all tools.
fn crowded_rules() -> String {
    (0..RULES).map(|number| rule(number, "action")).collect()
}

/// The durations of the calls of a run that calls one tool repeatedly, from the model's request to the
/// result, and of the turns, from one request to the model to the next.
async fn turns(
    tool: &str,
    batch: usize,
    rules: &str,
    store: &Arc<Store>,
    library: &ToolLibrary,
) -> anyhow::Result<(Vec<Duration>, Vec<Duration>)> {
    let echo = library.lookup(tool).context("there is no echo")?;
    let agent = Agent::new(
        AgentName::new("echoing")?,
        "by_hand/none".parse()?,
        NonEmptyText::new("Echo.")?,
    )
    .with_tool(Arc::new(echo.specification().map_err(anyhow::Error::msg)?))?;
    // The scripted server gives no hints for its tool, so the operator sets its risk.
    let mut governance = Governance::default();
    governance
        .overrides
        .insert(tool.to_owned(), RiskLevel::Reversible);
    governance.policies.push_str(rules);
    governance.other_tools = other_tools(tool)?;
    // All calls differ: a repeated call would be answered from the cache.
    let calls = (0..IN_A_RUN).map(|number| {
        let text = format!("{batch} {number} {}", "x".repeat(190));
        asked(tool, json!({ "text": text }))
    });
    let finish = json!({"answer": "Done.", "reasoning": "It was echoed.", "confidence": 1});
    let model = Arc::new(Timed {
        answers: Mutex::new(calls.chain([asked("finish", finish)]).collect()),
        asked: Mutex::default(),
    });
    let one = std::slice::from_ref(&agent);
    let crew = Crew::assemble(one, &agent, library, BindingMode::Exact, &|_| {
        Ok(Arc::clone(&model) as _)
    })?;
    let tenant = NonEmptyText::new("local")?;
    let who = TenantPrincipal::new(tenant, Principal::new("ann")?);
    let stored = Stored::new(Arc::clone(store), who);
    let driver = Driver::new(crew.governed_by(governance), Arc::new(stored));
    let mut new = NewTask::default();
    new.task.description = "Echo.".to_owned();
    new.settings.max_iterations = u32::try_from(IN_A_RUN)? + 1;
    let run = driver.start(new).await?;
    let mut outcomes = run.calls().map(CallRecord::outcome);
    let failed = outcomes.find(|outcome| !matches!(outcome, Some(Ok(_))));
    if let Some(failed) = failed {
        bail!("a call failed: {failed:?}");
    }
    anyhow::ensure!(run.calls().count() == IN_A_RUN, "{:?}", run.end());
    let (mut calls, mut asked_at) = (Vec::new(), None);
    for (_, event) in store.events(run.id())? {
        match event {
            Event::ModelAnswered { at, .. } => asked_at = Some(at),
            Event::CallEnded { at, .. } => {
                let asked_at = asked_at.context("no call was requested")?;
                calls.push(Duration::from_micros(at.microseconds_since(asked_at)));
            }
            _ => {}
        }
    }
    let asked = model.asked.lock().unwrap_or_else(PoisonError::into_inner);
    let turns = asked.windows(2).map(|two| two[1] - two[0]).collect();
    Ok((calls, turns))
}

/// A model that answers at once and records the times of its requests.
struct Timed {
    answers: Mutex<VecDeque<ModelAnswer>>,
    asked: Mutex<Vec<Instant>>,
}

impl ModelClient for Timed {
    fn answer<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: &'a CancellationToken,
        _: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(Instant::now());
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers.pop_front().unwrap_or_default();
        Box::pin(std::future::ready(Ok(answer)))
    }
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
