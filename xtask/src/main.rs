//! `cargo xtask`: what a person or CI runs on this repository more than once.

mod readme;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, bail};

const HELP: &str = "\
cargo xtask COMMAND

  test     everything a change must pass: set-up, format, lints, documentation,
           tests, and every command shown in the README
  readme   only the last of these: every command shown in the README
  soak     the slow tests: 400,000 texts against the grammar of record, and
           property tests with many cases
  bench    benchmarks: gram
  deny     licences and advisories of the dependencies (needs cargo-deny)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["test"] => test(),
        ["readme"] => readme::run_commands(&root(), &target()),
        ["soak"] => soak(),
        ["bench"] | ["bench", "gram"] => bench("bench-gram"),
        ["deny"] => run(cargo(["deny", "--workspace", "check"])),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("error: there is no such command\n\n{HELP}");
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
    step("set-up", set_up)?;
    step("format", || run(cargo(["fmt", "--all", "--check"])))?;
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
    step("library without the program", || {
        run(cargo([
            "check",
            "--package",
            "windlass",
            "--lib",
            "--no-default-features",
        ]))
    })?;
    step("tests", || run(cargo(["test", "--workspace"])))?;
    step("README", || readme::run_commands(&root(), &target()))?;
    println!("all good after {} s", started.elapsed().as_secs());
    Ok(())
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
    run(signatures)
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

/// Installs what the tests need and a machine with only Rust may lack: a C compiler, for the
/// grammar of record that the parser is compared with.
fn set_up() -> anyhow::Result<()> {
    if Command::new("cc").arg("--version").output().is_ok() {
        return Ok(());
    }
    for arguments in [&["update"][..], &["install", "--yes", "gcc", "libc6-dev"]] {
        let mut install = Command::new("apt-get");
        install
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive");
        run(install).context("a C compiler is needed: install gcc")?;
    }
    Ok(())
}

fn step(name: &str, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    println!("== {name}");
    let started = Instant::now();
    work().with_context(|| format!("{name} failed"))?;
    println!("== {name}: good after {} s", started.elapsed().as_secs());
    Ok(())
}

fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(arguments)
        .current_dir(root())
        .env("CARGO_TARGET_DIR", target());
    command
}

fn run(mut command: Command) -> anyhow::Result<()> {
    let shown = format!("{command:?}");
    let status = command
        .status()
        .with_context(|| format!("{shown} could not start"))?;
    if !status.success() {
        bail!("{shown} ended with {status}");
    }
    Ok(())
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Where things are built. CI starts from a fresh clone; a directory outside of it stays warm.
fn target() -> PathBuf {
    if let Some(target) = env::var_os("CARGO_TARGET_DIR") {
        return target.into();
    }
    let is_ci = env::var_os("CI").is_some_and(|value| !value.is_empty());
    let home = env::var_os("HOME").filter(|_| is_ci);
    match home {
        Some(home) => Path::new(&home).join(".cache/windlass/target"),
        None => root().join("target"),
    }
}
