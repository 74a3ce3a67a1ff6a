//! `cargo xtask bench start`: measures the time of the smallest run, and the size of the program.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

const RUNS: usize = 40;
const TIME_GOAL: Duration = Duration::from_millis(25);
const SIZE_GOAL: u64 = 40_000_000;

/// Runs the hello agent and a program that does nothing several times in turns, and prints the medians.
pub(crate) fn measure(root: &Path, target: &Path) -> anyhow::Result<()> {
    let program = target.join("release/windlass");
    let data = target.join("bench-start");
    let mut hello = Vec::new();
    let mut nothing = Vec::new();
    for _ in 0..RUNS {
        nothing.push(timed(Command::new("true"))?);
        let mut run = Command::new(&program);
        run.args(["run", "examples/hello.gram", "Say hello to Ada"])
            .args(["--library", "hello", "--model", "reflex"])
            .current_dir(root)
            .env("WINDLASS_DATA", &data);
        hello.push(timed(run)?);
    }
    let size = std::fs::metadata(&program)?.len();
    let (hello, nothing) = (median(hello), median(nothing));
    println!("median of {RUNS}, on {}", machine());
    println!(
        "windlass run, start to exit  {:>8.2} ms   goal under {} ms: {}",
        hello.as_secs_f64() * 1e3,
        TIME_GOAL.as_millis(),
        verdict(hello < TIME_GOAL)
    );
    println!(
        "a program that does nothing  {:>8.2} ms",
        nothing.as_secs_f64() * 1e3
    );
    println!(
        "size of the program          {:>8.1} MB   goal under {} MB: {}",
        size as f64 / 1e6,
        SIZE_GOAL / 1_000_000,
        verdict(size < SIZE_GOAL)
    );
    Ok(())
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "NOT met" }
}

fn timed(mut command: Command) -> anyhow::Result<Duration> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("cannot start {command:?}"))?;
    let time = started.elapsed();
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(time)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn machine() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("an unknown processor", |(_, name)| name.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{name}, {cores} cores")
}
