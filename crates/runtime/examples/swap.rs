//! Measures what a change of the configuration costs those who decide meanwhile: decisions are made
//! without a pause while the rules of the crew are swapped as fast as they can be made.
//!
//! `cargo xtask bench registry`

#![allow(clippy::print_stdout, reason = "a program that reports figures")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, json};
use windlass_core::approval::{Principal, TenantPrincipal};
use windlass_core::gate::{Governance, ToolRule};
use windlass_core::limits::Readiness;
use windlass_core::model::{ModelAnswer, RequestedArguments, RequestedCall};
use windlass_core::run::{Event, Run, Settings, Task};
use windlass_model::ScriptedModel;
use windlass_runtime::{Crew, CrewMember, now};
use windlass_spec::{NonEmptyText, RunId};
use windlass_tools::{BindingMode, bind, hello};

/// How many decisions are measured.
const ROUNDS: usize = 200_000;

const AGENT: &str = r#"
[greeter:Agent {instruction: "Greet people.", model: "OpenAI/gpt-4o-mini"} |
  [sayHello:Tool {description: "Returns a friendly greeting message for the given name", risk: reversible} | (name::Text)==>(::Text)]]
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let file = windlass_spec::read(AGENT).file.ok_or("no agent")?;
    let agent = file.agents().first().ok_or("no agent")?.clone();
    let tools = bind(&agent, &hello::hello(), BindingMode::Exact).map_err(|_| "cannot be bound")?;
    let model = Arc::new(ScriptedModel::answers([]));
    let crew = Crew::new(CrewMember {
        agent: agent.clone(),
        tools,
        model,
    });
    let started = Event::Started {
        run: RunId::new("r1")?,
        agent: Box::new(agent.clone()),
        agents: Vec::new(),
        assembly: Map::new(),
        parent: None,
        holds: None,
        task: Task {
            description: "Greet Ada.".to_owned(),
            ..Task::default()
        },
        settings: Settings::default(),
        at: now(),
    };
    let mut run = Run::fold([&started])?;
    run.apply(&Event::ModelAnswered {
        turn: run.current_turn(),
        answer: ModelAnswer {
            calls: vec![RequestedCall {
                tool: "sayHello".to_owned(),
                arguments: RequestedArguments::Json(json!({"name": "Ada"})),
                confidence: Some(0.9),
            }],
            ..ModelAnswer::default()
        },
        at: now(),
    })?;
    let call = run.calls().next().ok_or("no call")?.id().clone();
    let who = TenantPrincipal::new(NonEmptyText::new("local")?, Principal::new("ada")?);
    let decide = || -> Result<Duration, Box<dyn Error>> {
        let asked = Instant::now();
        let rules = crew.rules(agent.name())?;
        run.decide(&call, &who, &rules, &Readiness::Ready)?;
        Ok(asked.elapsed())
    };
    decide()?;
    let measure = || -> Result<Vec<Duration>, Box<dyn Error>> {
        let mut times = (0..ROUNDS)
            .map(|_| decide())
            .collect::<Result<Vec<_>, _>>()?;
        times.sort_unstable();
        Ok(times)
    };
    let quiet = measure()?;
    let (is_over, swaps) = (AtomicBool::new(false), AtomicU32::new(0));
    let under_change = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let number = swaps.fetch_add(1, Ordering::Relaxed);
                let mut governance = Governance::default();
                let rule = ToolRule {
                    switched_off: (number % 2 == 1).then(|| "for a moment".to_owned()),
                    ..ToolRule::default()
                };
                governance.tools.insert("sayHello".to_owned(), rule);
                let _ = crew.govern(governance);
            }
        });
        let times = measure();
        is_over.store(true, Ordering::Relaxed);
        times
    })?;
    println!(
        "{:<34} {:>9} {:>9} {:>9} {:>9} {:>11}",
        "decisions", "p50", "p99", "p99.9", "max", "over 1 ms"
    );
    for (name, times) in [("quiet", &quiet), ("under change", &under_change)] {
        let at = |share: f64| micros(times[((times.len() - 1) as f64 * share) as usize]);
        let slow = times.iter().filter(|time| time.as_millis() >= 1).count();
        println!(
            "{name:<34} {:>9} {:>9} {:>9} {:>9} {:>4} of {ROUNDS}",
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0),
            slow
        );
    }
    println!("{} swaps meanwhile", swaps.load(Ordering::Relaxed));
    Ok(())
}

fn micros(time: Duration) -> String {
    format!("{:.1} us", time.as_secs_f64() * 1e6)
}
