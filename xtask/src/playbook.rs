//! `cargo xtask bench playbook`: what is saved by telling a model what worked before, on the simulated APIs of
//! the Berkeley Function Calling Leaderboard, which are fetched once and kept outside of the clone.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fetch::{make_python, try_often};
use crate::{cache, cargo, root, run};

/// By exact version: the APIs with their tasks (Apache-2.0), and the one thing they need beside Python.
const PACKAGES: [&str; 2] = ["bfcl-eval==2026.3.23", "mpmath==1.3.0"];

/// Measures, and writes the page with the results if everything is measured. `more` are options of the program
/// that measures; what is measured with some is only printed, unless they say where to write it.
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

/// A Python with the APIs.
fn python(environment: &Path) -> anyhow::Result<PathBuf> {
    let python = environment.join("bin/python");
    // Written when everything is there, and only then.
    let ready = environment.join("ready");
    let wanted = PACKAGES.join("\n");
    if std::fs::read_to_string(&ready).is_ok_and(|present| present == wanted) {
        return Ok(python);
    }
    make_python(environment)?;
    try_often("bfcl-eval", || {
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--no-deps"]);
        install.arg("--disable-pip-version-check").args(PACKAGES);
        install
    })?;
    std::fs::write(&ready, wanted)?;
    Ok(python)
}
