//! `windlass init`: a small project that runs as it is, with a comment on everything that can be
//! changed.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use windlass_config::starter;

use super::Outcome;
use super::arguments::Init;
use super::terminal::{complain, put, say};

/// What is written besides the configuration.
const FILES: [(&str, &str); 3] = [
    ("assistant.gram", include_str!("starter/assistant.gram")),
    ("policy.cedar", include_str!("starter/policy.cedar")),
    ("notes/welcome.md", include_str!("starter/welcome.md")),
];

pub(super) fn run(command: &Init) -> anyhow::Result<Outcome> {
    let (mut written, mut kept) = (Vec::new(), Vec::new());
    // The project begins with policies of its own.
    let configuration = starter().replacen("# policies = ", "policies =   ", 1);
    let files = std::iter::once(("windlass.toml", configuration.as_str())).chain(FILES);
    for (name, text) in files {
        let path = command.directory.join(name);
        let is_written = write(&path, text, command.force)
            .with_context(|| format!("`{}` cannot be written", path.display()))?;
        match is_written {
            true => written.push(path.display().to_string()),
            false => kept.push(path.display().to_string()),
        }
    }
    if command.json {
        put(&format!("{}\n", json!({"written": written, "kept": kept})))?;
        return Ok(Outcome::Done);
    }
    for path in &written {
        complain(&format!("written: {path}"))?;
    }
    for path in &kept {
        complain(&format!("left as it is: {path}"))?;
    }
    let go = match command.directory == Path::new(".") {
        true => String::new(),
        false => format!("cd {}\n  ", command.directory.display()),
    };
    say(&format!(
        "Try it:\n  {go}windlass run assistant.gram \"What time is it?\"\n  \
         windlass run assistant.gram \"Read the file welcome.md\"\n  \
         windlass doctor"
    ))?;
    Ok(Outcome::Done)
}

/// Writes a file, unless there is one. Whether it was written.
fn write(path: &Path, text: &str, over: bool) -> std::io::Result<bool> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    // A link is replaced, not followed: what it points to was not meant.
    if over && path.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        std::fs::remove_file(path)?;
    }
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
