//! `windlass plan`: runs, shows, marks and edits plans, which are tasks with dependencies. A plan is part of a
//! run, so `windlass runs` resumes and cancels it.

mod draw;
mod graph;

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::json;
use windlass_core::run::{PlanState, PlanTaskStatus, Run, RunEnd};
use windlass_runtime::now;
use windlass_service::types::RunState;
use windlass_service::{
    BoundAgent, Identity, PlanChange, PlanDetails, Service, plan_to_json, read_plan,
    stored_plan_to_json,
};
use windlass_spec::number::read_json_or_text;
use windlass_spec::plan::Plan;

use super::arguments::{
    self, PlanCommand, PlanEdit, PlanList, PlanMark, PlanRun, PlanShow, PlanSource,
};
use super::ending::{
    describe_pending, early_end_message, exit_code, next_step_message, resume_command,
};
use super::live::Live;
use super::moments::ago;
use super::paste;
use super::program::{Notices, Program, ended};
use super::report::Reporter;
use super::run::{attachment, block_on, choose};
use super::table::{one_line, print_table};
use super::terminal::{Quote, eprint_line, print_content, print_json, print_line};
use super::{CommandOutcome, describe_error};

/// The maximum size of a plan file.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

pub(super) fn run(
    program: &Program,
    command: &arguments::Plan,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let data = command.data.as_deref();
    let service = || program.service(data);
    let identity = &program.identity()?;
    let bind = |source| PlanAgent::bind(program, source, data, reporter);
    match &command.command {
        PlanCommand::Check(command) => {
            let text = read_text(&command.source.plan)?;
            let place = command.source.plan.display().to_string();
            let bound = bind(&command.source);
            if let Ok(Some(agent)) = &bound {
                let plan = agent.bound.read_plan(&text, &place);
                return show_check(plan.map_err(Into::into), command.json);
            }
            // The errors of the plan are reported even if the agent has errors.
            if let Err(error) = read_plan(&text, &place) {
                show_check(Err(error.into()), command.json)?;
            }
            bound.map(|_| CommandOutcome::Failed)
        }
        PlanCommand::Run(command) => {
            let text = read_text(&command.source.plan)?;
            let Some(agent) = bind(&command.source)? else {
                return Ok(CommandOutcome::Failed);
            };
            let place = command.source.plan.display().to_string();
            let plan = agent.bound.read_plan(&text, &place)?;
            run_plan(&agent, &plan, command)
        }
        PlanCommand::List(command) => list(&service(), identity, command),
        PlanCommand::Show(command) => ended(show(&service(), identity, command), command.json),
        PlanCommand::Mark(command) => ended(mark(&service(), identity, command), command.json),
        PlanCommand::Edit(command) => ended(edit(&service(), identity, command), command.json),
    }
}

/// Reads the text of a plan file.
fn read_text(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let place = path.display();
    if path.as_os_str() == "-" {
        let mut stdin = std::io::stdin().take(MAX_BYTES + 1);
        stdin
            .read_to_string(&mut text)
            .context("cannot read standard input")?;
    } else {
        let file = std::fs::File::open(path).with_context(|| format!("cannot read {place}"))?;
        let mut file = file.take(MAX_BYTES + 1);
        file.read_to_string(&mut text)
            .with_context(|| format!("cannot read {place}"))?;
    }
    anyhow::ensure!(
        text.len() as u64 <= MAX_BYTES,
        "{place} is larger than {MAX_BYTES} bytes"
    );
    Ok(text)
}

/// The agent whose tools a plan uses.
struct PlanAgent {
    service: Service,
    identity: Identity,
    bound: BoundAgent,
}

impl PlanAgent {
    /// `None` if its file has errors, which are reported.
    fn bind(
        program: &Program,
        source: &PlanSource,
        data: Option<&Path>,
        reporter: &Reporter,
    ) -> anyhow::Result<Option<Self>> {
        let options = source.agent.run_options();
        let Some(declared) = choose(&source.file, &options, reporter)? else {
            return Ok(None);
        };
        let service = program.service_for(data, &options, Notices::Text);
        let identity = program.identity()?;
        let bound = service.bind(&identity, &declared, &options)?;
        Ok(Some(Self {
            service,
            identity,
            bound,
        }))
    }
}

fn show_check(plan: anyhow::Result<Plan>, as_json: bool) -> anyhow::Result<CommandOutcome> {
    match (plan, as_json) {
        (Ok(plan), true) => print_json(&format!("{}\n", json!({"ok": true, "plan": plan})))?,
        (Ok(plan), false) => print_line(&format!(
            "the plan is valid: {} tasks, {}",
            plan.tasks().len(),
            plan.execution_mode().as_str()
        ))?,
        (Err(error), true) => {
            let errors: Vec<String> = describe_error(&error).lines().map(str::to_owned).collect();
            print_json(&format!("{}\n", json!({"ok": false, "errors": errors})))?;
            return Ok(CommandOutcome::Failed);
        }
        (Err(error), false) => {
            eprint_line(&format!("error: {}", describe_error(&error)))?;
            return Ok(CommandOutcome::Failed);
        }
    }
    Ok(CommandOutcome::Done)
}

fn run_plan(agent: &PlanAgent, plan: &Plan, command: &PlanRun) -> anyhow::Result<CommandOutcome> {
    let (service, identity) = (&agent.service, &agent.identity);
    let (limits, has_call_limit) = (&command.limits, command.limits.max_calls.is_some());
    let live = Arc::new(Live::attended(service, identity));
    let run = block_on(service, async {
        let attachment = attachment(service, identity, &live, false, command.json);
        let settings = limits.settings();
        agent
            .bound
            .start_plan(identity, plan, settings, has_call_limit, attachment)
            .await
    })??;
    show_end(&run, service, identity, command.json)
}

/// Prints the outcome of a plan.
pub(super) fn show_end(
    run: &Run,
    service: &Service,
    identity: &Identity,
    as_json: bool,
) -> anyhow::Result<CommandOutcome> {
    let plan = run.plans().first();
    if as_json {
        let plan = plan.map(PlanState::to_json);
        let object = json!({"run": run.id(), "end": run.end_or_waiting(), "plan": plan});
        print_json(&format!("{object}\n"))?;
    } else if let Some(plan) = plan {
        print_line(draw::draw_plan(plan, now()).trim_end())?;
    }
    match run.end() {
        // The answer says why there is no plan.
        Some(RunEnd::Completed) if plan.is_none() && !as_json => {
            let answer = Quote::of(run.response().answer().as_str()).after_label("  ");
            eprint_line(&format!("error: {answer}"))?;
        }
        Some(end) if !as_json => {
            if let Some(message) = early_end_message(end) {
                eprint_line(&message)?;
            }
        }
        Some(_) => {}
        None => {
            let manual = plan.into_iter().flat_map(|plan| {
                let id = plan.id();
                plan.manual_tasks().map(move |task| {
                    let command = format!("plan mark {id} {} success", task.id);
                    paste::command(&command, service.given_data_directory().as_deref())
                })
            });
            for command in manual {
                eprint_line(&format!(
                    "waiting for a manual task; when it is done, run: {command}"
                ))?;
            }
            eprint_line(&describe_pending(run, service, identity)?)?;
        }
    }
    let code = match (run.end(), plan.map(PlanState::status)) {
        (Some(RunEnd::Completed), Some(PlanTaskStatus::Success)) => 0,
        (Some(RunEnd::Completed), Some(PlanTaskStatus::Cancelled)) => RunEnd::Cancelled.exit_code(),
        (Some(RunEnd::Completed), _) => 1,
        _ => exit_code(run),
    };
    Ok(CommandOutcome::Code(code))
}

fn show(
    service: &Service,
    identity: &Identity,
    command: &PlanShow,
) -> anyhow::Result<CommandOutcome> {
    let id = match &command.plan {
        Some(id) => id.clone(),
        None => {
            let latest = service.list_plans(identity, 1, None)?;
            let latest = latest.first().context("there are no plans")?;
            latest.plan.to_string()
        }
    };
    let details = service.show_plan(identity, &id)?;
    let plan = details.state().context("the plan no longer exists")?;
    match (command.json, command.graph) {
        (true, _) => print_json(&format!("{}\n", plan_to_json(plan)))?,
        (false, Some(graph)) => print_content(&graph::draw_graph(plan, graph))?,
        (false, None) => print_line(draw::draw_plan(plan, now()).trim_end())?,
    }
    Ok(CommandOutcome::Done)
}

fn list(
    service: &Service,
    identity: &Identity,
    command: &PlanList,
) -> anyhow::Result<CommandOutcome> {
    let plans = service.list_plans(identity, command.limit, None)?;
    if command.json {
        for plan in plans {
            print_json(&format!("{}\n", stored_plan_to_json(&plan)))?;
        }
        return Ok(CommandOutcome::Done);
    }
    if plans.is_empty() {
        eprint_line("there are no plans\nhint: run one with `windlass plan run FILE PLAN`")?;
        return Ok(CommandOutcome::Done);
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
    print_table(["plan", "made", "run", "tasks", "goal"], &rows)?;
    Ok(CommandOutcome::Done)
}

fn mark(
    service: &Service,
    identity: &Identity,
    command: &PlanMark,
) -> anyhow::Result<CommandOutcome> {
    let details = service.show_plan(identity, &command.plan.plan)?;
    let status = PlanTaskStatus::from(command.status);
    let result = command
        .result
        .as_ref()
        .map(|text| read_json_or_text(text))
        .transpose()?;
    let task = &command.task;
    let change = service.mark_plan_task(identity, &details, task, status, result)?;
    let status = status.as_str();
    let what = match change {
        PlanChange::Made => format!("`{task}` marked {status}"),
        PlanChange::Pending => format!("`{task}` will be marked {status}"),
    };
    print_change(service, identity, &details, &what, command.json)
}

fn edit(
    service: &Service,
    identity: &Identity,
    command: &PlanEdit,
) -> anyhow::Result<CommandOutcome> {
    let new = read_plan(
        &read_text(&command.new)?,
        &command.new.display().to_string(),
    )?;
    let details = service.show_plan(identity, &command.plan.plan)?;
    let what = match service.edit_plan(identity, &details, &new)? {
        PlanChange::Made => "plan changed",
        PlanChange::Pending => "the plan will be changed",
    };
    print_change(service, identity, &details, what, command.json)
}

/// Prints that a plan was changed, and what happens to its run.
fn print_change(
    service: &Service,
    identity: &Identity,
    details: &PlanDetails,
    what: &str,
    as_json: bool,
) -> anyhow::Result<CommandOutcome> {
    let run = details.run.id();
    let onward = service.outermost_run_state(identity, run)?;
    if as_json {
        let next = (onward.state != RunState::Ended).then(|| resume_command(&onward));
        print_json(&format!(
            "{}\n",
            json!({"run": run, "done": what, "next": next})
        ))?;
    } else {
        print_line(what)?;
        eprint_line(&next_step_message(&onward))?;
    }
    Ok(CommandOutcome::Done)
}
