//! What can be typed after `windlass memory`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use windlass_store::Reach;

const SCOPES: &str = "A scope is `agent:NAME` (what this agent remembers in all its runs), `principal` (what all agents \
                      that work for you share) or `run:ID` (one run alone). Nothing is seen across scopes, nor of \
                      other users.";

const ADD_HELP: &str = "Examples:\n  \
    windlass memory add \"The office cat is called Mill.\"\n  \
    windlass memory add --file notes.md --title Notes --scope agent:clerk\n  \
    date | windlass memory add -\n\n\
    Exit code: 0 done, 1 refused or failed, 2 wrong usage.";

const SEARCH_HELP: &str = "Examples:\n  \
    windlass memory search \"when is the invoice due\"\n  \
    windlass memory search invoice --scope agent:clerk --limit 3 --json\n\n\
    Exit code: 0 something was found, 1 nothing was found or failed, 2 wrong usage.";

const FORGET_HELP: &str = "Examples:\n  \
    windlass memory forget doc-3f2a91\n  \
    windlass memory forget doc-3f2a91 && windlass memory compact\n\n\
    What is forgotten is gone from the tables at once, and from the file after `windlass memory compact`.";

const IMPORT_HELP: &str = "Every file below a directory is read as text, HTML without its tags; hidden files and links are \
    left out. A file that is unchanged is skipped, one that changed takes the place of what it was. Each file is \
    stored whole or not at all, so an import that was stopped is gone on with by the same command.\n\n\
    Examples:\n  \
    windlass memory import docs --scope agent:clerk\n  \
    windlass memory import memory.jsonl\n\n\
    Exit code: 0 done, 1 something was refused or failed, 2 wrong usage, 130 interrupted.";

const EXPORT_HELP: &str = "Examples:\n  \
    windlass memory export > memory.jsonl\n  \
    windlass memory export --scope agent:clerk | windlass memory import - --data elsewhere";

const REEMBED_HELP: &str = "Vectors of two embedders cannot be compared. When a version of Windlass brings another one, this \
    makes all vectors anew from the texts. If it is stopped, the same command goes on with it.";

#[derive(Debug, Args)]
#[command(after_help = SCOPES)]
pub(crate) struct Memory {
    #[command(subcommand)]
    pub(crate) command: MemoryCommand,

    /// Where memory is kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY", global = true)]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// Remember a text.
    #[command(after_help = ADD_HELP)]
    Add(MemoryAdd),
    /// Find what was remembered, by meaning and words.
    #[command(after_help = SEARCH_HELP)]
    Search(MemorySearch),
    /// List documents, the latest first.
    List(MemoryList),
    /// Forget documents for good.
    #[command(after_help = FORGET_HELP)]
    Forget(MemoryForget),
    /// Remember the files of a directory, or what was exported.
    #[command(after_help = IMPORT_HELP)]
    Import(MemoryImport),
    /// Print documents as JSON Lines, to be imported elsewhere.
    #[command(after_help = EXPORT_HELP)]
    Export(MemoryExport),
    /// Say how much is remembered, and by which embedder it is found.
    Stats(MemoryPlain),
    /// Take what was forgotten out of the file, and make the file small.
    Compact(MemoryPlain),
    /// Make all vectors anew with the embedder of this version.
    #[command(after_help = REEMBED_HELP)]
    Reembed(MemoryPlain),
}

#[derive(Debug, Args)]
pub(crate) struct MemoryAdd {
    /// What to remember; `-` reads standard input.
    #[arg(
        value_name = "TEXT",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    pub(crate) text: Option<String>,

    /// Remember what is in this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// What it is called.
    #[arg(long)]
    pub(crate) title: Option<String>,

    /// Where it came from; the file's path, if nothing is said.
    #[arg(long)]
    pub(crate) source: Option<String>,

    /// Whose memory it becomes: `agent:NAME`, `principal` or `run:ID`.
    #[arg(long, default_value = "principal")]
    pub(crate) scope: Reach,

    /// It comes from somebody who is not trusted: a run that recalls it is as careful as after reading
    /// the web.
    #[arg(long)]
    pub(crate) untrusted: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MemorySearch {
    /// What to look for.
    pub(crate) query: String,

    /// At most so many.
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,

    /// Only in this scope; may be given several times. Without it, in all of yours.
    #[arg(long)]
    pub(crate) scope: Vec<Reach>,

    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryList {
    /// At most so many.
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Only of this scope; may be given several times. Without it, of all of yours.
    #[arg(long)]
    pub(crate) scope: Vec<Reach>,

    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryForget {
    /// The documents, or the starts of their ids if that is enough.
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,

    /// Only in this scope; may be given several times. Without it, in all of yours.
    #[arg(long)]
    pub(crate) scope: Vec<Reach>,

    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryImport {
    /// Directories, files, or exports (`.jsonl`); `-` reads an export from standard input.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Whose memory it becomes; what was exported goes to where it was, if nothing is said, and all else
    /// to `principal`.
    #[arg(long)]
    pub(crate) scope: Option<Reach>,

    /// It comes from somebody who is not trusted.
    #[arg(long)]
    pub(crate) untrusted: bool,

    /// Print one JSON object a line for each file, and one with the counts.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryExport {
    /// Only of this scope; may be given several times. Without it, of all of yours.
    #[arg(long)]
    pub(crate) scope: Vec<Reach>,

    /// For the sake of habit: an export is JSON Lines anyway.
    #[arg(long, hide = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryPlain {
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
