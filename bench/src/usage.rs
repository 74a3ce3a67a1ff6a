//! Measures the processor time of a program and its children, and its peak memory. The program is
//! started by a process that starts nothing else, because the system adds up the usage of all children and
//! keeps only the largest peak.

use std::process::{Command, Stdio};

use anyhow::Context as _;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde::{Deserialize, Serialize};

/// The resource usage of a program.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time in microseconds, user and system.
    pub processor: i64,
    /// Peak memory in bytes.
    pub memory: i64,
}

/// Runs a program to its end and returns its usage.
pub fn measure_in_child(program: &[String]) -> anyhow::Result<Usage> {
    let output = Command::new(std::env::current_exe()?)
        .arg("measure")
        .args(program)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    anyhow::ensure!(output.status.success(), "`{}` failed", program.join(" "));
    serde_json::from_slice(&output.stdout).context("the measuring process printed no usage")
}

/// Runs a program as the only child of this process and prints its usage.
pub fn measure(program: &[String]) -> anyhow::Result<()> {
    let (name, arguments) = program.split_first().context("no program is given")?;
    let status = Command::new(name)
        .args(arguments)
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot start `{name}`"))?;
    anyhow::ensure!(status.success(), "`{name}` ended with {status}");
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    // In kilobytes, except on Apple's systems.
    let unit = if cfg!(target_vendor = "apple") {
        1
    } else {
        1024
    };
    let usage = Usage {
        processor: usage.user_time().num_microseconds() + usage.system_time().num_microseconds(),
        memory: usage.max_rss() * unit,
    };
    println!("{}", serde_json::to_string(&usage)?);
    Ok(())
}
