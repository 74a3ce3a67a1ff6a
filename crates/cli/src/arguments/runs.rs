//! What can be typed after `windlass runs`, besides `resume`.

use clap::{Args, ValueEnum};
use windlass_store::RunState;

pub(super) const LIST_HELP: &str = "Exit code: 0 done, 1 failed, 2 for wrong usage.";

pub(super) const SHOW_HELP: &str = "It says where a run stands and what to do about it; `windlass trace show` \
                                    draws the steps by which it came there.\n\n\
                                    Exit code: 0 done, 1 failed, 2 wrong usage, 7 there is no such run.";

pub(super) const CANCEL_HELP: &str = "If no process has the run in hand, it is cancelled at once. If one has, it is told, \
                                      and up to 10 seconds are waited for it. Questions about the run's calls are \
                                      withdrawn and its held calls given up at once in either case; the runs of its \
                                      sub-agents are cancelled with it.\n\n\
                                      Exit code: 0 cancelled, 1 failed, 2 wrong usage, 5 told but not stopped in time, \
                                      7 there is no such run, 8 it has ended.";

#[derive(Debug, Args)]
pub(crate) struct RunsList {
    /// Only runs that stand there.
    #[arg(long, value_enum)]
    pub(crate) state: Option<State>,

    /// Only runs of the agent of this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// At most so many.
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: u32,

    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// At work, or left by a process that died or was stopped.
    Open,
    /// Waiting for a person.
    Waiting,
    /// Over.
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

/// Which run is meant.
#[derive(Debug, Args)]
pub(crate) struct OneRun {
    /// The run, or the start of its id if that is enough.
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
