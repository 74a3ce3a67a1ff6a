//! Runs the commands shown in the README and compares what they print with what it shows.
//!
//! In a `console` block, a line that starts with `$ ` is a command, and the lines up to the next one
//! are what it prints. `...` stands for any number of lines; `[exit N]` at the end for the exit code,
//! which is 0 otherwise.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

struct Shown {
    command: String,
    output: Vec<String>,
    exit: i32,
}

/// Runs every command of the README at `root`.
pub fn run_commands(root: &Path, target: &Path) -> anyhow::Result<()> {
    let readme = fs::read_to_string(root.join("README.md")).context("README.md")?;
    let commands = commands(&readme);
    if commands.is_empty() {
        bail!("README.md shows no commands");
    }
    for shown in &commands {
        // Running the tests from within the tests would never end.
        if shown.command == "cargo xtask test" {
            continue;
        }
        println!("$ {}", shown.command);
        check(shown, root, target)?;
    }
    println!("{} commands of the README do what it says", commands.len());
    Ok(())
}

fn commands(readme: &str) -> Vec<Shown> {
    let mut commands: Vec<Shown> = Vec::new();
    let mut in_console = false;
    for line in readme.lines() {
        if line.starts_with("```") {
            in_console = line == "```console";
        } else if let (true, Some(command)) = (in_console, line.strip_prefix("$ ")) {
            commands.push(Shown {
                command: command.to_owned(),
                output: Vec::new(),
                exit: 0,
            });
        } else if let (true, Some(last)) = (in_console, commands.last_mut()) {
            let exit = line
                .strip_prefix("[exit ")
                .and_then(|rest| rest.strip_suffix(']'));
            match exit.and_then(|code| code.parse().ok()) {
                Some(code) => last.exit = code,
                None => last.output.push(line.trim_end().to_owned()),
            }
        }
    }
    commands
}

fn check(shown: &Shown, root: &Path, target: &Path) -> anyhow::Result<()> {
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1; {}", shown.command)])
        .current_dir(root)
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_TERM_QUIET", "true")
        .env("WINDLASS_DATA", target.join("readme-runs"))
        .output()
        .context("bash could not start")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let wanted: Vec<&str> = shown.output.iter().map(String::as_str).collect();
    if output.status.code() != Some(shown.exit) {
        bail!(
            "`{}` ended with {}, not {}:\n{}",
            shown.command,
            output.status,
            shown.exit,
            printed.join("\n")
        );
    }
    if !matches(trimmed(&wanted), trimmed(&printed)) {
        bail!(
            "`{}` printed\n{}\nbut the README shows\n{}",
            shown.command,
            printed.join("\n"),
            wanted.join("\n")
        );
    }
    Ok(())
}

/// Without empty lines at either end.
fn trimmed<'a, 'l>(mut lines: &'a [&'l str]) -> &'a [&'l str] {
    while let [rest @ .., ""] = lines {
        lines = rest;
    }
    while let ["", rest @ ..] = lines {
        lines = rest;
    }
    lines
}

fn matches(wanted: &[&str], printed: &[&str]) -> bool {
    match wanted {
        [] => printed.is_empty(),
        ["...", rest @ ..] => (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..])),
        [line, rest @ ..] => printed.first() == Some(line) && matches(rest, &printed[1..]),
    }
}
