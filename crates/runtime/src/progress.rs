//! Progress reports for the watcher of a run: each event as it is stored, and the model's output in
//! between.

use std::sync::Arc;

use windlass_core::run::{Event, Mistake, Run, Settings};
use windlass_model::ModelEvent;
use windlass_spec::{CallId, CallRecord, RunId, StreamFrame};
use windlass_tools::ToolProgress;

/// A progress report of a run.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// An event was recorded.
    Event(&'a Event),
    /// The model produces output.
    Model(&'a ModelEvent),
    /// A tool reports the progress of a call.
    Tool(&'a CallId, &'a ToolProgress),
    /// A problem that does not stop the run.
    Warning(&'a str),
    /// A call of the model was refused, because it is a mistake.
    Refused(&'a CallRecord, &'a Mistake),
    /// The run is over, or was stopped after a step and has no end.
    Done(&'a Run),
}

/// Receives all progress in order, also that of the concurrent runs of sub-agents. It must not block.
pub type Watch = Arc<dyn Fn(&RunId, Progress<'_>) + Send + Sync>;

/// A watcher that ignores everything.
#[must_use]
pub fn watch_nothing() -> Watch {
    Arc::new(|_, _| {})
}

/// The stream frames for a progress report: a turn with calls is progress, the answer is content,
/// the end is done. All other reports have none.
#[must_use]
pub fn frames(progress: Progress<'_>, settings: &Settings) -> Vec<StreamFrame> {
    match progress {
        Progress::Event(Event::ModelAnswered { turn, answer, .. }) if !answer.calls.is_empty() => {
            let tools: Vec<&str> = answer.calls.iter().map(|call| call.tool.as_str()).collect();
            let total = settings.max_iterations.max(turn.number());
            StreamFrame::progress(tools.join(", "), turn.number(), total)
                .into_iter()
                .collect()
        }
        Progress::Done(run) if run.end().is_some() => vec![
            StreamFrame::content(run.response().answer().as_str()),
            StreamFrame::Done,
        ],
        Progress::Event(_)
        | Progress::Model(_)
        | Progress::Tool(..)
        | Progress::Warning(_)
        | Progress::Refused(..)
        | Progress::Done(_) => Vec::new(),
    }
}
