//! Where runs are kept, and on whose behalf they act.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use windlass_store::{Options, Redactor, Store};

/// Opens the store in the data directory: the one given, else `WINDLASS_DATA`, else the user's.
pub(super) fn open_store(directory: Option<&Path>) -> anyhow::Result<Store> {
    let directory = match directory {
        Some(directory) => directory.to_owned(),
        None => data_directory()?,
    };
    let options = Options {
        redactor: Redactor::new(secrets()),
        ..Options::default()
    };
    let path = directory.join("windlass.db");
    Store::open_with(&path, options)
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

/// What must never be written down: the values of variables that hold keys and the like.
fn secrets() -> Vec<String> {
    let is_secret = |name: &str| {
        ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| is_secret(name))
        .map(|(_, value)| value)
        .collect()
}

/// The operating-system user this program runs as.
pub(super) fn principal() -> String {
    env::var("USER")
        .or_else(|_| env::var("LOGNAME"))
        .unwrap_or_else(|_| "unknown".to_owned())
}
