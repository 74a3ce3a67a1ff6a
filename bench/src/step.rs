//! Measures the run machine itself: applying an event, computing the next step, and deciding about a call,
//! without any model, tool or disk.

use std::hint::black_box;
use std::time::Instant;

use serde_json::json;
use windlass_core::approval::{Principal, TenantPrincipal};
use windlass_core::gate::{Decision, Governance, Rules};
use windlass_core::model::{
    FINISH, ModelAnswer, RequestedArguments, RequestedCall, Usage as ModelUsage,
};
use windlass_core::run::{CallEnd, Event, Next, Run};
use windlass_spec::{Agent, CallId, NonEmptyText, RunId, Timestamp};

use crate::windlass_runs::{agent, started};

/// The runs per timed batch. Few, so that most batches are not interrupted.
const BATCH: usize = 5;
const BATCHES: usize = 1_001;

/// Microseconds per step in a run of `turns` turns, median of batches.
pub fn microseconds(turns: u32) -> anyhow::Result<f64> {
    let agent = agent()?;
    let gate = BenchGate::new(&agent)?;
    let events = events(&agent, &gate, turns)?;
    let mut times = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..BATCH {
            black_box(process(black_box(&events), &gate)?);
        }
        times.push(start.elapsed().as_secs_f64() * 1e6 / (BATCH * events.len()) as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[BATCHES / 2])
}

/// Processes a run as a driver does: it computes the next step after each event, and lets the gate decide about
/// each call.
fn process(events: &[Event], gate: &BenchGate) -> anyhow::Result<Run> {
    let mut run = Run::fold(&events[..1])?;
    black_box(run.next());
    for event in &events[1..] {
        if let Event::Decided { call, .. } = event {
            black_box(gate.decide(&run, call)?);
        }
        run.apply(event)?;
        black_box(run.next());
    }
    Ok(run)
}

/// The gate's rules and the caller's identity.
struct BenchGate {
    identity: TenantPrincipal,
    rules: Rules,
}

impl BenchGate {
    fn new(agent: &Agent) -> anyhow::Result<Self> {
        let rules = Rules::new(&Governance::default(), agent, &[]);
        let tenant = NonEmptyText::new("local")?;
        Ok(Self {
            identity: TenantPrincipal::new(tenant, Principal::new("bench")?),
            rules: rules.map_err(|errors| anyhow::anyhow!("{errors:?}"))?,
        })
    }

    fn decide(&self, run: &Run, call: &CallId) -> anyhow::Result<Decision> {
        Ok(run.decide(
            call,
            &self.identity,
            &self.rules,
            &windlass_core::limits::Readiness::Ready,
        )?)
    }
}

/// The events of a run in which each turn but the last calls the tool.
fn events(agent: &Agent, gate: &BenchGate, turns: u32) -> anyhow::Result<Vec<Event>> {
    let mut events = vec![started(RunId::new("bench")?, agent)];
    let mut run = Run::fold(&events)?;
    let at = Timestamp::from_microseconds(1_700_000_000_000_000);
    let mut record = |run: &mut Run, event: Event| -> anyhow::Result<()> {
        run.apply(&event)?;
        events.push(event);
        Ok(())
    };
    loop {
        match run.next() {
            Next::CallModel(_) => {
                let turn = run.current_turn();
                let (tool, arguments) = if turn.number() < turns {
                    ("weather", json!({"city": "Bergen", "days": turn.number()}))
                } else {
                    let answer =
                        json!({"answer": "Bergen.", "reasoning": "I looked.", "confidence": 0.9});
                    (FINISH, answer)
                };
                let answer = ModelAnswer {
                    text: "Let me look at the weather before I answer that.".to_owned(),
                    calls: vec![RequestedCall {
                        tool: tool.to_owned(),
                        arguments: RequestedArguments::Json(arguments),
                        confidence: Some(0.9),
                    }],
                    usage: ModelUsage {
                        input_tokens: 120,
                        output_tokens: 20,
                        ..ModelUsage::default()
                    },
                    ..ModelAnswer::default()
                };
                record(&mut run, Event::ModelAnswered { turn, answer, at })?;
            }
            Next::Gate(calls) => {
                for call in calls {
                    let decision = gate.decide(&run, &call)?;
                    record(&mut run, Event::Decided { call, decision, at })?;
                }
            }
            Next::RunCalls(calls) => {
                for call in calls {
                    let call_started = Event::CallStarted {
                        call: call.clone(),
                        at,
                        variant: None,
                    };
                    record(&mut run, call_started)?;
                    let end = CallEnd::Success(json!("Rain, and then more rain. ".repeat(8)));
                    record(
                        &mut run,
                        Event::CallEnded {
                            call,
                            end,
                            usage: windlass_core::model::Usage::default(),
                            calls: 0,
                            ran: None,
                            tainted: false,
                            at,
                        },
                    )?;
                }
            }
            Next::Wait(_) => {
                anyhow::bail!("the run waits for a person, but no call needs approval")
            }
            Next::Done(_) => break,
        }
    }
    Ok(events)
}
