//! What can be typed after `windlass tools`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Tools {
    #[command(subcommand)]
    pub(crate) command: ToolsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List tools, sorted by name: of the built-in libraries, if nothing else is said.
    #[command(after_help = "Exit code: 0 done, 1 if the tools cannot be read, 2 for wrong usage.")]
    List(ToolsList),
    /// Find the tools that fit what you want to do, the best first.
    #[command(after_help = "Exit code: 0 done, 1 if the tools cannot be read, 2 for wrong usage.")]
    Find(ToolsFind),
    /// Say all that is known of a tool.
    #[command(after_help = "Exit code: 0 done, 1 if there is no such tool, 2 for wrong usage.")]
    Describe(ToolsDescribe),
    /// Call a tool by hand, through the gate and into the journal like any call.
    #[command(
        after_help = "A value of KEY=VALUE is read as the tool's schema says: a number, a boolean, a text, \
                            JSON for records. A key given several times is a list. KEY=@FILE takes the value \
                            from a file, KEY=@- from standard input.\n\n\
                            Exit code: 0 done, 1 failed, 2 wrong usage, 3 denied, 4 a person is needed, \
                            5 out of time, 6 rate limited, 130 interrupted."
    )]
    Call(ToolsCall),
    /// Count how the calls of tools ended, sorted by name.
    #[command(
        after_help = "Exit code: 0 done, 1 if the journal cannot be read, 2 for wrong usage."
    )]
    Stats(ToolsStats),
    /// List how calls of tools ended, the latest first.
    #[command(
        after_help = "Exit code: 0 done, 1 if the journal cannot be read, 2 for wrong usage."
    )]
    Results(ToolsResults),
}

/// Which tools are meant.
#[derive(Debug, Args)]
pub(crate) struct WhichTools {
    /// Only the tools of this library: a built-in one, or a library file (`.toml`).
    #[arg(long, value_name = "NAME")]
    pub(crate) library: Option<String>,

    /// The tools this agent file declares; with `--library`, whether they can be bound to it.
    #[arg(long, value_name = "FILE")]
    pub(crate) agent_file: Option<PathBuf>,

    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsList {
    #[command(flatten)]
    pub(crate) which: WhichTools,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsFind {
    /// What you want to do, in a few words.
    #[arg(value_name = "QUERY")]
    pub(crate) query: String,

    /// How many at most.
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    pub(crate) limit: usize,

    #[command(flatten)]
    pub(crate) which: WhichTools,
}

/// Which executions are meant.
#[derive(Debug, Args)]
pub(crate) struct Executions {
    /// Only those of this tool.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,

    /// Only those of the last hours.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) hours: Option<u32>,

    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsStats {
    #[command(flatten)]
    pub(crate) executions: Executions,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsResults {
    #[command(flatten)]
    pub(crate) executions: Executions,

    /// How many at most.
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: usize,
}

/// Which tool is meant.
#[derive(Debug, Args)]
pub(crate) struct OneTool {
    /// The name of the tool.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The library with the tool: a built-in one, or a library file (`.toml`).
    #[arg(long, value_name = "NAME")]
    pub(crate) library: String,

    /// The tool as this agent file declares it: with its risk, time limit and the like.
    #[arg(long, value_name = "FILE")]
    pub(crate) agent_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsDescribe {
    #[command(flatten)]
    pub(crate) tool: OneTool,

    /// Print it as it stands in an agent file.
    #[arg(long, conflicts_with = "json")]
    pub(crate) gram: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsCall {
    #[command(flatten)]
    pub(crate) tool: OneTool,

    /// The arguments, one by one.
    #[arg(value_name = "KEY=VALUE", value_parser = argument)]
    pub(crate) arguments: Vec<Argument>,

    /// The arguments as one JSON object.
    #[arg(long, value_name = "JSON", conflicts_with = "arguments")]
    pub(crate) args: Option<String>,

    /// Approve the call beforehand, if a person is to be asked about it.
    #[arg(long)]
    pub(crate) yes: bool,

    /// Print the answer in the envelope instead of the bare result.
    #[arg(long)]
    pub(crate) json: bool,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
}

/// An argument of a tool as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Argument {
    pub(crate) key: String,
    pub(crate) value: String,
}

pub(super) fn argument(typed: &str) -> Result<Argument, String> {
    match typed.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok(Argument {
            key: key.to_owned(),
            value: value.to_owned(),
        }),
        _ => Err("an argument is written KEY=VALUE".to_owned()),
    }
}
