//! Shell completion scripts.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::program::TestProject;

/// The names of the program's commands, from its help.
fn commands() -> Vec<String> {
    let help = TestProject::new().run(&["--help"]);
    let (_, after) = help.split_once("Commands:\n").unwrap();
    let listed = after.lines().take_while(|line| !line.is_empty());
    let names: Vec<String> = listed
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    assert!(names.len() >= 10, "{names:?}");
    names
}

#[test]
fn every_shell_completes_every_command() {
    let commands = commands();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = TestProject::new().run(&["completions", shell]);
        assert!(script.ends_with("exit code 0\n"), "{script}");
        for command in &commands {
            assert!(script.contains(command.as_str()), "{shell} lacks {command}");
        }
    }
    assert!(
        TestProject::new()
            .run(&["completions", "dos"])
            .ends_with("exit code 2\n")
    );
}

#[test]
fn the_guide_to_the_commands_has_every_command() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    for command in commands().iter().filter(|command| *command != "help") {
        let is_named = guide
            .split("`windlass ")
            .any(|after| after.split([' ', '`']).next() == Some(command.as_str()));
        assert!(is_named, "{command} is missing");
    }
}

#[test]
fn bash_accepts_its_completion_script() {
    let output = TestProject::new()
        .command(&["completions", "bash"])
        .output()
        .unwrap();
    let bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn();
    let Ok(mut bash) = bash else {
        // There is no bash on this machine.
        return;
    };
    bash.stdin
        .take()
        .unwrap()
        .write_all(&output.stdout)
        .unwrap();
    assert!(bash.wait().unwrap().success());
}
