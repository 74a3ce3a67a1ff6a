//! Fetches the dependencies of the tests from package registries.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;

use crate::{install, run};

/// The seconds between attempts to fetch. Registries limit the rate of requests.
const WAITS: [u64; 5] = [5, 10, 20, 40, 60];

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
