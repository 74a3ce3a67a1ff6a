//! The file tools: reading, writing, listing and deleting below the configured roots. `path` parses
//! paths, `root` opens files without leaving their root, and this module implements
//! the tools. File access blocks, so it runs on the blocking thread pool.

mod guard;
mod path;
mod root;

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windlass_spec::{ErrorCategory, RunId};

use super::declared::{self, DeclaredTool};
use super::settings::{FileRoot, FileSettings};
use super::{invalid, not_configured, refused};
use crate::builder::ToolBuildError;
use crate::error::ToolError;
use crate::tool::{CallContext, Tool};
pub(super) use guard::Governed;
use guard::{Reached, governs_agents, is_configuration};
use path::{PathTarget, Steps};
use root::{EntryKind, FileProblem, WriteMode};

/// The largest file that can govern agents: an agent file has at most 64 MiB. Larger ones are not examined.
const MAX_EXAMINED: usize = 64 * 1024 * 1024;

/// The maximum number of directory entries in a result.
const MAX_ENTRIES: usize = 10_000;

/// The files that the settings allow.
#[derive(Debug)]
pub(super) struct Files {
    settings: FileSettings,
}

pub(super) fn read_file(files: Option<Arc<Files>>) -> Result<Tool, ToolBuildError> {
    file_tool(
        &declared::READ_FILE,
        files,
        |files, arguments: PathArguments, _| files.read(&arguments.path),
    )
}

pub(super) fn write_file(files: Option<Arc<Files>>) -> Result<Tool, ToolBuildError> {
    file_tool(
        &declared::WRITE_FILE,
        files,
        |files, arguments: WriteArguments, run| files.write(&arguments, run),
    )
}

pub(super) fn list_directory(files: Option<Arc<Files>>) -> Result<Tool, ToolBuildError> {
    file_tool(
        &declared::LIST_DIRECTORY,
        files,
        |files, arguments: ListArguments, _| files.list(&arguments.path),
    )
}

pub(super) fn delete_file(files: Option<Arc<Files>>) -> Result<Tool, ToolBuildError> {
    file_tool(
        &declared::DELETE_FILE,
        files,
        |files, arguments: PathArguments, _| files.delete(&arguments.path),
    )
}

/// A tool that does `work` for a run, or fails with what to configure.
fn file_tool<A, T, F>(
    declared: &'static DeclaredTool,
    files: Option<Arc<Files>>,
    work: F,
) -> Result<Tool, ToolBuildError>
where
    A: for<'de> Deserialize<'de> + Send + 'static,
    T: Serialize + Send + 'static,
    F: Fn(&Files, A, Option<&RunId>) -> Result<T, ToolError> + Copy + Send + Sync + 'static,
{
    declared
        .builder()
        .typed_with_context(move |arguments: A, context: CallContext| {
            let files = files.clone();
            let run = context.caller.map(|caller| caller.run);
            async move {
                let files = files.ok_or_else(|| not_configured(declared))?;
                tokio::task::spawn_blocking(move || work(&files, arguments, run.as_ref()))
                    .await
                    .map_err(|error| ToolError::of(ErrorCategory::Internal, error.to_string()))?
            }
        })
        .build()
}

#[derive(Deserialize)]
struct PathArguments {
    path: String,
}

#[derive(Deserialize)]
struct ListArguments {
    #[serde(default = "current_directory")]
    path: String,
}

fn current_directory() -> String {
    ".".to_owned()
}

#[derive(Deserialize)]
struct WriteArguments {
    path: String,
    content: String,
    #[serde(default)]
    mode: WriteMode,
}

#[derive(Serialize)]
struct ReadAnswer {
    path: String,
    text: String,
}

#[derive(Serialize)]
struct WriteAnswer {
    path: String,
    bytes: usize,
    replaced: bool,
}

#[derive(Serialize)]
struct DeleteAnswer {
    path: String,
    bytes: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct DirectoryEntry {
    name: String,
    kind: EntryKind,
    bytes: Option<u64>,
}

impl Files {
    pub(super) fn new(settings: FileSettings) -> Self {
        Self { settings }
    }

    fn read(&self, path: &str) -> Result<ReadAnswer, ToolError> {
        let (root, steps) = self.file(path)?;
        let check = |reached: &Reached<'_>| self.check_read(root, reached);
        let bytes = root::read(root.directory(), &steps, self.settings.max_bytes(), &check)
            .map_err(|problem| file_error(path, problem))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let place = error.utf8_error().valid_up_to();
            invalid(format!(
                "{path:?} is not UTF-8 text: byte {place} is not part of any character"
            ))
        })?;
        Ok(ReadAnswer {
            path: path.to_owned(),
            text,
        })
    }

    fn write(
        &self,
        arguments: &WriteArguments,
        run: Option<&RunId>,
    ) -> Result<WriteAnswer, ToolError> {
        let WriteArguments {
            path,
            content,
            mode,
        } = arguments;
        let (root, steps) = self.file(path)?;
        steps.check_for_writing().map_err(invalid)?;
        let max_bytes = self.settings.max_bytes();
        if content.len() > max_bytes {
            let length = content.len();
            return Err(invalid(format!(
                "the content has {length} bytes; the limit is {max_bytes} bytes"
            )));
        }
        let check =
            |reached: &Reached<'_>| self.check_write(root, &steps, reached, content.as_bytes());
        let record = || self.record_write(root, &steps, content, run);
        let content_bytes = content.as_bytes();
        let directory = root.directory();
        let replaced = root::write(directory, &steps, content_bytes, *mode, &check, &record)
            .map_err(|problem| file_error(path, problem))?;
        Ok(WriteAnswer {
            path: path.clone(),
            bytes: content.len(),
            replaced,
        })
    }

    /// Records what is about to be written, by which run.
    fn record_write(
        &self,
        root: &FileRoot,
        steps: &Steps,
        content: &str,
        run: Option<&RunId>,
    ) -> Result<(), FileProblem> {
        let (Some(recorder), Some(run)) = (self.settings.recorder(), run) else {
            return Ok(());
        };
        let directory = root.directory();
        let mut path = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
        path.extend(steps.names());
        recorder
            .record(&path, content, run)
            .map_err(|why| FileProblem::Failed {
                what: format!("not written, because that cannot be recorded: {why}"),
                had_effect: false,
            })
    }

    fn list(&self, path: &str) -> Result<Vec<DirectoryEntry>, ToolError> {
        let (root, steps) = match PathTarget::parse(path, &self.names()).map_err(invalid)? {
            PathTarget::InRoot { root, steps } => (self.root(root)?, steps),
            PathTarget::Roots => {
                let roots = self.settings.roots().iter();
                let entries = roots.map(|root| DirectoryEntry {
                    name: root.name().to_owned(),
                    kind: EntryKind::Directory,
                    bytes: None,
                });
                return Ok(entries.collect());
            }
        };
        let listed = root::list(root.directory(), &steps, MAX_ENTRIES)
            .map_err(|problem| file_error(path, problem))?;
        let mut entries: Vec<DirectoryEntry> = listed
            .into_iter()
            .map(|(name, kind, bytes)| DirectoryEntry { name, kind, bytes })
            .collect();
        entries.sort();
        Ok(entries)
    }

    fn delete(&self, path: &str) -> Result<DeleteAnswer, ToolError> {
        let (root, steps) = self.file(path)?;
        let check = |reached: &Reached<'_>| self.check_write(root, &steps, reached, &[]);
        let bytes = root::delete(root.directory(), &steps, &check)
            .map_err(|problem| file_error(path, problem))?;
        Ok(DeleteAnswer {
            path: path.to_owned(),
            bytes,
        })
    }

    fn names(&self) -> Vec<&str> {
        self.settings.roots().iter().map(FileRoot::name).collect()
    }

    /// The root and the steps of the path of a file.
    fn file(&self, path: &str) -> Result<(&FileRoot, Steps), ToolError> {
        match PathTarget::parse(path, &self.names()).map_err(invalid)? {
            PathTarget::InRoot { root, steps } if steps.is_file() => Ok((self.root(root)?, steps)),
            PathTarget::InRoot { .. } | PathTarget::Roots => Err(invalid(format!(
                "{path:?} is a directory; name a file in it"
            ))),
        }
    }

    /// Refuses files that may hold rules or secrets of others: configurations, policies, libraries and data.
    fn check_read(&self, root: &FileRoot, reached: &Reached<'_>) -> Result<(), FileProblem> {
        let directory = root.directory();
        match is_configuration(reached.name)
            || reached.is_data(directory)
            || reached.is_one_of(self.settings.protected(), directory)
        {
            true => Err(FileProblem::Governs(
                "belongs to the configuration or data of Windlass",
            )),
            false => Ok(()),
        }
    }

    /// Refuses files that govern agents, in this project and in others. `content` is what would be written.
    fn check_write(
        &self,
        root: &FileRoot,
        steps: &Steps,
        reached: &Reached<'_>,
        content: &[u8],
    ) -> Result<(), FileProblem> {
        self.check_read(root, reached)?;
        if reached.is_one_of(self.settings.governing(), root.directory()) {
            return Err(FileProblem::Governs("governs agents of this project"));
        }
        let directory = root.directory();
        let mut path = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
        path.extend(steps.names());
        let is_governing = |above: &Path| {
            let governing = self.settings.governing_in(above);
            reached.is_one_of(&governing, directory)
        };
        if path.ancestors().skip(1).any(is_governing) {
            return Err(FileProblem::Governs("governs agents of another project"));
        }
        let existing = root::beginning(reached, MAX_EXAMINED);
        match governs_agents(reached.name, &existing, content) {
            Some(why) => Err(FileProblem::Governs(why)),
            None => Ok(()),
        }
    }

    fn root(&self, position: usize) -> Result<&FileRoot, ToolError> {
        let root = self.settings.roots().get(position);
        root.ok_or_else(|| invalid("there is no such root"))
    }
}

/// The error for the model. It contains the path as the call wrote it, never the path on the
/// machine.
fn file_error(path: &str, problem: FileProblem) -> ToolError {
    let not_found =
        |message: String| ToolError::of(ErrorCategory::NotFound, message).without_effect();
    match problem {
        FileProblem::Missing(step) if step.is_empty() => {
            let message = format!(
                "the root of {path:?} does not exist; check `[files] roots` in windlass.toml"
            );
            not_found(message)
        }
        FileProblem::Missing(step) => {
            let message = format!("there is no {step:?} for the path {path:?}");
            not_found(message)
        }
        FileProblem::Link(step) => refused(format!(
            "{step:?} in {path:?} is a symbolic link, and links are not followed; use the path that it points to"
        )),
        FileProblem::NotDirectory(step) => {
            invalid(format!("{step:?} in {path:?} is not a directory"))
        }
        FileProblem::IsDirectory => invalid(format!("{path:?} is a directory, not a file")),
        FileProblem::Special => refused(format!(
            "{path:?} is not a regular file: pipes, devices, sockets and virtual files of the kernel are not supported"
        )),
        FileProblem::TooLarge { bytes, max_bytes } => {
            let size = bytes
                .map(|bytes| format!(" ({bytes} bytes)"))
                .unwrap_or_default();
            invalid(format!(
                "{path:?} is too large{size}; the limit is {max_bytes} bytes"
            ))
        }
        FileProblem::TooMany(max_entries) => invalid(format!(
            "{path:?} has more than {max_entries} entries; list a directory below it"
        )),
        FileProblem::Exists => invalid(format!(
            "{path:?} exists with other content; to replace it, use mode `overwrite`"
        )),
        FileProblem::Governs(why) => refused(format!(
            "{path:?} {why}; agents must not access what governs them"
        )),
        FileProblem::Denied => refused(format!("the operating system denies access to {path:?}")),
        FileProblem::Failed { what, had_effect } => {
            let error = ToolError::new(format!("{path:?}: {what}"));
            if had_effect {
                error
            } else {
                error.without_effect()
            }
        }
    }
}
