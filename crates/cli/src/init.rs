//! `windlass init`: creates a small project that runs, with a comment on every setting.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::CommandOutcome;
use super::arguments::Init;
use super::program::Program;
use super::terminal::{eprint_line, print_json, print_line};

pub(super) fn run(program: &Program, command: &Init) -> anyhow::Result<CommandOutcome> {
    let (service, identity) = (program.service(None), program.identity()?);
    let project = service.init_project(&identity, &command.directory, command.force)?;
    let names = |paths: &[PathBuf]| -> Vec<String> {
        paths
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    };
    let (written, kept) = (names(&project.written), names(&project.kept));
    if command.json {
        print_json(&format!("{}\n", json!({"written": written, "kept": kept})))?;
        return Ok(CommandOutcome::Done);
    }
    for path in &written {
        eprint_line(&format!("written: {path}"))?;
    }
    for path in &kept {
        eprint_line(&format!("kept: {path}"))?;
    }
    if let Some(reason) = &project.untrusted {
        let directory = command.directory.display();
        eprint_line(&format!(
            "The project is not trusted: {reason}. Review it with `windlass trust {directory}`."
        ))?;
    }
    let change_directory = match command.directory == Path::new(".") {
        true => String::new(),
        false => format!("cd {}\n  ", command.directory.display()),
    };
    print_line(&format!(
        "Try it:\n  {change_directory}windlass run assistant.gram \"What time is it?\"\n  \
         windlass run assistant.gram \"Read the file welcome.md\"\n  \
         windlass doctor"
    ))?;
    Ok(CommandOutcome::Done)
}
