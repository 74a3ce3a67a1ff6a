//! The arguments of `windlass approvers`, and how an approver signs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::DataDirectory;

const HELP: &str = "An approver signs decisions with a key. The first use makes one for you, which needs no passphrase. The \
                    list and the keys are beside the other keys of the installation, and never in the database; each \
                    change is recorded for `windlass audit export`.\n\n\
                    Exit code: 0 done, 1 failed, 2 wrong usage, 3 not permitted, 7 no such approver, 8 not possible.";

const ADD_HELP: &str = "Examples:\n  \
                        windlass approvers add bob\n  \
                        windlass approvers add night-shift --unattended\n  \
                        windlass approvers add carol --public-key 'windlass-ed25519 9f86...'\n\n\
                        Exit code: 0 done, 1 failed, 2 wrong usage, 3 not permitted, 8 there is one already.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Approvers {
    #[command(subcommand)]
    pub(crate) command: ApproversCommand,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApproversCommand {
    /// List the approvers and delegations.
    List {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Show one approver.
    Show {
        /// The name.
        #[arg(value_name = "NAME")]
        name: String,

        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Add an approver with a new key. At a terminal you are asked for a passphrase.
    #[command(after_help = ADD_HELP)]
    Add(ApproversAdd),
    /// Remove an approver and their key. What they approved and did not run yet does not count any more.
    Remove {
        /// The name.
        #[arg(value_name = "NAME")]
        name: String,

        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Let another approver decide for you until a date.
    Delegate(ApproversDelegate),
}

#[derive(Debug, Args)]
pub(crate) struct ApproversAdd {
    /// The name, as decisions record it.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Let the key approve with `--yes`, which looks at no call. For an approver who is listed already, only this changes.
    #[arg(long)]
    pub(crate) unattended: bool,

    /// Read the passphrase of the new key from the first line of this file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["public_key", "without_key"])]
    pub(crate) passphrase_file: Option<PathBuf>,

    /// Make a key without a passphrase, and do not ask for one.
    #[arg(long, conflicts_with_all = ["passphrase_file", "public_key", "without_key"])]
    pub(crate) no_passphrase: bool,

    /// Add a key whose private part is elsewhere: the text that `windlass approvers show` prints there.
    #[arg(long, value_name = "KEY", conflicts_with = "without_key")]
    pub(crate) public_key: Option<String>,

    /// Add an approver without a key, who decides only through a server that authenticates them.
    #[arg(long)]
    pub(crate) without_key: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: windlass approvers delegate --to bob --until 2027-01-07T08:00:00Z\n\n\
                  Exit code: 0 done, 1 failed, 2 wrong usage, 3 not permitted, 8 not possible."
)]
pub(crate) struct ApproversDelegate {
    /// Who decides in your place.
    #[arg(long, value_name = "NAME")]
    pub(crate) to: String,

    /// Until when: a time such as 2027-01-07T08:00:00Z, or a duration such as 90m, 12h or 7d.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: String,

    #[command(flatten)]
    pub(crate) approver: ApproverOptions,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who decides, and how their key is unlocked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct ApproverOptions {
    /// Decide as this approver, with their key. Default: the user that the installation belongs to.
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Read the passphrase of the key from the first line of this file. Default: ask at the terminal.
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
}
