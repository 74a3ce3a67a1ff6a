//! What can be typed. Meaning is given to it in the commands' own files.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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

    /// The library with the implementations.
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
