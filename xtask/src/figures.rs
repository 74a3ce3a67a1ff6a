//! Figures of benchmarks. A program prints a figure as a line of `=`, a name and a number, such as
//! `= gate_default_read_us 12.5`. Smaller is better for all of them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// Numbers by name.
pub type Figures = BTreeMap<String, f64>;

/// Runs a program, passes its output on, and returns its figures. A program that misses its own goals fails, but
/// has printed its figures.
pub fn collect(mut command: Command) -> anyhow::Result<Figures> {
    let shown = format!("{command:?}");
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {shown}"))?;
    let mut figures = Figures::new();
    let output = child.stdout.take().context("the program has no output")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        match figure(&line) {
            Some((name, value)) => drop(figures.insert(name.to_owned(), value)),
            None => println!("{line}"),
        }
    }
    let status = child.wait()?;
    ensure!(
        !figures.is_empty(),
        "{shown} printed no figures and ended with {status}"
    );
    Ok(figures)
}

fn figure(line: &str) -> Option<(&str, f64)> {
    let (name, value) = line.strip_prefix("= ")?.split_once(' ')?;
    Some((name, value.trim().parse().ok()?))
}

/// The medians of several rounds.
pub fn medians(rounds: &[Figures]) -> Figures {
    let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, value) in rounds.iter().flatten() {
        all.entry(name).or_default().push(*value);
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    all.into_iter()
        .map(|(name, values)| (name.to_owned(), median(values)))
        .collect()
}

/// The least value of each figure in several rounds: other load on the machine only adds to it.
pub fn least(rounds: &[Figures]) -> Figures {
    let mut least = Figures::new();
    for (name, value) in rounds.iter().flatten() {
        let known = least.entry(name.clone()).or_insert(*value);
        *known = known.min(*value);
    }
    least
}

/// One line about the machine: processor, cores, memory, load, system and compiler.
pub fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let name = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("an unknown processor", |(_, name)| name.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = read("/proc/meminfo")
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"))
        .and_then(|kilobytes| kilobytes.parse::<f64>().ok())
        .map_or(0.0, |kilobytes| kilobytes / 1e6);
    let load = read("/proc/loadavg");
    let load: Vec<&str> = load.split(' ').take(3).collect();
    let compiler = Command::new("rustc").arg("--version").output();
    let compiler = compiler.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    format!(
        "{name}, {cores} cores, {memory:.0} GB, {} {}, {}; load {}",
        std::env::consts::OS,
        read("/proc/sys/kernel/osrelease").trim(),
        compiler.unwrap_or_else(|_| "unknown compiler".to_owned()),
        load.join(" ")
    )
}

/// The size of a file in megabytes.
pub fn megabytes(path: &Path) -> anyhow::Result<f64> {
    let metadata = std::fs::metadata(path).with_context(|| format!("no {}", path.display()))?;
    Ok(metadata.len() as f64 / 1e6)
}
