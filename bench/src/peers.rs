//! Who takes part in the loop benchmark, and how each is made ready. What is fetched and built is kept
//! outside of the clone and used again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

/// How often a package is asked for. Registries that are asked too often want to be left alone for a
/// while.
const TRIES: u32 = 6;
const FIRST_WAIT: Duration = Duration::from_secs(5);

/// What a peer is compared as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Windlass,
    Rig,
    /// The same without streaming, which Windlass always does. Shown, but not what is promised.
    RigWhole,
    Python,
}

/// Somebody who makes the run: a program that takes `URL AT_ONCE TOTAL` and what else it needs.
#[derive(Debug, Clone)]
pub struct Peer {
    pub name: String,
    pub kind: Kind,
    program: Vec<String>,
    form: Option<&'static str>,
    /// How many runs are needed to see what one costs.
    pub runs: usize,
}

impl Peer {
    /// The program and its arguments.
    pub fn command(&self, url: &str, at_once: usize, total: usize) -> Vec<String> {
        let mut command = self.program.clone();
        command.extend([url.to_owned(), at_once.to_string(), total.to_string()]);
        command.extend(self.form.map(str::to_owned));
        command
    }
}

/// Makes all peers ready. Those that cannot be had are left out, which is said.
pub fn prepare() -> anyhow::Result<Vec<Peer>> {
    let exe = std::env::current_exe()?.display().to_string();
    let mut peers = vec![Peer {
        name: format!("windlass {}, journal on disk", env!("CARGO_PKG_VERSION")),
        kind: Kind::Windlass,
        program: vec![exe, "windlass".to_owned()],
        form: None,
        runs: 2_000,
    }];
    let cache = cache()?;
    for group in [rig as Group, python] {
        match group(&cache) {
            Ok(ready) => peers.extend(ready),
            Err(error) => println!("left out: {error:#}"),
        }
    }
    Ok(peers)
}

type Group = fn(&Path) -> anyhow::Result<Vec<Peer>>;

fn cache() -> anyhow::Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let root = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .context("there is no place for what is fetched: set XDG_CACHE_HOME")?;
    let cache = root.join("windlass/bench");
    std::fs::create_dir_all(&cache)
        .with_context(|| format!("`{}` cannot be made", cache.display()))?;
    Ok(cache)
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

fn rig(cache: &Path) -> anyhow::Result<Vec<Peer>> {
    let target = cache.join("rig");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build
        .args([
            "build",
            "--release",
            "--locked",
            "--quiet",
            "--manifest-path",
        ])
        .arg(sources().join("rig/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target);
    run(&mut build).context("rig cannot be built")?;
    let program = target.join("release/windlass-bench-rig");
    let peer = |name: &str, kind, form| Peer {
        name: name.to_owned(),
        kind,
        program: vec![program.display().to_string()],
        form,
        runs: 2_000,
    };
    Ok(vec![
        peer("rig 0.44.0, streamed", Kind::Rig, None),
        peer("rig 0.44.0, whole answers", Kind::RigWhole, Some("whole")),
    ])
}

fn python(cache: &Path) -> anyhow::Result<Vec<Peer>> {
    let sources = sources().join("python");
    let wanted = std::fs::read_to_string(sources.join("requirements.txt"))?;
    let environment = cache.join("python");
    let program = environment.join("bin/python");
    // Written when everything is there, and only then.
    let mark = environment.join("requirements.txt");
    if std::fs::read_to_string(&mark).is_ok_and(|present| present == wanted) {
        return Ok(python_peers(&sources, &program, &wanted));
    }
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]).arg(&environment);
    run(&mut make).context("no Python environment can be made")?;
    for package in packages(&wanted) {
        fetch(&program, package)?;
    }
    std::fs::write(&mark, &wanted)?;
    Ok(python_peers(&sources, &program, &wanted))
}

fn packages(wanted: &str) -> impl Iterator<Item = &str> {
    wanted
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Fetches one package, without what it depends on: that is in the list too.
fn fetch(python: &Path, package: &str) -> anyhow::Result<()> {
    let mut wait = FIRST_WAIT;
    for _ in 1..TRIES {
        if run(&mut install(python, package)).is_ok() {
            return Ok(());
        }
        println!(
            "`{package}` could not be fetched; trying again in {} s",
            wait.as_secs()
        );
        std::thread::sleep(wait);
        wait *= 2;
    }
    run(&mut install(python, package)).with_context(|| format!("`{package}` cannot be fetched"))
}

fn install(python: &Path, package: &str) -> Command {
    let mut install = Command::new(python);
    install.args(["-m", "pip", "install", "--quiet", "--no-deps"]);
    install.args(["--disable-pip-version-check", package]);
    install
}

fn python_peers(sources: &Path, program: &Path, wanted: &str) -> Vec<Peer> {
    let names = [
        ("agno", "agno"),
        ("pydantic-ai-slim", "pydantic_ai"),
        ("openai-agents", "openai_agents"),
        ("langchain", "langchain"),
    ];
    let peer = |(package, script): (&str, &str)| {
        let version = packages(wanted)
            .find_map(|line| line.split_once("==").filter(|(name, _)| *name == package))
            .map_or("", |(_, version)| version);
        let script = sources.join(format!("{script}_runs.py"));
        Peer {
            name: format!("{package} {version}"),
            kind: Kind::Python,
            program: vec![program.display().to_string(), script.display().to_string()],
            form: None,
            runs: 200,
        }
    };
    names.into_iter().map(peer).collect()
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("`{name}` cannot be started"))?;
    anyhow::ensure!(status.success(), "`{name}` ended with {status}");
    Ok(())
}
