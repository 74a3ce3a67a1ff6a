//! What a server that is a program consists of: its executable, the files among its arguments, and the
//! parts an operator names, each with its SHA-256. A server can keep saying the same of its tools while
//! somebody replaces what runs; this is how that is noticed before it runs.
//!
//! Of the arguments every file counts but those in formats of data: what a server works on is not what
//! it is. Links are followed to what they lead to, except to directories within a part, of which only
//! the link itself counts. What an interpreter loads besides is not seen unless it is named as a part.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use windlass_spec::server::CommandTransport;

/// The most files that are looked at.
pub const MAX_FILES: usize = 20_000;

/// The most bytes that are read.
pub const MAX_BYTES: u64 = 1 << 30;

const MAX_MEGABYTES: u64 = MAX_BYTES >> 20;

/// Endings of files that are programs, or parts of one, whatever they are given to.
const CODE: [&str; 20] = [
    "bat", "cjs", "cmd", "exe", "jar", "js", "jsx", "lua", "mjs", "php", "pl", "ps1", "py", "pyz",
    "rb", "sh", "so", "ts", "tsx", "wasm",
];

/// What a server consists of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// What is started, with every link followed.
    pub executable: PathBuf,
    /// Every file with the SHA-256 of its content in hexadecimal, by path.
    pub files: Vec<(PathBuf, String)>,
    /// The SHA-256 of all of the above.
    pub digest: String,
}

/// Why it cannot be said what a server consists of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// There is no such program.
    #[error("there is no program `{program}`{}", .hint.as_deref().map_or_else(String::new, |hint| format!("\nhint: {hint}")))]
    NotFound {
        /// What was looked for.
        program: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// It cannot be started.
    #[error("`{0}` is no file that can be started")]
    NotExecutable(PathBuf),
    /// It cannot be read.
    #[error("cannot read `{path}`: {reason}")]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It is neither a file nor a directory.
    #[error("`{0}` is neither a file nor a directory")]
    Special(PathBuf),
    /// It cannot be written down.
    #[error("the name `{0}` is no Unicode")]
    NotUnicode(PathBuf),
    /// There are too many files.
    #[error(
        "the program has more than {MAX_FILES} files, `{0}` among them\n\
         hint: name fewer `parts`"
    )]
    TooManyFiles(PathBuf),
    /// There is too much to read.
    #[error(
        "the files of the program have more than {MAX_MEGABYTES} megabytes, `{0}` among them\n\
         hint: name fewer `parts`"
    )]
    TooLarge(PathBuf),
}

/// What a server consists of. `lookup_path` is where programs without a path are looked for, as in the
/// variable `PATH`; directories in it that are not absolute are passed over.
///
/// # Errors
/// If something is missing or cannot be read, or there is too much of it.
pub fn program(transport: &CommandTransport, lookup_path: &OsStr) -> Result<Program, ProgramError> {
    program_at(transport, &find(transport, lookup_path)?)
}

/// The same, where it is known already which file is started.
pub(crate) fn program_at(
    transport: &CommandTransport,
    found: &Path,
) -> Result<Program, ProgramError> {
    let executable = canonical(found)?;
    let mut reader = Reader::default();
    reader.file(&executable)?;
    for path in files_among(&transport.arguments, transport.directory.as_deref()) {
        let path = canonical(&path)?;
        reader.file(&path)?;
    }
    for part in &transport.parts {
        reader.part(&canonical(part)?)?;
    }
    let files: Vec<(PathBuf, String)> = reader.files.into_iter().collect();
    Ok(Program {
        digest: combined(&executable, &files)?,
        executable,
        files,
    })
}

impl Program {
    /// What is different in `after`, in words; nothing if it is the same program.
    #[must_use]
    pub fn difference(&self, after: &Self) -> Vec<String> {
        let mut told = Vec::new();
        if self.executable != after.executable {
            let (before, after) = (self.executable.display(), after.executable.display());
            told.push(format!("`{after}` is started and no longer `{before}`"));
        }
        let map = |program: &Self| program.files.iter().cloned().collect::<BTreeMap<_, _>>();
        let (old, new) = (map(self), map(after));
        for (path, digest) in &old {
            match new.get(path) {
                None => told.push(format!("`{}` is gone", path.display())),
                Some(other) if other != digest => {
                    told.push(format!("`{}` has another content", path.display()));
                }
                Some(_) => {}
            }
        }
        for path in new.keys().filter(|path| !old.contains_key(*path)) {
            told.push(format!("`{}` is new", path.display()));
        }
        told
    }
}

/// The file that is started, by the path under which it was found: what is started may go by that, so
/// links in it are not followed. A path is meant from where the program is started.
pub(crate) fn find(
    transport: &CommandTransport,
    lookup_path: &OsStr,
) -> Result<PathBuf, ProgramError> {
    let program = &transport.program;
    let not_found =
        || {
            ProgramError::NotFound {
        program: program.clone(),
        hint: program.split_once(char::is_whitespace).map(|(first, rest)| {
            format!("no shell reads it; write `{first}` as the command and `{rest}` as arguments")
        }),
    }
        };
    if program.contains('/') {
        let path = match &transport.directory {
            Some(directory) => directory.join(program),
            None => PathBuf::from(program),
        };
        let path = std::path::absolute(&path).map_err(|error| unreadable(&path, &error))?;
        let metadata = fs::metadata(&path).map_err(|_| not_found())?;
        return match is_executable(&metadata) {
            true => Ok(path),
            false => Err(ProgramError::NotExecutable(path)),
        };
    }
    let candidates = std::env::split_paths(lookup_path).filter(|directory| directory.is_absolute());
    for candidate in candidates.map(|directory| directory.join(program)) {
        if fs::metadata(&candidate).is_ok_and(|metadata| is_executable(&metadata)) {
            return Ok(candidate);
        }
    }
    Err(not_found())
}

#[cfg(unix)]
fn is_executable(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(metadata: &Metadata) -> bool {
    metadata.is_file()
}

/// The files among the arguments that can be run, seen from where the program is started.
fn files_among(arguments: &[String], directory: Option<&Path>) -> Vec<PathBuf> {
    let from_here = |text: &str| match directory {
        Some(directory) => directory.join(text),
        None => PathBuf::from(text),
    };
    let is_program = |path: &PathBuf| {
        let Ok(metadata) = fs::metadata(path) else {
            return false;
        };
        let ending = path.extension().and_then(OsStr::to_str);
        let is_code =
            ending.is_some_and(|ending| CODE.iter().any(|code| code.eq_ignore_ascii_case(ending)));
        // What a server works on may have any name, and changes; what can be run is a program.
        metadata.is_file() && (is_code || is_executable(&metadata))
    };
    let mut found = Vec::new();
    for argument in arguments {
        let value = argument.split_once('=').map(|(_, value)| value);
        let texts = [Some(argument.as_str()), value];
        let paths = texts.into_iter().flatten().filter(|text| !text.is_empty());
        found.extend(paths.map(from_here).filter(is_program));
    }
    found
}

fn canonical(path: &Path) -> Result<PathBuf, ProgramError> {
    fs::canonicalize(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &io::Error) -> ProgramError {
    ProgramError::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

/// The files read so far, and how much that was.
#[derive(Default)]
struct Reader {
    files: BTreeMap<PathBuf, String>,
    bytes: u64,
}

impl Reader {
    /// A file, or a directory with everything in it.
    fn part(&mut self, path: &Path) -> Result<(), ProgramError> {
        let mut rest = vec![path.to_owned()];
        while let Some(path) = rest.pop() {
            let metadata =
                fs::symlink_metadata(&path).map_err(|error| unreadable(&path, &error))?;
            if metadata.is_dir() {
                let entries = fs::read_dir(&path).map_err(|error| unreadable(&path, &error))?;
                for entry in entries {
                    let entry = entry.map_err(|error| unreadable(&path, &error))?;
                    rest.push(entry.path());
                    // Before any of them is read, since there may be very many.
                    if rest.len() + self.files.len() > MAX_FILES {
                        return Err(ProgramError::TooManyFiles(entry.path()));
                    }
                }
            } else if metadata.is_symlink() {
                self.link(&path)?;
            } else {
                self.file(&path)?;
            }
        }
        Ok(())
    }

    /// A link within a directory: the file it leads to under the name of the link, otherwise where it
    /// leads.
    fn link(&mut self, path: &Path) -> Result<(), ProgramError> {
        if fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
            return self.file(path);
        }
        let target = fs::read_link(path).map_err(|error| unreadable(path, &error))?;
        let digest = Sha256::digest(target.as_os_str().as_encoded_bytes());
        self.add(path, format!("link:{}", hexadecimal(&digest)))
    }

    fn file(&mut self, path: &Path) -> Result<(), ProgramError> {
        if self.files.contains_key(path) {
            return Ok(());
        }
        // Opening anything but a file may wait for somebody who never comes.
        let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        if !metadata.is_file() {
            return Err(ProgramError::Special(path.to_owned()));
        }
        // A file may also grow while it is read.
        if self.bytes.saturating_add(metadata.len()) > MAX_BYTES {
            return Err(ProgramError::TooLarge(path.to_owned()));
        }
        let mut file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(unreadable(path, &error)),
            };
            self.bytes = self
                .bytes
                .saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
            if self.bytes > MAX_BYTES {
                return Err(ProgramError::TooLarge(path.to_owned()));
            }
            hash.update(buffer.get(..read).unwrap_or_default());
        }
        self.add(path, hexadecimal(&hash.finalize()))
    }

    fn add(&mut self, path: &Path, digest: String) -> Result<(), ProgramError> {
        if path.to_str().is_none() {
            return Err(ProgramError::NotUnicode(path.to_owned()));
        }
        self.files.insert(path.to_owned(), digest);
        match self.files.len() > MAX_FILES {
            true => Err(ProgramError::TooManyFiles(path.to_owned())),
            false => Ok(()),
        }
    }
}

/// One digest of all files and of which of them is started.
fn combined(executable: &Path, files: &[(PathBuf, String)]) -> Result<String, ProgramError> {
    let written = serde_json::to_vec(&(executable, files))
        .map_err(|_| ProgramError::NotUnicode(executable.to_owned()))?;
    Ok(hexadecimal(&Sha256::digest(&written)))
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
