//! The arguments of `windlass runs`, except `resume`.

use clap::{Args, ValueEnum};
use windlass_service::types::RunState;

pub(super) const LIST_HELP: &str = "Exit code: 0 done, 1 failed, 2 for wrong usage.";

pub(super) const SHOW_HELP: &str = "Shows the state of a run and what to do next. `windlass trace show` shows \
                                    its steps.\n\n\
                                    Exit code: 0 done, 1 failed, 2 wrong usage, 7 no such run.";

pub(super) const CANCEL_HELP: &str = "If no process owns the run, it is cancelled at once. If one does, it is signalled, \
                                      and the command waits up to 10 seconds for it. In both cases the run's pending \
                                      requests are withdrawn and its held calls are abandoned at once. The runs of its \
                                      sub-agents are cancelled with it.\n\n\
                                      Exit code: 0 cancelled, 1 failed, 2 wrong usage, 5 signalled but not stopped in \
                                      time, 7 no such run, 8 already ended.";

pub(super) const VERIFY_HELP: &str = "Checks the events of runs, their requests, held calls and inbox commands. Without RUN, all \
                                      runs and what belongs to none are checked: standing approvals and changes by \
                                      administrators.\n\n\
                                      Exit code: 0 unchanged, 1 changed or failed, 2 wrong usage, 7 no such run.";

#[derive(Debug, Args)]
pub(crate) struct RunsVerify {
    /// The ids of runs, or unique prefixes of them. Default: all runs.
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,

    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunsList {
    /// Only runs in this state.
    #[arg(long, value_enum)]
    pub(crate) state: Option<State>,

    /// Only runs of this agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// The maximum number of runs.
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: u32,

    /// Only runs listed after this one: the next page.
    #[arg(long, value_name = "RUN")]
    pub(crate) after: Option<String>,

    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// Running, or left by a process that died or was stopped.
    Open,
    /// Waiting for an approval or answer.
    Waiting,
    /// Ended.
    Ended,
}

impl From<State> for RunState {
    fn from(state: State) -> Self {
        match state {
            State::Open => Self::Open,
            State::Waiting => Self::Waiting,
            State::Ended => Self::Ended,
        }
    }
}

/// The run that a command is about.
#[derive(Debug, Args)]
pub(crate) struct WhichRun {
    /// The run's id, a unique prefix of it, a unique end of it of at least 4 characters, or the id of its task.
    #[arg(value_name = "RUN", required_unless_present = "last")]
    run: Option<String>,

    /// The run that started last.
    #[arg(long, conflicts_with = "run")]
    last: bool,
}

impl WhichRun {
    /// The id as it was typed; `None` for the run that started last.
    pub(crate) fn typed(&self) -> Option<&str> {
        self.run.as_deref()
    }
}

/// The options that select one run.
#[derive(Debug, Args)]
pub(crate) struct OneRun {
    #[command(flatten)]
    pub(crate) run: WhichRun,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
