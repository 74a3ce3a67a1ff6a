//! Real MCP servers, for the tests and guides that need some: fetches them from the registries of npm and
//! Python once, in the versions written down beside this program, and keeps them in the cache.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::fetch::{make_python, try_often};
use crate::{cache, install, root};

/// The servers that run on Node.js; `servers/package-lock.json` has their versions and what they need.
const NODE: [&str; 3] = [
    "mcp-server-everything",
    "mcp-server-filesystem",
    "mcp-server-memory",
];

/// Servers that run on Python, in environments of their own: what one needs another cannot live with.
const PYTHON: [Environment; 2] = [
    Environment {
        name: "python",
        versions: "python.txt",
        packages: &["mcp-server-time", "mcp-server-git", "excel-mcp-server"],
    },
    // Written for the first version of the protocol's library, and does not say so.
    Environment {
        name: "python-older",
        versions: "python-older.txt",
        packages: &["mcp-server-sqlite"],
    },
];

/// What the servers need of Node.js.
const OLDEST_NODE: u32 = 20;

struct Environment {
    name: &'static str,
    /// The file with the version of every package.
    versions: &'static str,
    /// The servers, whose programs have the same names.
    packages: &'static [&'static str],
}

/// The servers, installed.
pub struct Installation {
    programs: PathBuf,
}

impl Installation {
    /// Finds the servers in the cache, or fetches them.
    pub fn find_or_make() -> anyhow::Result<Self> {
        let directory = cache().join("servers");
        fs::create_dir_all(&directory)
            .with_context(|| format!("{} could not be made", directory.display()))?;
        // Two clones on one machine share the cache; the second waits for the first.
        let lock = File::create(directory.join("lock")).context("the lock of the cache")?;
        lock.lock().context("the lock of the cache")?;
        if !answers("git", "--version") {
            install(&["git"]).context("git is needed, for the server of that name")?;
        }
        find_node()?;
        let installation = Self {
            programs: directory.join("bin"),
        };
        let marker = directory.join("complete");
        let wanted = wanted()?;
        let is_complete = fs::read_to_string(&marker).is_ok_and(|found| found == wanted);
        // The link to an interpreter that was upgraded away leads nowhere.
        if !is_complete || !installation.is_whole(&directory) {
            eprintln!("fetching real MCP servers (200 MB), once");
            let _ = fs::remove_file(&marker);
            installation.make(&directory)?;
            if !installation.is_whole(&directory) {
                bail!("the servers in {} are not complete", directory.display());
            }
            fs::write(&marker, wanted).context("the marker of the cache")?;
        }
        Ok(installation)
    }

    /// The directory with a program for each server, by name.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// Tells a command where the servers are, also by its `PATH`.
    pub fn tell(&self, command: &mut Command) {
        let mut path = OsString::from(&self.programs);
        if let Some(others) = env::var_os("PATH") {
            path.push(":");
            path.push(others);
        }
        command
            .env("WINDLASS_MCP_SERVERS", &self.programs)
            .env("PATH", path);
    }

    fn is_whole(&self, directory: &Path) -> bool {
        let pythons = PYTHON
            .iter()
            .map(|environment| directory.join(environment.name).join("bin/python"));
        let programs = names().map(|name| self.programs.join(name));
        pythons.chain(programs).all(|path| path.exists())
    }

    fn make(&self, directory: &Path) -> anyhow::Result<()> {
        let node = directory.join("node");
        fs::create_dir_all(&node)?;
        for file in ["package.json", "package-lock.json"] {
            fs::copy(versions().join(file), node.join(file))
                .with_context(|| format!("{file} could not be copied"))?;
        }
        try_often("the servers for Node.js", || {
            let mut npm = Command::new("npm");
            npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
                .args(["--maxsockets", "4", "--loglevel", "error"])
                .current_dir(&node);
            npm
        })?;
        for environment in &PYTHON {
            environment.make(directory)?;
        }
        self.link(directory)
    }

    /// Puts all programs into one directory.
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
            let name = program.file_name().context("a program has a name")?;
            symlink(&program, self.programs.join(name))
                .with_context(|| format!("{} could not be linked", program.display()))?;
        }
        Ok(())
    }
}

impl Environment {
    fn make(&self, directory: &Path) -> anyhow::Result<()> {
        let environment = directory.join(self.name);
        make_python(&environment)?;
        try_often(&format!("the servers of {}", self.versions), || {
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

/// Where the versions are written down.
fn versions() -> PathBuf {
    root().join("xtask/servers")
}

/// All versions: what is in the cache is taken only if it was made from the same.
fn wanted() -> anyhow::Result<String> {
    let files = ["package.json", "package-lock.json"]
        .into_iter()
        .chain(PYTHON.iter().map(|environment| environment.versions));
    files
        .map(|file| fs::read_to_string(versions().join(file)).with_context(|| file.to_owned()))
        .collect()
}

/// Sees to it that there is Node.js, from the distribution if there is none.
fn find_node() -> anyhow::Result<()> {
    if !answers("node", "--version") || !answers("npm", "--version") {
        install(&["nodejs", "npm"])?;
    }
    let output = Command::new("node").arg("--version").output();
    let version = String::from_utf8(output.context("Node.js is needed")?.stdout)?;
    let major = version.trim().trim_start_matches('v').split('.').next();
    match major.and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major >= OLDEST_NODE => Ok(()),
        _ => bail!(
            "Node.js {OLDEST_NODE} or newer is needed, and `node` is {}",
            version.trim()
        ),
    }
}

fn answers(program: &str, argument: &str) -> bool {
    Command::new(program)
        .arg(argument)
        .output()
        .is_ok_and(|output| output.status.success())
}
