//! Runs the commands shown in the README and in guides, and compares their output with the page.
//!
//! In a `console` block, a line that starts with `$ ` is a command, and the lines up to the next one
//! are its output. `...` stands for any number of lines; `[exit N]` at the end for the exit code,
//! which is 0 otherwise. Every command runs at the root; `$ cd DIRECTORY` alone on a line moves the commands after
//! it, to the end of the page.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

struct PageCommand {
    command: String,
    output: Vec<String>,
    exit: i32,
}

/// The pages whose commands are run. The README comes first: it builds the program the others use.
const PAGES: [&str; 7] = [
    "README.md",
    "docs/ab.md",
    "docs/mcp.md",
    "docs/memory.md",
    "docs/plans.md",
    "docs/playbook.md",
    "docs/security.md",
];

/// The data directory of the commands, below the target directory.
const DATA: &str = "readme-runs";

/// The directories and the search path of commands.
struct CommandEnvironment<'a> {
    root: &'a Path,
    target: &'a Path,
    /// The search path: this program and the MCP servers first.
    path: OsString,
}

/// Runs every command of the pages below `root`. `servers` is the directory of the MCP servers' programs.
pub fn run_commands(root: &Path, target: &Path, servers: &Path) -> anyhow::Result<()> {
    let others = env::var_os("PATH").unwrap_or_default();
    let own = [target.join("release"), servers.to_owned()];
    let path = env::join_paths(own.into_iter().chain(env::split_paths(&others)))?;
    let environment = CommandEnvironment { root, target, path };
    // What an earlier clone at another environment left behind is none of this one's.
    let data = target.join(DATA);
    if data.exists() {
        fs::remove_dir_all(&data).with_context(|| data.display().to_string())?;
    }
    let mut differences = 0;
    for page in PAGES {
        differences += run_page(page, &environment).with_context(|| page.to_owned())?;
    }
    if differences > 0 {
        bail!("{differences} commands do not print what the pages show");
    }
    Ok(())
}

/// Runs the commands of a page. Returns how many of them do not print what it shows.
fn run_page(page: &str, environment: &CommandEnvironment<'_>) -> anyhow::Result<usize> {
    let text = fs::read_to_string(environment.root.join(page))?;
    let commands = commands(&text);
    if commands.is_empty() {
        bail!("the page shows no commands");
    }
    let mut directory = environment.root.to_owned();
    let mut differences = 0;
    for shown in &commands {
        // Running the tests from within the tests would never end.
        if shown.command == "cargo xtask test" {
            continue;
        }
        println!("$ {}", shown.command);
        match shown.command.strip_prefix("cd ") {
            Some(to) if !to.contains(' ') => directory = directory.join(to),
            _ => {
                if let Err(difference) = check(shown, environment, &directory) {
                    println!("{page}: {difference:#}");
                    differences += 1;
                }
            }
        }
    }
    let same = commands.len() - differences;
    println!(
        "{same} of {} commands of {page} print what it shows",
        commands.len()
    );
    Ok(differences)
}

fn commands(page: &str) -> Vec<PageCommand> {
    let mut commands: Vec<PageCommand> = Vec::new();
    let mut in_console = false;
    for line in page.lines() {
        if line.starts_with("```") {
            in_console = line == "```console";
        } else if let (true, Some(command)) = (in_console, line.strip_prefix("$ ")) {
            commands.push(PageCommand {
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

fn check(
    shown: &PageCommand,
    environment: &CommandEnvironment<'_>,
    directory: &Path,
) -> anyhow::Result<()> {
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1; {}", shown.command)])
        .current_dir(directory)
        .env("PATH", &environment.path)
        .env("CARGO_TARGET_DIR", environment.target)
        .env("CARGO_TERM_QUIET", "true")
        .env("WINDLASS_DATA", environment.target.join(DATA))
        .env("XDG_STATE_HOME", environment.target.join(DATA))
        .output()
        .context("cannot start bash")?;
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
            "`{}` printed\n{}\nbut the page shows\n{}",
            shown.command,
            printed.join("\n"),
            wanted.join("\n")
        );
    }
    Ok(())
}

/// The lines without empty lines at either end.
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
