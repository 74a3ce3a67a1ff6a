//! Describes the machine of a measurement.

use std::process::Command;

/// One line: processor, cores, operating system, compiler.
pub fn describe() -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let compiler = Command::new("rustc")
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_default();
    format!(
        "{processor}, {cores} cores, {}, {}",
        std::env::consts::OS,
        compiler.trim()
    )
}
