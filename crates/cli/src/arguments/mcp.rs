//! What can be typed after `windlass mcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Argument;
use super::tools::argument;

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Add a server to the configuration, meet it, and pin its tools.
    #[command(after_help = "Examples:\n  \
            windlass mcp add time -- mcp-server-time --local-timezone UTC\n  \
            windlass mcp add notes --env NOTES_TOKEN=env:NOTES_TOKEN -- notes-server\n  \
            windlass mcp add wiki --url https://wiki.example.com/mcp --header 'Authorization=Bearer env:WIKI_TOKEN'\n\n\
            A value `env:NAME` is read from the environment variable NAME whenever it is needed, and \
            written nowhere. No shell reads the command.\n\n\
            Exit code: 0 done, 1 if the server cannot be met, 2 for wrong usage.")]
    Add(McpAdd),
    /// Take over the servers that another client's configuration lists.
    #[command(
        after_help = "Reads the JSON of Claude Desktop, Cursor (`mcpServers`) and VS Code (`servers`). Secrets \
            written in it are not taken over: they become `env:NAME`, and what has to be set is said. \
            Nothing is started.\n\n\
            Exit code: 0 done, 1 if the file cannot be read, 2 for wrong usage."
    )]
    Import(McpImport),
    /// List the servers of the configuration and how their tools stand.
    #[command(
        after_help = "Exit code: 0 done, 1 if what is known of them cannot be read, 2 for wrong usage."
    )]
    List(McpList),
    /// Meet a server and show what it says of itself and its tools.
    #[command(after_help = "Exit code: 0 done, 1 if the server cannot be met, 2 for wrong usage.")]
    Inspect(McpInspect),
    /// Call a tool of a server by hand, through the gate and into the journal like any call.
    #[command(
        after_help = "Exit code: 0 done, 1 failed, 2 wrong usage, 3 denied, 4 a person is needed, \
            5 out of time, 6 rate limited, 130 interrupted."
    )]
    Call(McpCall),
    /// See which definitions of tools are accepted and what has changed since, and accept changes.
    #[command(
        after_help = "A tool is called only while its definition is the one that was accepted. What a server \
            offers when it is first met is accepted, unless it hides something; from then on every change \
            waits until somebody accepts it here.\n\n\
            Exit code: 0 if nothing waits to be accepted, 1 otherwise, 2 for wrong usage."
    )]
    Pins(McpPins),
    /// Get leave from whoever guards a server: shows an address to open in a browser.
    #[command(after_help = "Exit code: 0 done, 1 if no leave was given, 2 for wrong usage.")]
    Login(McpLogin),
    /// Take a server out of the configuration and forget its pins.
    #[command(after_help = "Exit code: 0 done, 1 if it cannot be taken out, 2 for wrong usage.")]
    Remove(McpRemove),
}

/// Where what is known of servers is kept, and how it is shown.
#[derive(Debug, Args)]
pub(crate) struct Kept {
    /// Where pins are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpAdd {
    /// Your name for the server: its tools are called NAME__TOOL.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The address of a server that is reached over HTTP.
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "directory", "env", "part"])]
    pub(crate) url: Option<String>,

    /// A header that is sent with every request; `env:NAME` at its end is read from the environment.
    #[arg(long, value_name = "NAME=VALUE", requires = "url", value_parser = argument)]
    pub(crate) header: Vec<Argument>,

    /// The server is guarded: leave is got with `windlass mcp login`.
    #[arg(long, requires = "url")]
    pub(crate) oauth: bool,

    /// A variable the server gets; `env:NAME` is read from the environment.
    #[arg(long, value_name = "NAME=VALUE", value_parser = argument)]
    pub(crate) env: Vec<Argument>,

    /// Where the server is started, instead of here.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,

    /// A file or directory that is part of the program: if it changes, the server is not started.
    #[arg(long, value_name = "PATH")]
    pub(crate) part: Vec<PathBuf>,

    /// Believe what the server says of its own tools: what it calls read-only runs at once.
    #[arg(long)]
    pub(crate) trusted: bool,

    /// Write to the user's configuration instead of the project's.
    #[arg(long)]
    pub(crate) user: bool,

    #[command(flatten)]
    pub(crate) kept: Kept,

    /// The program and what it is started with, after `--`.
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "url")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct McpImport {
    /// The file, such as `claude_desktop_config.json` or `.vscode/mcp.json`; `-` reads standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Take over only this server; can be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,

    /// Show what would be written, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Write to the user's configuration instead of the project's.
    #[arg(long)]
    pub(crate) user: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpList {
    #[command(flatten)]
    pub(crate) kept: Kept,
}

#[derive(Debug, Args)]
pub(crate) struct McpInspect {
    /// Your name for the server.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Show all of this tool; without it, one line a tool.
    #[arg(value_name = "TOOL")]
    pub(crate) tool: Option<String>,

    /// Print the tools as declarations for an agent file.
    #[arg(long, conflicts_with = "json")]
    pub(crate) gram: bool,

    #[command(flatten)]
    pub(crate) kept: Kept,
}

#[derive(Debug, Args)]
pub(crate) struct McpCall {
    /// Your name for the server.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The tool, as the server calls it.
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,

    /// What it is called with.
    #[arg(value_name = "KEY=VALUE", conflicts_with = "args", value_parser = argument)]
    pub(crate) arguments: Vec<Argument>,

    /// All arguments as one JSON object.
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,

    /// Approve the call, if it needs leave.
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) kept: Kept,
}

#[derive(Debug, Args)]
pub(crate) struct McpPins {
    /// Only those of this server.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Accept what the server offers of this tool now; can be given several times.
    #[arg(long, value_name = "TOOL", requires = "name")]
    pub(crate) accept: Vec<String>,

    /// Accept everything the server offers that hides nothing.
    #[arg(long, requires = "name", conflicts_with = "accept")]
    pub(crate) accept_all: bool,

    /// Accept what the server runs now.
    #[arg(long, requires = "name")]
    pub(crate) accept_program: bool,

    /// Do not ask before accepting.
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) kept: Kept,
}

#[derive(Debug, Args)]
pub(crate) struct McpLogin {
    /// Your name for the server.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Where the leave is kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct McpRemove {
    /// Your name for the server.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Where pins are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
}
