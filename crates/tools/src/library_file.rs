//! Library files: TOML that maps tool names to programs and servers, so that an agent
//! runs without Rust code. All errors of a file are reported at once. Reading a file neither runs
//! programs nor sends requests.

mod reader;
mod tools;
mod variants;

use std::fmt;
use std::path::Path;

use toml::de::DeTable;
use windlass_spec::text::{TextUse, is_clean};

use crate::library::ToolLibrary;
use reader::{FileLocation, Reader};

/// Whether a text is a tool library: TOML with a tool that has an implementation.
pub(crate) fn is_library(text: &str) -> bool {
    let Ok(table) = text.parse::<toml::Table>() else {
        return false;
    };
    let tools = table.get("tools").and_then(toml::Value::as_table);
    let mut tools = tools.into_iter().flatten();
    tools.any(|(_, tool)| {
        let is_implemented = |key: &&str| tool.get(*key).is_some();
        tools::IMPLEMENTATION_KEYS.iter().any(is_implemented)
    })
}

/// The keys a library file has.
const KEYS: [&str; 2] = ["name", "tools"];

/// One error in a library file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LibraryFileError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The key it is about, such as `tools.search.command`; empty if the file is not valid TOML.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl std::error::Error for LibraryFileError {}

impl fmt::Display for LibraryFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // All may quote the file, and no line of it must begin a line.
        let indented = |text: &str| text.replace('\n', "\n    ");
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "`{}` ", indented(&self.key))?;
        }
        f.write_str(&indented(&self.message))?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {}", indented(hint)),
            None => Ok(()),
        }
    }
}

impl ToolLibrary {
    /// Reads a library file. Directories in it are relative to `base_directory`, the directory of the
    /// file. Commands run there unless they set another directory.
    ///
    /// # Errors
    /// All errors, in the order of the file.
    pub fn from_toml(text: &str, base_directory: &Path) -> Result<Self, Vec<LibraryFileError>> {
        let mut reader = Reader::new(text);
        let (document, broken) = DeTable::parse_recoverable(text);
        if !broken.is_empty() {
            // Errors that follow from invalid TOML would only hide it.
            for error in &broken {
                let at = error.span().map_or(0, |span| span.start);
                reader.error(&FileLocation::new(at, ""), error.message().trim(), None);
            }
            return Err(reader.finish());
        }
        let root = FileLocation::new(0, "");
        let document = document.get_ref();
        reader.check_keys(document, &root, &KEYS);
        let name = reader.required_text(document, &root, "name");
        if let (Some(name), Some(value)) = (&name, document.get("name"))
            && !is_clean(name, TextUse::Name)
        {
            let location = root.below("name", value.span().start);
            let message = "has line breaks or invisible characters; remove them";
            reader.error(&location, message, None);
        }
        let mut library = Self::new(name.unwrap_or_default());
        match document.get("tools") {
            None => reader.error(
                &root.below("tools", 0),
                "is missing",
                Some("a library has at least one tool: begin one with [tools.NAME]".to_owned()),
            ),
            Some(entries) => {
                let location = root.below("tools", entries.span().start);
                for tool in tools::read(&mut reader, entries, &location, base_directory) {
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
