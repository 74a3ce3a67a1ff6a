//! Fetches the dependencies of the tests from package registries.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;

use crate::{cache, cargo, install, run};

/// The seconds between attempts to fetch. Registries limit the rate of requests.
const WAITS: [u64; 5] = [5, 10, 20, 40, 60];

/// Creates a directory of the cache and locks it for as long as the file is open: two clones on one machine share the
/// cache, and the second waits for the first.
pub fn lock_cache(name: impl AsRef<Path>) -> anyhow::Result<(PathBuf, File)> {
    let directory = cache().join(name);
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let lock = File::create(directory.join("lock")).context("cannot lock the cache")?;
    lock.lock().context("cannot lock the cache")?;
    Ok((directory, lock))
}

/// Creates an empty Python environment. Installs the distribution's Python if there is none.
pub fn create_python_environment(environment: &Path) -> anyhow::Result<()> {
    let create = |python: &str| {
        let mut venv = Command::new(python);
        venv.args(["-m", "venv", "--clear"]).arg(environment);
        run(venv)
    };
    if create("python3").is_ok() {
        return Ok(());
    }
    install(&["python3", "python3-venv"]).context("Python 3.10 or newer with venv is needed")?;
    // Another Python without venv may come first in PATH.
    create("/usr/bin/python3")
}

/// Runs a command that fetches something, with retries.
pub fn fetch_with_retries(what: &str, command: impl Fn() -> Command) -> anyhow::Result<()> {
    let mut waits = WAITS.iter();
    loop {
        let Err(error) = run(command()) else {
            return Ok(());
        };
        let Some(wait) = waits.next() else {
            return Err(error.context(format!("cannot fetch {what}")));
        };
        eprintln!("Cannot fetch {what}. Retrying in {wait} s.");
        thread::sleep(Duration::from_secs(*wait));
    }
}

/// Returns a program of crates.io in the cache. Compiles it if it is missing or has another version.
pub fn install_program(name: &str, version: &str) -> anyhow::Result<PathBuf> {
    let (directory, _lock) = lock_cache(Path::new("programs").join(format!("{name}-{version}")))?;
    let program = directory.join("bin").join(name);
    // An upgrade of the system may have removed a library that the program needs.
    let can_run = Command::new(&program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !can_run {
        eprintln!("Compiling {name} {version}. This happens once and takes about a minute.");
        let build = directory.join("build");
        fetch_with_retries(&format!("{name} {version}"), || {
            let package = format!("{name}@{version}");
            // Unoptimised: it runs for seconds, and compiles in half the time.
            let mut install = cargo(["install", "--locked", "--force", "--debug", "--quiet"]);
            install
                .arg(package)
                .arg("--root")
                .arg(&directory)
                .env("CARGO_TARGET_DIR", &build)
                .env("CARGO_PROFILE_DEV_DEBUG", "false");
            install
        })?;
        fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))?;
    }
    Ok(program)
}
