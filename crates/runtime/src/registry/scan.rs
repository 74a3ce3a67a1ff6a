//! What a library file starts, contacts and reads, as far as its text says it. The file is not loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use windlass_spec::server::EnvTemplate;

use crate::assembly::reader_digest;

/// Files, each with the digest of its content.
pub type FileDigests = BTreeMap<PathBuf, String>;

/// The digests of these files. One that cannot be read, or is not a regular file, has an empty digest.
#[must_use]
pub fn file_digests(paths: &[PathBuf]) -> FileDigests {
    let mut digests = FileDigests::new();
    for path in paths {
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        digests
            .entry(path)
            .or_insert_with_key(|path| digest(path).unwrap_or_default());
    }
    digests
}

/// The digest of a regular file. Pipes and devices could block or never end.
fn digest(path: &Path) -> io::Result<String> {
    // Opening a pipe blocks without this until its other end is opened.
    let file = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    match file.metadata()?.is_file() {
        true => reader_digest(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
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
        let is_regular = std::fs::metadata(library).is_ok_and(|found| found.is_file());
        let text = is_regular.then(|| std::fs::read_to_string(library).unwrap_or_default());
        let directory = library.parent().unwrap_or(Path::new(""));
        Self::of_text(&text.unwrap_or_default(), directory)
    }

    fn of_text(text: &str, directory: &Path) -> Self {
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
