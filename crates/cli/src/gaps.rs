//! `windlass gaps`: the missing capabilities of agents, how often each was missing, and proposals of tools that
//! provide them. Also the messages about gaps during a run.

mod check;
mod propose;

use serde_json::{Value, json};
use windlass_core::run::DisabledTool;
use windlass_service::{Identity, MissingTool, Service};
use windlass_spec::{GapMoment, MissingCapability, Timestamp, ToolGapReport};

use super::CommandOutcome;
use super::arguments::{Gaps, GapsCommand, GapsList, GapsShow};
use super::live::shortened;
use super::moments::ago;
use super::program::Program;
use super::report::Reporter;
use super::table::{one_line, print_table};
use super::terminal::{Quote, eprint_line, print_json, print_line, visible_line};

pub(super) use windlass_service::{gaps_of_run as of_run, unreported_gap as unreported};

pub(super) fn run(
    program: &Program,
    command: &Gaps,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.data.as_deref());
    let identity = program.identity()?;
    match &command.command {
        GapsCommand::List(command) => list(&service, &identity, command),
        GapsCommand::Show(command) => show(&service, &identity, command),
        GapsCommand::Propose(command) => propose::run(&service, &identity, command, reporter),
        GapsCommand::Check(command) => check::run(&service, &identity, command, reporter),
    }
}

/// The maximum length of a listed capability or task.
const EXCERPT: usize = 70;

fn list(
    service: &Service,
    identity: &Identity,
    command: &GapsList,
) -> anyhow::Result<CommandOutcome> {
    let agent = command.agent.as_deref();
    let all = service.list_missing_tools(identity, agent, command.days)?;
    let now = service.now();
    if command.json {
        for missing in &all {
            print_json(&format!("{}\n", missing.to_json(now)))?;
        }
    } else if all.is_empty() {
        eprint_line("no missing capabilities are recorded")?;
    } else {
        let rows: Vec<[String; 5]> = all
            .iter()
            .map(|missing| {
                [
                    missing.name.clone(),
                    missing.occurrences.len().to_string(),
                    missing.this_week(now).to_string(),
                    ago(missing.last_at(), now),
                    one_line(&missing.description, EXCERPT),
                ]
            })
            .collect();
        print_table(["TOOL", "TIMES", "THIS WEEK", "LAST", "CAPABILITY"], &rows)?;
    }
    Ok(CommandOutcome::Done)
}

fn show(
    service: &Service,
    identity: &Identity,
    command: &GapsShow,
) -> anyhow::Result<CommandOutcome> {
    let missing = service.show_missing_tool(identity, &command.capability)?;
    let now = service.now();
    if command.json {
        print_json(&format!("{}\n", missing.to_json_in_full(now)))?;
        return Ok(CommandOutcome::Done);
    }
    let description = one_line(&missing.description, 400);
    let description = Quote::of(&description).after_label("  ");
    print_line(&format!("{}: {description}", missing.name))?;
    print_line(&describe_frequency(&missing, now))?;
    for time in &missing.occurrences {
        let run = time
            .run
            .as_ref()
            .map_or("-".to_owned(), ToString::to_string);
        print_line(&format!(
            "\n{}  {}  agent {}  run {run}",
            ago(time.at, now),
            time.moment.as_str(),
            time.agent
        ))?;
        if let Some(task) = &time.task {
            let task = one_line(task, 400);
            let task = Quote::of(&task).after_label("    ");
            print_line(&format!("  task: {task}"))?;
        }
        if let Some(confidence) = time.missing.as_ref().and_then(|missing| missing.confidence) {
            print_line(&format!("  confidence: {confidence}"))?;
        }
        for near in time
            .missing
            .iter()
            .flat_map(|missing| &missing.nearest_tools)
        {
            print_line(&format!(
                "  closest tool: `{}` ({})",
                near.name, near.nearness
            ))?;
        }
    }
    print_line(&format!(
        "\nto print a draft specification: windlass gaps propose {}",
        missing.name
    ))?;
    Ok(CommandOutcome::Done)
}

/// Describes how often a capability was missing.
fn describe_frequency(missing: &MissingTool, now: Timestamp) -> String {
    let times = |count: usize| match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    let (all, week) = (missing.occurrences.len(), missing.this_week(now));
    match week == all {
        true => format!("missing {} this week", times(week)),
        false => format!("missing {} this week, {} in total", times(week), times(all)),
    }
}

/// The message about a gap, with a hint.
pub(super) fn message(report: &ToolGapReport) -> String {
    message_lines(report).join("\n")
}

/// The lines of [`message`].
pub(super) fn message_lines(report: &ToolGapReport) -> Vec<String> {
    let mut lines = lines(report);
    lines.push("   see all missing capabilities: windlass gaps list".to_owned());
    lines
}

/// Describes a gap: a line for each missing capability.
pub(super) fn lines(report: &ToolGapReport) -> Vec<String> {
    let when = match report.moment() {
        Some(GapMoment::DuringRun) => "not done, because a tool is missing",
        _ => "no available tool seems to do this",
    };
    let mut lines: Vec<String> = Vec::new();
    for missing in report.missing_tools() {
        let about = report.detail(missing);
        let words = about.map_or(missing, MissingCapability::words);
        if let Some(because) = about.and_then(|about| about.because.as_ref()) {
            let what = shortened(words.as_str());
            lines.push(visible_line(&format!("gap: {what}: {because}")));
            continue;
        }
        let near: Vec<String> = about
            .into_iter()
            .flat_map(|about| &about.nearest_tools)
            .take(2)
            .map(|near| format!("`{}`", near.name))
            .collect();
        let near = match near.is_empty() {
            true => String::new(),
            false => format!(" (closest: {})", near.join(", ")),
        };
        let what = shortened(words.as_str());
        lines.push(visible_line(&format!("gap: {when}: {what}{near}")));
    }
    lines
}

/// The line about a tool that the task needs and that is switched off.
pub(super) fn disabled_line(disabled: &DisabledTool) -> String {
    let DisabledTool {
        tool,
        because,
        request,
    } = disabled;
    let what = shortened(request.as_str());
    visible_line(&format!(
        "disabled: `{tool}` would do this ({because}): {what}"
    ))
}

/// A report as JSON, for the output of commands.
pub(super) fn as_json(report: Option<&ToolGapReport>) -> Value {
    report.map_or(Value::Null, |report| json!(report))
}
