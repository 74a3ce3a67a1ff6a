//! Library files: TOML that says which program or server stands behind which name, so that an agent
//! runs with no Rust written. Everything wrong with a file is reported at once; what is right with
//! it becomes tools like any other. Nothing is run and nothing is asked while a file is read.

mod reader;
mod tools;
mod variants;

use std::fmt;
use std::path::Path;

use toml::de::DeTable;

use crate::library::ToolLibrary;
use reader::{Place, Reader};

/// The keys a library file has.
const KEYS: [&str; 2] = ["name", "tools"];

/// One thing that is wrong with a library file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LibraryFileError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The key it is about, such as `tools.search.command`; empty if the file cannot be read.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl std::error::Error for LibraryFileError {}

impl fmt::Display for LibraryFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "`{}` ", self.key)?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl ToolLibrary {
    /// Reads a library file. Directories in it are taken from `base_directory`, which is where the
    /// file is; commands run there unless they say otherwise.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the file.
    pub fn from_toml(text: &str, base_directory: &Path) -> Result<Self, Vec<LibraryFileError>> {
        let mut reader = Reader::new(text);
        let (document, broken) = DeTable::parse_recoverable(text);
        if !broken.is_empty() {
            // What follows from a line that cannot be read would only bury it.
            for error in &broken {
                let at = error.span().map_or(0, |span| span.start);
                reader.error(&Place::new(at, ""), error.message().trim(), None);
            }
            return Err(reader.finish());
        }
        let whole = Place::new(0, "");
        let document = document.get_ref();
        reader.known_keys(document, &whole, &KEYS);
        let name = reader.required_text(document, &whole, "name");
        let mut library = Self::new(name.unwrap_or_default());
        match document.get("tools") {
            None => reader.error(
                &whole.below("tools", 0),
                "is missing",
                Some("a library has at least one tool: begin one with [tools.NAME]".to_owned()),
            ),
            Some(entries) => {
                let place = whole.below("tools", entries.span().start);
                for tool in tools::read(&mut reader, entries, &place, base_directory) {
                    library.register(tool);
                }
            }
        }
        let errors = reader.finish();
        if errors.is_empty() {
            Ok(library)
        } else {
            Err(errors)
        }
    }
}
