//! `windlass gaps`: what agents could not do for want of a tool, counted by wish, with what a tool would
//! look like that does it. Also what a person is told of a gap while a run goes on.

mod check;
mod propose;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use windlass_service::{Identity, MissingTool, Service};
use windlass_spec::{GapMoment, Timestamp, ToolGapReport};

use super::Outcome;
use super::arguments::{Gaps, GapsCommand, GapsList, GapsShow};
use super::live::shortened;
use super::moments::ago;
use super::program::Program;
use super::report::Reporter;
use super::table::{one_line, say_table};
use super::terminal::{complain, put, say, visible_line};

pub(super) use windlass_service::{gaps_of_run as of_run, unreported_gap as untold};

pub(super) fn run(
    program: &Program,
    command: &Gaps,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
    let service = program.service(command.data.as_deref());
    let identity = program.identity()?;
    match &command.command {
        GapsCommand::List(command) => list(&service, &identity, command),
        GapsCommand::Show(command) => show(&service, &identity, command),
        GapsCommand::Propose(command) => propose::run(&service, &identity, command, reporter),
        GapsCommand::Check(command) => check::run(&service, &identity, command, reporter),
    }
}

/// How much of a wish or a task is listed.
const EXCERPT: usize = 70;

fn list(service: &Service, identity: &Identity, command: &GapsList) -> anyhow::Result<Outcome> {
    let agent = command.agent.as_deref();
    let all = service.list_missing_tools(identity, agent, command.days)?;
    let now = service.now();
    if command.json {
        for missing in &all {
            put(&format!("{}\n", as_object(missing, now)))?;
        }
    } else if all.is_empty() {
        complain("nothing was missing")?;
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
        say_table(["TOOL", "TIMES", "THIS WEEK", "LAST", "WISH"], &rows)?;
    }
    Ok(Outcome::Done)
}

fn show(service: &Service, identity: &Identity, command: &GapsShow) -> anyhow::Result<Outcome> {
    let missing = service.show_missing_tool(identity, &command.wish)?;
    let now = service.now();
    if command.json {
        put(&format!("{}\n", in_full(&missing, now)))?;
        return Ok(Outcome::Done);
    }
    let description = one_line(&missing.description, 400);
    say(&format!("{}: {description}", missing.name))?;
    say(&how_often(&missing, now))?;
    for time in &missing.occurrences {
        let run = time
            .run
            .as_ref()
            .map_or("-".to_owned(), ToString::to_string);
        say(&format!(
            "\n{}  {}  agent {}  run {run}",
            ago(time.at, now),
            time.moment.as_str(),
            time.agent
        ))?;
        if let Some(task) = &time.task {
            say(&format!("  task: {}", one_line(task, 400)))?;
        }
        if let Some(confidence) = time.missing.as_ref().and_then(|missing| missing.confidence) {
            say(&format!("  confidence: {confidence}"))?;
        }
        for near in time
            .missing
            .iter()
            .flat_map(|missing| &missing.nearest_tools)
        {
            say(&format!("  near: `{}` ({})", near.name, near.nearness))?;
        }
    }
    say(&format!(
        "\nwindlass gaps propose {} prints a specification to begin with",
        missing.name
    ))?;
    Ok(Outcome::Done)
}

/// How often something was missing, in a sentence.
fn how_often(missing: &MissingTool, now: Timestamp) -> String {
    let times = |count: usize| match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    let (all, week) = (missing.occurrences.len(), missing.this_week(now));
    match week == all {
        true => format!("asked for {} this week", times(week)),
        false => format!("asked for {} this week, {} in all", times(week), times(all)),
    }
}

/// Something that was missing as a program reads it.
fn as_object(missing: &MissingTool, now: Timestamp) -> Value {
    let times = &missing.occurrences;
    let agents: BTreeSet<&str> = times.iter().map(|time| time.agent.as_str()).collect();
    let mut moments: BTreeMap<&str, usize> = BTreeMap::new();
    for time in times {
        *moments.entry(time.moment.as_str()).or_default() += 1;
    }
    json!({
        "tool": missing.name,
        "wish": missing.description,
        "count": times.len(),
        "this_week": missing.this_week(now),
        "first_at": times.iter().map(|time| time.at).min(),
        "last_at": missing.last_at(),
        "agents": agents,
        "moments": moments,
    })
}

/// The same with each time that it was missing.
fn in_full(missing: &MissingTool, now: Timestamp) -> Value {
    let mut object = as_object(missing, now);
    let times = missing.occurrences.iter().map(|time| {
        json!({
            "at": time.at,
            "run": time.run,
            "agent": time.agent,
            "moment": time.moment,
            "task": time.task,
            "missing": time.missing,
        })
    });
    object["times"] = times.collect();
    object["proposed_tool"] = json!(missing.proposal());
    object
}

/// What a person is told of a gap, and where to read on.
pub(super) fn told(report: &ToolGapReport) -> String {
    told_lines(report).join("\n")
}

/// The same, line by line.
pub(super) fn told_lines(report: &ToolGapReport) -> Vec<String> {
    let mut lines = lines(report);
    lines.push("   windlass gaps list tells what else was missing".to_owned());
    lines
}

/// What a person is told of a gap: a line for each thing that is missing.
pub(super) fn lines(report: &ToolGapReport) -> Vec<String> {
    let when = match report.moment() {
        Some(GapMoment::DuringRun) => "for want of a tool this was not done",
        _ => "no tool here seems to do this",
    };
    let mut lines: Vec<String> = Vec::new();
    for missing in report.missing_tools() {
        let about = report
            .capabilities()
            .iter()
            .find(|about| about.capability == *missing);
        if let Some(because) = about.and_then(|about| about.because.as_ref()) {
            let what = shortened(missing.as_str());
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
            false => format!(" (nearest: {})", near.join(", ")),
        };
        let what = shortened(missing.as_str());
        lines.push(visible_line(&format!("gap: {when}: {what}{near}")));
    }
    lines
}

/// A report as it stands in JSON that people's programs read.
pub(super) fn as_json(report: Option<&ToolGapReport>) -> Value {
    report.map_or(Value::Null, |report| json!(report))
}
