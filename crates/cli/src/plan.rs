//! `windlass plan`: tasks that wait for each other, carried out with the tools of an agent, drawn, marked
//! and changed. A plan is carried out by a run like any other, so going on with it and stopping it are
//! done with `windlass runs`.

mod draw;
mod graph;

use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};
use windlass_core::model::{RequestedArguments, RequestedCall};
use windlass_core::run::{
    CREATE_EXECUTION_PLAN, Event, PlanState, PlanTaskStatus, Run, RunEnd, Settings, Task,
};
use windlass_runtime::{NewTask, Stored, now};
use windlass_spec::plan::{Plan, PlanErrors, PlanTaskId, RawPlan, Work};
use windlass_spec::{Agent, AgentName, CallId, RunId};
use windlass_store::{InboxCommandId, RunState, Store};

use super::Outcome;
use super::arguments::{
    self, PlanCheck, PlanCommand, PlanEdit, PlanList, PlanMark, PlanRun, PlanShow,
};
use super::ending::{exit_code, what_it_waits_for, why_early};
use super::moments::ago;
use super::outermost::Onward;
use super::refusal::{Refusal, refused, told};
use super::report::Reporter;
use super::run::{block_on, driver};
use super::table::{one_line, say_table};
use super::terminal::{complain, put, put_content, say};
use super::{crew, data};

/// The largest file that is read as a plan.
const LARGEST: u64 = 16 * 1024 * 1024;

pub(super) fn run(command: &arguments::Plan, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let directory = command.data.as_deref();
    match &command.command {
        PlanCommand::Check(command) => check(command, directory, reporter),
        PlanCommand::Run(command) => carry_out(command, directory, reporter),
        PlanCommand::List(command) => list(data::open(directory)?.store(), command),
        PlanCommand::Show(command) => {
            let stored = data::open(directory)?;
            told(show(stored.store(), command), command.json)
        }
        PlanCommand::Mark(command) => told(mark(&data::open(directory)?, command), command.json),
        PlanCommand::Edit(command) => told(edit(&data::open(directory)?, command), command.json),
    }
}

/// Reads a plan from a file, or says everything that is wrong with it.
fn read(path: &Path) -> anyhow::Result<Plan> {
    let mut text = String::new();
    let place = path.display();
    if path.as_os_str() == "-" {
        let mut stdin = std::io::stdin().take(LARGEST + 1);
        stdin
            .read_to_string(&mut text)
            .context("standard input cannot be read")?;
    } else {
        let file = std::fs::File::open(path).with_context(|| format!("{place} cannot be read"))?;
        let mut file = file.take(LARGEST + 1);
        file.read_to_string(&mut text)
            .with_context(|| format!("{place} cannot be read"))?;
    }
    anyhow::ensure!(
        text.len() as u64 <= LARGEST,
        "{place} is larger than {LARGEST} bytes"
    );
    let raw: RawPlan =
        serde_json::from_str(&text).with_context(|| format!("{place} is no plan"))?;
    Plan::try_from(raw).map_err(|errors| anyhow::anyhow!("{place} cannot be carried out\n{errors}"))
}

/// Says what of a plan the agent cannot do.
fn fits(plan: &Plan, agent: &Agent) -> anyhow::Result<()> {
    let tools = agent.tools().iter().map(AsRef::as_ref);
    let agents = [agent.name()].into_iter().chain(agent.agents());
    let agents: Vec<&str> = agents.map(AgentName::as_str).collect();
    let errors = plan.check_work(tools, &agents);
    anyhow::ensure!(
        errors.is_empty(),
        "the plan cannot be carried out\n{}",
        PlanErrors(errors)
    );
    Ok(())
}

fn check(
    command: &PlanCheck,
    directory: Option<&Path>,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
    let Some(chosen) = crew::choose(&command.file, &command.crew, reporter)? else {
        return Ok(Outcome::Failed);
    };
    let agent = chosen
        .assemble(&command.crew, directory)?
        .crew
        .lead()
        .agent
        .clone();
    let plan = read(&command.plan).and_then(|plan| fits(&plan, &agent).map(|()| plan));
    match (plan, command.json) {
        (Ok(plan), true) => put(&format!("{}\n", json!({"ok": true, "plan": plan})))?,
        (Ok(plan), false) => say(&format!(
            "the plan can be carried out: {} tasks, {}",
            plan.tasks().len(),
            plan.execution_mode().as_str()
        ))?,
        (Err(error), true) => {
            let errors: Vec<String> = format!("{error:#}").lines().map(str::to_owned).collect();
            put(&format!("{}\n", json!({"ok": false, "errors": errors})))?;
            return Ok(Outcome::Failed);
        }
        (Err(error), false) => {
            complain(&format!("error: {error:#}"))?;
            return Ok(Outcome::Failed);
        }
    }
    Ok(Outcome::Done)
}

fn carry_out(
    command: &PlanRun,
    directory: Option<&Path>,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
    let Some(chosen) = crew::choose(&command.file, &command.crew, reporter)? else {
        return Ok(Outcome::Failed);
    };
    let plan = read(&command.plan)?;
    let goal = plan.goal().unwrap_or("Carry out a plan.").to_owned();
    let mut settings = command.limits.settings();
    settings.plans = true;
    if command.limits.max_calls.is_none() {
        settings.max_calls = settings.max_calls.max(calls_for(&plan));
    }
    let new = NewTask {
        task_id: None,
        task: Task {
            description: goal,
            call: Some(Box::new(RequestedCall {
                tool: CREATE_EXECUTION_PLAN.to_owned(),
                arguments: RequestedArguments::Json(serde_json::to_value(&plan)?),
                confidence: None,
            })),
            ..Task::default()
        },
        settings,
        assembly: crew::assembly(&command.crew)?,
    };
    let crew = chosen.assemble(&command.crew, directory)?;
    let (crew, _watching) = crew.watched(false);
    // Tools of servers are the agent's only when it is put to work.
    fits(&plan, &crew.lead().agent)?;
    let stored = data::open(directory)?;
    let run = block_on(async { driver(crew, &stored, false, command.json).start(new).await })??;
    show_end(&run, stored.store(), command.json)
}

/// How many calls carrying out a plan takes, with every attempt and the call that makes it. Whoever wrote
/// it knows how many tasks it has, so they need not say so again. An agent has as many as in a run of its own.
fn calls_for(plan: &Plan) -> u32 {
    let of_tasks = plan.tasks().iter().map(|task| {
        let calls = match &task.work {
            Work::Call { .. } => 1,
            Work::Agent(_) => Settings::default().max_calls,
            Work::ByHand => 0,
        };
        calls.saturating_mul(task.retries.saturating_add(1))
    });
    of_tasks.fold(1, u32::saturating_add)
}

/// Says what came of carrying out a plan.
pub(super) fn show_end(run: &Run, store: &Store, as_json: bool) -> anyhow::Result<Outcome> {
    let plan = run.plans().first();
    if as_json {
        let plan = plan.map(PlanState::told);
        let told = json!({"run": run.id(), "end": run.standing(), "plan": plan});
        put(&format!("{told}\n"))?;
    } else if let Some(plan) = plan {
        say(draw::drawn(plan, now()).trim_end())?;
    }
    match run.end() {
        // Why there is no plan, if there is none.
        Some(RunEnd::Completed) if plan.is_none() && !as_json => {
            complain(&format!("error: {}", run.response().answer))?;
        }
        Some(end) if !as_json => {
            if let Some(why) = why_early(end) {
                complain(&why)?;
            }
        }
        Some(_) => {}
        None => {
            let by_hand = plan.into_iter().flat_map(|plan| {
                let id = plan.id();
                plan.by_hand()
                    .map(move |task| format!("windlass plan mark {id} {} success", task.id))
            });
            for command in by_hand {
                complain(&format!("a task is done by hand; when it is: {command}"))?;
            }
            complain(&what_it_waits_for(run, store)?)?;
        }
    }
    let code = match (run.end(), plan.map(PlanState::status)) {
        (Some(RunEnd::Completed), Some(PlanTaskStatus::Success)) => 0,
        (Some(RunEnd::Completed), Some(PlanTaskStatus::Cancelled)) => RunEnd::Cancelled.exit_code(),
        (Some(RunEnd::Completed), _) => 1,
        _ => exit_code(run),
    };
    Ok(Outcome::Code(code))
}

/// The plan that is meant, and the run that made it.
fn find(store: &Store, name: &str) -> anyhow::Result<(Run, CallId)> {
    let (run, call) = match name.parse::<CallId>() {
        Ok(call) => (call.run.to_string(), Some(call)),
        Err(_) => (name.to_owned(), None),
    };
    let id = store.find(&run).map_err(refused)?;
    let run = store.fold(&id).map_err(refused)?;
    let plan = match &call {
        Some(call) => run
            .plans()
            .iter()
            .find(|plan| (plan.id().turn, plan.id().index) == (call.turn, call.index)),
        None => run.plans().last(),
    };
    let Some(plan) = plan.map(|plan| plan.id().clone()) else {
        let message = format!("there is no plan `{name}`");
        let refusal = Refusal::not_found("no_such_plan", message);
        return Err(refusal
            .hint("windlass plan list tells which there are")
            .into());
    };
    Ok((run, plan))
}

fn show(store: &Store, command: &PlanShow) -> anyhow::Result<Outcome> {
    let (run, id) = find(store, &command.plan)?;
    let plan = run.plan(&id).context("the plan is gone")?;
    match (command.json, command.graph) {
        (true, _) => put(&format!("{}\n", as_object(plan)))?,
        (false, Some(graph)) => put_content(&graph::drawn(plan, graph))?,
        (false, None) => say(draw::drawn(plan, now()).trim_end())?,
    }
    Ok(Outcome::Done)
}

/// A plan for programs: as it is told to a model, with times.
fn as_object(plan: &PlanState) -> Value {
    let mut object = plan.told();
    object["goal"] = json!(plan.plan().goal());
    object["made_at"] = json!(plan.made_at());
    for (index, (task, state)) in plan.tasks().enumerate() {
        let told = &mut object["tasks"][index];
        told["depends_on"] = json!(task.depends_on);
        told["attempts"] = json!(state.attempts);
        told["started_at"] = json!(state.started_at);
        told["ended_at"] = json!(state.ended_at);
        if let Some(failure) = &state.failure {
            told["error"] = json!(failure.operator_message);
        }
    }
    object
}

fn list(store: &Store, command: &PlanList) -> anyhow::Result<Outcome> {
    let plans = store.plans(command.limit)?;
    if command.json {
        for plan in plans {
            put(&format!(
                "{}\n",
                json!({
                    "plan": plan.plan, "run": plan.plan.run, "goal": plan.goal, "tasks": plan.tasks,
                    "made_at": plan.made_at, "run_state": plan.run_state.as_str(),
                })
            ))?;
        }
        return Ok(Outcome::Done);
    }
    if plans.is_empty() {
        complain("there are no plans yet\nhint: windlass plan run FILE PLAN carries one out")?;
        return Ok(Outcome::Done);
    }
    let rows: Vec<[String; 5]> = plans
        .into_iter()
        .map(|plan| {
            [
                plan.plan.to_string(),
                ago(plan.made_at, now()),
                plan.run_state.as_str().to_owned(),
                plan.tasks.to_string(),
                one_line(plan.goal.as_deref().unwrap_or(""), 60),
            ]
        })
        .collect();
    say_table(["plan", "made", "run", "tasks", "goal"], &rows)?;
    Ok(Outcome::Done)
}

fn mark(stored: &Stored, command: &PlanMark) -> anyhow::Result<Outcome> {
    let store = stored.store();
    let (run, id) = find(store, &command.plan)?;
    let plan = run.plan(&id).context("the plan is gone")?;
    let status = PlanTaskStatus::from(command.status);
    if plan.task(&command.task).is_none() {
        let known = plan.plan().tasks().iter().map(|task| task.id.as_str());
        let known: Vec<&str> = known.collect();
        let message = format!("the plan has no task `{}`", command.task);
        let refusal = Refusal::not_found("no_such_task", message);
        return Err(refusal
            .hint(format!("its tasks: {}", known.join(", ")))
            .into());
    }
    plan.may_mark(&command.task, status)
        .map_err(|why| Refusal::conflict("cannot_be_marked", why))?;
    let task = PlanTaskId::new(command.task.as_str())?;
    let result = command
        .result
        .as_ref()
        .map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())));
    let mail = store
        .mark_task(&id, (&task, status), result, stored.who(), now())
        .map_err(refused)?;
    let status = status.as_str();
    let what = match taken_up(store, run.id(), mail)? {
        TakenUp::Yes => format!("`{task}` is marked {status}"),
        TakenUp::NotYet => format!("`{task}` is to be marked {status}"),
        TakenUp::TooLate => {
            let why = format!("`{task}` was not marked {status}: the plan had gone on by then");
            return Err(Refusal::conflict("too_late", why).into());
        }
    };
    said(store, &run, &what, command.json)
}

fn edit(stored: &Stored, command: &PlanEdit) -> anyhow::Result<Outcome> {
    let store = stored.store();
    let new = read(&command.new)?;
    let (run, id) = find(store, &command.plan)?;
    let wrong = run.check_plan(&new);
    anyhow::ensure!(
        wrong.is_empty(),
        "the plan could not be carried out\n{}",
        PlanErrors(wrong)
    );
    let event = Event::Replanned {
        plan: id.clone(),
        tasks: Box::new(new.clone()),
        by: stored.who().principal.clone(),
        at: now(),
    };
    let fits = run.clone().apply(&event);
    fits.map_err(|error| Refusal::conflict("cannot_be_changed", error.to_string()))?;
    let mail = store
        .replan(&id, &new, stored.who(), now())
        .map_err(refused)?;
    let what = match taken_up(store, run.id(), mail)? {
        TakenUp::Yes => "the plan is changed",
        TakenUp::NotYet => "the plan is to be changed",
        TakenUp::TooLate => {
            let why = "the plan was not changed: it had gone on by then";
            return Err(Refusal::conflict("too_late", why).into());
        }
    };
    said(store, &run, what, command.json)
}

/// What became of what was left for whoever carries out a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TakenUp {
    /// It holds: it was taken up, or nobody is at work who could come before it.
    Yes,
    /// Nobody has taken it up so far.
    NotYet,
    /// It no longer fitted when it was, or the run was over before.
    TooLate,
}

/// Waits a moment for whoever is at work to take up a mail. They look at least four times a second.
fn taken_up(store: &Store, run: &RunId, mail: InboxCommandId) -> anyhow::Result<TakenUp> {
    let patience = Instant::now() + Duration::from_secs(2);
    loop {
        let state = store.summary(run)?.state;
        if let Some(seq) = store.taken(mail)? {
            let events = store.events(run)?;
            let fitted = events.iter().any(|(number, event)| {
                *number == seq && !matches!(event, Event::TimePassed { .. })
            });
            return Ok(match fitted {
                true => TakenUp::Yes,
                false => TakenUp::TooLate,
            });
        }
        match state {
            RunState::Waiting => return Ok(TakenUp::Yes),
            RunState::Ended => return Ok(TakenUp::TooLate),
            RunState::Open if Instant::now() >= patience => return Ok(TakenUp::NotYet),
            RunState::Open => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Says that something was left for whoever carries out the plan.
fn said(store: &Store, run: &Run, what: &str, as_json: bool) -> anyhow::Result<Outcome> {
    let onward = Onward::of(store, run.id())?;
    if as_json {
        let next = (onward.state != RunState::Ended).then(|| onward.command());
        put(&format!(
            "{}\n",
            json!({"run": run.id(), "done": what, "next": next})
        ))?;
    } else {
        say(what)?;
        complain(&onward.told())?;
    }
    Ok(Outcome::Done)
}
