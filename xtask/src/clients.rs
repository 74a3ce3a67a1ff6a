//! Clients of other projects that the tests use against a server: the official clients of OpenAI's API, and the verifier
//! of Standard Webhooks. Fetches them from the registries of npm and Python once, in the versions pinned in
//! `xtask/clients`, and keeps them in the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::fetch::{create_python_environment, fetch_with_retries, lock_cache};
use crate::root;

/// The files that pin the versions.
const VERSIONS: [&str; 3] = ["package.json", "package-lock.json", "python.txt"];

/// The installed clients.
pub struct Installation {
    directory: PathBuf,
}

impl Installation {
    /// Returns the clients in the cache. Fetches them if they are missing. Node.js must be installed.
    pub fn find_or_install() -> anyhow::Result<Self> {
        let (directory, _lock) = lock_cache("clients")?;
        let installation = Self { directory };
        let marker = installation.directory.join("complete");
        let wanted = pinned_versions()?;
        let is_complete = fs::read_to_string(&marker).is_ok_and(|found| found == wanted);
        if !is_complete || !installation.has_all() {
            eprintln!("Fetching clients for tests (50 MB). This happens once.");
            let _ = fs::remove_file(&marker);
            installation.install()?;
            if !installation.has_all() {
                bail!(
                    "some clients are missing in {}; delete the directory and try again",
                    installation.directory.display()
                );
            }
            fs::write(&marker, wanted).context("cannot write the marker of the cache")?;
        }
        Ok(installation)
    }

    /// The directory with a Python environment and a directory of Node.js modules.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Sets the environment variable with which tests find the clients.
    pub fn set_environment(&self, command: &mut Command) {
        command.env("WINDLASS_CLIENTS", &self.directory);
    }

    fn has_all(&self) -> bool {
        // The link to the interpreter breaks if the interpreter was upgraded.
        ["python/bin/python", "node/node_modules/openai"]
            .iter()
            .all(|path| self.directory.join(path).exists())
    }

    fn install(&self) -> anyhow::Result<()> {
        let node = self.directory.join("node");
        fs::create_dir_all(&node)?;
        for file in ["package.json", "package-lock.json"] {
            fs::copy(versions().join(file), node.join(file))
                .with_context(|| format!("cannot copy {file}"))?;
        }
        fetch_with_retries("the clients for Node.js", || {
            let mut npm = Command::new("npm");
            npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
                .args(["--maxsockets", "4", "--loglevel", "error"])
                .current_dir(&node);
            npm
        })?;
        let python = self.directory.join("python");
        create_python_environment(&python)?;
        fetch_with_retries("the clients for Python", || {
            let mut pip = Command::new(python.join("bin/python"));
            pip.args(["-m", "pip", "install", "--quiet", "--only-binary", ":all:"])
                .args(["--disable-pip-version-check", "--requirement"])
                .arg(versions().join("python.txt"));
            pip
        })
    }
}

/// The directory of the files that pin the versions.
fn versions() -> PathBuf {
    root().join("xtask/clients")
}

/// The contents of all version files. The cache is used only if it was made from the same contents.
fn pinned_versions() -> anyhow::Result<String> {
    let files = VERSIONS.iter();
    files
        .map(|file| fs::read_to_string(versions().join(file)).with_context(|| (*file).to_owned()))
        .collect()
}
