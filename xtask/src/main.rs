//! `cargo xtask`: the commands that people and CI run on this repository.

mod benchmarks;
mod clients;
mod compare;
mod conformance;
mod deny;
mod fetch;
mod figures;
mod fuzz;
mod llama;
mod memory;
mod playbook;
mod readme;
mod servers;
mod start;

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, bail};

/// The most crates that a program compiles because it depends on the library without default features.
const MAX_LIBRARY_CRATES: usize = 240;

const HELP: &str = "\
cargo xtask COMMAND

  test     runs all checks that a change must pass: set-up, format, licences and sources of
           the dependencies, lints, documentation, tests (some against a real llama.cpp
           server and real MCP servers, which the set-up fetches once), and every command
           shown in the README and the guides
  readme   runs only the commands shown in the README and the guides
  soak     runs the slow tests: 400,000 texts against the reference grammar, property
           tests with many cases, and processes killed at 1,000 random moments
           (set WINDLASS_SOAK_KILLS for another number), every fuzz target for a minute, and
           decisions and the journal compared with the revision before (set
           WINDLASS_SOAK_COMPARE for another one)
  fuzz     runs the fuzz targets: `cargo xtask fuzz [SECONDS [TARGET]]`
  bench    runs benchmarks: gram, loop (agent runs, compared with other runtimes),
           long (runs of up to 100,000 events: time per event and memory), embed, start,
           store (the journal, compared with the disk), gate (decisions),
           registry (configuration changes, tool search, intents, recalled strategies),
           mcp (a governed call of a server's tool, compared with a direct one),
           memory (vector search, compared with FAISS, which is fetched once, and a memory
           of a million entries; needs 5 GB of disk),
           playbook (the savings from recalled strategies, on simulated APIs that are
           fetched once; for its options, pass `--help`);
           all [NAME...] runs those that have goals and prints one table; with `--page` it
           replaces the table in docs/benchmarks.md;
           compare REVISION runs the fast ones for this tree and for a revision by turns, and
           fails if a figure is more than 10 % worse
  conformance
           runs the MCP project's conformance suite against our client (fetched once)
  llama    starts the llama.cpp server of the tests, for manual use
  servers  fetches the MCP servers of the tests, and prints their directory
  clients  fetches the clients of OpenAI's API that the tests use, and prints their directory
  deny     checks licences, sources, bans and advisories of the dependencies (cargo-deny is
           fetched once)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["test"] => test(),
        ["readme"] => servers::Installation::find_or_install().and_then(|servers| readme(&servers)),
        ["soak"] => soak(),
        ["bench"] | ["bench", "gram"] => bench("bench-gram"),
        ["bench", "loop"] => bench("bench-loop"),
        ["bench", "long"] => run(example("windlass-runtime", "long")),
        ["bench", "store"] => bench("bench-store"),
        ["bench", "embed"] => run(example("windlass-embed", "measure")),
        ["bench", "gate"] => run(example("windlass-policy", "decisions")),
        ["bench", "registry"] => run(example("windlass-runtime", "swap"))
            .and_then(|()| run(example("windlass-reflex", "tool_search")))
            .and_then(|()| run(example("windlass-learn", "intent")))
            .and_then(|()| run(example("windlass-learn", "recall"))),
        ["bench", "memory"] => memory::measure().map(drop),
        ["bench", "all", ref more @ ..] => benchmarks::run_all(more),
        ["bench", "compare", revision] => compare::compare(revision, compare::Extent::Full),
        ["bench", "playbook", ref more @ ..] => playbook::measure(more),
        ["bench", "mcp"] => {
            let bins = ["build", "--release", "--package", "windlass-mcp", "--bins"];
            run(cargo(bins)).and_then(|()| run(example("windlass-mcp", "overhead")))
        }
        ["bench", "start"] => run(cargo(["build", "--release", "--package", "windlass-cli"]))
            .and_then(|()| {
                let program = target().join("release/windlass");
                start::measure_all(&program, &target().join("bench-start"))
            })
            .map(|figures| start::print(&figures)),
        ["conformance"] => conformance::check(),
        ["llama"] => llama(),
        ["servers"] => servers(),
        ["clients"] => clients(),
        ["fuzz", ref more @ ..] => fuzz::run_targets(more),
        ["deny"] => deny::check(&["advisories", "bans", "licenses", "sources"]),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("error: unknown command\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn test() -> anyhow::Result<()> {
    let started = Instant::now();
    let (model, servers) = step("set-up", set_up)?;
    let clients = step("clients", clients::Installation::find_or_install)?;
    step("format", || run(cargo(["fmt", "--all", "--check"])))?;
    step("licences and sources", || {
        deny::check(&["bans", "licenses", "sources"])
    })?;
    step("lints", || {
        let mut lints = cargo(["clippy", "--workspace", "--all-targets"]);
        lints.args(["--", "--deny", "warnings"]);
        run(lints)
    })?;
    step("documentation", || {
        let mut documentation = cargo(["doc", "--workspace", "--no-deps"]);
        documentation.env("RUSTDOCFLAGS", "--deny warnings");
        run(documentation)
    })?;
    step("library without default features", || {
        let mut lints = cargo(["clippy", "--package", "windlass", "--no-default-features"]);
        lints.args(["--", "--deny", "warnings"]);
        run(lints)?;
        count_library_crates()
    })?;
    step("packages", || {
        run(cargo([
            "package",
            "--workspace",
            "--no-verify",
            "--allow-dirty",
            "--quiet",
        ]))
    })?;
    step("tests", || {
        let server = model.start()?;
        let mut tests = cargo(["test", "--workspace", "--no-fail-fast"]);
        model.set_environment(&mut tests, &server);
        servers.set_environment(&mut tests);
        clients.set_environment(&mut tests);
        run(tests)
    })?;
    step("MCP conformance", conformance::check)?;
    step("README and guides", || readme(&servers))?;
    println!("all checks passed after {} s", started.elapsed().as_secs());
    Ok(())
}

/// Fails if a program that depends on the library without default features compiles too many crates.
fn count_library_crates() -> anyhow::Result<()> {
    let mut tree = cargo(["tree", "--package", "windlass", "--no-default-features"]);
    tree.args([
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    let listed = tree.output().context("cannot start cargo")?;
    if !listed.status.success() {
        bail!("{tree:?}: {}", String::from_utf8_lossy(&listed.stderr));
    }
    let listed = String::from_utf8(listed.stdout)?;
    // A crate that was listed before ends with `(*)`.
    let crates: BTreeSet<&str> = listed
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .collect();
    println!("{} crates", crates.len());
    if crates.len() > MAX_LIBRARY_CRATES {
        bail!("the library has more than {MAX_LIBRARY_CRATES} crates; see `{tree:?}`");
    }
    Ok(())
}

fn readme(servers: &servers::Installation) -> anyhow::Result<()> {
    readme::run_commands(&root(), &target(), servers.programs())
}

fn soak() -> anyhow::Result<()> {
    let mut verdicts = cargo([
        "test",
        "--release",
        "--package",
        "windlass-gram",
        "--test",
        "all",
    ]);
    verdicts
        .env("WINDLASS_ORACLE_CASES", "400000")
        .env("PROPTEST_CASES", "200000");
    run(verdicts)?;
    let mut signatures = cargo(["test", "--release", "--package", "windlass-spec"]);
    signatures.env("PROPTEST_CASES", "20000");
    run(signatures)?;
    // Not a release build: only debug builds have the named kill points.
    let mut kills = cargo(["test", "--package", "windlass-cli", "--test", "all"]);
    kills.args(["--", "suite::kills", "--nocapture"]);
    let count = env::var("WINDLASS_SOAK_KILLS");
    kills.env("WINDLASS_SOAK_KILLS", count.as_deref().unwrap_or("1000"));
    run(kills)?;
    fuzz::run_targets(&[])?;
    let revision = env::var("WINDLASS_SOAK_COMPARE");
    let revision = revision.as_deref().unwrap_or("HEAD~1");
    compare::compare(revision, compare::Extent::Short)
}

fn bench(program: &str) -> anyhow::Result<()> {
    run(cargo([
        "run",
        "--release",
        "--package",
        "windlass-bench",
        "--bin",
        program,
    ]))
}

/// Starts a server, prints its URL, and runs it until it is interrupted.
fn llama() -> anyhow::Result<()> {
    let server = llama::Installation::find_or_install()?.start()?;
    let url = &server.url;
    println!("{url}");
    eprintln!("Use it with `--model llama/smollm2 --base-url {url}`. Press Ctrl-C to stop it.");
    server.wait()
}

/// Fetches the MCP servers and prints their directory.
fn servers() -> anyhow::Result<()> {
    let programs = servers::Installation::find_or_install()?;
    let programs = programs.programs().display();
    println!("{programs}");
    eprintln!("To use them in tests, set WINDLASS_MCP_SERVERS to this directory.");
    Ok(())
}

/// Fetches the clients and prints their directory.
fn clients() -> anyhow::Result<()> {
    let clients = clients::Installation::find_or_install()?;
    println!("{}", clients.directory().display());
    eprintln!("To use them in tests, set WINDLASS_CLIENTS to this directory.");
    Ok(())
}

/// Installs the dependencies of the tests: a C compiler for the reference grammar that the parser is compared
/// with, a language model with its server, and MCP servers.
fn set_up() -> anyhow::Result<(llama::Installation, servers::Installation)> {
    if Command::new("cc").arg("--version").output().is_err() {
        install(&["gcc", "libc6-dev"]).context("a C compiler is needed")?;
    }
    Ok((
        llama::Installation::find_or_install()?,
        servers::Installation::find_or_install()?,
    ))
}

/// Installs packages of the distribution.
fn install(packages: &[&str]) -> anyhow::Result<()> {
    let install: Vec<&str> = ["install", "--yes"]
        .iter()
        .chain(packages)
        .copied()
        .collect();
    for arguments in [&["update"][..], &install] {
        let mut apt = Command::new("apt-get");
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        run(apt).with_context(|| format!("cannot install {}", packages.join(" and ")))?;
    }
    Ok(())
}

fn step<T>(name: &str, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    println!("== {name}");
    let started = Instant::now();
    let outcome = work().with_context(|| format!("{name} failed"))?;
    println!("== {name}: passed after {} s", started.elapsed().as_secs());
    Ok(outcome)
}

fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(arguments)
        .current_dir(root())
        .env("CARGO_TARGET_DIR", target());
    command
}

/// Runs an example of a package in release mode.
fn example(package: &str, name: &str) -> Command {
    cargo(["run", "--release", "--package", package, "--example", name])
}

fn run(mut command: Command) -> anyhow::Result<()> {
    let shown = format!("{command:?}");
    let status = command
        .status()
        .with_context(|| format!("cannot start {shown}"))?;
    if !status.success() {
        bail!("{shown} ended with {status}");
    }
    Ok(())
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The target directory. In CI it is outside the clone, because CI starts from a fresh clone each time.
fn target() -> PathBuf {
    if let Some(target) = env::var_os("CARGO_TARGET_DIR") {
        return target.into();
    }
    let is_ci = env::var_os("CI").is_some_and(|value| !value.is_empty());
    if is_ci {
        cache().join("target")
    } else {
        root().join("target")
    }
}

/// The directory of files that are kept when a clone is deleted.
fn cache() -> PathBuf {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    let base = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| Path::new(&home).join(".cache")));
    match base {
        Some(base) => base.join("windlass"),
        None => root().join("target/cache"),
    }
}
