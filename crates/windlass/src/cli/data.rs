//! Where runs are kept.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use windlass_runtime::Stored;

/// Opens the data directory: the one given, else `WINDLASS_DATA`, else the user's.
pub(super) fn open(directory: Option<&Path>) -> anyhow::Result<Stored> {
    let directory = match directory {
        Some(directory) => directory.to_owned(),
        None => data_directory()?,
    };
    Stored::open(&directory)
        .with_context(|| format!("the journal in `{}` cannot be used", directory.display()))
}

fn data_directory() -> anyhow::Result<PathBuf> {
    let set = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("WINDLASS_DATA")
        .or_else(|| set("XDG_DATA_HOME").map(|data| data.join("windlass")))
        .or_else(|| set("HOME").map(|home| home.join(".local/share/windlass")))
        .context("there is no place for runs: set WINDLASS_DATA, or give `--data DIRECTORY`")
}
