//! What can be typed after `windlass ab`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::crew::{CrewOptions, Limits};

pub(super) const HELP: &str = "\
Every task is done with A and with B, in an order that follows from the seed, --runs times over. What is done is kept: \
the same command with --resume goes on where it was stopped, and a larger --runs adds to it.

A metric is success, iterations, latency, cost or check:COMMAND. A check gets the run as JSON on standard input and \
says by exit code 0 that it is good. Without one, a run is a success if it completed, its last call succeeded, and its \
answer is what `expected` in the task's `metadata` says, if that says something.

Exit code: 0 the experiment is done, whatever came of it; 1 it could not be done, or says nothing; 2 wrong usage; 4 \
runs wait for a person; 130 interrupted.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Ab {
    #[command(subcommand)]
    pub(crate) command: Option<AbCommand>,

    #[command(flatten)]
    pub(crate) experiment: AbRun,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY", global = true)]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AbCommand {
    /// Say how the variants of tools do that a library splits between principals.
    #[command(after_help = "Exit code: 0 done, 1 failed, 2 for wrong usage.")]
    Report(AbReport),
}

#[derive(Debug, Args)]
pub(crate) struct AbRun {
    /// The file that declares the agent.
    #[arg(value_name = "AGENT", required = true)]
    file: Option<PathBuf>,

    /// The library of arm A: a built-in one, or a library file (`.toml`).
    #[arg(long, value_name = "LIBRARY", required = true)]
    a: Option<String>,

    /// The library of arm B.
    #[arg(long, value_name = "LIBRARY", required = true)]
    b: Option<String>,

    /// The tasks: JSON Lines, each with a `task_id` and a `description`.
    #[arg(long, value_name = "FILE", required = true)]
    tasks: Option<PathBuf>,

    /// How often every task is done in each arm.
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs: u32,

    /// What is compared: success, iterations, latency, cost or check:COMMAND. Can be repeated; the
    /// first is what the experiment is about. Success and iterations if none is named.
    #[arg(long, value_name = "METRIC")]
    pub(crate) metric: Vec<String>,

    /// What the order of everything follows from.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// How many pairs to work on at the same time.
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) jobs: u16,

    /// Go on with the experiment, and do nothing of it twice.
    #[arg(long)]
    pub(crate) resume: bool,

    /// The name of the experiment, instead of one made of what it consists of.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The chance of a verdict where there is no difference.
    #[arg(long, value_name = "NUMBER", default_value_t = 0.05, value_parser = alpha)]
    pub(crate) alpha: f64,

    /// Stop as soon as the first metric is decided. The error rate stays what it is.
    #[arg(long)]
    pub(crate) early_stop: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    /// Write what came of it to this file, to be sent around: `.html` or `.svg`.
    #[arg(long, value_name = "FILE", value_parser = report_file)]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) crew: CrewOptions,

    #[command(flatten)]
    pub(crate) limits: Limits,
}

// What is required is there, unless a subcommand is, which needs none of it.
impl AbRun {
    pub(crate) fn file(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new(""))
    }

    pub(crate) fn a(&self) -> &str {
        self.a.as_deref().unwrap_or_default()
    }

    pub(crate) fn b(&self) -> &str {
        self.b.as_deref().unwrap_or_default()
    }

    pub(crate) fn tasks(&self) -> &Path {
        self.tasks.as_deref().unwrap_or(Path::new(""))
    }
}

#[derive(Debug, Args)]
pub(crate) struct AbReport {
    /// Only this tool.
    #[arg(value_name = "TOOL")]
    pub(crate) tool: Option<String>,

    /// Only calls that ended since then: a moment such as 2026-05-01T00:00:00Z, or so long ago, such as
    /// 90m, 12h or 7d.
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,

    /// The chance of a verdict where there is no difference.
    #[arg(long, value_name = "NUMBER", default_value_t = 0.05, value_parser = alpha)]
    pub(crate) alpha: f64,

    /// Print one JSON object a line for each experiment.
    #[arg(long)]
    pub(crate) json: bool,

    /// Write what came of it to this file, to be sent around: `.html` or `.svg`.
    #[arg(long, value_name = "FILE", value_parser = report_file)]
    pub(crate) report: Option<PathBuf>,
}

fn alpha(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(alpha) if (0.000_1..=0.5).contains(&alpha) => Ok(alpha),
        _ => Err("it is a number from 0.0001 to 0.5".to_owned()),
    }
}

fn report_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension {
        Some("html" | "svg") => Ok(path),
        _ => Err("the name of a report ends in `.html` or `.svg`".to_owned()),
    }
}
