//! Reads the files named on the command line, or returns a diagnostic if one cannot be read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use windlass_gram::{Diagnostic, Span};
use windlass_spec::AgentFile;

use crate::report::Reporter;

/// The maximum size of a file. It is far above the size of agent files, and keeps a mistyped path from filling
/// the memory.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A text and its name in messages.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path as typed, or `-`.
    pub(crate) name: String,
    /// The text; lossy if it is not UTF-8, empty if it cannot be read.
    pub(crate) text: String,
}

impl Source {
    /// Reads a file, or standard input for `-`. If it cannot be read, the diagnostic says why.
    pub(crate) fn read(path: &Path) -> (Self, Option<Diagnostic>) {
        let name = path.to_string_lossy().into_owned();
        let (text, problem) = match read_bytes(path, &name) {
            Ok(bytes) => decode(bytes),
            Err(problem) => (String::new(), Some(problem)),
        };
        (Self { name, text }, problem)
    }
}

fn read_bytes(path: &Path, name: &str) -> Result<Vec<u8>, Diagnostic> {
    if name == "-" {
        return read_limited(name, io::stdin().lock()).map_err(|error| unreadable(name, &error))?;
    }
    let metadata = path.metadata().map_err(|error| unreadable(name, &error))?;
    if metadata.is_dir() {
        return Err(Diagnostic::error(
            "is-a-directory",
            Span::empty(0),
            format!("`{name}` is a directory"),
        )
        .with_hint(format!(
            "name the files in it: `{}/*.gram`",
            name.trim_end_matches('/')
        )));
    }
    if metadata.len() > MAX_BYTES {
        return Err(too_large(name));
    }
    File::open(path)
        .and_then(|file| read_limited(name, file))
        .map_err(|error| unreadable(name, &error))?
}

/// Reads up to the limit, because the size of a device or pipe is unknown.
fn read_limited(name: &str, reader: impl Read) -> io::Result<Result<Vec<u8>, Diagnostic>> {
    let mut bytes = Vec::new();
    reader.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(if bytes.len() as u64 > MAX_BYTES {
        Err(too_large(name))
    } else {
        Ok(bytes)
    })
}

fn too_large(name: &str) -> Diagnostic {
    Diagnostic::error(
        "file-too-large",
        Span::empty(0),
        format!("`{name}` is larger than {} MiB", MAX_BYTES / 1024 / 1024),
    )
    .with_hint("is this an agent file? If so, split it into several")
}

fn unreadable(name: &str, error: &io::Error) -> Diagnostic {
    let (code, message, hint) = match error.kind() {
        io::ErrorKind::NotFound => (
            "file-not-found",
            format!("file `{name}` not found"),
            "check the path; `-` reads standard input",
        ),
        io::ErrorKind::PermissionDenied => (
            "file-unreadable",
            format!("no permission to read `{name}`"),
            "check its permissions",
        ),
        _ => (
            "file-unreadable",
            format!("cannot read `{name}`: {error}"),
            "check the path",
        ),
    };
    Diagnostic::error(code, Span::empty(0), message).with_hint(hint)
}

fn decode(bytes: Vec<u8>) -> (String, Option<Diagnostic>) {
    let error = match String::from_utf8(bytes) {
        Ok(text) => return (text, None),
        Err(error) => error,
    };
    let offset = error.utf8_error().valid_up_to();
    let byte = error.as_bytes().get(offset).copied().unwrap_or_default();
    let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
    let end = offset + char::REPLACEMENT_CHARACTER.len_utf8();
    let problem = Diagnostic::error(
        "not-utf8",
        Span::new(offset as u32, end as u32),
        format!("the text is not UTF-8: invalid byte 0x{byte:02X}"),
    )
    .with_hint("save the file as UTF-8");
    (text, Some(problem))
}

/// Reads an agent file. `None` if it has errors, which are reported.
pub(crate) fn read_agent_file(
    path: &Path,
    reporter: &Reporter,
) -> anyhow::Result<Option<AgentFile>> {
    let (source, problem) = Source::read(path);
    if let Some(problem) = problem {
        reporter.show(&source, &[problem])?;
        return Ok(None);
    }
    let reading = windlass_spec::read(&source.text);
    reporter.show(&source, &reading.diagnostics)?;
    Ok(reading.file)
}
