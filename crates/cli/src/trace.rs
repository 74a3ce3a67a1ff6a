//! `windlass trace`: shows the recorded steps of runs.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use windlass_core::approval::ApprovalStatus;
use windlass_core::run::{CallProgress, Entry, LeftOutReason, Offer, Run};
use windlass_runtime::followed;
use windlass_service::types::KeepReason;
use windlass_service::{Identity, RunQuery, Service, run_to_json, trace_to_json};
use windlass_spec::{CallRecord, CallState, StrategySection};

use super::CommandOutcome;
use super::arguments::{Trace, TraceCommand};
use super::gaps::disabled_line;
use super::live::shortened;
use super::plural::counted;
use super::program::Program;
use super::table::listed_ids;
use super::terminal::{Quote, print_json, print_line, visible_line};
use super::{approvals, runs};

/// The maximum number of left-out tools that are named.
const MAX_NAMED: usize = 10;

pub(super) fn run(program: &Program, command: &Trace) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.data.as_deref());
    let identity = &program.identity()?;
    match &command.command {
        TraceCommand::List { limit, json } => list(&service, identity, *limit, *json)?,
        TraceCommand::Show { run, json } => {
            let run = service.run(identity, &runs::chosen(run, &service, identity)?)?;
            match json {
                true => print_json(&format!("{}\n", trace_to_json(&run)))?,
                false => print_line(draw_trace(&run).trim_end())?,
            }
        }
        TraceCommand::Export { run } => {
            let run = runs::chosen(run, &service, identity)?;
            print_json(&service.export_run(identity, &run)?)?;
        }
        TraceCommand::Purge { days, dry_run } => {
            let age = Duration::from_secs(u64::from(*days) * 24 * 60 * 60);
            let (purged, what) = match dry_run {
                true => (service.preview_purge(identity, age)?, "would be purged"),
                false => (service.purge_runs(identity, age)?, "purged"),
            };
            if *dry_run {
                for removed in &purged.removed {
                    let events = counted(count(removed.events), "event", "events");
                    print_line(&format!(
                        "{}  {events}, {} bytes",
                        removed.run, removed.bytes
                    ))?;
                }
                for kept in &purged.kept {
                    print_line(&format!(
                        "{}  kept: {}",
                        kept.run,
                        keep_reason(&kept.reason)
                    ))?;
                }
            }
            print_line(&format!(
                "{} {what}, {} kept",
                counted(purged.removed.len(), "run", "runs"),
                counted(purged.kept.len(), "old run", "old runs")
            ))?;
        }
    }
    Ok(CommandOutcome::Done)
}

/// Why a purge keeps a run.
fn keep_reason(reason: &KeepReason) -> String {
    match reason {
        KeepReason::LegalHold => "it is under a legal hold".to_owned(),
        KeepReason::UnknownCall => "the outcome of a call is unknown".to_owned(),
        KeepReason::PendingApproval => "a request was never decided".to_owned(),
        KeepReason::OpenHold => "a call is still held".to_owned(),
        KeepReason::ParentNotOver(parent) => format!("it works for {parent}, which has not ended"),
        KeepReason::Unreadable(why) => visible_line(why),
    }
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn list(service: &Service, identity: &Identity, limit: u32, as_json: bool) -> anyhow::Result<()> {
    let query = RunQuery {
        limit: Some(limit),
        ..RunQuery::default()
    };
    let listed = service.list_runs(identity, &query)?;
    let ids = listed_ids(listed.iter().map(|listed| listed.summary.run.to_string()));
    for (run, id) in listed.into_iter().zip(ids) {
        let run = run.summary;
        if as_json {
            print_json(&format!("{}\n", run_to_json(&run)))?;
            continue;
        }
        let end = run
            .end
            .as_ref()
            .map_or_else(|| "open".to_owned(), runs::end_word);
        print_line(&format!(
            "{id}  {}  {end}  {}  {}",
            run.started_at,
            run.agent,
            visible_line(&runs::task_line(&run))
        ))?;
    }
    Ok(())
}

/// Describes who decided about a call, what became of its arguments, and whether it ran more than once or not at
/// all.
fn describe_decisions(record: &CallRecord, progress: &CallProgress) -> String {
    let mut text = String::new();
    if let Some(requested) = progress.before_edit() {
        let requested = Value::Object(requested.clone()).to_string();
        let requested = Quote::of(&requested).after_label("     ");
        let _ = writeln!(text, "     requested with: {requested}");
    }
    for question in progress.settled() {
        for decided in question.decisions() {
            let decision = Quote::of(&approvals::describe_decision(decided)).after_label("     ");
            let _ = writeln!(text, "     decided {decision}");
        }
        let is_decided = [ApprovalStatus::Approved, ApprovalStatus::Rejected];
        if let (false, Some(at)) = (
            is_decided.contains(&question.status()),
            question.settled_at(),
        ) {
            let _ = writeln!(
                text,
                "     the question is {} since {at}",
                question.status()
            );
        }
    }
    if let Some((by, at)) = progress.window_ended() {
        let what = match record.state() {
            CallState::Cancelled => "undone",
            _ => "released",
        };
        let _ = writeln!(text, "     {what} by {by} at {at}");
    }
    if progress.retries() > 0 {
        let times = counted(progress.retries() as usize, "time", "times");
        let _ = writeln!(text, "     tried again {times}");
    }
    if let Some(of) = progress.reused() {
        let _ = writeln!(text, "     answered with the result of the call {of}");
    }
    text
}

/// Describes the intent of the task, and the tools that the model was offered.
fn describe_offer(run: &Run, offer: &Offer) -> String {
    let mut text = String::new();
    if let Some(intent) = &offer.intent {
        let percent = intent.confidence * 100.0;
        let _ = write!(
            text,
            "intent: {} (confidence {percent:.0} %)",
            intent.intent_type
        );
        if !intent.suggested_tools.is_empty() {
            let _ = write!(
                text,
                "; suggested tools: {}",
                intent.suggested_tools.join(", ")
            );
        }
        text.push('\n');
    }
    let missing = offer
        .gap
        .iter()
        .flat_map(|gap| gap.missing_tools().iter().zip(gap.requests()));
    for (missing, request) in missing {
        let (missing, request) = (missing.as_str(), shortened(request.as_str()));
        let _ = match missing == request {
            true => writeln!(text, "missing capability: {request}"),
            false => writeln!(text, "missing capability: {missing}: {request}"),
        };
    }
    for disabled in &offer.disabled {
        let _ = writeln!(text, "{}", disabled_line(disabled));
    }
    if offer.left_out.is_empty() {
        return text;
    }
    let all = run.allowed_tools().count();
    let _ = writeln!(
        text,
        "offered: {} of {all} tools; left out:",
        offer.tools.len()
    );
    for because in [
        LeftOutReason::SwitchedOff,
        LeftOutReason::Deprecated,
        LeftOutReason::Budget,
    ] {
        let why = match because {
            LeftOutReason::SwitchedOff => "disabled",
            LeftOutReason::Deprecated => "deprecated",
            LeftOutReason::Budget => "over budget",
        };
        let left_out = offer.left_out.iter().filter(|one| one.because == because);
        let names: Vec<&str> = left_out.map(|one| one.tool.as_str()).collect();
        let (first, more) = names.split_at(names.len().min(MAX_NAMED));
        if !first.is_empty() {
            let more = match more.len() {
                0 => String::new(),
                count => format!(", and {count} more"),
            };
            let _ = writeln!(text, "  {why}: {}{more}", first.join(", "));
        }
    }
    text
}

/// Describes a run step by step.
pub(super) fn draw_trace(run: &Run) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "run {} of agent {}", run.id(), run.agent().name());
    if let Some(offer) = run.offer() {
        text.push_str(&describe_offer(run, offer));
    }
    for (recalled, is_followed) in followed(run) {
        let followed = if is_followed { ", followed" } else { "" };
        let content = shortened(&recalled.text);
        let what = match recalled.section {
            StrategySection::Strategies => "strategy",
            StrategySection::Pitfalls => "pitfall to avoid",
            StrategySection::Observations => "observation",
        };
        let _ = writeln!(text, "{what} {}{followed}: {content}", recalled.id);
    }
    for (step, turn) in run.steps().iter().zip(run.turns()) {
        let milliseconds = step.duration().as_millis();
        let _ = writeln!(
            text,
            "{}. {} ({milliseconds} ms)",
            step.iteration(),
            Quote::of(step.thought()).after_label("   ")
        );
        for entry in &turn.entries {
            match entry {
                Entry::Call {
                    record,
                    decision,
                    progress,
                    ..
                } => {
                    let decision = decision
                        .as_ref()
                        .map_or_else(String::new, ToString::to_string);
                    let variant = progress.variant().map_or_else(String::new, |variant| {
                        format!(" (variant {} of {})", variant.name, variant.experiment)
                    });
                    let _ = writeln!(text, "   {} {decision}{variant}", describe_call(record));
                    text.push_str(&describe_decisions(record, progress));
                    for notice in progress.notices() {
                        let notice = visible_line(&notice.to_string());
                        let _ = writeln!(text, "      answers in an older shape: {notice}");
                    }
                }
                Entry::Mistake { mistake, record } => {
                    let _ = writeln!(text, "   {} refused", describe_call(record));
                    // It repeats what the model wrote.
                    let _ = writeln!(text, "{}", Quote::of(&mistake.to_string()).block("     "));
                    continue;
                }
                Entry::Finish => continue,
            }
            if let Some(outcome) = entry_outcome(entry) {
                let _ = writeln!(text, "{}", Quote::of(&outcome).block("     "));
            }
        }
    }
    let response = run.response();
    let _ = writeln!(
        text,
        "answer ({:.2}): {}",
        response.confidence().get(),
        Quote::of(response.answer().as_str()).after_label("  ")
    );
    if let Some(end) = run.end() {
        let _ = writeln!(text, "end: {}", runs::end_word(end));
    }
    text
}

fn describe_call(record: &CallRecord) -> String {
    let arguments = Value::Object(record.arguments().clone());
    let tool = visible_line(record.tool_name().as_str());
    format!("{tool} {arguments} [{}]", record.state())
}

fn entry_outcome(entry: &Entry) -> Option<String> {
    let Entry::Call { record, .. } = entry else {
        return None;
    };
    Some(match record.outcome()? {
        Ok(Value::String(text)) => text.clone(),
        Ok(value) => value.to_string(),
        Err(failure) => format!("{}: {}", failure.category, failure.operator_message),
    })
}
