//! `cargo xtask bench playbook`: measures the savings from recalled strategies, on the simulated APIs of the
//! Berkeley Function Calling Leaderboard. The APIs are fetched once and kept outside of the clone.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fetch::{create_python_environment, fetch_with_retries};
use crate::{cache, cargo, root, run};

/// The APIs with their tasks (Apache-2.0) and their only dependency, with exact versions.
const PACKAGES: [&str; 2] = ["bfcl-eval==2026.3.23", "mpmath==1.3.0"];

/// Runs the benchmark. Without options it writes the page with the results. `more` are options of the benchmark
/// program. With options the results are only printed, unless the options name a file.
pub fn measure(more: &[&str]) -> anyhow::Result<()> {
    let python = python(&cache().join("bench/bfcl"))?;
    let docs = root().join("docs");
    let mut measure = cargo([
        "run",
        "--release",
        "--package",
        "windlass-bench",
        "--bin",
        "bench-playbook",
        "--",
    ]);
    measure.arg("--python").arg(python);
    if more.is_empty() {
        measure.arg("--page").arg(docs.join("learning-results.md"));
        let chart = docs.join("learning-results.svg");
        measure.arg("--chart").arg(chart);
    }
    measure.args(more);
    run(measure)
}

/// Returns a Python interpreter with the APIs.
fn python(environment: &Path) -> anyhow::Result<PathBuf> {
    let python = environment.join("bin/python");
    // Written after the installation is complete.
    let ready = environment.join("ready");
    let wanted = PACKAGES.join("\n");
    if std::fs::read_to_string(&ready).is_ok_and(|present| present == wanted) {
        return Ok(python);
    }
    create_python_environment(environment)?;
    fetch_with_retries("bfcl-eval", || {
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--no-deps"]);
        install.arg("--disable-pip-version-check").args(PACKAGES);
        install
    })?;
    std::fs::write(&ready, wanted)?;
    Ok(python)
}
