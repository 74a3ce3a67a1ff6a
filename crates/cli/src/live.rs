//! Shows the progress of a run: a line for each event and, on a terminal, a spinner with the current
//! activity. All of it goes to standard error.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use serde_json::Value;
use windlass_core::approval::{Approval, PersonDecision, Principal, QuestionAuthor};
use windlass_core::model::{FINISH, RequestedArguments};
use windlass_core::run::{CallEnd, Event, TaskEnd};
use windlass_runtime::{Progress, now};
use windlass_spec::{Deprecation, RunId, Timestamp, ToolName};
use windlass_tools::ToolProgress;

use super::moments::left;
use super::paste::complete;
use super::terminal::{Quote, cut_to_terminal, eprint_progress, is_interactive, visible_line};

/// Shows the progress of a run.
pub(super) struct Live {
    spinner: ProgressBar,
    /// The end of the undo window of the held call.
    held_until: Arc<Mutex<Option<Timestamp>>>,
    /// Runs whose task is one call. The parent run reports that call and its result.
    single: Mutex<HashSet<RunId>>,
    /// The tools of the calls of each run's last turn.
    requested: Mutex<HashMap<RunId, Vec<String>>>,
    /// The tools whose older shape of answers was reported.
    noticed: Mutex<HashSet<ToolName>>,
}

impl Live {
    /// With a spinner on a terminal.
    pub(super) fn new() -> Self {
        let spinner = match is_interactive() {
            true => ProgressBar::new_spinner(),
            false => ProgressBar::hidden(),
        };
        let held_until = Arc::new(Mutex::new(None));
        let until = Arc::clone(&held_until);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {time}") {
            // The elapsed time, or the time until the held call starts.
            let style =
                style.with_key("time", move |state: &ProgressState, out: &mut dyn Write| {
                    let until = *until.lock().unwrap_or_else(PoisonError::into_inner);
                    let _ = match until.and_then(|until| left(until, now())) {
                        Some(left) => write!(out, "in {left}"),
                        None => write!(out, "{}s", state.elapsed().as_secs()),
                    };
                });
            spinner.set_style(style);
        }
        spinner.enable_steady_tick(Duration::from_millis(120));
        Self {
            spinner,
            held_until,
            single: Mutex::default(),
            requested: Mutex::default(),
            noticed: Mutex::default(),
        }
    }

    /// Without a spinner, for several runs at the same time.
    pub(super) fn without_spinner() -> Self {
        Self {
            spinner: ProgressBar::hidden(),
            held_until: Arc::default(),
            single: Mutex::default(),
            requested: Mutex::default(),
            noticed: Mutex::default(),
        }
    }

    /// Hides the spinner while `work` uses the terminal.
    pub(super) fn suspended<T>(&self, work: impl FnOnce() -> T) -> T {
        self.spinner.suspend(work)
    }

    /// Shows an event. A closed standard error does not stop the run.
    pub(super) fn show(&self, run: &RunId, progress: Progress<'_>) {
        match progress {
            Progress::Event(event) => {
                let is_redundant = self.is_redundant(run, event);
                let tool = self.tool(run, event);
                let lines = event_lines(run, event, tool.as_deref());
                for line in lines.iter().filter(|_| !is_redundant) {
                    self.line(line.trim_end());
                }
                if let Some(line) = self.notice_line(event) {
                    self.line(&line);
                }
                self.spinner.set_message(activity(event));
                let until = match event {
                    Event::Held { until, .. } => Some(*until),
                    _ => None,
                };
                *self
                    .held_until
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = until;
            }
            Progress::Tool(_, progress) => {
                self.spinner
                    .set_message(cut_to_terminal(visible_line(&describe_progress(progress))));
            }
            Progress::Warning(warning) => self.line(&format!("warning: {warning}")),
            Progress::Model(_) => {}
            Progress::Refused(call, mistake) => {
                let margin = margin(run);
                let tool = visible_line(call.tool_name().as_str());
                let why = quoted(&mistake.to_string());
                let index = call.id().index;
                self.line(&format!("{margin}   call {index} `{tool}` refused{why}"));
            }
            Progress::Done(run) if run.parent().is_none() => self.spinner.finish_and_clear(),
            Progress::Done(_) => {}
        }
    }

    /// The tool that a decision is about.
    fn tool(&self, run: &RunId, event: &Event) -> Option<String> {
        let mut requested = self
            .requested
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::ModelAnswered { answer, .. } => {
                let tools = answer.calls.iter().map(|call| call.tool.clone()).collect();
                requested.insert(run.clone(), tools);
                None
            }
            Event::Decided { call, .. } => {
                let tools = requested.get(run)?;
                tools.get(call.index as usize).cloned()
            }
            _ => None,
        }
    }

    /// Whether another event reports the same.
    fn is_redundant(&self, run: &RunId, event: &Event) -> bool {
        let mut single = self.single.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Started { run, task, .. } if task.call.is_some() => {
                single.insert(run.clone());
                false
            }
            Event::ModelAnswered { .. } | Event::CallEnded { .. } => single.contains(run),
            _ => false,
        }
    }

    /// The line about a tool that answers in an older shape, once for each tool.
    fn notice_line(&self, event: &Event) -> Option<String> {
        let (tool, notices) = match event {
            Event::CallEnded { ran: Some(ran), .. } => (&ran.tool, &ran.notices),
            Event::Asked { approval, .. } => match &approval.request().asked_by {
                Some(QuestionAuthor::Tool(tool)) => (tool, &approval.request().notices),
                _ => return None,
            },
            _ => return None,
        };
        let first = notices.first()?;
        let mut noticed = self.noticed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = noticed.insert(tool.clone());
        is_new.then(|| notice_line(tool, first, notices.len()))
    }

    /// Writes one line, even if a model or tool put line breaks into the text. On a terminal it is cut, so
    /// that the end of it does not begin another line.
    fn line(&self, text: &str) {
        let line = match text.contains("undo it with: ") {
            // A command to paste is complete.
            true => visible_line(&complete(text)),
            false => cut_to_terminal(visible_line(text)),
        };
        match self.spinner.is_hidden() {
            true => drop(eprint_progress(&line)),
            false => self.spinner.println(line),
        }
    }
}

/// The line about a tool that answers in an older shape: the first of its notices.
pub(super) fn notice_line(tool: &ToolName, first: &Deprecation, count: usize) -> String {
    let more = match count {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    format!(
        "warning: `{tool}` answers in an older shape: {first}{more}; check an answer with \
         `windlass envelope check FILE`"
    )
}

/// Describes the progress of a tool on one line.
fn describe_progress(progress: &ToolProgress) -> String {
    let of = progress.total.map(|total| format!(" of {total}"));
    let message = progress.message.as_deref().map(quoted);
    let (of, message) = (of.unwrap_or_default(), message.unwrap_or_default());
    format!("running a tool, {}{of}{message}", progress.done)
}

/// The activity after an event.
fn activity(event: &Event) -> &'static str {
    match event {
        Event::Decided { .. } | Event::CallStarted { .. } => "running a tool",
        Event::Planned { .. } | Event::TaskStarted { .. } | Event::TaskEnded { .. } => {
            "running tasks"
        }
        Event::Asked { .. } => "waiting for approval",
        Event::Held { .. } => {
            "a held call starts (Ctrl-C to stop, `windlass holds undo` to undo it)"
        }
        _ => "the model is thinking",
    }
}

/// The lines that describe an event; empty if it is not shown. Events of sub-agents are indented.
fn event_lines(run: &RunId, event: &Event, tool: Option<&str>) -> Vec<String> {
    let margin = margin(run);
    let line = match event {
        Event::ModelAnswered { turn, answer, .. } => {
            let thought = answer.thought.as_deref().unwrap_or(&answer.text);
            let calls: Vec<&str> = answer.calls.iter().map(|call| call.tool.as_str()).collect();
            let calls = match calls.is_empty() {
                true => "the model".to_owned(),
                false => calls.join(", "),
            };
            let first = format!("{margin}{turn}. {calls}{}", quoted(thought));
            let calls = answer.calls.iter().enumerate();
            let calls = calls.filter(|(_, call)| call.tool != FINISH);
            let arguments = calls.filter_map(|(index, call)| {
                let arguments = quoted(&describe_arguments(&call.arguments)?);
                Some(format!(
                    "{margin}   call {index} `{}`{arguments}",
                    call.tool
                ))
            });
            return std::iter::once(first).chain(arguments).collect();
        }
        Event::Offered { gap, disabled, .. } => {
            let missing = gap.iter().flat_map(|gap| super::gaps::message_lines(gap));
            let disabled = disabled.iter().map(super::gaps::disabled_line);
            let lines = missing.chain(disabled);
            return lines.map(|line| format!("{margin}{line}")).collect();
        }
        Event::Recalled { strategies, .. } => {
            let lines = strategies.iter().map(|recalled| {
                let text = quoted(&recalled.text);
                format!("{margin}   uses strategy {}{text}", recalled.id)
            });
            return lines.collect();
        }
        Event::ModelFailed { message, .. } => {
            format!("   the model failed{}", quoted(message))
        }
        Event::Decided { call, decision, .. } if decision.failure().is_some() => match tool {
            Some(tool) => format!("   call {} `{tool}` {decision}", call.index),
            None => format!("   call {} {decision}", call.index),
        },
        Event::Asked { approval, .. } => {
            let (call, question) = (approval.call().index, approval.question());
            let headline = question.headline().as_str();
            match (question.authorize(), approval.asker()) {
                (Some(_), None) => {
                    format!("   call {call} needs approval: {}", shortened(headline))
                }
                (Some(_), Some(asker)) => format!(
                    "   call {call} needs approval, asked by {asker}{}",
                    quoted(headline)
                ),
                (None, asker) => format!(
                    "   call {call}: {} asks{}",
                    asker.as_deref().unwrap_or("Windlass"),
                    quoted(headline)
                ),
            }
        }
        Event::Settled { approval, .. } => {
            let by: Vec<&str> = approval.deciders().map(Principal::as_str).collect();
            let by = match by.is_empty() {
                true => String::new(),
                false => format!(" by {}", by.join(" and ")),
            };
            format!(
                "   call {}: {}{by}",
                approval.call().index,
                describe_settlement(approval)
            )
        }
        Event::Held { call, until, .. } => format!(
            "   call {} is held for {}; undo it with: windlass holds undo {call}",
            call.index,
            left(*until, event.at()).unwrap_or_default()
        ),
        Event::Released { call, by, .. } => format!("   call {}: released by {by}", call.index),
        Event::Undone { call, by, .. } => format!("   call {}: undone by {by}", call.index),
        Event::JournalDamaged { reason, .. } => {
            format!("   the journal lost entries ({reason}); calls with an effect need approval")
        }
        Event::Planned { plan, .. } => format!("   plan with {} tasks", plan.tasks().len()),
        Event::TaskStarted { task, attempt, .. } => match attempt {
            1 => format!("   task {task} starts"),
            _ => format!("   task {task} starts again"),
        },
        Event::TaskEnded { task, end, .. } => format!("   task {task}{}", describe_task_end(end)),
        Event::TaskMarked {
            task, status, by, ..
        } => {
            let by = by.as_ref().map(|by| format!(" by {by}"));
            let by = by.unwrap_or_default();
            format!("   task {task} marked {}{by}", status.as_str())
        }
        Event::Replanned { by, .. } => format!("   plan changed by {by}"),
        Event::CallEnded { call, end, .. } => {
            format!("   call {}{}", call.index, describe_call_end(end))
        }
        Event::CallRetried {
            call,
            failure,
            until,
            at,
        } => {
            let pause = until.microseconds_since(*at) / 1000;
            format!(
                "   call {} is tried again after {pause} ms: {}{}",
                call.index,
                failure.category,
                quoted(&failure.operator_message)
            )
        }
        Event::Reused { call, of, .. } => format!(
            "   call {}: the same call as in turn {}, answered with its result",
            call.index, of.turn
        ),
        _ => return Vec::new(),
    };
    vec![format!("{margin}{line}")]
}

/// The indentation of the lines of a run.
fn margin(run: &RunId) -> String {
    let depth = run.as_str().matches('.').count() / 2;
    "   ".repeat(depth)
}

/// The arguments of a call as the model wrote them; `None` if there are none.
fn describe_arguments(arguments: &RequestedArguments) -> Option<String> {
    let text = match arguments {
        RequestedArguments::Json(Value::Null) => return None,
        RequestedArguments::Json(Value::String(text)) | RequestedArguments::Text(text) => {
            text.clone()
        }
        RequestedArguments::Json(value) => value.to_string(),
    };
    (text != "{}" && !text.is_empty()).then_some(text)
}

/// Quotes the start of a text of a model, tool or server behind a bar.
fn quoted(text: &str) -> String {
    Quote::of(&shortened(text)).on_line()
}

/// Describes the result of a task.
fn describe_task_end(end: &TaskEnd) -> String {
    match end {
        TaskEnd::Success { result, .. } => describe_call_end(&CallEnd::Success(result.clone())),
        TaskEnd::Error { failure, .. } => describe_call_end(&CallEnd::Error(failure.clone())),
        TaskEnd::Cancelled(failure) => describe_call_end(&CallEnd::Cancelled(failure.clone())),
    }
}

/// Describes how a question was settled.
pub(super) fn describe_settlement(approval: &Approval) -> &'static str {
    let last = approval.decisions().last().map(|decided| &decided.decision);
    match (approval.status(), last) {
        (_, Some(PersonDecision::Answer { .. })) => "answered",
        (_, Some(PersonDecision::Done { .. })) => "done",
        (_, Some(PersonDecision::Respond { .. })) => "answered with a supplied result",
        (_, Some(PersonDecision::ApproveEdited { .. })) => "approved with edited arguments",
        (status, _) => status.as_str(),
    }
}

fn describe_call_end(end: &CallEnd) -> String {
    match end {
        CallEnd::Success(Value::String(text)) => quoted(text),
        CallEnd::Success(value) => quoted(&value.to_string()),
        CallEnd::Error(failure)
        | CallEnd::Timeout(failure)
        | CallEnd::Cancelled(failure)
        | CallEnd::Unknown(failure) => {
            format!(
                ": {}{}",
                failure.category,
                quoted(&failure.operator_message)
            )
        }
    }
}

/// The start of a text, on one line.
pub(super) fn shortened(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A bar that counts what is done, on a terminal.
pub(super) fn bar(what: &str, total: usize) -> ProgressBar {
    if !is_interactive() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total as u64);
    let template = format!("{{bar:40}} {{pos}}/{{len}} {what}, {{elapsed}}, {{eta}} left");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar
}
