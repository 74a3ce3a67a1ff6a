//! What a library file starts, contacts and reads. The file is loaded as for a run, and nothing of it is started.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use windlass_tools::{CommandFiles, Implementation, ToolLibrary, open_regular};

/// The most bytes of a text.
const MAX_TEXT: u64 = 4 * 1024 * 1024;

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

/// What a library file starts, contacts and reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LibraryScan {
    /// The files that its command lines name.
    pub files: Vec<CommandFiles>,
    /// The environment variables that are passed to commands, or that values come from.
    pub variables: BTreeSet<String>,
    /// Its command lines, each with its tool.
    pub commands: Vec<(String, Vec<String>)>,
    /// The URLs that its tools contact.
    pub hosts: BTreeSet<String>,
    /// Why it cannot be reviewed, if it cannot.
    pub problem: Option<String>,
}

impl LibraryScan {
    /// Scans a library file. Nothing is found if it cannot be read: then it cannot be used either.
    #[must_use]
    pub fn of_file(library: &Path) -> Self {
        let directory = library.parent().unwrap_or(Path::new(""));
        match read_text(library) {
            Ok(text) => Self::of_text(&text, directory),
            Err(_) => Self::default(),
        }
    }

    /// Scans the text of a library file in a directory. Nothing is found if it has mistakes.
    #[must_use]
    pub fn of_text(text: &str, directory: &Path) -> Self {
        let mut scan = Self::default();
        match ToolLibrary::from_toml(text, directory) {
            Ok(library) => scan.library(&library),
            Err(errors) => {
                let error = errors.first().map(ToString::to_string).unwrap_or_default();
                scan.problem = Some(format!("it has mistakes: {error}"));
            }
        }
        scan
    }

    fn library(&mut self, library: &ToolLibrary) {
        for tool in library {
            for implementation in tool.implementations() {
                match implementation {
                    Implementation::Command(command) => {
                        self.commands
                            .push((tool.name().to_string(), command.words()));
                        self.variables
                            .extend(command.variables_named().iter().cloned());
                        let files = command.files();
                        if let Some(directory) = &files.too_large {
                            let problem = format!("`{}` has too many files", directory.display());
                            self.problem = Some(problem);
                        }
                        self.files.push(files);
                    }
                    Implementation::Http(endpoint) => {
                        self.hosts.insert(endpoint.url());
                        self.variables
                            .extend(endpoint.variables().map(str::to_owned));
                    }
                }
            }
        }
    }

    /// The existing files that its command lines name. Programs that are found through `PATH` belong to the machine
    /// and are not among them.
    pub fn existing(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().flat_map(CommandFiles::existing)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const VARIANTS: &str = r#"
name = "tools"
[tools.note]
description = "Writes a note"
signature = "(text: Text) --> IO Text"
[[tools.note.variants]]
name = "a"
command = ["sh", "v.sh"]
environment = ["ONE"]
directory = "sub"
[[tools.note.variants]]
name = "b"
http = {method = "GET", url = "http://127.0.0.1:9911/?q={text}", allowed_hosts = ["127.0.0.1"], headers = {Authorization = "Bearer env:TWO"}}
"#;

    #[test]
    fn the_implementations_of_variants_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tools.toml");
        std::fs::write(&path, VARIANTS).unwrap();
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        let script = directory.path().join("sub/v.sh");
        std::fs::write(&script, "").unwrap();
        let scan = LibraryScan::of_file(&path);
        assert_eq!(scan.problem, None);
        assert_eq!(scan.existing().collect::<Vec<_>>(), [&script]);
        let words = vec!["sh".to_owned(), "v.sh".to_owned()];
        assert_eq!(scan.commands, [("note".to_owned(), words)]);
        assert_eq!(
            scan.hosts,
            ["http://127.0.0.1:9911/?q={text}".to_owned()].into()
        );
        assert_eq!(scan.variables, ["ONE".to_owned(), "TWO".to_owned()].into());
    }

    #[test]
    fn a_library_with_mistakes_cannot_be_reviewed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tools.toml");
        std::fs::write(
            &path,
            VARIANTS.replace("weight", "wait").replace("\"b\"", "\"a\""),
        )
        .unwrap();
        assert!(LibraryScan::of_file(&path).problem.is_some());
    }
}
