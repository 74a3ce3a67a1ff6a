//! What the run machine itself costs: taking an event, saying what is next, and deciding about a call,
//! without any model, tool or disk.

use std::hint::black_box;
use std::time::Instant;

use serde_json::json;
use windlass_core::approval::{Identity, Principal};
use windlass_core::gate::{Decision, Governance, Rules};
use windlass_core::model::{
    FINISH, ModelAnswer, RequestedArguments, RequestedCall, Usage as ModelUsage,
};
use windlass_core::run::{CallEnd, Event, Next, Run};
use windlass_spec::{Agent, CallId, NonEmptyText, RunId, Timestamp};

use crate::windlass_runs::{agent, started};

/// How many runs are timed together. Few, so that most batches are not interrupted.
const BATCH: usize = 5;
const BATCHES: usize = 1_001;

/// Microseconds a step takes in a run of so many turns, median of batches.
pub fn microseconds(turns: u32) -> anyhow::Result<f64> {
    let agent = agent()?;
    let gate = Gate::new(&agent)?;
    let events = events(&agent, &gate, turns)?;
    let mut times = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..BATCH {
            black_box(walk(black_box(&events), &gate)?);
        }
        times.push(start.elapsed().as_secs_f64() * 1e6 / (BATCH * events.len()) as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[BATCHES / 2])
}

/// Walks through a run as a driver does: after each event it asks what is next, and it lets the gate
/// decide about each call.
fn walk(events: &[Event], gate: &Gate) -> anyhow::Result<Run> {
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

/// What decides about the calls.
struct Gate {
    who: Identity,
    rules: Rules,
}

impl Gate {
    fn new(agent: &Agent) -> anyhow::Result<Self> {
        let rules = Rules::new(&Governance::default(), agent, &[]);
        let tenant = NonEmptyText::new("local")?;
        Ok(Self {
            who: Identity::new(tenant, Principal::new("bench")?),
            rules: rules.map_err(|errors| anyhow::anyhow!("{errors:?}"))?,
        })
    }

    fn decide(&self, run: &Run, call: &CallId) -> anyhow::Result<Decision> {
        Ok(run.decide(
            call,
            &self.who,
            &self.rules,
            &windlass_core::limits::Readiness::Ready,
        )?)
    }
}

/// The events of a run in which each turn but the last calls the tool.
fn events(agent: &Agent, gate: &Gate, turns: u32) -> anyhow::Result<Vec<Event>> {
    let mut events = vec![started(RunId::new("bench")?, agent)];
    let mut run = Run::fold(&events)?;
    let at = Timestamp::from_microseconds(1_700_000_000_000_000);
    let mut happen = |run: &mut Run, event: Event| -> anyhow::Result<()> {
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
                        microdollars: None,
                    },
                    ..ModelAnswer::default()
                };
                happen(&mut run, Event::ModelAnswered { turn, answer, at })?;
            }
            Next::Gate(calls) => {
                for call in calls {
                    let decision = gate.decide(&run, &call)?;
                    happen(&mut run, Event::Decided { call, decision, at })?;
                }
            }
            Next::RunCalls(calls) => {
                for call in calls {
                    let call_started = Event::CallStarted {
                        call: call.clone(),
                        at,
                        variant: None,
                    };
                    happen(&mut run, call_started)?;
                    let end = CallEnd::Success(json!("Rain, and then more rain. ".repeat(8)));
                    happen(
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
            Next::Wait(_) => anyhow::bail!("nobody should be asked"),
            Next::Done(_) => break,
        }
    }
    Ok(events)
}
