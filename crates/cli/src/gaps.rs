//! `windlass gaps`: what agents could not do for want of a tool, counted by wish, with what a tool would
//! look like that does it. Also what a person is told of a gap while a run goes on.

mod check;
mod propose;
mod wishes;

use std::path::Path;

use serde_json::json;
use windlass_core::run::Run;
use windlass_runtime::{CrewError, GapAtLoad, gap_during_run, now};
use windlass_spec::{Agent, GapMoment, ToolGapReport};
use windlass_store::GapFilter;
use windlass_tools::ToolLibrary;

use super::Outcome;
use super::arguments::{Gaps, GapsCommand, GapsList, GapsShow};
use super::data;
use super::live::shortened;
use super::moments::ago;
use super::report::Reporter;
use super::table::{one_line, say_table};
use super::terminal::{complain, put, say};
use wishes::{Wish, found, wishes};

pub(super) fn run(command: &Gaps, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let data = command.data.as_deref();
    match &command.command {
        GapsCommand::List(command) => list(command, data),
        GapsCommand::Show(command) => show(command, data),
        GapsCommand::Propose(command) => propose::run(command, data, reporter),
        GapsCommand::Check(command) => check::run(command, reporter),
    }
}

/// How much of a wish or a task is listed.
const EXCERPT: usize = 70;

fn list(command: &GapsList, data: Option<&Path>) -> anyhow::Result<Outcome> {
    let wishes = read(data, command.agent.clone())?;
    let now = now();
    let wishes: Vec<Wish> = match command.days {
        Some(days) => wishes
            .into_iter()
            .filter_map(|wish| wish.within(days, now))
            .collect(),
        None => wishes,
    };
    if command.json {
        for wish in &wishes {
            put(&format!("{}\n", wish.as_object(now)))?;
        }
    } else if wishes.is_empty() {
        complain("nothing was missing")?;
    } else {
        let rows: Vec<[String; 5]> = wishes
            .iter()
            .map(|wish| {
                [
                    wish.tool.clone(),
                    wish.times.len().to_string(),
                    wish.this_week(now).to_string(),
                    ago(wish.last_at(), now),
                    one_line(&wish.text, EXCERPT),
                ]
            })
            .collect();
        say_table(["TOOL", "TIMES", "THIS WEEK", "LAST", "WISH"], &rows)?;
    }
    Ok(Outcome::Done)
}

fn show(command: &GapsShow, data: Option<&Path>) -> anyhow::Result<Outcome> {
    let wishes = read(data, None)?;
    let wish = found(&wishes, &command.wish)?;
    let now = now();
    if command.json {
        put(&format!("{}\n", wish.in_full(now)))?;
        return Ok(Outcome::Done);
    }
    say(&format!("{}: {}", wish.tool, one_line(&wish.text, 400)))?;
    say(&wish.how_often(now))?;
    for time in &wish.times {
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
        wish.tool
    ))?;
    Ok(Outcome::Done)
}

/// The wishes of this tenant, what was missing most often first.
fn read(data: Option<&Path>, agent: Option<String>) -> anyhow::Result<Vec<Wish>> {
    let stored = data::open(data)?;
    let gaps = stored.store().gaps(&GapFilter {
        tenant: Some(stored.who().tenant.to_string()),
        agent,
        ..GapFilter::default()
    })?;
    Ok(wishes(&gaps))
}

/// What a person is told of a gap, and where to read on.
pub(super) fn told(report: &ToolGapReport) -> String {
    let mut lines = lines(report);
    lines.push("   windlass gaps list tells what else was missing".to_owned());
    lines.join("\n")
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
            lines.push(format!("gap: {}: {because}", shortened(missing.as_str())));
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
        lines.push(format!(
            "gap: {when}: {}{near}",
            shortened(missing.as_str())
        ));
    }
    lines
}

/// What a run lacked, at each moment.
pub(super) fn of_run(run: &Run) -> Vec<ToolGapReport> {
    let before = run.offer().and_then(|offer| offer.gap.clone());
    before.into_iter().chain(gap_during_run(run)).collect()
}

/// What a run lacked and nobody was told of while it went on: what showed before it was told then, and is not
/// told again in other words.
pub(super) fn untold(run: &Run) -> Option<ToolGapReport> {
    let is_told = run.offer().is_some_and(|offer| offer.gap.is_some());
    gap_during_run(run).filter(|_| !is_told)
}

/// Keeps what an agent lacks that could not be loaded. That it could not is told by the caller; if this
/// cannot be kept, only that is said besides.
pub(super) fn note_at_load(
    error: &CrewError,
    agents: &[Agent],
    lead: &Agent,
    library: &ToolLibrary,
    data: Option<&Path>,
) {
    let Some(gap) = GapAtLoad::of(error, agents, lead, library) else {
        return;
    };
    let kept = data::open(data).and_then(|stored| Ok(stored.note_gap_at_load(&gap)?));
    if let Err(error) = kept {
        let _ = complain(&format!(
            "warning: what is missing was not recorded: {error:#}"
        ));
    }
}

/// A report as it stands in JSON that people's programs read.
pub(super) fn as_json(report: Option<&ToolGapReport>) -> serde_json::Value {
    report.map_or(serde_json::Value::Null, |report| json!(report))
}
