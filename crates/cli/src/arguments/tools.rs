//! The arguments of `windlass tools`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::agent::DataDirectory;

#[derive(Debug, Args)]
pub(crate) struct Tools {
    #[command(subcommand)]
    pub(crate) command: ToolsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List tools, sorted by name. Default: those of the built-in libraries.
    #[command(after_help = "Exit code: 0 done, 1 if the tools cannot be read, 2 for wrong usage.")]
    List(ToolsList),
    /// Search tools by what they do, the best match first.
    #[command(after_help = "Exit code: 0 done, 1 if the tools cannot be read, 2 for wrong usage.")]
    Find(ToolsFind),
    /// Describe a tool in full.
    #[command(after_help = "Exit code: 0 done, 1 if no such tool exists, 2 for wrong usage.")]
    Describe(ToolsDescribe),
    /// Call a tool directly. The gate and the journal apply as for any call.
    #[command(
        after_help = "A value of KEY=VALUE is parsed by the tool's schema: a number, a boolean, a text, \
                            JSON for records. A repeated key is a list. KEY=@FILE takes the value \
                            from a file, KEY=@- from standard input.\n\n\
                            Exit code: 0 done, 1 failed, 2 wrong usage, 3 denied, 4 waiting for an \
                            approval or answer, 5 out of time, 6 rate limited, 130 interrupted."
    )]
    Call(ToolsCall),
    /// Count the calls of each tool by outcome, sorted by name.
    #[command(
        after_help = "Exit code: 0 done, 1 if the journal cannot be read, 2 for wrong usage."
    )]
    Stats(ToolsStats),
    /// List the results of calls, the latest first.
    #[command(
        after_help = "Exit code: 0 done, 1 if the journal cannot be read, 2 for wrong usage."
    )]
    Results(ToolsResults),
}

/// The options that select tools.
#[derive(Debug, Args)]
pub(crate) struct WhichTools {
    /// Only the tools of this library: a built-in one, or a library file (`.toml`).
    #[arg(long, value_name = "NAME")]
    pub(crate) library: Option<String>,

    /// The tools this agent file declares. With `--library`, also whether they bind to it.
    #[arg(long, value_name = "FILE")]
    pub(crate) agent_file: Option<PathBuf>,

    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsList {
    #[command(flatten)]
    pub(crate) which: WhichTools,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsFind {
    /// What you want to do, in a few words.
    #[arg(value_name = "QUERY")]
    pub(crate) query: String,

    /// The maximum number of results.
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    pub(crate) limit: usize,

    #[command(flatten)]
    pub(crate) which: WhichTools,
}

/// The options that select executions.
#[derive(Debug, Args)]
pub(crate) struct Executions {
    /// Only executions of this tool.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,

    /// Only executions of the last hours, up to this number.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) hours: Option<u32>,

    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
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

    /// The maximum number of results.
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: usize,
}

/// The options that select one tool.
#[derive(Debug, Args)]
pub(crate) struct OneTool {
    /// The name of the tool.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The library with the tool: a built-in one, or a library file (`.toml`). Default: the libraries of the
    /// configuration.
    #[arg(long, value_name = "NAME")]
    pub(crate) library: Option<String>,

    /// The tool as this agent file declares it: with its risk, time limit and the like.
    #[arg(long, value_name = "FILE")]
    pub(crate) agent_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsDescribe {
    #[command(flatten)]
    pub(crate) tool: OneTool,

    /// Print it as a declaration for an agent file.
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

    /// The arguments of the call.
    #[arg(value_name = "KEY=VALUE", value_parser = argument)]
    pub(crate) arguments: Vec<Argument>,

    /// The arguments as one JSON object.
    #[arg(long, value_name = "JSON", conflicts_with = "arguments")]
    pub(crate) args: Option<String>,

    /// Approve the call, if it needs approval.
    #[arg(long)]
    pub(crate) yes: bool,

    /// Print the answer in the envelope instead of the bare result.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

/// An argument of a tool, unparsed.
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
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}
