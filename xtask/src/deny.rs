//! `cargo xtask deny`: checks the dependencies against `deny.toml` with cargo-deny.

use std::process::Command;

use crate::fetch::install_program;
use crate::{root, run};

const VERSION: &str = "0.20.2";

/// Runs the named checks. Only `advisories` needs the network.
pub fn check(checks: &[&str]) -> anyhow::Result<()> {
    let mut deny = Command::new(install_program("cargo-deny", VERSION)?);
    deny.current_dir(root())
        .args(["--workspace", "check", "--hide-inclusion-graph"])
        .args(["--allow", "duplicate"])
        .args(checks);
    run(deny)
}
