//! The files of a server that is a program: its executable, the code files among its arguments, and the
//! parts that the operator names, each with its SHA-256. This detects a replaced program before it runs,
//! even if its tool definitions stay the same.
//!
//! Among the arguments, only what is executed counts ([`CommandFiles`]), not data files. Symbolic links are followed, except links to directories within a part, of which only the link
//! target counts. Other files that an interpreter loads are not covered unless they are named as parts.
//!
//! A `ProgramSnapshot` also has the identity of every file, which shows that a file was replaced for a
//! moment between two snapshots, even if it is the same file with the same content again.

mod snapshot;
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
use windlass_tools::CommandFiles;

pub(crate) use snapshot::ProgramSnapshot;
use snapshot::{FileIdentity, links_of};

/// The most files of a program.
pub const MAX_FILES: usize = 20_000;

/// The most bytes of a program.
pub const MAX_BYTES: u64 = 1 << 30;

const MAX_MEGABYTES: u64 = MAX_BYTES >> 20;

/// The files of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The canonical path of the executable.
    pub executable: PathBuf,
    /// Every file with the SHA-256 of its content in hexadecimal, sorted by path.
    pub files: Vec<(PathBuf, String)>,
    /// The SHA-256 of all of the above.
    pub digest: String,
}

/// Why the files of a server cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// There is no such program.
    #[error("the program `{program}` was not found{}", .hint.as_deref().map_or_else(String::new, |hint| format!("\nhint: {hint}")))]
    NotFound {
        /// The program as configured.
        program: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// It cannot be started.
    #[error("`{0}` is not an executable file")]
    NotExecutable(PathBuf),
    /// It cannot be read.
    #[error("cannot read `{path}`: {reason}")]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        reason: String,
    },
    /// It is neither a file nor a directory.
    #[error("`{0}` is neither a file nor a directory")]
    Special(PathBuf),
    /// Its path cannot be stored.
    #[error("the path `{0}` is not valid Unicode")]
    NotUnicode(PathBuf),
    /// There are too many files.
    #[error(
        "the program has more than {MAX_FILES} files, including `{0}`\n\
         hint: name fewer `parts`"
    )]
    TooManyFiles(PathBuf),
    /// There is too much to read.
    #[error(
        "the files of the program have more than {MAX_MEGABYTES} megabytes, including `{0}`\n\
         hint: name fewer `parts`"
    )]
    TooLarge(PathBuf),
    /// It changes while it is read.
    #[error("`{0}` changes while it is read; try again when it no longer changes")]
    Changing(PathBuf),
}

/// Determines the files of a server. `lookup_path` is searched for programs without a path, like `PATH`;
/// relative directories in it are ignored.
///
/// # Errors
/// If a file is missing or cannot be read, or a limit is exceeded.
pub fn program(transport: &CommandTransport, lookup_path: &OsStr) -> Result<Program, ProgramError> {
    program_at(transport, &find(transport, lookup_path)?)
}

/// Like [`program`], for a known executable.
pub(crate) fn program_at(
    transport: &CommandTransport,
    found: &Path,
) -> Result<Program, ProgramError> {
    Ok(read_program(transport, found)?.program)
}

/// Reads the files of a server once.
fn read_program(
    transport: &CommandTransport,
    found: &Path,
) -> Result<ProgramSnapshot, ProgramError> {
    let mut reader = Reader::default();
    let executable = reader.canonical(found)?;
    reader.file(&executable)?;
    for path in named_files(transport, &executable)? {
        let path = reader.canonical(&path)?;
        reader.file(&path)?;
    }
    for part in &transport.parts {
        let part = reader.canonical(part)?;
        reader.part(&part)?;
    }
    let files: Vec<(PathBuf, String)> = reader.files.into_iter().collect();
    let program = Program {
        digest: combined(&executable, &files)?,
        executable,
        files,
    };
    Ok(ProgramSnapshot {
        program,
        identities: reader.identities,
    })
}

impl Program {
    /// Describes what is different in `after`. Empty if it is the same program.
    #[must_use]
    pub fn difference(&self, after: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        if self.executable != after.executable {
            let (before, after) = (self.executable.display(), after.executable.display());
            changes.push(format!(
                "the executable is now `{after}`, before it was `{before}`"
            ));
        }
        let map = |program: &Self| program.files.iter().cloned().collect::<BTreeMap<_, _>>();
        let (old, new) = (map(self), map(after));
        for (path, digest) in &old {
            match new.get(path) {
                None => changes.push(format!("`{}` was removed", path.display())),
                Some(other) if other != digest => {
                    changes.push(format!("`{}` was modified", path.display()));
                }
                Some(_) => {}
            }
        }
        for path in new.keys().filter(|path| !old.contains_key(*path)) {
            changes.push(format!("`{}` was added", path.display()));
        }
        changes
    }
}

/// The executable, by the path under which it was found. Links are not resolved, because a program may
/// depend on its path. A relative path starts from the working directory of the program.
pub(crate) fn find(
    transport: &CommandTransport,
    lookup_path: &OsStr,
) -> Result<PathBuf, ProgramError> {
    let program = &transport.program;
    let not_found = || {
        ProgramError::NotFound {
        program: program.clone(),
        hint: program.split_once(char::is_whitespace).map(|(first, rest)| {
            format!("the command is not run by a shell; set `{first}` as the command and `{rest}` as arguments")
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

/// The files that the command line of a server executes. `executable` has the name of an interpreter if the program is
/// a link to one.
fn named_files(
    transport: &CommandTransport,
    executable: &Path,
) -> Result<Vec<PathBuf>, ProgramError> {
    let directory = transport.directory.as_deref().unwrap_or(Path::new(""));
    let mut files = Vec::new();
    for program in [
        transport.program.clone(),
        executable.to_string_lossy().into_owned(),
    ] {
        let mut words = vec![program];
        words.extend(transport.arguments.iter().cloned());
        let named = CommandFiles::of(&words, directory, &transport.access.writable_files);
        if let Some(directory) = named.too_large {
            return Err(ProgramError::TooManyFiles(directory));
        }
        files.extend(named.programs);
    }
    // The program itself was found by its own rules.
    files.retain(|path| fs::canonicalize(path).is_ok_and(|path| path != executable));
    files.sort();
    files.dedup();
    Ok(files)
}

fn unreadable(path: &Path, error: &io::Error) -> ProgramError {
    ProgramError::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

/// The files read so far, and their total size.
#[derive(Default)]
struct Reader {
    files: BTreeMap<PathBuf, String>,
    /// The identity of every file, and of every symbolic link on the way to it.
    identities: BTreeMap<PathBuf, FileIdentity>,
    bytes: u64,
}

impl Reader {
    /// Resolves all links of a path.
    fn canonical(&mut self, path: &Path) -> Result<PathBuf, ProgramError> {
        let failed = |error| unreadable(path, &error);
        // Before the path is resolved: a link that changes later has another identity then.
        self.identities.extend(links_of(path).map_err(failed)?);
        fs::canonicalize(path).map_err(failed)
    }

    /// Adds a file, or a directory with everything in it.
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
                    // Checked before reading, since there may be very many.
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

    /// Adds a link within a directory: the content of its target if that is a file, else the path of its
    /// target.
    fn link(&mut self, path: &Path) -> Result<(), ProgramError> {
        if fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
            let links = links_of(path).map_err(|error| unreadable(path, &error))?;
            self.identities.extend(links);
            return self.file(path);
        }
        // The target may not exist.
        let own = fs::symlink_metadata(path).map_err(|error| unreadable(path, &error))?;
        self.identities
            .insert(path.to_owned(), FileIdentity::of(&own));
        let target = fs::read_link(path).map_err(|error| unreadable(path, &error))?;
        let digest = Sha256::digest(target.as_os_str().as_encoded_bytes());
        self.add(path, format!("link:{}", hexadecimal(&digest)))
    }

    fn file(&mut self, path: &Path) -> Result<(), ProgramError> {
        if self.files.contains_key(path) {
            return Ok(());
        }
        // Opening a special file, such as a pipe, may block forever.
        let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        if !metadata.is_file() {
            return Err(ProgramError::Special(path.to_owned()));
        }
        // A file may also grow while it is read.
        if self.bytes.saturating_add(metadata.len()) > MAX_BYTES {
            return Err(ProgramError::TooLarge(path.to_owned()));
        }
        let mut file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let identity = |file: &File| {
            let metadata = file.metadata().map_err(|error| unreadable(path, &error))?;
            Ok(FileIdentity::of(&metadata))
        };
        let before = identity(&file)?;
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
        if identity(&file)? != before {
            return Err(ProgramError::Changing(path.to_owned()));
        }
        // A link within a part is listed by its own path, which has the identity of the link already.
        let path_of_content = match self.identities.contains_key(path) {
            true => fs::canonicalize(path).map_err(|error| unreadable(path, &error))?,
            false => path.to_owned(),
        };
        self.identities.insert(path_of_content, before);
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

/// The digest of all files and the executable.
fn combined(executable: &Path, files: &[(PathBuf, String)]) -> Result<String, ProgramError> {
    let written = serde_json::to_vec(&(executable, files))
        .map_err(|_| ProgramError::NotUnicode(executable.to_owned()))?;
    Ok(hexadecimal(&Sha256::digest(&written)))
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
