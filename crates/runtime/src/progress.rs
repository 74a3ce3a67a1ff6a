//! What a watcher hears while a run goes on. It is the journal as it is written, and between its
//! entries what the model is saying.

use std::sync::Arc;

use windlass_core::run::{Event, Run, Settings};
use windlass_model::ModelEvent;
use windlass_spec::{CallId, RunId, StreamFrame};
use windlass_tools::ToolProgress;

/// Something that happens in a run.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// An event was kept.
    Event(&'a Event),
    /// The model is saying something.
    Model(&'a ModelEvent),
    /// A tool tells how far a call has come.
    Tool(&'a CallId, &'a ToolProgress),
    /// Something is not as it should be, and the run goes on all the same.
    Warning(&'a str),
    /// The run is over, or was stopped after a step and has no end.
    Done(&'a Run),
}

/// Told of everything in the order in which it happens, also in the runs of sub-agents, which go on
/// beside it. It must not wait.
pub type Watch = Arc<dyn Fn(&RunId, Progress<'_>) + Send + Sync>;

/// A watcher that does not listen.
#[must_use]
pub fn watch_nothing() -> Watch {
    Arc::new(|_, _| {})
}

/// What happens in a run as frames of a stream: a turn that acts is progress, the answer is content,
/// the end is done. Of the rest such a stream tells nothing.
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
            StreamFrame::content(run.response().answer.as_str()),
            StreamFrame::Done,
        ],
        Progress::Event(_)
        | Progress::Model(_)
        | Progress::Tool(..)
        | Progress::Warning(_)
        | Progress::Done(_) => Vec::new(),
    }
}
