//! `windlass init`: creates a small project that runs, with a comment on every setting.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use windlass_config::starter;

use super::Outcome;
use super::arguments::Init;
use super::terminal::{eprint_line, print_json, print_line};

/// The files of the project, except the configuration.
const FILES: [(&str, &str); 3] = [
    ("assistant.gram", include_str!("starter/assistant.gram")),
    ("policy.cedar", include_str!("starter/policy.cedar")),
    ("notes/welcome.md", include_str!("starter/welcome.md")),
];

pub(super) fn run(command: &Init) -> anyhow::Result<Outcome> {
    let (mut written, mut kept) = (Vec::new(), Vec::new());
    // The project has its own policy file.
    let configuration = starter().replacen("# policies = ", "policies =   ", 1);
    let files = std::iter::once(("windlass.toml", configuration.as_str())).chain(FILES);
    for (name, text) in files {
        let path = command.directory.join(name);
        let is_written = write(&path, text, command.force)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
        match is_written {
            true => written.push(path.display().to_string()),
            false => kept.push(path.display().to_string()),
        }
    }
    if command.json {
        print_json(&format!("{}\n", json!({"written": written, "kept": kept})))?;
        return Ok(Outcome::Done);
    }
    for path in &written {
        eprint_line(&format!("written: {path}"))?;
    }
    for path in &kept {
        eprint_line(&format!("kept: {path}"))?;
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
    Ok(Outcome::Done)
}

/// Writes a file, unless it exists. Returns whether it was written.
fn write(path: &Path, text: &str, is_overwrite: bool) -> std::io::Result<bool> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    // A link is replaced, not followed, so that its target stays unchanged.
    if is_overwrite && path.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        std::fs::remove_file(path)?;
    }
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
