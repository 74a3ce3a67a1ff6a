//! What can be typed after `windlass playbook`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Playbook {
    #[command(subcommand)]
    pub(crate) command: PlaybookCommand,

    /// The domain whose playbook is meant; all of them, or the only one there is, if not said.
    #[arg(long, value_name = "NAME", global = true, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) domain: Option<String>,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY", global = true)]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlaybookCommand {
    /// List the strategies in use, the most reliable first.
    List(PlaybookList),
    /// Show a strategy, the runs that prove it, and why it is no longer used.
    Show(PlaybookShow),
    /// Show what was learned or changed between two revisions.
    #[command(
        after_help = "A revision is the number of entries in the log. Without one, the last entry is told."
    )]
    Diff(PlaybookDiff),
    /// Take back everything that was learned or changed after a revision. This can be reverted too.
    Revert(PlaybookRevert),
    /// Keep a strategy in use, whatever is learned.
    Pin(OneStrategy),
    /// Switch a strategy off.
    Disable(OneStrategy),
    /// Take in strategies from a file, one JSON object a line.
    #[command(
        after_help = "Lines that are no strategy are named, and the others are taken. Exit code: 0 if all were \
                      taken, 1 if some were not, 2 for wrong usage."
    )]
    Import(PlaybookImport),
    /// Print the strategies as one JSON object a line, as `import` takes them.
    Export(PlaybookExport),
    /// Say how much was learned, and whether it was followed.
    Stats(PlaybookStats),
}

#[derive(Debug, Args)]
pub(crate) struct PlaybookList {
    /// Also those that are retired or switched off.
    #[arg(long)]
    pub(crate) all: bool,

    /// Say which strategies name tools that the agents of this file do not have.
    #[arg(long, value_name = "FILE")]
    pub(crate) agent: Option<PathBuf>,

    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlaybookShow {
    /// The strategy, or the start of its id if that is enough.
    #[arg(value_name = "ID")]
    pub(crate) strategy: String,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlaybookDiff {
    /// The earlier revision.
    #[arg(value_name = "FROM")]
    pub(crate) from: Option<usize>,

    /// The later revision; the present one if not said.
    #[arg(value_name = "TO")]
    pub(crate) to: Option<usize>,

    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlaybookRevert {
    /// The revision to go back to.
    #[arg(value_name = "REVISION")]
    pub(crate) revision: usize,
}

#[derive(Debug, Args)]
pub(crate) struct OneStrategy {
    /// The strategy, or the start of its id if that is enough.
    #[arg(value_name = "ID")]
    pub(crate) strategy: String,

    /// Take it back.
    #[arg(long)]
    pub(crate) undo: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlaybookImport {
    /// The file; `-` reads standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Take only strategies whose tools the agents of this file have.
    #[arg(long, value_name = "FILE")]
    pub(crate) agent: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PlaybookExport {
    /// Also those that are retired or switched off.
    #[arg(long)]
    pub(crate) all: bool,

    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PlaybookStats {
    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}
