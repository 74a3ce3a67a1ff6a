//! What can be typed after `windlass approvals`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

const EXIT_CODES: &str = "Exit code: 0 decided, 1 failed, 2 wrong usage or arguments that do not fit, 3 you may not \
                          decide, 7 there is no such question, 8 it is already decided, has expired, or is not what \
                          you were shown.";

const APPROVE_HELP: &str = "A call that needs the security level HIGH or more is confirmed by typing the name of its \
                            tool. Off a terminal that cannot be typed: give `--digest` with what `show` printed, or \
                            `--yes`. A CRITICAL call needs two different people.\n\n\
                            Examples:\n  \
                            windlass approvals approve 0198c0ffee:2:0\n  \
                            windlass approvals approve 0198c0ffee:2:0 --edit '{\"to\": \"bob\", \"amount\": 7}'\n  \
                            windlass approvals approve 0198c0ffee:2:0 --always=tool\n\n\
                            Exit code: 0 decided, 1 failed or not confirmed, 2 wrong usage or arguments that do not fit, \
                            3 you may not decide, 7 there is no such question, 8 it is already decided, has expired, or \
                            is not what you were shown.";

#[derive(Debug, Args)]
pub(crate) struct Approvals {
    #[command(subcommand)]
    pub(crate) command: ApprovalsCommand,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY", global = true)]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List questions that wait for a person, the oldest first.
    List {
        /// Also those that are settled.
        #[arg(long)]
        all: bool,

        /// Only those of this run and its sub-agents; the start of its id is enough.
        #[arg(long, value_name = "RUN")]
        run: Option<String>,

        /// Print one JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Say everything about a question: what exactly would run, why, and how to decide.
    #[command(
        after_help = "Exit code: 0 done, 1 failed, 2 wrong usage, 7 there is no such question."
    )]
    Show {
        #[command(flatten)]
        question: OneQuestion,
    },
    /// Let a call run, once, as it is or with other arguments.
    #[command(after_help = APPROVE_HELP)]
    Approve(Approve),
    /// Say no. The call does not run, and the model is told so.
    #[command(after_help = EXIT_CODES)]
    Reject(Reject),
    /// Answer: in the stead of a tool, to a question in words, or that work by hand is done.
    #[command(after_help = EXIT_CODES)]
    Respond(Respond),
    /// Print questions as they come, and how they are settled, until Ctrl-C.
    #[command(
        after_help = "Exit code: 130 when interrupted, 0 when nobody reads any more, 1 failed."
    )]
    Watch {
        /// Print one JSON object a line.
        #[arg(long)]
        json: bool,
    },
}

/// Which question is meant.
#[derive(Debug, Args)]
pub(crate) struct OneQuestion {
    /// The call it is about, as `windlass approvals list` names it; its start or end, or the id of its
    /// run, if that is enough. For example `0198c0ffee:2:0`.
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    pub(crate) question: OneQuestion,

    /// Run it with these arguments instead: all of them, as one JSON object. They are checked against
    /// the tool's schema, and the model is told what really ran.
    #[arg(long, value_name = "JSON")]
    pub(crate) edit: Option<String>,

    /// Do not ask again in this run: for exactly this call, or for the tool with any arguments.
    /// Calls that cannot be undone are asked about all the same.
    #[arg(long, value_enum, value_name = "WHAT", require_equals = true, num_args = 0..=1,
          default_missing_value = "call")]
    pub(crate) always: Option<Always>,

    /// The digest of what you were shown, as `show` prints it. If the call is another one by now,
    /// nothing is decided. For example `sha256:9f86d081...`.
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<String>,

    /// Approve without being asked to confirm.
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Always {
    /// The tool with exactly these arguments.
    Call,
    /// The tool with any arguments.
    Tool,
}

impl From<Always> for windlass_service::Always {
    fn from(always: Always) -> Self {
        match always {
            Always::Call => Self::Call,
            Always::Tool => Self::Tool,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Reject {
    #[command(flatten)]
    pub(crate) question: OneQuestion,

    /// What the model is told, such as `the invoice was paid last week`.
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Respond {
    #[command(flatten)]
    pub(crate) question: OneQuestion,

    /// About a call: what the model gets instead of the tool's result, as JSON or else as text, such as
    /// `'{"balance": 10}'`. To a question: the answer. About work by hand: a note, which may be left out.
    #[arg(value_name = "VALUE")]
    pub(crate) value: Option<String>,
}
