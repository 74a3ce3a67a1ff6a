//! Shows the progress of a run: a line for each event and, on a terminal, a spinner with the current
//! activity. All of it goes to standard error.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::io::{self, IsTerminal as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use serde_json::Value;
use windlass_core::approval::{Approval, PersonDecision, Principal, QuestionAuthor};
use windlass_core::model::{FINISH, RequestedArguments};
use windlass_core::run::{CallEnd, Event, TaskEnd};
use windlass_model::ModelEvent;
use windlass_runtime::{Progress, now};
use windlass_service::{Identity, Service};
use windlass_spec::{AgentName, Deprecation, RunId, StrategySection, ToolName};
use windlass_tools::ToolProgress;

use super::moments::left;
use super::paste::complete;
use super::terminal::{
    MarkdownStream, Page, Quote, behind_bar, cut_to_terminal, eprint_progress, is_interactive,
    page, print_line, print_styled_line, visible_line,
};
use super::undo::UndoKeys;

/// The most lines of unfinished text above the spinner.
const UNFINISHED: usize = 10;

/// How often unfinished text is drawn.
const DRAW_PERIOD: Duration = Duration::from_millis(60);

/// Shows the progress of a run.
pub(super) struct Live {
    spinner: ProgressBar,
    /// The calls in their undo windows.
    held: Arc<UndoKeys>,
    /// The text that the model of the outermost run writes.
    draft: Mutex<Draft>,
    screen: Arc<Mutex<Screen>>,
    /// Runs whose task is one call. The parent run reports that call and its result.
    single: Mutex<HashSet<RunId>>,
    /// The tools of the calls of each run's last turn.
    requested: Mutex<HashMap<RunId, Vec<String>>>,
    /// The tools whose older shape of answers was reported.
    noticed: Mutex<HashSet<ToolName>>,
}

/// What the spinner shows.
#[derive(Debug, Default)]
struct Screen {
    /// The lines of unfinished text above the spinner.
    text: String,
    activity: String,
}

/// Text of a model, as it arrives.
#[derive(Debug, Default)]
struct Draft {
    /// How text is rendered. `None` if it is only shown as a whole.
    page: Option<Page>,
    author: Option<AgentName>,
    /// The text of the present turn.
    stream: Option<MarkdownStream>,
    text: String,
    drawn_at: Option<Instant>,
    /// The text of the last turn, if it was shown whole.
    shown: Option<String>,
}

impl Live {
    /// For a user at the terminal, if there is one: shows the text of the model while it arrives, and undoes held
    /// calls by a key.
    pub(super) fn attended(service: &Service, identity: &Identity) -> Self {
        let page = page().filter(|_| is_interactive());
        let is_typed = io::stdin().is_terminal() && is_interactive();
        let undoing = is_typed.then(|| (service.clone(), identity.clone()));
        let spinner = match is_interactive() {
            true => ProgressBar::new_spinner(),
            false => ProgressBar::hidden(),
        };
        let reporter = spinner.clone();
        let held = Arc::new(UndoKeys::new(undoing, move |line| {
            reporter.suspend(|| drop(eprint_progress(line)));
        }));
        let screen = Arc::new(Mutex::new(Screen::default()));
        let (waiting, shown) = (Arc::clone(&held), Arc::clone(&screen));
        let above = Arc::clone(&screen);
        if let Ok(style) = ProgressStyle::with_template("{text}{spinner} {activity} {time}") {
            // The elapsed time, or the time until the next held call starts.
            let next = move || waiting.next().filter(|held| !held.is_deferred);
            let (next, has_key) = (Arc::new(next), held.has_key());
            let upcoming = Arc::clone(&next);
            let style = style
                .with_key("time", move |state: &ProgressState, out: &mut dyn Write| {
                    let _ = match next().and_then(|held| left(held.until, now())) {
                        Some(left) => write!(out, "in {left}"),
                        None => write!(out, "{}s", state.elapsed().as_secs()),
                    };
                })
                .with_key("activity", move |_: &ProgressState, out: &mut dyn Write| {
                    let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
                    let _ = match upcoming() {
                        Some(held) => out.write_str(&describe_held(&held.tool, has_key)),
                        None => out.write_str(&shown.activity),
                    };
                })
                .with_key("text", move |_: &ProgressState, out: &mut dyn Write| {
                    let shown = above.lock().unwrap_or_else(PoisonError::into_inner);
                    let _ = out.write_str(&shown.text);
                });
            spinner.set_style(style);
        }
        spinner.enable_steady_tick(Duration::from_millis(120));
        Self {
            spinner,
            held,
            draft: Mutex::new(Draft {
                page,
                ..Draft::default()
            }),
            screen,
            single: Mutex::default(),
            requested: Mutex::default(),
            noticed: Mutex::default(),
        }
    }

    /// Without a spinner, for several runs at the same time.
    pub(super) fn without_spinner() -> Self {
        Self {
            spinner: ProgressBar::hidden(),
            held: Arc::new(UndoKeys::new(None, |_| ())),
            draft: Mutex::default(),
            screen: Arc::default(),
            single: Mutex::default(),
            requested: Mutex::default(),
            noticed: Mutex::default(),
        }
    }

    /// Hides the spinner while `work` uses the terminal.
    pub(super) fn suspended<T>(&self, work: impl FnOnce() -> T) -> T {
        self.held.paused(|| self.spinner.suspend(work))
    }

    /// Whether this text was shown when it arrived, and nothing after it.
    pub(super) fn has_shown(&self, text: &str) -> bool {
        let draft = self.draft();
        draft
            .shown
            .as_deref()
            .is_some_and(|shown| shown.trim() == text.trim())
    }

    fn draft(&self) -> MutexGuard<'_, Draft> {
        self.draft.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows more text of the model.
    fn write(&self, text: &str) {
        let mut draft = self.draft();
        let Some(page) = draft.page else {
            return;
        };
        let is_new = draft.stream.is_none();
        // A model may begin with empty lines.
        if is_new && text.trim().is_empty() {
            return;
        }
        if is_new {
            let author = match &draft.author {
                Some(agent) => format!("the agent `{agent}` writes:"),
                None => "the agent writes:".to_owned(),
            };
            self.spinner.suspend(|| drop(print_line(&author)));
            draft.text.clear();
            draft.shown = None;
        }
        draft.text.push_str(text);
        let stream = draft
            .stream
            .get_or_insert_with(|| MarkdownStream::new(page));
        let lines = stream.push(text);
        let is_due = !lines.is_empty()
            || draft
                .drawn_at
                .is_none_or(|drawn| drawn.elapsed() >= DRAW_PERIOD);
        if is_due {
            let unfinished = draft.stream.as_ref().map(MarkdownStream::unfinished);
            self.set_unfinished(&unfinished.unwrap_or_default());
            draft.drawn_at = Some(Instant::now());
        }
        self.print_lines(&lines);
    }

    /// Shows the rest of the text. Returns whether there was any.
    fn end_text(&self) -> bool {
        let mut draft = self.draft();
        let Some(mut stream) = draft.stream.take() else {
            draft.shown = None;
            return false;
        };
        self.set_unfinished(&[]);
        self.print_lines(&stream.finish());
        draft.shown = Some(std::mem::take(&mut draft.text));
        true
    }

    fn print_lines(&self, lines: &[String]) {
        if !lines.is_empty() {
            let lines = behind_bar(lines);
            self.spinner.suspend(|| drop(print_styled_line(&lines)));
        }
    }

    /// Sets the text above the spinner: the end of it, if it is long.
    fn set_unfinished(&self, lines: &[String]) {
        let shown = &lines[lines.len().saturating_sub(UNFINISHED)..];
        self.screen().text = match shown.is_empty() {
            true => String::new(),
            false => behind_bar(shown) + "\n",
        };
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_activity(&self, activity: String) {
        self.screen().activity = activity;
        self.spinner.tick();
    }

    /// Shows an event. A closed standard error does not stop the run.
    pub(super) fn show(&self, run: &RunId, progress: Progress<'_>) {
        // The runs of sub-agents and tasks are named after the outermost one.
        let is_outermost = !run.as_str().contains('.');
        match progress {
            Progress::Event(event) => self.show_event(run, event, is_outermost),
            Progress::Tool(_, progress) => {
                self.set_activity(cut_to_terminal(visible_line(&describe_progress(progress))));
            }
            Progress::Warning(warning) => self.line(&format!("warning: {warning}")),
            Progress::Model(ModelEvent::Text { text }) if is_outermost => self.write(text),
            Progress::Model(_) => {}
            Progress::Refused(call, mistake) => {
                let margin = margin(run);
                let tool = visible_line(call.tool_name().as_str());
                let why = quoted(&mistake.to_string());
                let index = call.id().index;
                self.line(&format!("{margin}   call {index} `{tool}` refused{why}"));
            }
            Progress::Done(run) if run.parent().is_none() => {
                self.held.end();
                self.spinner.finish_and_clear();
            }
            Progress::Done(_) => {}
        }
    }

    /// Shows only calls in their undo windows, to a user who can undo them, for a command that shows the rest itself.
    pub(super) fn show_holds(&self, run: &RunId, progress: Progress<'_>) {
        if !self.held.has_key() {
            return;
        }
        match progress {
            Progress::Event(
                event @ (Event::Held { .. } | Event::Released { .. } | Event::Undone { .. }),
            ) => self.show_event(run, event, true),
            Progress::Event(event) => {
                let tool = self.tool(run, event);
                self.held.see(event, tool.as_deref());
            }
            Progress::Done(_) => self.show(run, progress),
            _ => {}
        }
    }

    fn show_event(&self, run: &RunId, event: &Event, is_outermost: bool) {
        let is_redundant = self.is_redundant(run, event);
        let tool = self.tool(run, event);
        let is_text_shown = match event {
            Event::Started { agent, .. } if is_outermost => {
                self.draft().author = Some(agent.name().clone());
                false
            }
            Event::ModelAnswered { .. } | Event::ModelFailed { .. } if is_outermost => {
                self.end_text()
            }
            _ => false,
        };
        let lines = event_lines(run, event, tool.as_deref(), is_text_shown);
        for line in lines.iter().filter(|_| !is_redundant) {
            self.line(line.trim_end());
        }
        if let Some(line) = self.notice_line(event) {
            self.line(&line);
        }
        self.held.see(event, tool.as_deref());
        self.set_activity(activity(event).to_owned());
    }

    /// The tool that a decision or a hold is about.
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
            Event::Decided { call, .. } | Event::Held { call, .. } => {
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
        Event::Held { .. } => "waiting",
        _ => "the model is thinking",
    }
}

/// Describes a held call while its undo window is open.
fn describe_held(tool: &str, has_key: bool) -> String {
    let tool = cut_to_terminal(visible_line(&shortened(tool)));
    match has_key {
        true => format!("`{tool}` starts (press u to undo it, Ctrl-C to stop the run)"),
        false => format!("`{tool}` starts (Ctrl-C to stop, `windlass holds undo` to undo it)"),
    }
}

/// The lines that describe an event; empty if it is not shown. Events of sub-agents are indented. `is_text_shown`:
/// whether the text of an answer was shown when it arrived.
fn event_lines(run: &RunId, event: &Event, tool: Option<&str>, is_text_shown: bool) -> Vec<String> {
    let margin = margin(run);
    let line = match event {
        Event::ModelAnswered { turn, answer, .. } => {
            let text = if is_text_shown { "" } else { &answer.text };
            let thought = answer.thought.as_deref().unwrap_or(text);
            if is_text_shown && thought.is_empty() && answer.calls.is_empty() {
                return Vec::new();
            }
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
                let use_of = match recalled.section {
                    StrategySection::Strategies => "uses strategy",
                    StrategySection::Pitfalls => "avoids pitfall",
                    StrategySection::Observations => "recalls observation",
                };
                format!("{margin}   {use_of} {}{text}", recalled.id)
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
        Event::CostReported { call, cost, .. } => format!("   call {}: cost {cost}", call.index),
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
