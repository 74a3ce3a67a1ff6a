//! The arguments of `windlass ab`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::agent::{AgentOptions, DataDirectory, Limits};

pub(super) const HELP: &str = "\
Every task runs with A and with B, --runs times each, in an order that the seed determines. Results are stored: the \
same command with --resume continues an interrupted experiment, and a larger --runs extends it.

A metric is success, iterations, latency, cost or check:COMMAND. A check gets the run as JSON on standard input and \
reports success with exit code 0. Without a check, a run is a success if it completed, its last call succeeded, and its \
answer equals `expected` in the task's `metadata`, where that is given.

Exit code: 0 the experiment is done, whatever its result; 1 it failed or is invalid; 2 wrong usage; 4 \
runs wait for an approval or answer; 130 interrupted.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Ab {
    #[command(subcommand)]
    pub(crate) command: Option<AbCommand>,

    #[command(flatten)]
    pub(crate) experiment: AbRun,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AbCommand {
    /// Compare the variants of tools that a library assigns to principals.
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

    /// How often every task runs in each arm.
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs: u32,

    /// The metric: success, iterations, latency, cost or check:COMMAND. Can be repeated; the first is the
    /// primary metric. Default: success and iterations.
    #[arg(long, value_name = "METRIC")]
    pub(crate) metric: Vec<String>,

    /// The seed of the order of runs.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// How many pairs run at the same time.
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) jobs: u16,

    /// Continue the experiment and repeat no run that is done.
    #[arg(long)]
    pub(crate) resume: bool,

    /// The name of the experiment. Default: derived from its parts.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The significance level: the chance of a verdict without a real difference.
    #[arg(long, value_name = "NUMBER", default_value_t = 0.05, value_parser = alpha)]
    pub(crate) alpha: f64,

    /// Stop as soon as the primary metric is decided. The error rate stays the same.
    #[arg(long)]
    pub(crate) early_stop: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a report to this file: `.html` or `.svg`.
    #[arg(long, value_name = "FILE", value_parser = report_file)]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) agent: AgentOptions,

    #[command(flatten)]
    pub(crate) limits: Limits,
}

// `clap` ensures that the required options are given, except with a subcommand, which does not use them.
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

    /// Only calls that ended since then: a time such as 2026-05-01T00:00:00Z, or an age such as 90m, 12h
    /// or 7d.
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,

    /// The significance level: the chance of a verdict without a real difference.
    #[arg(long, value_name = "NUMBER", default_value_t = 0.05, value_parser = alpha)]
    pub(crate) alpha: f64,

    /// Print one JSON object per line for each experiment.
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a report to this file: `.html` or `.svg`.
    #[arg(long, value_name = "FILE", value_parser = report_file)]
    pub(crate) report: Option<PathBuf>,
}

fn alpha(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(alpha) if (0.000_1..=0.5).contains(&alpha) => Ok(alpha),
        _ => Err("expected a number from 0.0001 to 0.5".to_owned()),
    }
}

fn report_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension {
        Some("html" | "svg") => Ok(path),
        _ => Err("the name of a report must end in `.html` or `.svg`".to_owned()),
    }
}
