//! The arguments of `windlass playbook`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::agent::DataDirectory;

#[derive(Debug, Args)]
pub(crate) struct Playbook {
    #[command(subcommand)]
    pub(crate) command: PlaybookCommand,

    /// The domain of the playbook. Default: all domains, or the only one there is.
    #[arg(long, value_name = "NAME", global = true, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) domain: Option<String>,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlaybookCommand {
    /// List the strategies in use, the most reliable first.
    List(PlaybookList),
    /// Show a strategy, the runs that support it, and why it is no longer used.
    Show(PlaybookShow),
    /// Show what was learned or changed between two revisions.
    #[command(
        after_help = "A revision is the number of entries in the log. Default: show the last entry."
    )]
    Diff(PlaybookDiff),
    /// Revert everything that was learned or changed after a revision. This can be reverted too.
    Revert(PlaybookRevert),
    /// Pin a strategy: learning never retires it.
    Pin(OneStrategy),
    /// Disable a strategy.
    Disable(OneStrategy),
    /// Import strategies from a file, one JSON object per line.
    #[command(
        after_help = "Invalid lines are reported, and the others are imported. Exit code: 0 if all lines were \
                      imported, 1 if some were not, 2 for wrong usage."
    )]
    Import(PlaybookImport),
    /// Print the strategies as one JSON object per line, for `import`.
    Export(PlaybookExport),
    /// Count what was learned, and how often it was followed.
    Stats(PlaybookStats),
}

#[derive(Debug, Args)]
pub(crate) struct PlaybookList {
    /// Include retired and disabled strategies.
    #[arg(long)]
    pub(crate) all: bool,

    /// Mark the strategies that name tools which the agents of this file do not have.
    #[arg(long, value_name = "FILE")]
    pub(crate) agent: Option<PathBuf>,

    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlaybookShow {
    /// The strategy's id, or a unique prefix of it.
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

    /// The later revision. Default: the present one.
    #[arg(value_name = "TO")]
    pub(crate) to: Option<usize>,

    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlaybookRevert {
    /// The revision to revert to.
    #[arg(value_name = "REVISION")]
    pub(crate) revision: usize,
}

#[derive(Debug, Args)]
pub(crate) struct OneStrategy {
    /// The strategy's id, or a unique prefix of it.
    #[arg(value_name = "ID")]
    pub(crate) strategy: String,

    /// Undo the pin or the disabling.
    #[arg(long)]
    pub(crate) undo: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlaybookImport {
    /// The file; `-` reads standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Import only strategies whose tools the agents of this file have.
    #[arg(long, value_name = "FILE")]
    pub(crate) agent: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PlaybookExport {
    /// Include retired and disabled strategies.
    #[arg(long)]
    pub(crate) all: bool,

    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PlaybookStats {
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}
