//! `windlass fmt`: rewrites files in the canonical layout.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::arguments::Fmt;
use super::check::refuse_second_stdin;
use super::report::Reporter;
use super::source::Source;
use super::terminal::{eprint_line, print_content, print_line};
use super::{CommandOutcome, paste};

pub(super) fn run(command: &Fmt, reporter: &Reporter) -> anyhow::Result<CommandOutcome> {
    refuse_second_stdin(&command.files)?;
    let mut are_formatted = true;
    for path in &command.files {
        are_formatted &= format_file(command, path, reporter)?;
    }
    Ok(CommandOutcome::from_success(are_formatted))
}

/// Formats one file. Returns whether it is now in the canonical layout.
fn format_file(command: &Fmt, path: &Path, reporter: &Reporter) -> anyhow::Result<bool> {
    let (source, problem) = Source::read(path);
    if let Some(problem) = problem {
        reporter.show(&source, &[problem])?;
        return Ok(false);
    }
    let tree = windlass_gram::parse(&source.text);
    let Some(formatted) = windlass_gram::format(&tree) else {
        if serde_json::from_str::<serde::de::IgnoredAny>(&source.text).is_ok() {
            let file = paste::path(path);
            eprint_line(&format!(
                "error: `{}` is JSON, and only gram text is formatted\nhint: `windlass agent show {file}` writes it \
                 as gram text",
                source.name
            ))?;
            return Ok(false);
        }
        reporter.show(&source, tree.diagnostics())?;
        return Ok(false);
    };
    let is_formatted = formatted == source.text;
    if command.check {
        if !is_formatted {
            print_line(&source.name)?;
        }
        return Ok(is_formatted);
    }
    if path.as_os_str() == "-" {
        print_content(&formatted)?;
    } else if !is_formatted && let Err(error) = replace(path, &formatted) {
        eprint_line(&format!("error: `{}` is unchanged: {error}", source.name))?;
        return Ok(false);
    }
    Ok(true)
}

/// Replaces a file's content, following links. The replacement is atomic, so that a crash leaves no partial
/// file, unless a new file would have another owner or break hard links: then it is written in place.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), String> {
    let describe = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "no write permission for it or its directory; check the permissions".to_owned()
        }
        kind => kind.to_string(),
    };
    let path = path.canonicalize().map_err(describe)?;
    let metadata = path.metadata().map_err(describe)?;
    if !metadata.is_file() {
        return Err("it is not a regular file; format it as `-` through a pipe".to_owned());
    }
    if metadata.permissions().readonly() {
        return Err("it is read-only; make it writable first".to_owned());
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    let new = tempfile::NamedTempFile::new_in(directory)
        .ok()
        .filter(|new| {
            let same_owner = new
                .as_file()
                .metadata()
                .is_ok_and(|new| new.uid() == metadata.uid() && new.gid() == metadata.gid());
            same_owner && metadata.nlink() == 1
        });
    match new {
        Some(mut new) => {
            new.write_all(text.as_bytes()).map_err(describe)?;
            new.as_file()
                .set_permissions(metadata.permissions())
                .map_err(describe)?;
            new.as_file().sync_all().map_err(describe)?;
            new.persist(&path).map_err(|error| describe(error.error))?;
        }
        None => {
            let mut file = File::options()
                .write(true)
                .truncate(true)
                .open(&path)
                .map_err(describe)?;
            file.write_all(text.as_bytes()).map_err(describe)?;
            file.sync_all().map_err(describe)?;
        }
    }
    Ok(())
}
