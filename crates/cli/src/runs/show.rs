//! `windlass runs show`: shows the state of a run, what it waits for, and the next commands. `windlass trace
//! show` shows its steps.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use windlass_core::approval::{ApprovalStatus, HoldStatus};
use windlass_core::run::Run;
use windlass_runtime::now;
use windlass_service::types::RunState;
use windlass_service::{Identity, ProgramWait, RunCall, RunStatus, Service};

use super::chosen;
use super::list::end_word;
use crate::CommandOutcome;
use crate::arguments::OneRun;
use crate::moments::{ago, left};
use crate::paste;
use crate::rendered::{escape_exact, escape_indented};
use crate::stop::start_command;
use crate::table::one_line;
use crate::terminal::{print_json, print_line};
use crate::usage::usage_line;

/// The maximum length of shown arguments.
const ARGUMENTS: usize = 100;

pub(super) fn run(
    service: &Service,
    identity: &Identity,
    command: &OneRun,
) -> anyhow::Result<CommandOutcome> {
    let id = chosen(&command.run, service, identity)?;
    let status = RunStatusOutput {
        status: service.show_run(identity, &id)?,
        data: service.given_data_directory(),
    };
    match command.json {
        true => print_json(&format!("{}\n", status.to_json()))?,
        false => print_line(status.to_text().trim_end())?,
    }
    Ok(CommandOutcome::Done)
}

/// The status of a run, formatted for output.
struct RunStatusOutput {
    status: RunStatus,
    data: Option<PathBuf>,
}

impl RunStatusOutput {
    fn to_json(&self) -> Value {
        let mut object = self.status.to_json();
        object["next"] = json!(self.next());
        object
    }

    fn to_text(&self) -> String {
        let (summary, now) = (&self.status.summary, now());
        let mut text = String::new();
        let _ = writeln!(text, "run {}: {}", summary.run, self.state());
        let mut field = |name: &str, value: &str| {
            let value = escape_indented(value, "            ");
            let _ = writeln!(text, "  {name:<10}{value}");
        };
        field("agent", &summary.agent);
        let task = match &self.status.run {
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
        if let Some(parent) = self.status.run.as_ref().and_then(Run::parent) {
            field("works for", &parent.to_string());
        }
        if let Some(order) = &self.status.stopped {
            field("stopped", &format!("{order} ({})", ago(order.at, now)));
        }
        if let Some(program) = &self.status.waits_for_program {
            field("program", &program.to_string());
        }
        if let Some(usage) = usage_line(&self.status.usage.usage) {
            field("used", &usage);
        }
        if let Some(run) = &self.status.run {
            field("turns", &run.turns().len().to_string());
            for call in self.status.calls() {
                field("call", &call_line(&call));
            }
        }
        for question in &self.status.questions {
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
        for hold in &self.status.holds {
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
        if self.status.stopped.is_some() && !self.status.has_process {
            return "stopped by an operator".to_owned();
        }
        if let (Some(program), []) = (
            &self.status.waits_for_program,
            self.status.questions.as_slice(),
        ) {
            return format!("waiting for its program ({program})");
        }
        let has_process = self.status.has_process;
        match (self.status.summary.state, &self.status.summary.end) {
            (RunState::Ended, Some(end)) => format!("ended ({})", end_word(end)),
            (RunState::Ended, None) => "ended".to_owned(),
            (RunState::Waiting, _) => "waiting for an approval or answer".to_owned(),
            (RunState::Open, _) if has_process => "running in a process".to_owned(),
            (RunState::Open, _) => "stopped: no process drives it".to_owned(),
        }
    }

    /// The next commands.
    fn next(&self) -> Vec<String> {
        let status = &self.status;
        let mut steps: Vec<String> = Vec::new();
        if status.summary.state == RunState::Ended {
            if status.run.is_some() {
                steps.push(format!("trace show {}", status.summary.run));
            }
            return self.commands(&steps);
        }
        let questions = status.questions.iter();
        let pending = questions.filter(|question| question.status() == ApprovalStatus::Pending);
        steps.extend(pending.map(|question| format!("approvals show {}", question.call())));
        let held = status.holds.iter();
        let held = held.filter(|hold| hold.status() == HoldStatus::Held);
        steps.extend(held.map(|hold| format!("holds undo {}", hold.call())));
        if let Some(order) = &self.status.stopped {
            steps.push(start_command(order));
            steps.push(format!("runs cancel {}", status.outermost));
            return self.commands(&steps);
        }
        let needs_program = matches!(status.waits_for_program, Some(ProgramWait::Functions(_)));
        if status.questions.is_empty() && !needs_program {
            steps.push(format!("runs resume {}", status.outermost));
        }
        steps.push(format!("runs cancel {}", status.outermost));
        self.commands(&steps)
    }

    fn commands(&self, steps: &[String]) -> Vec<String> {
        let command = |step: &String| paste::command(step, self.data.as_deref());
        steps.iter().map(command).collect()
    }
}

fn call_line(call: &RunCall) -> String {
    let decision = call.decision.as_deref().unwrap_or("undecided");
    format!(
        "{} {} {} {}, {}, {}",
        call.call,
        call.tool,
        one_line(&json!(call.arguments).to_string(), ARGUMENTS),
        call.risk,
        escape_exact(decision),
        call.state
    )
}
