//! The arguments of `windlass mcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Argument;
use super::agent::DataDirectory;
use super::tools::argument;

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Add a server to the configuration, connect to it, and pin its tools.
    #[command(after_help = "Examples:\n  \
            windlass mcp add time -- mcp-server-time --local-timezone UTC\n  \
            windlass mcp add notes --env NOTES_TOKEN=env:NOTES_TOKEN -- notes-server\n  \
            windlass mcp add wiki --url https://wiki.example.com/mcp --header 'Authorization=Bearer env:WIKI_TOKEN'\n\n\
            A value `env:NAME` is read from the environment variable NAME whenever it is needed, and \
            never stored. The command does not run in a shell.\n\n\
            Exit code: 0 done, 1 if the connection fails, 2 for wrong usage.")]
    Add(McpAdd),
    /// Import the servers of another client's configuration.
    #[command(
        after_help = "Reads the JSON of Claude Desktop, Cursor (`mcpServers`) and VS Code (`servers`). Secrets \
            in it are not imported: they become `env:NAME`, and the output lists the variables to set. \
            No server is started.\n\n\
            Exit code: 0 done, 1 if the file cannot be read, 2 for wrong usage."
    )]
    Import(McpImport),
    /// List the servers of the configuration and the state of their tools.
    #[command(
        after_help = "Exit code: 0 done, 1 if the stored pins cannot be read, 2 for wrong usage."
    )]
    List(McpList),
    /// Connect to a server and show its description and its tools.
    #[command(after_help = "Exit code: 0 done, 1 if the connection fails, 2 for wrong usage.")]
    Inspect(McpInspect),
    /// Call a tool of a server directly. The gate and the journal apply as for any call.
    #[command(
        after_help = "Exit code: 0 done, 1 failed, 2 wrong usage, 3 denied, 4 waiting for an approval or \
            answer, 5 out of time, 6 rate limited, 130 interrupted."
    )]
    Call(McpCall),
    /// Show the accepted (pinned) tool definitions and what has changed, and accept changes.
    #[command(
        after_help = "A tool is called only while its definition is the accepted one. The definitions of the \
            first connection are accepted, unless they contain hidden text. From then on every change waits \
            until an operator accepts it here.\n\n\
            Exit code: 0 if no change waits for acceptance, 1 otherwise, 2 for wrong usage."
    )]
    Pins(McpPins),
    /// Log in to a server with OAuth: prints a URL to open in a browser.
    #[command(
        after_help = "Exit code: 0 done, 1 if authorization was not granted, 2 for wrong usage."
    )]
    Login(McpLogin),
    /// Remove a server from the configuration and delete its pins.
    #[command(after_help = "Exit code: 0 done, 1 if it cannot be removed, 2 for wrong usage.")]
    Remove(McpRemove),
}

/// The data directory and the output format.
#[derive(Debug, Args)]
pub(crate) struct McpOutput {
    #[command(flatten)]
    pub(crate) data: DataDirectory,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpAdd {
    /// Your name for the server. Its tools are called NAME__TOOL.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The URL of a server that is reached over HTTP.
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "directory", "env", "part"])]
    pub(crate) url: Option<String>,

    /// A header that is sent with every request; `env:NAME` at its end is read from the environment.
    #[arg(long, value_name = "NAME=VALUE", requires = "url", value_parser = argument)]
    pub(crate) header: Vec<Argument>,

    /// The server requires OAuth: log in with `windlass mcp login NAME`.
    #[arg(long, requires = "url")]
    pub(crate) oauth: bool,

    /// An environment variable for the server; `env:NAME` is read from the environment.
    #[arg(long, value_name = "NAME=VALUE", value_parser = argument)]
    pub(crate) env: Vec<Argument>,

    /// The working directory of the server, instead of this one.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,

    /// A file or directory that is part of the program. If it changes, the server is not started.
    #[arg(long, value_name = "PATH")]
    pub(crate) part: Vec<PathBuf>,

    /// Trust the server's annotations: a tool that it calls read-only runs without approval.
    #[arg(long)]
    pub(crate) trusted: bool,

    /// Write to the user's configuration instead of the project's.
    #[arg(long)]
    pub(crate) user: bool,

    #[command(flatten)]
    pub(crate) output: McpOutput,

    /// The program and its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "url")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct McpImport {
    /// The file, such as `claude_desktop_config.json` or `.vscode/mcp.json`; `-` reads standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Import only this server. Can be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,

    /// Print what would be written, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Write to the user's configuration instead of the project's.
    #[arg(long)]
    pub(crate) user: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpList {
    #[command(flatten)]
    pub(crate) output: McpOutput,
}

#[derive(Debug, Args)]
pub(crate) struct McpInspect {
    /// Your name for the server.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Show this tool in full. Default: one line per tool.
    #[arg(value_name = "TOOL")]
    pub(crate) tool: Option<String>,

    /// Print the tools as declarations for an agent file.
    #[arg(long, conflicts_with = "json")]
    pub(crate) gram: bool,

    #[command(flatten)]
    pub(crate) output: McpOutput,
}

#[derive(Debug, Args)]
pub(crate) struct McpCall {
    /// Your name for the server.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The tool, as the server calls it.
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,

    /// The arguments of the call.
    #[arg(value_name = "KEY=VALUE", conflicts_with = "args", value_parser = argument)]
    pub(crate) arguments: Vec<Argument>,

    /// All arguments as one JSON object.
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,

    /// Approve the call, if it needs approval.
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) output: McpOutput,
}

#[derive(Debug, Args)]
pub(crate) struct McpPins {
    /// Only the pins of this server.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Accept the present definition of this tool. Can be repeated.
    #[arg(long, value_name = "TOOL", requires = "name")]
    pub(crate) accept: Vec<String>,

    /// Accept every present definition without hidden text.
    #[arg(long, requires = "name", conflicts_with = "accept")]
    pub(crate) accept_all: bool,

    /// Accept the present program of the server.
    #[arg(long, requires = "name")]
    pub(crate) accept_program: bool,

    /// Accept without a confirmation prompt.
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) output: McpOutput,
}

#[derive(Debug, Args)]
pub(crate) struct McpLogin {
    /// Your name for the server.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Args)]
pub(crate) struct McpRemove {
    /// Your name for the server.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}
