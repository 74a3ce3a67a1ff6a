//! Reads what is to be remembered: never more than the limit, only what is text, HTML without its tags.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context as _;
use windlass_store::{MemoryError, document_text};
use windlass_tools::text_of_html;

/// A document as it is remembered.
pub(super) struct Readable {
    pub(super) title: Option<String>,
    pub(super) text: String,
}

/// The text of a file.
pub(super) fn file(path: &Path, limit: u64) -> anyhow::Result<String> {
    let told = || format!("`{}` cannot be read", path.display());
    let metadata = std::fs::metadata(path).with_context(told)?;
    anyhow::ensure!(
        !metadata.is_dir(),
        "`{}` is a directory\nhint: windlass memory import",
        path.display()
    );
    let bytes = metadata.len();
    if bytes > limit {
        let bytes = Some(bytes);
        return Err(MemoryError::TooLarge { bytes, limit }.into());
    }
    whole(File::open(path).with_context(told)?, limit)
}

pub(super) fn standard_input(limit: u64) -> anyhow::Result<String> {
    whole(io::stdin().lock(), limit)
}

/// All of it, unless it is more than the limit: a pipe does not say how much is to come.
fn whole(from: impl Read, limit: u64) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    from.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(MemoryError::TooLarge { bytes: None, limit }.into());
    }
    Ok(document_text(bytes)?)
}

/// Where a file is, wherever this program is started from.
pub(super) fn source(path: &Path) -> String {
    let absolute = std::fs::canonicalize(path);
    let path = absolute.as_deref().unwrap_or(path);
    path.to_string_lossy().into_owned()
}

/// What a file says, and what it is called: HTML without tags, Markdown as it is.
pub(super) fn readable(path: &Path, text: String) -> Readable {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let extension = extension.unwrap_or_default().to_ascii_lowercase();
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    if matches!(extension.as_str(), "html" | "htm" | "xhtml") {
        let (title, text) = text_of_html(&text);
        let title = Some(title).filter(|title| !title.trim().is_empty());
        return Readable {
            title: title.or(name),
            text,
        };
    }
    let heading = match extension.as_str() {
        "md" | "markdown" => text.lines().find_map(|line| line.strip_prefix("# ")),
        _ => None,
    };
    let heading = heading.map(|heading| heading.trim().to_owned());
    let title = heading.filter(|heading| !heading.is_empty()).or(name);
    Readable { title, text }
}
