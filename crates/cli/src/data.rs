//! Where runs are kept.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use windlass_runtime::Stored;

use super::settings::configured;

/// Opens the data directory: the one given, else `WINDLASS_DATA`, else the one of the configuration,
/// else the user's.
pub(super) fn open(directory: Option<&Path>) -> anyhow::Result<Stored> {
    let directory = self::directory(directory)?;
    Stored::open(&directory)
        .with_context(|| format!("the journal in `{}` cannot be used", directory.display()))
}

/// The data directory.
pub(super) fn directory(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    match given {
        Some(directory) => Ok(directory.to_owned()),
        None => data_directory(),
    }
}

fn data_directory() -> anyhow::Result<PathBuf> {
    let set = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    match configured() {
        Ok(configured) => {
            if let Some(directory) = configured.configuration.data_directory() {
                return Ok(directory.to_owned());
            }
        }
        // Whoever says where runs are can see them whatever the configuration says.
        Err(error) => return set("WINDLASS_DATA").ok_or(error),
    }
    set("XDG_DATA_HOME")
        .map(|data| data.join("windlass"))
        .or_else(|| set("HOME").map(|home| home.join(".local/share/windlass")))
        .context("there is no place for runs: set WINDLASS_DATA, or give `--data DIRECTORY`")
}
