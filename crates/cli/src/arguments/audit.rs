//! The arguments of `windlass audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use windlass_service::AuditFormat;

use super::DataDirectory;

const EXPORT_HELP: &str = "Exports what was asked, decided and done in a period, and what administrators changed. The last \
                           line is signed with the key of this installation, so the file can be checked with `windlass \
                           audit verify` wherever the public key is known.\n\n\
                           Exit code: 0 done, 1 failed or the journal was changed outside Windlass, 2 wrong usage.";

const VERIFY_HELP: &str = "Needs no data of the installation that wrote the file. Pass its public key, which `windlass audit \
                           key` prints there. Without it, compare the printed fingerprint.\n\n\
                           Exit code: 0 the file is as it was signed, 1 failed, 2 wrong usage, 8 the file was changed or \
                           another key signed it.";

#[derive(Debug, Args)]
pub(crate) struct Audit {
    #[command(subcommand)]
    pub(crate) command: AuditCommand,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Write a signed file with the decisions and calls of a period.
    #[command(after_help = EXPORT_HELP)]
    Export(AuditExport),
    /// Check a file that `windlass audit export` wrote.
    #[command(after_help = VERIFY_HELP)]
    Verify(AuditVerify),
    /// Print the public key of this installation.
    #[command(after_help = "Exit code: 0 done, 1 failed, 2 wrong usage.")]
    Key {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AuditExport {
    /// From this time on: a time such as 2026-05-01T00:00:00Z, or an age such as 90m, 12h or 7d.
    #[arg(long, value_name = "TIME")]
    pub(crate) from: String,

    /// Before this time. Default: now.
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,

    /// The format of the file.
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    pub(crate) format: ExportFormat,

    /// Write to this file. Default: standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values.
    Csv,
    /// One page.
    Html,
}

impl From<ExportFormat> for AuditFormat {
    fn from(format: ExportFormat) -> Self {
        match format {
            ExportFormat::Jsonl => Self::JsonLines,
            ExportFormat::Csv => Self::Csv,
            ExportFormat::Html => Self::Html,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct AuditVerify {
    /// The file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The public key of the installation that wrote the file, or a file with it.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
