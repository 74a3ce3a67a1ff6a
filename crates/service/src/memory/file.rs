//! Reads a file for memory: at most the limit, only text, HTML without its tags.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use windlass_store::{MemoryError, document_text};
use windlass_tools::html_to_text;

use super::refused;
use crate::error::ServiceError;

/// The content of a file for memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFile {
    /// Its heading, or its name.
    pub title: Option<String>,
    /// Its text.
    pub text: String,
    /// Its absolute path.
    pub source: String,
}

impl MemoryFile {
    /// Reads a file of at most `limit` bytes.
    ///
    /// # Errors
    /// If it cannot be read, is larger, or is not text.
    pub fn read(path: &Path, limit: u64) -> Result<Self, ServiceError> {
        let unreadable = |error: std::io::Error| {
            ServiceError::failed(format!("`{}` cannot be read: {error}", path.display()))
        };
        let metadata = std::fs::metadata(path).map_err(unreadable)?;
        if metadata.is_dir() {
            let message = format!("`{}` is a directory", path.display());
            return Err(ServiceError::invalid("is_directory", message)
                .with_hint("`windlass memory import` adds the files of a directory"));
        }
        let bytes = metadata.len();
        if bytes > limit {
            let bytes = Some(bytes);
            return Err(refused(MemoryError::TooLarge { bytes, limit }));
        }
        let text = read_memory_text(File::open(path).map_err(unreadable)?, limit)?;
        let (title, text) = readable(path, text);
        Ok(Self {
            title,
            text,
            source: absolute(path),
        })
    }
}

/// Reads a text of at most `limit` bytes, also from a pipe, whose length is unknown.
///
/// # Errors
/// If it cannot be read, is larger, or is not text.
pub fn read_memory_text(from: impl Read, limit: u64) -> Result<String, ServiceError> {
    let mut bytes = Vec::new();
    from.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(refused(MemoryError::TooLarge { bytes: None, limit }));
    }
    document_text(bytes).map_err(refused)
}

/// The absolute path of a file.
fn absolute(path: &Path) -> String {
    let absolute = std::fs::canonicalize(path);
    let path = absolute.as_deref().unwrap_or(path);
    path.to_string_lossy().into_owned()
}

/// The title and the text of a file: HTML without tags, Markdown as it is.
fn readable(path: &Path, text: String) -> (Option<String>, String) {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let extension = extension.unwrap_or_default().to_ascii_lowercase();
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    if matches!(extension.as_str(), "html" | "htm" | "xhtml") {
        let (title, text) = html_to_text(&text);
        let title = Some(title).filter(|title| !title.trim().is_empty());
        return (title.or(name), text);
    }
    let heading = match extension.as_str() {
        "md" | "markdown" => text.lines().find_map(|line| line.strip_prefix("# ")),
        _ => None,
    };
    let heading = heading.map(|heading| heading.trim().to_owned());
    let title = heading.filter(|heading| !heading.is_empty()).or(name);
    (title, text)
}
