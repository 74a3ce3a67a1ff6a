//! The arguments of `windlass memory`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use windlass_service::types::ScopeReach;

use super::agent::DataDirectory;

const SCOPES: &str = "A scope is `agent:NAME` (shared by all runs of this agent), `principal` (shared by all agents \
                      that work for you) or `run:ID` (one run). No scope sees the documents of another scope or \
                      another user.";

const ADD_HELP: &str = "Examples:\n  \
    windlass memory add \"The office cat is called Mill.\"\n  \
    windlass memory add --file notes.md --title Notes --scope agent:clerk\n  \
    date | windlass memory add -\n\n\
    Exit code: 0 done, 1 refused or failed, 2 wrong usage.";

const SEARCH_HELP: &str = "Examples:\n  \
    windlass memory search \"when is the invoice due\"\n  \
    windlass memory search invoice --scope agent:clerk --limit 3 --json\n\n\
    Exit code: 0 found, 1 nothing found or failed, 2 wrong usage.";

const FORGET_HELP: &str = "Examples:\n  \
    windlass memory forget doc-3f2a91\n  \
    windlass memory forget doc-3f2a91 && windlass memory compact\n\n\
    A forgotten document is deleted from the tables at once, and from the file by `windlass memory compact`.";

const IMPORT_HELP: &str = "Every file below a directory is read as text, HTML without its tags; hidden files and links are \
    skipped. An unchanged file is skipped, and a changed one replaces its earlier version. Each file is stored whole \
    or not at all, so the same command resumes an interrupted import.\n\n\
    Examples:\n  \
    windlass memory import docs --scope agent:clerk\n  \
    windlass memory import memory.jsonl\n\n\
    Exit code: 0 done, 1 a file was refused or failed, 2 wrong usage, 130 interrupted.";

const EXPORT_HELP: &str = "Examples:\n  \
    windlass memory export > memory.jsonl\n  \
    windlass memory export --scope agent:clerk | windlass memory import - --data elsewhere";

const REEMBED_HELP: &str = "Vectors of two embedders cannot be compared. After an update of Windlass that changes the embedder, this \
    recomputes all vectors from the texts. If it is interrupted, the same command resumes it.";

#[derive(Debug, Args)]
#[command(after_help = SCOPES)]
pub(crate) struct Memory {
    #[command(subcommand)]
    pub(crate) command: MemoryCommand,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// Store a text.
    #[command(after_help = ADD_HELP)]
    Add(MemoryAdd),
    /// Search documents by meaning and words.
    #[command(after_help = SEARCH_HELP)]
    Search(MemorySearch),
    /// List documents, the latest first.
    List(MemoryList),
    /// Delete documents.
    #[command(after_help = FORGET_HELP)]
    Forget(MemoryForget),
    /// Store the files of a directory, or an export.
    #[command(after_help = IMPORT_HELP)]
    Import(MemoryImport),
    /// Print documents as JSON Lines, for `import`.
    #[command(after_help = EXPORT_HELP)]
    Export(MemoryExport),
    /// Show the number of documents, and the embedder.
    Stats(MemoryPlain),
    /// Erase deleted documents from the file, and shrink it.
    Compact(MemoryPlain),
    /// Recompute all vectors with the embedder of this version.
    #[command(after_help = REEMBED_HELP)]
    Reembed(MemoryPlain),
}

#[derive(Debug, Args)]
pub(crate) struct MemoryAdd {
    /// The text to store; `-` reads standard input.
    #[arg(
        value_name = "TEXT",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    pub(crate) text: Option<String>,

    /// Store the content of this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The title.
    #[arg(long)]
    pub(crate) title: Option<String>,

    /// The source of the text. Default: the file's path.
    #[arg(long)]
    pub(crate) source: Option<String>,

    /// The scope: `agent:NAME`, `principal` or `run:ID`.
    #[arg(long, default_value = "principal")]
    pub(crate) scope: ScopeReach,

    /// Mark it as untrusted content. It taints a run that recalls it, as a web page does.
    #[arg(long)]
    pub(crate) untrusted: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MemorySearch {
    /// The search text.
    pub(crate) query: String,

    /// The maximum number of results.
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,

    /// Only in this scope. Can be repeated. Default: all of your scopes.
    #[arg(long)]
    pub(crate) scope: Vec<ScopeReach>,

    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryList {
    /// The maximum number of results.
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Only of this scope. Can be repeated. Default: all of your scopes.
    #[arg(long)]
    pub(crate) scope: Vec<ScopeReach>,

    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryForget {
    /// The ids of the documents, or unique prefixes of them.
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,

    /// Only in this scope. Can be repeated. Default: all of your scopes.
    #[arg(long)]
    pub(crate) scope: Vec<ScopeReach>,

    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryImport {
    /// Directories, files, or exports (`.jsonl`); `-` reads an export from standard input.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// The scope. Default: for an export the scope of each document, otherwise `principal`.
    #[arg(long)]
    pub(crate) scope: Option<ScopeReach>,

    /// Mark the documents as untrusted content.
    #[arg(long)]
    pub(crate) untrusted: bool,

    /// Print one JSON object per line for each file, and one with the counts.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryExport {
    /// Only of this scope. Can be repeated. Default: all of your scopes.
    #[arg(long)]
    pub(crate) scope: Vec<ScopeReach>,

    /// Accepted for consistency. An export is always JSON Lines.
    #[arg(long, hide = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryPlain {
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
