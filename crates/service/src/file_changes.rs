//! Files that govern a run and are not as they were: changed since an earlier run or since a waiting run began,
//! or written by a tool of an agent. The first is reported, the others need the user's acceptance.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windlass_core::run::Run;
use windlass_runtime::{FileDigests, file_digests, text_digest};
use windlass_spec::text::{TextUse, escape_line};
use windlass_spec::{RunId, Timestamp};
use windlass_store::StoredFile;
use windlass_tools::{FileWatch, WriteRecorder};

use crate::binding::{BindingRecord, bound_files};
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::libraries::files_of;
use crate::options::{Notice, RunOptions};
use crate::service::{Project, Service};

/// A file that governs a run and is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The file.
    pub path: PathBuf,
    /// The digest of its content now.
    pub digest: String,
    /// What happened to it.
    pub cause: FileChangeCause,
    /// The run that used it last, began with it, or wrote it.
    pub run: RunId,
    /// When that run used, began with or wrote it.
    pub at: Timestamp,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeCause {
    /// It changed since the last run that used it.
    ChangedSinceLastRun,
    /// It changed since the run began, which is to be resumed.
    ChangedSinceStart,
    /// A tool of an agent wrote it.
    WrittenByTool,
}

impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.to_string_lossy();
        let path = escape_line(&path, TextUse::Exact);
        let (run, at) = (&self.run, self.at);
        match self.cause {
            FileChangeCause::ChangedSinceLastRun => {
                write!(f, "`{path}` changed since the last run (run {run}, {at})")
            }
            FileChangeCause::ChangedSinceStart => {
                write!(f, "`{path}` changed since the run began ({at})")
            }
            FileChangeCause::WrittenByTool => {
                write!(f, "a tool of an agent wrote `{path}` (run {run}, {at})")
            }
        }
    }
}

impl Service {
    /// Accepts the files that tools of agents wrote and that would govern a run now. Returns those that were
    /// accepted.
    ///
    /// # Errors
    /// If the user does not accept them, or the store cannot be used.
    pub(crate) fn accept_written_files(
        &self,
        project: &Project,
        options: &RunOptions,
        agent_file: Option<&Path>,
    ) -> Result<Vec<FileChange>, ServiceError> {
        let written = self.written_files(project, options, agent_file)?;
        self.accept(&written)?;
        Ok(written)
    }

    /// The files that govern a run, and that could be written by a tool.
    fn files_of_run(
        &self,
        project: &Project,
        options: &RunOptions,
        agent_file: Option<&Path>,
    ) -> Vec<PathBuf> {
        let governing = self.governing_files(project.configuration(), &options.library);
        let mut paths = [
            governing.configuration,
            governing.policies,
            governing.libraries,
            governing.programs,
        ]
        .concat();
        paths.extend(agent_file.map(Path::to_owned));
        paths.extend(options.policy.clone());
        paths
    }

    /// Watches the files that govern a run. A change by one of its programs counts as written by the run.
    pub(crate) fn watch_files(
        &self,
        project: &Project,
        options: &RunOptions,
        agent_file: Option<&Path>,
    ) -> FileWatch {
        let files = self.files_of_run(project, options, agent_file);
        let service = self.downgrade();
        FileWatch::new(files, move |path, digest, run| {
            let service = service().ok_or("the service was closed")?;
            service.record_written(path, digest, run)
        })
    }

    /// Records a file that a tool of a run wrote, with the digest of its content.
    fn record_written(&self, path: &Path, digest: &str, run: &RunId) -> Result<(), String> {
        let file = StoredFile {
            digest: digest.to_owned(),
            run: run.clone(),
            at: self.now(),
        };
        let store = self.store().map_err(|error| error.to_string())?;
        let recorded = store.record_written_file(path, &file);
        recorded.map_err(|error| error.to_string())
    }

    /// The files that tools of agents wrote and that would govern a run now.
    pub(crate) fn written_files(
        &self,
        project: &Project,
        options: &RunOptions,
        agent_file: Option<&Path>,
    ) -> Result<Vec<FileChange>, ServiceError> {
        let store = self.store()?;
        if !store.has_written_files()? {
            return Ok(Vec::new());
        }
        let mut paths = self.files_of_run(project, options, agent_file);
        let governing = self.governing_files(project.configuration(), &options.library);
        paths.extend(governing.arguments);
        paths.extend(governing.installed);
        let mut written = Vec::new();
        for (path, digest) in file_digests(&paths) {
            // An empty digest is that of a file which does not exist.
            if digest.is_empty() {
                continue;
            }
            if let Some(found) = store.written_file(&path, &digest)? {
                written.push(FileChange {
                    path,
                    digest,
                    cause: FileChangeCause::WrittenByTool,
                    run: found.run,
                    at: found.at,
                });
            }
        }
        Ok(written)
    }

    /// Reports which of these files changed since the last run of the identity's tenant that used them.
    pub(crate) fn report_changes<'f>(
        &self,
        identity: &Identity,
        files: impl IntoIterator<Item = (&'f PathBuf, &'f String)>,
    ) -> Result<Vec<FileChange>, ServiceError> {
        let store = self.store()?;
        let mut changes = Vec::new();
        for (path, digest) in files {
            let used = store.used_file(identity.tenant().as_str(), path)?;
            if let Some(used) = used.filter(|used| used.digest != *digest) {
                let change = FileChange {
                    path: path.clone(),
                    digest: digest.clone(),
                    cause: FileChangeCause::ChangedSinceLastRun,
                    run: used.run,
                    at: used.at,
                };
                self.notify(&Notice::FileChanged(change.clone()));
                changes.push(change);
            }
        }
        Ok(changes)
    }

    /// Accepts the files that changed since a run began, and those that tools of agents wrote. Returns the
    /// accepted files, each with its digest.
    ///
    /// # Errors
    /// If the user does not accept them, or the store cannot be used.
    pub(crate) fn accept_changed_files(
        &self,
        project: &Project,
        resumed: &ResumedFiles<'_>,
        options: &RunOptions,
    ) -> Result<BTreeMap<String, String>, ServiceError> {
        let mut changes = self.written_files(project, options, None)?;
        for (path, digest) in resumed.changed(options, project, &BTreeMap::new()) {
            if changes.iter().all(|change| change.path != path) {
                changes.push(FileChange {
                    path,
                    digest,
                    cause: FileChangeCause::ChangedSinceStart,
                    run: resumed.run.id().clone(),
                    at: resumed.started_at,
                });
            }
        }
        self.accept(&changes)?;
        let accepted = changes.into_iter();
        Ok(accepted
            .map(|change| (change.path.to_string_lossy().into_owned(), change.digest))
            .collect())
    }

    /// Lets the user accept these files.
    fn accept(&self, changes: &[FileChange]) -> Result<(), ServiceError> {
        if changes.is_empty() {
            return Ok(());
        }
        let overrides = self.overrides();
        let is_confirmed = || {
            let confirm = overrides.confirm.as_ref();
            confirm.is_some_and(|confirm| confirm(changes))
        };
        match overrides.accept_changes {
            true => {
                for change in changes {
                    self.notify(&Notice::Warning(format!("accepted: {change}")));
                }
            }
            false if is_confirmed() => {}
            false => {
                let lines: Vec<String> = changes.iter().map(FileChange::to_string).collect();
                let hint = "review the files, then repeat the command with `--accept-changes`";
                return Err(
                    ServiceError::conflict("changed_files", lines.join("\n")).with_hint(hint)
                );
            }
        }
        let files = changes.iter();
        let files = files.map(|change| {
            (
                change.path.to_string_lossy().into_owned(),
                change.digest.clone(),
            )
        });
        Ok(self.store()?.accept_written_files(files.collect())?)
    }

    /// Records what the file tools write.
    pub(crate) fn write_recorder(&self) -> WriteRecorder {
        // The service owns the libraries, which own the recorder.
        let service = self.downgrade();
        WriteRecorder::new(move |path, content, run| {
            let service = service().ok_or("the service was closed")?;
            service.record_written(path, &text_digest(content), run)
        })
    }
}

/// A run that is to be resumed, with the files that it began with.
pub(crate) struct ResumedFiles<'r> {
    pub(crate) run: &'r Run,
    pub(crate) binding: &'r BindingRecord,
    pub(crate) started_at: Timestamp,
    /// Whether the user named another library than the run began with.
    pub(crate) has_other_library: bool,
}

impl ResumedFiles<'_> {
    /// The files that the run would use now and that are not as it began with them, or as they were accepted
    /// since.
    pub(crate) fn changed(
        &self,
        options: &RunOptions,
        project: &Project,
        accepted: &BTreeMap<String, String>,
    ) -> FileDigests {
        let libraries = files_of(&options.library, project.configuration());
        let mut now = file_digests(&bound_files(&libraries));
        now.retain(|path, digest| {
            let accepted_before = self.run.accepted_files();
            let name = path.to_string_lossy();
            let accepted = accepted.get(&*name).or_else(|| accepted_before.get(&*name));
            match accepted.or_else(|| self.binding.files.get(path)) {
                Some(expected) => expected != digest,
                // A file of another library was named by the user.
                None => !self.has_other_library,
            }
        });
        now
    }
}
