//! What a person sees while a run goes on: a line for each thing that happened and, on a terminal, a
//! spinner that says what is waited for. All of it goes to standard error.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use windlass_core::approval::{Approval, PersonDecision, Principal};
use windlass_core::run::{CallEnd, Event, TaskEnd};
use windlass_runtime::{Progress, now};
use windlass_spec::{RunId, Timestamp};
use windlass_tools::ToolProgress;

use super::moments::left;
use super::terminal::{is_read_by_person, tell_progress, visible_line};

/// Shows a run while it goes on.
pub(super) struct Live {
    spinner: ProgressBar,
    /// When the undo window of the call that is held is over.
    held_until: Arc<Mutex<Option<Timestamp>>>,
    /// Runs whose task is one call: that they make it, and what came of it, is told by whoever wanted it.
    single: Mutex<HashSet<RunId>>,
}

impl Live {
    /// With a spinner if a person watches.
    pub(super) fn new() -> Self {
        let spinner = match is_read_by_person() {
            true => ProgressBar::new_spinner(),
            false => ProgressBar::hidden(),
        };
        let held_until = Arc::new(Mutex::new(None));
        let until = Arc::clone(&held_until);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {time}") {
            // The time since it began, or until what is held starts.
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
        }
    }

    /// Only lines, for many runs at the same time.
    pub(super) fn without_spinner() -> Self {
        Self {
            spinner: ProgressBar::hidden(),
            held_until: Arc::default(),
            single: Mutex::default(),
        }
    }

    /// Does something that needs the terminal for itself.
    pub(super) fn suspended<T>(&self, work: impl FnOnce() -> T) -> T {
        self.spinner.suspend(work)
    }

    /// Tells what happened. Whoever watches may go away; the run goes on.
    pub(super) fn tell(&self, run: &RunId, progress: Progress<'_>) {
        match progress {
            Progress::Event(event) => {
                let is_known = self.is_known(run, event);
                for line in told(run, event).iter().filter(|_| !is_known) {
                    self.line(line.trim_end());
                }
                self.spinner.set_message(awaited(event));
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
                self.spinner.set_message(visible_line(&how_far(progress)));
            }
            Progress::Warning(warning) => self.line(&format!("warning: {warning}")),
            Progress::Model(_) => {}
            Progress::Done(run) if run.parent().is_none() => self.spinner.finish_and_clear(),
            Progress::Done(_) => {}
        }
    }

    /// Whether an event says nothing that is not told anyway.
    fn is_known(&self, run: &RunId, event: &Event) -> bool {
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

    /// Writes one line, whatever the text holds: models and tools give their own names and words.
    fn line(&self, text: &str) {
        let line = visible_line(text);
        match self.spinner.is_hidden() {
            true => drop(tell_progress(&line)),
            false => self.spinner.println(line),
        }
    }
}

/// How far a tool is, on one line.
fn how_far(progress: &ToolProgress) -> String {
    let of = progress.total.map(|total| format!(" of {total}"));
    let said = progress
        .message
        .as_deref()
        .map(|said| format!(": {}", shortened(said)));
    let (of, said) = (of.unwrap_or_default(), said.unwrap_or_default());
    format!("a tool is at work, {}{of}{said}", progress.done)
}

/// What is waited for after an event.
fn awaited(event: &Event) -> &'static str {
    match event {
        Event::Decided { .. } | Event::CallStarted { .. } => "a tool is at work",
        Event::Planned { .. } | Event::TaskStarted { .. } | Event::TaskEnded { .. } => {
            "tasks are carried out"
        }
        Event::Asked { .. } => "a person is asked",
        Event::Held { .. } => "a call starts (Ctrl-C to stop, `windlass holds undo` to undo it)",
        _ => "the model is thinking",
    }
}

/// What a person is told of an event, a line each; nothing if it is not worth one. What sub-agents do stands
/// further in.
fn told(run: &RunId, event: &Event) -> Vec<String> {
    let depth = run.as_str().matches('.').count() / 2;
    let margin = "   ".repeat(depth);
    let line = match event {
        Event::ModelAnswered { turn, answer, .. } => {
            let thought = answer.thought.as_deref().unwrap_or(&answer.text);
            let calls: Vec<&str> = answer.calls.iter().map(|call| call.tool.as_str()).collect();
            format!("{turn}. {} {}", calls.join(", "), shortened(thought))
        }
        Event::Offered { gap: Some(gap), .. } => {
            let lines = super::gaps::told_lines(gap).into_iter();
            return lines.map(|line| format!("{margin}{line}")).collect();
        }
        Event::Recalled { strategies, .. } => {
            let lines = strategies.iter().map(|recalled| {
                let text = shortened(&recalled.text);
                format!("{margin}   recalls {}: {text}", recalled.id)
            });
            return lines.collect();
        }
        Event::ModelFailed { message, .. } => {
            format!("   the model failed: {}", shortened(message))
        }
        Event::Decided { decision, .. } if decision.failure().is_some() => format!("   {decision}"),
        Event::Asked { approval, .. } => format!(
            "   call {}: a person is asked: {}",
            approval.call().index,
            shortened(approval.question().headline().as_str())
        ),
        Event::Settled { approval, .. } => {
            let by: Vec<&str> = approval.deciders().map(Principal::as_str).collect();
            let by = match by.is_empty() {
                true => String::new(),
                false => format!(" by {}", by.join(" and ")),
            };
            format!(
                "   call {}: {}{by}",
                approval.call().index,
                settled(approval)
            )
        }
        Event::Held { call, until, .. } => format!(
            "   call {} is held for {}; undo it with: windlass holds undo {call}",
            call.index,
            left(*until, event.at()).unwrap_or_default()
        ),
        Event::Released { call, by, .. } => format!("   call {}: released by {by}", call.index),
        Event::Undone { call, by, .. } => format!("   call {}: undone by {by}", call.index),
        Event::Planned { plan, .. } => format!("   a plan of {} tasks", plan.tasks().len()),
        Event::TaskStarted { task, attempt, .. } => match attempt {
            1 => format!("   task {task} begins"),
            _ => format!("   task {task} begins once more"),
        },
        Event::TaskEnded { task, end, .. } => format!("   task {task}: {}", told_task(end)),
        Event::TaskMarked {
            task, status, by, ..
        } => {
            let by = by.as_ref().map(|by| format!(" by {by}"));
            let by = by.unwrap_or_default();
            format!("   task {task} is marked {}{by}", status.as_str())
        }
        Event::Replanned { by, .. } => format!("   the plan is changed by {by}"),
        Event::CallEnded { call, end, .. } => format!("   call {}: {}", call.index, told_end(end)),
        _ => return Vec::new(),
    };
    vec![format!("{margin}{line}")]
}

/// What came of a task.
fn told_task(end: &TaskEnd) -> String {
    match end {
        TaskEnd::Success { result, .. } => told_end(&CallEnd::Success(result.clone())),
        TaskEnd::Error { failure, .. } => told_end(&CallEnd::Error(failure.clone())),
        TaskEnd::Cancelled(failure) => told_end(&CallEnd::Cancelled(failure.clone())),
    }
}

/// What became of a question.
fn settled(approval: &Approval) -> &'static str {
    let last = approval.decisions().last().map(|decided| &decided.decision);
    match (approval.status(), last) {
        (_, Some(PersonDecision::Answer { .. })) => "answered",
        (_, Some(PersonDecision::Done { .. })) => "done",
        (_, Some(PersonDecision::Respond { .. })) => "answered in the tool's stead",
        (_, Some(PersonDecision::ApproveEdited { .. })) => "approved with other arguments",
        (status, _) => status.as_str(),
    }
}

fn told_end(end: &CallEnd) -> String {
    match end {
        CallEnd::Success(serde_json::Value::String(text)) => shortened(text),
        CallEnd::Success(value) => shortened(&value.to_string()),
        CallEnd::Error(failure)
        | CallEnd::Timeout(failure)
        | CallEnd::Cancelled(failure)
        | CallEnd::Unknown(failure) => {
            format!(
                "{}: {}",
                failure.category,
                shortened(&failure.operator_message)
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
    if !is_read_by_person() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total as u64);
    let template = format!("{{bar:40}} {{pos}}/{{len}} {what}, {{elapsed}}, {{eta}} left");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar
}
