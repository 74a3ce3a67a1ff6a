//! The arguments of `windlass approvals`.

use clap::{Args, Subcommand, ValueEnum};

use super::agent::DataDirectory;
use super::approvers::ApproverOptions;

const EXIT_CODES: &str = "Exit code: 0 decided, 1 failed, 2 wrong usage or invalid arguments, 3 you are not \
                          permitted to decide, 7 no such request, 8 already decided, expired, or changed since it \
                          was shown.";

const APPROVE_HELP: &str = "A call of the security level HIGH or above is confirmed by typing the name of its tool. \
                            Without a terminal, pass `--digest` with the digest that `show` printed; that suffices up to \
                            HIGH. A key that may decide unattended can pass `--yes`. A CRITICAL call needs two approvers, \
                            and the user that the run acts for does not count; without a terminal, each passes `--digest` \
                            and `--yes`.\n\n\
                            Examples:\n  \
                            windlass approvals approve 0198c0ffee:2:0\n  \
                            windlass approvals approve 0198c0ffee:2:0 --edit '{\"to\": \"bob\", \"amount\": 7}'\n  \
                            windlass approvals approve 0198c0ffee:2:0 --always=tool\n\n\
                            Exit code: 0 decided, 1 failed or not confirmed, 2 wrong usage or invalid arguments, \
                            3 you are not permitted to decide, 7 no such request, 8 already decided, expired, or \
                            changed since it was shown.";

#[derive(Debug, Args)]
pub(crate) struct Approvals {
    /// Default: choose one of the pending requests at the terminal, and decide about it.
    #[command(subcommand)]
    pub(crate) command: Option<ApprovalsCommand>,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List pending approvals and questions, the oldest first.
    List {
        /// Include settled ones.
        #[arg(long)]
        all: bool,

        /// Only those of this run and its sub-agents: a run id or a unique prefix of it.
        #[arg(long, value_name = "RUN")]
        run: Option<String>,

        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Show a request in full: the exact call, the reason, and how to decide.
    #[command(after_help = "Exit code: 0 done, 1 failed, 2 wrong usage, 7 no such request.")]
    Show {
        #[command(flatten)]
        question: OneQuestion,
    },
    /// Approve a call once, as it is or with edited arguments.
    #[command(after_help = APPROVE_HELP)]
    Approve(Approve),
    /// Reject a call. It does not run, and the model is informed.
    #[command(after_help = EXIT_CODES)]
    Reject(Reject),
    /// Answer a question, supply a tool's result, or mark manual work as done.
    #[command(after_help = EXIT_CODES)]
    Respond(Respond),
    /// Print requests as they arrive and are settled, until Ctrl-C.
    #[command(
        after_help = "Exit code: 130 when interrupted, 0 when the output is closed, 1 failed."
    )]
    Watch {
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
}

/// The options that select one request.
#[derive(Debug, Args)]
pub(crate) struct OneQuestion {
    /// The call's id, as `windlass approvals list` prints it. A unique prefix, a unique suffix or the run's
    /// id is enough. For example `0198c0ffee:2:0`.
    #[arg(value_name = "ID", required_unless_present = "last")]
    pub(crate) id: Option<String>,

    /// The request that was asked last, of those that are pending.
    #[arg(long)]
    pub(crate) last: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    pub(crate) question: OneQuestion,

    /// Run the call with these arguments instead: all of them, as one JSON object. They are checked against
    /// the tool's schema, and the model is informed of them.
    #[arg(long, value_name = "JSON")]
    pub(crate) edit: Option<String>,

    /// Do not ask again in this run: for exactly this call, or for the tool with any arguments.
    /// Calls that cannot be undone still ask.
    #[arg(long, value_enum, value_name = "WHAT", require_equals = true, num_args = 0..=1,
          default_missing_value = "call")]
    pub(crate) always: Option<Always>,

    /// The digest that `show` printed. If the call has changed since, nothing is decided. For example
    /// `sha256:9f86d081...`.
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<String>,

    /// Approve without a confirmation prompt. The key must permit it: `windlass approvers add NAME --unattended`.
    #[arg(long)]
    pub(crate) yes: bool,

    /// Resume the run afterwards, unless it needs another approver.
    #[arg(long)]
    pub(crate) resume: bool,

    #[command(flatten)]
    pub(crate) decider: Decider,
}

/// Who decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct Decider {
    #[command(flatten)]
    pub(crate) approver: ApproverOptions,

    /// Decide for this approver, who delegated that to you.
    #[arg(long = "for", value_name = "NAME")]
    pub(crate) on_behalf_of: Option<String>,
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

    /// The message for the model, such as `the invoice was paid last week`.
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,

    #[command(flatten)]
    pub(crate) decider: Decider,
}

#[derive(Debug, Args)]
pub(crate) struct Respond {
    #[command(flatten)]
    pub(crate) question: OneQuestion,

    /// For a call: the result that the model gets instead of the tool's, as JSON or else as text, such as
    /// `'{"balance": 10}'`. For a question: the answer. For manual work: a note (optional).
    #[arg(value_name = "VALUE")]
    pub(crate) value: Option<String>,

    #[command(flatten)]
    pub(crate) decider: Decider,
}
