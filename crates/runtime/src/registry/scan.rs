//! What a library file starts, contacts and reads, as far as its text says it. The file is not loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use windlass_spec::server::EnvTemplate;

use crate::assembly::reader_digest;

/// Files, each with the digest of its content.
pub type FileDigests = BTreeMap<PathBuf, String>;

/// The most bytes of all files whose digests are computed together. A stranger's project could name files without end.
const MAX_DIGESTED: u64 = 1 << 30;

/// The most bytes of a text.
const MAX_TEXT: u64 = 4 * 1024 * 1024;

/// The digests of these files. One that cannot be read, is not a regular file, or exceeds what is read of all together,
/// has an empty digest.
#[must_use]
pub fn file_digests(paths: &[PathBuf]) -> FileDigests {
    let mut digests = FileDigests::new();
    let mut left = MAX_DIGESTED;
    for path in paths {
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        digests
            .entry(path)
            .or_insert_with_key(|path| digest(path, &mut left).unwrap_or_default());
    }
    digests
}

/// The digest of a regular file with at most `left` bytes, which are taken away.
fn digest(path: &Path, left: &mut u64) -> io::Result<String> {
    let (file, size) = open_regular(path)?;
    if size > *left {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut limited = file.take(*left + 1);
    let digest = reader_digest(&mut limited)?;
    // The file may be larger than it says, such as those of `/proc`.
    match limited.limit() {
        0 => Err(io::ErrorKind::FileTooLarge.into()),
        unread => {
            *left = unread - 1;
            Ok(digest)
        }
    }
}

/// Opens a regular file, and returns its size. Pipes and devices could block or never end.
fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    // Opening a pipe blocks without this until its other end is opened.
    let file = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((file, metadata.len())),
        false => {
            let message = "it is not a regular file";
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
    }
}

/// The text of a regular file that is not too large.
///
/// # Errors
/// If it cannot be read, is not a regular file, is not UTF-8, or has more than 4 MiB.
pub fn read_text(path: &Path) -> io::Result<String> {
    let (file, size) = open_regular(path)?;
    let mut bytes = Vec::new();
    // A larger file is not read at all.
    let limit = if size > MAX_TEXT { 0 } else { MAX_TEXT + 1 };
    file.take(limit).read_to_end(&mut bytes)?;
    if size.max(bytes.len() as u64) > MAX_TEXT {
        let message = format!("it has more than {MAX_TEXT} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The program of this name that the directories in `PATH` have.
#[must_use]
pub fn program_in_path(name: &str) -> Option<PathBuf> {
    program_in(&env::var_os("PATH")?, name)
}

fn program_in(lookup: &OsStr, name: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        let found = std::fs::metadata(path);
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let directories = env::split_paths(lookup);
    let mut programs = directories.map(|directory| directory.join(name));
    programs.find(is_program)
}

/// What a library file starts, contacts and reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LibraryScan {
    /// The files that its commands run, as far as the command lines name them. Programs that are found through
    /// `PATH` belong to the machine and are not included.
    pub files: Vec<PathBuf>,
    /// The programs and scripts that its command lines name and that do not exist yet.
    pub missing: Vec<PathBuf>,
    /// The environment variables that are passed to commands, or that values come from.
    pub variables: BTreeSet<String>,
    /// Its command lines, each with its tool.
    pub commands: Vec<(String, Vec<String>)>,
    /// The URLs and hosts that its tools contact.
    pub hosts: BTreeSet<String>,
}

impl LibraryScan {
    /// Scans a library file. Nothing is found if it cannot be read.
    #[must_use]
    pub fn of_file(library: &Path) -> Self {
        let directory = library.parent().unwrap_or(Path::new(""));
        Self::of_text(&read_text(library).unwrap_or_default(), directory)
    }

    /// Scans the text of a library file in a directory. Nothing is found if it is not TOML.
    #[must_use]
    pub fn of_text(text: &str, directory: &Path) -> Self {
        let mut scan = Self::default();
        let Ok(table) = text.parse::<toml::Table>() else {
            return scan;
        };
        if let Some(toml::Value::Table(tools)) = table.get("tools") {
            for (name, tool) in tools {
                scan.implementations(name, tool);
            }
        }
        let table = toml::Value::Table(table);
        library_variables(&table, &mut scan.variables);
        command_files(&table, directory, &mut scan);
        scan
    }

    /// The commands and hosts of a tool and its variants.
    fn implementations(&mut self, tool: &str, value: &toml::Value) {
        let toml::Value::Table(table) = value else {
            return;
        };
        let texts = |value: &toml::Value| -> Vec<String> {
            let items = value.as_array().into_iter().flatten();
            items
                .filter_map(toml::Value::as_str)
                .map(str::to_owned)
                .collect()
        };
        for (key, value) in table {
            match key.as_str() {
                "command" => self.commands.push((tool.to_owned(), texts(value))),
                "url" => self.hosts.extend(value.as_str().map(str::to_owned)),
                "allowed_hosts" => self.hosts.extend(texts(value)),
                _ => self.implementations(tool, value),
            }
        }
    }
}

/// The files that the commands of a library run, as far as the command lines name them: programs named by a
/// path, arguments that are files, and the scripts and programs in a shell command line. Other files in a shell
/// command line are data, which the tool itself may change.
fn command_files(value: &toml::Value, base: &Path, scan: &mut LibraryScan) {
    let toml::Value::Table(table) = value else {
        return;
    };
    let below = table.get("directory").and_then(toml::Value::as_str);
    let directory = base.join(below.unwrap_or(""));
    for (key, value) in table {
        match value {
            toml::Value::Array(words) if key == "command" => {
                let words = words.iter().filter_map(toml::Value::as_str);
                // A program without a slash is found through `PATH`.
                let words = words.enumerate();
                let words = words.filter(|(place, word)| *place > 0 || word.contains('/'));
                for (place, argument) in words {
                    let is_line = argument.contains(char::is_whitespace);
                    for word in words_of(argument) {
                        let here = directory.join(word);
                        let paths = [here.clone(), PathBuf::from(word)];
                        match paths.into_iter().find(|path| path.is_file()) {
                            Some(found) if !is_line || is_program(&found) => scan.files.push(found),
                            None if place == 0 || is_script(&here) => scan.missing.push(here),
                            _ => {}
                        }
                    }
                }
            }
            value => command_files(value, base, scan),
        }
    }
}

/// Whether a file in a shell command line is a script or a program, and not data.
fn is_program(path: &Path) -> bool {
    let mode = std::fs::metadata(path).map_or(0, |found| found.permissions().mode());
    is_script(path) || mode & 0o111 != 0
}

/// Whether a file is a script by its extension.
#[must_use]
pub fn is_script(path: &Path) -> bool {
    const SCRIPTS: [&str; 12] = [
        "py", "sh", "bash", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua", "jar",
    ];
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| SCRIPTS.contains(&extension))
}

/// An argument and its words, in case it is a shell command line or has the form `--option=FILE`.
fn words_of(argument: &str) -> Vec<&str> {
    let is_separator = |c: char| c.is_whitespace() || "=;|&<>()'\"`".contains(c);
    let words = argument.split(is_separator).filter(|word| !word.is_empty());
    let mut found: Vec<&str> = words.collect();
    found.push(argument);
    found
}

/// The variables a library file names: those passed to commands, and those that values come from.
fn library_variables(value: &toml::Value, names: &mut BTreeSet<String>) {
    match value {
        toml::Value::String(text) => {
            if let Some(name) = EnvTemplate::new(text)
                .ok()
                .and_then(|given| given.variable().map(str::to_owned))
            {
                names.insert(name);
            }
        }
        toml::Value::Array(items) => {
            for item in items {
                library_variables(item, names);
            }
        }
        toml::Value::Table(table) => {
            for (key, value) in table {
                match (key.as_str(), value) {
                    ("environment", toml::Value::Array(passed)) => {
                        let passed = passed.iter().filter_map(toml::Value::as_str);
                        names.extend(passed.map(str::to_owned));
                    }
                    _ => library_variables(value, names),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};

    use super::*;

    #[test]
    fn files_without_end_are_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let endless = directory.path().join("endless");
        File::create(&endless)
            .unwrap()
            .set_len(MAX_DIGESTED + 1)
            .unwrap();
        let plain = directory.path().join("plain");
        write(&plain, "text").unwrap();
        let digests = file_digests(&[endless.clone(), plain.clone()]);
        let digest = |path: &Path| &digests[&path.canonicalize().unwrap()];
        assert_eq!(digest(&endless), "");
        assert_eq!(digest(&plain), &crate::assembly::text_digest("text"));
        assert!(read_text(&endless).is_err());
        assert_eq!(read_text(&plain).unwrap(), "text");
        // Its size is 0, and it has bytes.
        let mut left = 1;
        assert!(digest_of_status(&mut left).is_err());
        assert!(digest_of_status(&mut MAX_DIGESTED.clone()).is_ok());
    }

    fn digest_of_status(left: &mut u64) -> io::Result<String> {
        digest(Path::new("/proc/self/status"), left)
    }

    #[test]
    fn all_digests_together_are_limited() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        write(&path, "12345").unwrap();
        let mut left = 12;
        assert!(digest(&path, &mut left).is_ok());
        assert!(digest(&path, &mut left).is_ok());
        assert_eq!(left, 2);
        assert!(digest(&path, &mut left).is_err());
    }

    #[test]
    fn a_program_is_found_where_a_shell_finds_it() {
        let directory = tempfile::tempdir().unwrap();
        let (first, second) = (directory.path().join("1"), directory.path().join("2"));
        for directory in [&first, &second] {
            std::fs::create_dir(directory).unwrap();
            write(directory.join("tool"), "").unwrap();
        }
        let lookup = env::join_paths([&first, &second]).unwrap();
        assert_eq!(program_in(&lookup, "tool"), None);
        set_permissions(second.join("tool"), Permissions::from_mode(0o755)).unwrap();
        assert_eq!(program_in(&lookup, "tool"), Some(second.join("tool")));
    }
}
