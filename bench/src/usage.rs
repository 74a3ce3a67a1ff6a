//! What a program costs: processor time of it and its children, and the most memory it held. It is
//! started by a process that starts nothing else, because the system adds up what children cost and
//! keeps only the largest of them.

use std::process::{Command, Stdio};

use anyhow::Context as _;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde::{Deserialize, Serialize};

/// What a program cost.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time in microseconds, user and system.
    pub processor: i64,
    /// The most memory it held, in bytes.
    pub memory: i64,
}

/// Runs a program to its end and says what it cost.
pub fn of(program: &[String]) -> anyhow::Result<Usage> {
    let output = Command::new(std::env::current_exe()?)
        .arg("measure")
        .args(program)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    anyhow::ensure!(output.status.success(), "`{}` failed", program.join(" "));
    serde_json::from_slice(&output.stdout).context("what it cost is not known")
}

/// Runs a program as the only child of this process and prints what it cost.
pub fn measure(program: &[String]) -> anyhow::Result<()> {
    let (name, arguments) = program.split_first().context("there is no program")?;
    let status = Command::new(name)
        .args(arguments)
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("`{name}` cannot be started"))?;
    anyhow::ensure!(status.success(), "`{name}` ended with {status}");
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    // Counted in kilobytes everywhere but on Apple's systems.
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
