//! `windlass runs show`: shows the state of a run, what it waits for, and the next commands. `windlass trace
//! show` shows its steps.

use std::fmt::Write as _;

use serde_json::{Value, json};
use windlass_core::approval::{ApprovalStatus, HoldStatus};
use windlass_core::risk::ToolRisk;
use windlass_core::run::{Entry, Run};
use windlass_runtime::now;
use windlass_service::types::RunState;
use windlass_service::{Identity, ProgramWait, RunStatus, Service};
use windlass_spec::RiskLevel;

use super::list::{as_object, end_word};
use crate::Outcome;
use crate::arguments::OneRun;
use crate::moments::{ago, left};
use crate::rendered::{escape_exact, escape_indented};
use crate::table::one_line;
use crate::terminal::{print_json, print_line};

/// The maximum length of shown arguments.
const ARGUMENTS: usize = 100;

pub(super) fn run(
    service: &Service,
    identity: &Identity,
    command: &OneRun,
) -> anyhow::Result<Outcome> {
    let status = RunStatusOutput(service.show_run(identity, &command.run)?);
    match command.json {
        true => print_json(&format!("{}\n", status.to_json()))?,
        false => print_line(status.to_text().trim_end())?,
    }
    Ok(Outcome::Done)
}

/// The status of a run, formatted for output.
struct RunStatusOutput(RunStatus);

impl RunStatusOutput {
    fn to_json(&self) -> Value {
        let mut object = as_object(&self.0.summary);
        object["principal"] = json!(self.0.summary.principal);
        object["parent"] = json!(self.0.run.as_ref().and_then(Run::parent));
        object["outermost_run"] = json!(self.0.outermost);
        object["turns"] = json!(self.0.run.as_ref().map(|run| run.turns().len()));
        object["calls"] = json!(self.0.run.as_ref().map(calls));
        object["questions"] = json!(self.0.questions);
        object["holds"] = json!(self.0.holds);
        object["waits_for_program"] =
            json!(self.0.waits_for_program.as_ref().map(ToString::to_string));
        object["next"] = json!(self.next());
        object
    }

    fn to_text(&self) -> String {
        let (summary, now) = (&self.0.summary, now());
        let mut text = String::new();
        let _ = writeln!(text, "run {}: {}", summary.run, self.state());
        let mut field = |name: &str, value: &str| {
            let value = escape_indented(value, "            ");
            let _ = writeln!(text, "  {name:<10}{value}");
        };
        field("agent", &summary.agent);
        let task = match &self.0.run {
            Some(run) => Some(run.task().description.as_str()),
            None => summary.task.as_deref(),
        };
        field("task", task.unwrap_or("(purged)"));
        field("for", &summary.principal);
        let started = format!("{} ({})", summary.started_at, ago(summary.started_at, now));
        field("started", &started);
        if let Some(ended) = summary
            .ended_at
            .filter(|_| summary.state == RunState::Ended)
        {
            field("ended", &ended.to_string());
        }
        if let Some(parent) = self.0.run.as_ref().and_then(Run::parent) {
            field("works for", &parent.to_string());
        }
        if let Some(program) = &self.0.waits_for_program {
            field("program", &program.to_string());
        }
        if let Some(run) = &self.0.run {
            field("turns", &run.turns().len().to_string());
            for call in calls(run) {
                field("call", &call_line(&call));
            }
        }
        for question in &self.0.questions {
            let expires = left(question.request().expires_at, now);
            let what = question.question().authorize();
            let what = what.map_or_else(
                || one_line(question.question().headline().as_str(), ARGUMENTS),
                |call| call.tool_name.to_string(),
            );
            let expires = expires.unwrap_or_else(|| "no time".to_owned());
            field(
                "request",
                &format!("{} {what}, {expires} left", question.call()),
            );
        }
        for hold in &self.0.holds {
            let due = match (hold.status(), left(hold.due_at(), now)) {
                (HoldStatus::Held, Some(left)) => format!("can be undone for {left}"),
                _ => "runs when the run resumes".to_owned(),
            };
            field(
                "held",
                &format!("{} {}, {due}", hold.call(), hold.tool_name()),
            );
        }
        let _ = writeln!(text, "next");
        for step in self.next() {
            let _ = writeln!(text, "  {step}");
        }
        text
    }

    fn state(&self) -> String {
        if let (Some(program), []) = (&self.0.waits_for_program, self.0.questions.as_slice()) {
            return format!("waiting for its program ({program})");
        }
        match (self.0.summary.state, &self.0.summary.end) {
            (RunState::Ended, Some(end)) => format!("ended ({})", end_word(end)),
            (RunState::Ended, None) => "ended".to_owned(),
            (RunState::Waiting, _) => "waiting for an approval or answer".to_owned(),
            (RunState::Open, _) => "running, or its process has ended".to_owned(),
        }
    }

    /// The next commands.
    fn next(&self) -> Vec<String> {
        let mut steps: Vec<String> = Vec::new();
        if self.0.summary.state == RunState::Ended {
            if self.0.run.is_some() {
                steps.push(format!("windlass trace show {}", self.0.summary.run));
            }
            return steps;
        }
        let pending = self
            .0
            .questions
            .iter()
            .filter(|question| question.status() == ApprovalStatus::Pending);
        steps
            .extend(pending.map(|question| format!("windlass approvals show {}", question.call())));
        let held = self
            .0
            .holds
            .iter()
            .filter(|hold| hold.status() == HoldStatus::Held);
        steps.extend(held.map(|hold| format!("windlass holds undo {}", hold.call())));
        let needs_program = matches!(self.0.waits_for_program, Some(ProgramWait::Functions(_)));
        if self.0.questions.is_empty() && !needs_program {
            steps.push(format!("windlass runs resume {}", self.0.outermost));
        }
        steps.push(format!("windlass runs cancel {}", self.0.outermost));
        steps
    }
}

/// The calls of a run with the decision and the risk of each.
fn calls(run: &Run) -> Vec<Value> {
    let entries = run.turns().iter().flat_map(|turn| &turn.entries);
    entries
        .filter_map(|entry| match entry {
            Entry::Call {
                record, decision, ..
            } => Some((record, decision)),
            _ => None,
        })
        .map(|(record, decision)| {
            let tool = run.specification(record.tool_name().as_str());
            let risk = tool.map_or(RiskLevel::Irreversible, |tool| {
                ToolRisk::of_specification(tool)
                    .with_arguments(record.arguments())
                    .level
            });
            json!({
                "call": record.id(), "tool": record.tool_name(), "arguments": record.arguments(),
                "state": record.state().to_string(), "risk": risk,
                "decision": decision.as_ref().map(ToString::to_string),
            })
        })
        .collect()
}

fn call_line(call: &Value) -> String {
    let text = |name: &str| call[name].as_str().unwrap_or_default();
    let decision = call["decision"].as_str().unwrap_or("undecided");
    format!(
        "{} {} {} {}, {}, {}",
        text("call"),
        text("tool"),
        one_line(&call["arguments"].to_string(), ARGUMENTS),
        text("risk"),
        escape_exact(decision),
        text("state")
    )
}
