//! The file tools: reading, writing, listing and deleting below the configured roots. What a path
//! means is decided in `path`, how it is reached without leaving its root in `root`; here stands what
//! the tools promise. Work on files blocks, so it is done off the threads that everything else runs on.

mod path;
mod root;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windlass_spec::ErrorCategory;

use super::declared::{self, Declared};
use super::settings::{FileSettings, Root};
use super::{invalid, not_configured, refused};
use crate::builder::ToolBuildError;
use crate::error::ToolError;
use crate::tool::Tool;
use path::{Place, Steps};
use root::{Kind, Mode, Problem};

/// How many entries of a directory are listed; a result that holds more helps nobody.
const MAX_ENTRIES: usize = 10_000;

/// The files that the settings allow.
#[derive(Debug)]
pub(super) struct Files {
    settings: FileSettings,
}

pub(super) fn read_file(files: Option<Arc<Files>>) -> Result<Tool, ToolBuildError> {
    on_files(&declared::READ_FILE, files, |files, arguments: PathOnly| {
        files.read(&arguments.path)
    })
}

pub(super) fn write_file(files: Option<Arc<Files>>) -> Result<Tool, ToolBuildError> {
    on_files(&declared::WRITE_FILE, files, |files, arguments: Write| {
        files.write(&arguments)
    })
}

pub(super) fn list_directory(files: Option<Arc<Files>>) -> Result<Tool, ToolBuildError> {
    on_files(
        &declared::LIST_DIRECTORY,
        files,
        |files, arguments: List| files.list(&arguments.path),
    )
}

pub(super) fn delete_file(files: Option<Arc<Files>>) -> Result<Tool, ToolBuildError> {
    on_files(
        &declared::DELETE_FILE,
        files,
        |files, arguments: PathOnly| files.delete(&arguments.path),
    )
}

/// The tool that does `work`, or that says what to configure.
fn on_files<A, T, F>(
    declared: &'static Declared,
    files: Option<Arc<Files>>,
    work: F,
) -> Result<Tool, ToolBuildError>
where
    A: for<'de> Deserialize<'de> + Send + 'static,
    T: Serialize + Send + 'static,
    F: Fn(&Files, A) -> Result<T, ToolError> + Copy + Send + Sync + 'static,
{
    declared
        .builder()
        .typed(move |arguments: A| {
            let files = files.clone();
            async move {
                let files = files.ok_or_else(|| not_configured(declared))?;
                tokio::task::spawn_blocking(move || work(&files, arguments))
                    .await
                    .map_err(|error| ToolError::of(ErrorCategory::Internal, error.to_string()))?
            }
        })
        .build()
}

#[derive(Deserialize)]
struct PathOnly {
    path: String,
}

#[derive(Deserialize)]
struct List {
    #[serde(default = "here")]
    path: String,
}

fn here() -> String {
    ".".to_owned()
}

#[derive(Deserialize)]
struct Write {
    path: String,
    content: String,
    #[serde(default)]
    mode: Mode,
}

#[derive(Serialize)]
struct Text {
    path: String,
    text: String,
}

#[derive(Serialize)]
struct Written {
    path: String,
    bytes: usize,
    replaced: bool,
}

#[derive(Serialize)]
struct Deleted {
    path: String,
    bytes: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Entry {
    name: String,
    kind: Kind,
    bytes: Option<u64>,
}

impl Files {
    pub(super) fn new(settings: FileSettings) -> Self {
        Self { settings }
    }

    fn read(&self, path: &str) -> Result<Text, ToolError> {
        let (root, steps) = self.file(path)?;
        let bytes = root::read(root.directory(), &steps, self.settings.max_bytes())
            .map_err(|problem| told(path, problem))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let place = error.utf8_error().valid_up_to();
            invalid(format!(
                "{path:?} is not text in UTF-8: byte {place} is not part of any character"
            ))
        })?;
        Ok(Text {
            path: path.to_owned(),
            text,
        })
    }

    fn write(&self, asked: &Write) -> Result<Written, ToolError> {
        let Write {
            path,
            content,
            mode,
        } = asked;
        let (root, steps) = self.file(path)?;
        steps.check_for_writing().map_err(invalid)?;
        let max_bytes = self.settings.max_bytes();
        if content.len() > max_bytes {
            let length = content.len();
            return Err(invalid(format!(
                "the content has {length} bytes; a file may have {max_bytes}"
            )));
        }
        let replaced = root::write(root.directory(), &steps, content.as_bytes(), *mode)
            .map_err(|problem| told(path, problem))?;
        Ok(Written {
            path: path.clone(),
            bytes: content.len(),
            replaced,
        })
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ToolError> {
        let (root, steps) = match Place::parse(path, &self.names()).map_err(invalid)? {
            Place::Below { root, steps } => (self.root(root)?, steps),
            Place::Top => {
                let roots = self.settings.roots().iter();
                let entries = roots.map(|root| Entry {
                    name: root.name().to_owned(),
                    kind: Kind::Directory,
                    bytes: None,
                });
                return Ok(entries.collect());
            }
        };
        let listed = root::list(root.directory(), &steps, MAX_ENTRIES)
            .map_err(|problem| told(path, problem))?;
        let mut entries: Vec<Entry> = listed
            .into_iter()
            .map(|(name, kind, bytes)| Entry { name, kind, bytes })
            .collect();
        entries.sort();
        Ok(entries)
    }

    fn delete(&self, path: &str) -> Result<Deleted, ToolError> {
        let (root, steps) = self.file(path)?;
        let bytes =
            root::delete(root.directory(), &steps).map_err(|problem| told(path, problem))?;
        Ok(Deleted {
            path: path.to_owned(),
            bytes,
        })
    }

    fn names(&self) -> Vec<&str> {
        self.settings.roots().iter().map(Root::name).collect()
    }

    /// Where a file is said to be.
    fn file(&self, path: &str) -> Result<(&Root, Steps), ToolError> {
        match Place::parse(path, &self.names()).map_err(invalid)? {
            Place::Below { root, steps } if steps.is_file() => {
                let root = self.root(root)?;
                if self.settings.is_protected(root, steps.names()) {
                    return Err(refused(format!(
                        "{path:?} belongs to the rules and records of this program, which agents do \
                         not touch"
                    )));
                }
                Ok((root, steps))
            }
            Place::Below { .. } | Place::Top => Err(invalid(format!(
                "{path:?} is a directory; name a file in it"
            ))),
        }
    }

    fn root(&self, position: usize) -> Result<&Root, ToolError> {
        let root = self.settings.roots().get(position);
        root.ok_or_else(|| invalid("there is no such root"))
    }
}

/// What went wrong, in words for the model: the path as it was written, never where that is on the
/// machine.
fn told(path: &str, problem: Problem) -> ToolError {
    let certain = |category, what: String| ToolError::of(category, what).without_effect();
    match problem {
        Problem::Missing(step) if step.is_empty() => {
            let message = format!(
                "the root of {path:?} is not there; check `[files] roots` in windlass.toml"
            );
            certain(ErrorCategory::NotFound, message)
        }
        Problem::Missing(step) => {
            let message = format!("there is no {step:?} for the path {path:?}");
            certain(ErrorCategory::NotFound, message)
        }
        Problem::Link(step) => refused(format!(
            "{step:?} in {path:?} is a symbolic link, and links are not followed; name what it points to"
        )),
        Problem::NotDirectory(step) => invalid(format!("{step:?} in {path:?} is not a directory")),
        Problem::IsDirectory => invalid(format!("{path:?} is a directory, not a file")),
        Problem::Special => refused(format!(
            "{path:?} is not a regular file: pipes, devices, sockets and what the kernel makes up are not used"
        )),
        Problem::TooLarge { bytes, max_bytes } => {
            let size = bytes
                .map(|bytes| format!(" ({bytes} bytes)"))
                .unwrap_or_default();
            invalid(format!(
                "{path:?} is too large{size}; at most {max_bytes} bytes are read"
            ))
        }
        Problem::TooMany(most) => invalid(format!(
            "{path:?} has more than {most} entries; list a directory below it"
        )),
        Problem::Exists => invalid(format!(
            "{path:?} exists and has another content; to replace it, say mode `overwrite`"
        )),
        Problem::Denied => refused(format!("the system does not allow this for {path:?}")),
        Problem::Failed { what, had_effect } => {
            let error = ToolError::new(format!("{path:?}: {what}"));
            if had_effect {
                error
            } else {
                error.without_effect()
            }
        }
    }
}
