//! The participants of the loop benchmark and their setup. Downloads and builds are cached outside of the
//! repository.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

/// The attempts to fetch a package. Registries limit the rate of requests.
const TRIES: u32 = 6;
const FIRST_WAIT: Duration = Duration::from_secs(5);

/// The kind of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerKind {
    Windlass,
    /// The same HTTP exchange with bare `hyper`.
    Floor,
    Rig,
    /// Rig without streaming. Windlass always streams, so no goal is about this.
    RigWhole,
    Python,
}

/// A participant: a program with the arguments `URL AT_ONCE TOTAL [FORM]`.
#[derive(Debug, Clone)]
pub struct Peer {
    pub name: String,
    pub kind: PeerKind,
    program: Vec<String>,
    form: Option<&'static str>,
    /// The number of runs for a stable measurement.
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

/// Prepares the peers whose names contain one of `chosen`; all if it is empty. Those that are not available are
/// left out with a message. `requests` is the directory of the recorded requests.
pub fn prepare(requests: &Path, chosen: &[&str]) -> anyhow::Result<Vec<Peer>> {
    let exe = std::env::current_exe()?.display().to_string();
    let own = |name: String, kind, program: &[&str]| Peer {
        name,
        kind,
        program: std::iter::once(exe.as_str())
            .chain(program.iter().copied())
            .map(str::to_owned)
            .collect(),
        form: None,
        runs: 2_000,
    };
    let windlass = format!("windlass {}, journal on disk", env!("CARGO_PKG_VERSION"));
    let requests = requests.display().to_string();
    let mut peers = vec![
        own(windlass, PeerKind::Windlass, &["windlass"]),
        own(
            "bare hyper, nothing parsed".to_owned(),
            PeerKind::Floor,
            &["floor", &requests],
        ),
    ];
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|part| name.contains(part));
    let cache = cache()?;
    for (names, group) in [
        (&RIG[..], rig as Group),
        (&PYTHON.map(|(name, _)| name)[..], python),
    ] {
        // What is not asked for is neither built nor fetched.
        if !names.iter().any(|name| is_chosen(name)) {
            continue;
        }
        match group(&cache) {
            Ok(ready) => peers.extend(ready),
            Err(error) => println!("left out: {error:#}"),
        }
    }
    peers.retain(|peer| is_chosen(&peer.name));
    Ok(peers)
}

type Group = fn(&Path) -> anyhow::Result<Vec<Peer>>;

const RIG: [&str; 2] = ["rig 0.44.0, streamed", "rig 0.44.0, whole answers"];

/// The Python libraries, each with the name of its script.
const PYTHON: [(&str, &str); 4] = [
    ("agno", "agno"),
    ("pydantic-ai-slim", "pydantic_ai"),
    ("openai-agents", "openai_agents"),
    ("langchain", "langchain"),
];

fn cache() -> anyhow::Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let root = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .context("no cache directory; set XDG_CACHE_HOME")?;
    let cache = root.join("windlass/bench");
    std::fs::create_dir_all(&cache)
        .with_context(|| format!("cannot create `{}`", cache.display()))?;
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
    run(&mut build).context("cannot build rig")?;
    let program = target.join("release/windlass-bench-rig");
    let peer = |name: &str, kind, form| Peer {
        name: name.to_owned(),
        kind,
        program: vec![program.display().to_string()],
        form,
        runs: 2_000,
    };
    Ok(vec![
        peer(RIG[0], PeerKind::Rig, None),
        peer(RIG[1], PeerKind::RigWhole, Some("whole")),
    ])
}

fn python(cache: &Path) -> anyhow::Result<Vec<Peer>> {
    let sources = sources().join("python");
    let wanted = std::fs::read_to_string(sources.join("requirements.txt"))?;
    let environment = cache.join("python");
    let program = environment.join("bin/python");
    // Written only after everything is installed.
    let mark = environment.join("requirements.txt");
    if std::fs::read_to_string(&mark).is_ok_and(|present| present == wanted) {
        return Ok(python_peers(&sources, &program, &wanted));
    }
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]).arg(&environment);
    run(&mut make).context("cannot create a Python environment")?;
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

/// Fetches one package without its dependencies, which are in the list too.
fn fetch(python: &Path, package: &str) -> anyhow::Result<()> {
    let mut wait = FIRST_WAIT;
    for _ in 1..TRIES {
        if run(&mut install(python, package)).is_ok() {
            return Ok(());
        }
        println!(
            "cannot fetch `{package}`; trying again in {} s",
            wait.as_secs()
        );
        std::thread::sleep(wait);
        wait *= 2;
    }
    run(&mut install(python, package)).with_context(|| format!("cannot fetch `{package}`"))
}

fn install(python: &Path, package: &str) -> Command {
    let mut install = Command::new(python);
    install.args(["-m", "pip", "install", "--quiet", "--no-deps"]);
    install.args(["--disable-pip-version-check", package]);
    install
}

fn python_peers(sources: &Path, program: &Path, wanted: &str) -> Vec<Peer> {
    let peer = |(package, script): (&str, &str)| {
        let version = packages(wanted)
            .find_map(|line| line.split_once("==").filter(|(name, _)| *name == package))
            .map_or("", |(_, version)| version);
        let script = sources.join(format!("{script}_runs.py"));
        Peer {
            name: format!("{package} {version}"),
            kind: PeerKind::Python,
            program: vec![program.display().to_string(), script.display().to_string()],
            form: None,
            runs: 200,
        }
    };
    PYTHON.into_iter().map(peer).collect()
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start `{name}`"))?;
    anyhow::ensure!(status.success(), "`{name}` ended with {status}");
    Ok(())
}
