//! What a person sees while a run goes on: a line for each thing that happened and, on a terminal, a
//! spinner that says what is waited for. All of it goes to standard error.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use windlass_core::run::{CallEnd, Event};
use windlass_runtime::Progress;
use windlass_spec::RunId;

use super::terminal::{complain, visible};

/// Shows a run while it goes on.
pub(super) struct Live {
    spinner: ProgressBar,
}

impl Live {
    /// With a spinner if a person watches.
    pub(super) fn new() -> Self {
        let spinner = match std::io::stderr().is_terminal() {
            true => ProgressBar::new_spinner(),
            false => ProgressBar::hidden(),
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            spinner.set_style(style);
        }
        spinner.enable_steady_tick(Duration::from_millis(120));
        Self { spinner }
    }

    /// Tells what happened. Whoever watches may go away; the run goes on.
    pub(super) fn tell(&self, run: &RunId, progress: Progress<'_>) {
        match progress {
            Progress::Event(event) => {
                if let Some(line) = told(run, event) {
                    self.line(line.trim_end());
                }
                self.spinner.set_message(awaited(event));
            }
            Progress::Model(_) => {}
            Progress::Done(run) if run.parent().is_none() => self.spinner.finish_and_clear(),
            Progress::Done(_) => {}
        }
    }

    fn line(&self, text: &str) {
        match self.spinner.is_hidden() {
            true => drop(complain(text)),
            false => self.spinner.println(visible(text)),
        }
    }
}

/// What is waited for after an event.
fn awaited(event: &Event) -> &'static str {
    match event {
        Event::Decided { .. } | Event::CallStarted { .. } => "a tool is at work",
        _ => "the model is thinking",
    }
}

/// What a person is told of an event, if it is worth a line. What sub-agents do stands further in.
fn told(run: &RunId, event: &Event) -> Option<String> {
    let depth = run.as_str().matches('.').count() / 2;
    let margin = "   ".repeat(depth);
    let line = match event {
        Event::ModelAnswered { turn, answer, .. } => {
            let thought = answer.thought.as_deref().unwrap_or(&answer.text);
            let calls: Vec<&str> = answer.calls.iter().map(|call| call.tool.as_str()).collect();
            format!("{turn}. {} {}", calls.join(", "), shortened(thought))
        }
        Event::ModelFailed { message, .. } => {
            format!("   the model failed: {}", shortened(message))
        }
        Event::Decided { decision, .. } if decision.failure().is_some() => format!("   {decision}"),
        Event::CallEnded { call, end, .. } => format!("   call {}: {}", call.index, told_end(end)),
        _ => return None,
    };
    Some(format!("{margin}{line}"))
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
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total as u64);
    let template = format!("{{bar:40}} {{pos}}/{{len}} {what}, {{elapsed}}, {{eta}} left");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar
}
