//! What can be typed. Meaning is given to it in the commands' own files.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use windlass_model::Dialect;

/// Declare tool-calling agents as text, check them, and bind them to implementations.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// When to colour what is written to the terminal.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check agent files and point at every mistake.
    Check(Check),
    /// Rewrite gram files in the canonical layout.
    Fmt(Fmt),
    /// Print the JSON Schema of the tools a file declares.
    Schema(Schema),
    /// Bind the tools a file declares to the implementations in a library.
    Bind(Bind),
    /// Run an agent on a task and print its answer.
    Run(RunTask),
    /// See how runs came about.
    Trace(Trace),
}

#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 if every file is valid, 1 otherwise, 2 for wrong usage.")]
pub(crate) struct Check {
    /// Files to check; `-` reads standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print one JSON object a line for each file instead of text.
    #[arg(long)]
    pub(crate) json: bool,

    /// Check only that the text is valid gram, whatever it is about.
    #[arg(long)]
    pub(crate) syntax_only: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: 0 if every file is (now) in the canonical layout, 1 otherwise, 2 for wrong usage."
)]
pub(crate) struct Fmt {
    /// Files to format in place; `-` formats standard input to standard output.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Change nothing; list the files that are not in the canonical layout.
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The file that declares the tools; `-` reads standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Print only this tool's schema; without it, one object with a schema for every tool.
    #[arg(value_name = "TOOL")]
    pub(crate) tool: Option<String>,

    /// Print what the tool returns instead of what it takes.
    #[arg(long)]
    pub(crate) returns: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 if every tool is bound, 1 otherwise, 2 for wrong usage.")]
pub(crate) struct Bind {
    /// The file that declares the tools; `-` reads standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The library with the implementations: a built-in one, or a library file (`.toml`).
    #[arg(long, value_name = "NAME")]
    pub(crate) library: String,

    /// Bind only the tools of this agent; without it, all tools of the file.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// How closely an implementation must match its specification.
    #[arg(long, value_enum, default_value_t = Mode::Exact)]
    pub(crate) mode: Mode,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Name, description and schema are equal.
    Exact,
    /// The implementation accepts everything the specification allows.
    Compatible,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: 0 done, 1 failed or out of turns, 2 wrong usage, 3 denied, 4 a person is needed, \
                  5 out of time, 6 rate limited, 130 interrupted."
)]
pub(crate) struct RunTask {
    /// The file that declares the agent.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// What to do; without it, standard input is read.
    #[arg(value_name = "TASK")]
    pub(crate) task: Option<String>,

    /// Which agent of the file; not needed if only one is nobody's sub-agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// The library with the implementations: a built-in one, or a library file (`.toml`).
    #[arg(long, value_name = "NAME")]
    pub(crate) library: Option<String>,

    /// How closely an implementation must match its specification.
    #[arg(long, value_enum, default_value_t = Mode::Exact)]
    pub(crate) mode: Mode,

    /// The model instead of the agent's: `Provider/id`, `scripted:FILE` or `replay:FILE`.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Where the model's server is, if not at the provider's usual address.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// How the model is asked for calls: native, structured or auto.
    #[arg(long, default_value = "auto", value_parser = clap::value_parser!(Dialect))]
    pub(crate) dialect: Dialect,

    /// Record what is said to and by the model in this file, for `--model replay:FILE`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// How many turns the agent has (10 if not said).
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,

    /// How many seconds the run may take.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,

    /// Only these of the agent's tools, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) available_tools: Option<Vec<String>>,

    /// Print one JSON object with the run, its end and the response.
    #[arg(long)]
    pub(crate) json: bool,

    /// Print every event as a line of JSON while it happens, then the same object as `--json`.
    #[arg(long, conflicts_with = "json")]
    pub(crate) jsonl: bool,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Trace {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY", global = true)]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// List runs, the newest first.
    List {
        /// At most so many.
        #[arg(long, default_value_t = 20)]
        limit: u32,
        /// Print one JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Draw the steps of a run.
    Show {
        /// The run, or the start of its id if that is enough.
        run: String,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Print the journal of a run as JSON Lines, in order.
    Export {
        /// The run, or the start of its id if that is enough.
        run: String,
    },
    /// Remove what was said and done in runs that ended long ago; decisions stay.
    Purge {
        /// How many days ago a run must have ended.
        #[arg(long, default_value_t = 7)]
        days: u32,
    },
}
