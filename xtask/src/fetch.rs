//! Fetching what the tests need from the registries of packages.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;

use crate::{install, run};

/// The waits between tries to fetch a package: registries limit how often they are asked.
const WAITS: [u64; 5] = [5, 10, 20, 40, 60];

/// Makes an empty Python environment, with Python from the distribution if there is none.
pub fn make_python(environment: &Path) -> anyhow::Result<()> {
    let made = |python: &str| {
        let mut make = Command::new(python);
        make.args(["-m", "venv", "--clear"]).arg(environment);
        run(make)
    };
    if made("python3").is_ok() {
        return Ok(());
    }
    install(&["python3", "python3-venv"]).context("Python 3.10 or newer with venv is needed")?;
    // The distribution's own, should another without venv be found before it.
    made("/usr/bin/python3")
}

/// Runs a command that fetches something until it succeeds.
pub fn try_often(what: &str, command: impl Fn() -> Command) -> anyhow::Result<()> {
    let mut waits = WAITS.iter();
    loop {
        let Err(error) = run(command()) else {
            return Ok(());
        };
        let Some(wait) = waits.next() else {
            return Err(error.context(format!("{what} could not be fetched")));
        };
        eprintln!("{what} could not be fetched; trying again in {wait} s");
        thread::sleep(Duration::from_secs(*wait));
    }
}
