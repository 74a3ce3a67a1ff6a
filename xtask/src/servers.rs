//! Real MCP servers for tests and guides. Fetches them from the registries of npm and Python once, in the
//! versions pinned in `xtask/servers`, and keeps them in the cache.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::fetch::{create_python_environment, fetch_with_retries, lock_cache};
use crate::{install, root};

/// The servers that run on Node.js. `servers/package-lock.json` pins their versions and dependencies.
const NODE: [&str; 3] = [
    "mcp-server-everything",
    "mcp-server-filesystem",
    "mcp-server-memory",
];

/// The servers that run on Python, in separate environments because their dependencies conflict.
const PYTHON: [Environment; 2] = [
    Environment {
        name: "python",
        versions: "python.txt",
        packages: &["mcp-server-time", "mcp-server-git", "excel-mcp-server"],
    },
    // Needs the first version of the protocol's library, but does not declare that.
    Environment {
        name: "python-older",
        versions: "python-older.txt",
        packages: &["mcp-server-sqlite"],
    },
];

/// The oldest Node.js version that the servers support.
const OLDEST_NODE: u32 = 20;

struct Environment {
    name: &'static str,
    /// The file with the version of every package.
    versions: &'static str,
    /// The servers, whose programs have the same names.
    packages: &'static [&'static str],
}

/// The installed servers.
pub struct Installation {
    programs: PathBuf,
}

impl Installation {
    /// Returns the servers in the cache. Fetches them if they are missing.
    pub fn find_or_install() -> anyhow::Result<Self> {
        let (directory, _lock) = lock_cache("servers")?;
        if !can_run("git", "--version") {
            install(&["git"]).context("git is needed by the git server")?;
        }
        require_node()?;
        let installation = Self {
            programs: directory.join("bin"),
        };
        let marker = directory.join("complete");
        let wanted = pinned_versions()?;
        let is_complete = fs::read_to_string(&marker).is_ok_and(|found| found == wanted);
        // The link breaks if the interpreter was upgraded.
        if !is_complete || !installation.has_all_programs(&directory) {
            eprintln!("Fetching real MCP servers (200 MB). This happens once.");
            let _ = fs::remove_file(&marker);
            installation.install(&directory)?;
            if !installation.has_all_programs(&directory) {
                bail!(
                    "some servers are missing in {}; delete the directory and try again",
                    directory.display()
                );
            }
            fs::write(&marker, wanted).context("cannot write the marker of the cache")?;
        }
        Ok(installation)
    }

    /// The directory with a program for each server, by name.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// Sets the environment variables with which a command finds the servers, including `PATH`.
    pub fn set_environment(&self, command: &mut Command) {
        let mut path = OsString::from(&self.programs);
        if let Some(others) = env::var_os("PATH") {
            path.push(":");
            path.push(others);
        }
        command
            .env("WINDLASS_MCP_SERVERS", &self.programs)
            .env("PATH", path);
    }

    fn has_all_programs(&self, directory: &Path) -> bool {
        let pythons = PYTHON
            .iter()
            .map(|environment| directory.join(environment.name).join("bin/python"));
        let programs = names().map(|name| self.programs.join(name));
        pythons.chain(programs).all(|path| path.exists())
    }

    fn install(&self, directory: &Path) -> anyhow::Result<()> {
        let node = directory.join("node");
        fs::create_dir_all(&node)?;
        for file in ["package.json", "package-lock.json"] {
            fs::copy(versions().join(file), node.join(file))
                .with_context(|| format!("cannot copy {file}"))?;
        }
        fetch_with_retries("the servers for Node.js", || {
            let mut npm = Command::new("npm");
            npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
                .args(["--maxsockets", "4", "--loglevel", "error"])
                .current_dir(&node);
            npm
        })?;
        for environment in &PYTHON {
            environment.install(directory)?;
        }
        self.link(directory)
    }

    /// Links all programs into one directory.
    fn link(&self, directory: &Path) -> anyhow::Result<()> {
        let _ = fs::remove_dir_all(&self.programs);
        fs::create_dir_all(&self.programs)?;
        let node = NODE.map(|name| directory.join("node/node_modules/.bin").join(name));
        let python = PYTHON.iter().flat_map(|environment| {
            let programs = directory.join(environment.name).join("bin");
            environment
                .packages
                .iter()
                .map(move |name| programs.join(name))
        });
        for program in node.into_iter().chain(python) {
            let name = program
                .file_name()
                .context("the program has no file name")?;
            symlink(&program, self.programs.join(name))
                .with_context(|| format!("cannot link {}", program.display()))?;
        }
        Ok(())
    }
}

impl Environment {
    fn install(&self, directory: &Path) -> anyhow::Result<()> {
        let environment = directory.join(self.name);
        create_python_environment(&environment)?;
        fetch_with_retries(&format!("the servers of {}", self.versions), || {
            let mut pip = Command::new(environment.join("bin/python"));
            pip.args(["-m", "pip", "install", "--quiet", "--only-binary", ":all:"])
                .args(["--disable-pip-version-check", "--constraint"])
                .arg(versions().join(self.versions))
                .args(self.packages);
            pip
        })
    }
}

/// The names of the servers.
fn names() -> impl Iterator<Item = &'static str> {
    NODE.into_iter().chain(
        PYTHON
            .iter()
            .flat_map(|environment| environment.packages.iter().copied()),
    )
}

/// The directory of the files that pin the versions.
fn versions() -> PathBuf {
    root().join("xtask/servers")
}

/// The contents of all version files. The cache is used only if it was made from the same contents.
fn pinned_versions() -> anyhow::Result<String> {
    let files = ["package.json", "package-lock.json"]
        .into_iter()
        .chain(PYTHON.iter().map(|environment| environment.versions));
    files
        .map(|file| fs::read_to_string(versions().join(file)).with_context(|| file.to_owned()))
        .collect()
}

/// Checks that Node.js is installed. Installs the distribution's Node.js if there is none.
fn require_node() -> anyhow::Result<()> {
    if !can_run("node", "--version") || !can_run("npm", "--version") {
        install(&["nodejs", "npm"])?;
    }
    let output = Command::new("node").arg("--version").output();
    let version = String::from_utf8(output.context("Node.js is needed")?.stdout)?;
    let major = version.trim().trim_start_matches('v').split('.').next();
    match major.and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major >= OLDEST_NODE => Ok(()),
        _ => bail!(
            "Node.js {OLDEST_NODE} or newer is needed, but `node` is {}",
            version.trim()
        ),
    }
}

fn can_run(program: &str, argument: &str) -> bool {
    Command::new(program)
        .arg(argument)
        .output()
        .is_ok_and(|output| output.status.success())
}
