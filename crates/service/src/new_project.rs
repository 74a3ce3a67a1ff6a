//! A new project: a configuration with a comment on every setting, an agent, policies and a note. It runs as it
//! is.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use windlass_config::starter;
use windlass_runtime::PROJECT_FILE;

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

/// The files of a project, except its configuration.
const FILES: [(&str, &str); 3] = [
    ("assistant.gram", include_str!("starter/assistant.gram")),
    ("policy.cedar", include_str!("starter/policy.cedar")),
    ("notes/welcome.md", include_str!("starter/welcome.md")),
];

/// The files that govern a project.
const GOVERNING: [&str; 2] = [PROJECT_FILE, "policy.cedar"];

/// The files of a project that was initialized.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InitializedProject {
    /// The files that were written.
    pub written: Vec<PathBuf>,
    /// The files that existed and were kept.
    pub kept: Vec<PathBuf>,
    /// Why the project is not trusted, if it is not.
    pub untrusted: Option<String>,
}

impl Service {
    /// Creates a small project that runs in a directory. Files that exist are kept, unless they are to be
    /// overwritten. A project whose rules were all written now is trusted.
    ///
    /// # Errors
    /// If the identity is not an administrator, or a file cannot be written.
    pub fn init_project(
        &self,
        identity: &Identity,
        directory: &Path,
        is_overwrite: bool,
    ) -> Result<InitializedProject, ServiceError> {
        identity.require(Scope::Admin)?;
        // The project has its own policy file.
        let configuration = starter().replacen("# policies = ", "policies =   ", 1);
        let files = std::iter::once(("windlass.toml", configuration.as_str())).chain(FILES);
        let mut project = InitializedProject::default();
        for (name, text) in files {
            let path = directory.join(name);
            let is_written = write(&path, text, is_overwrite).map_err(|error| {
                ServiceError::from(error).context(format!("cannot write `{}`", path.display()))
            })?;
            match is_written {
                true => project.written.push(path),
                false => project.kept.push(path),
            }
        }
        project.untrusted = self.trust_new_project(identity, directory, &project.kept);
        Ok(project)
    }

    /// Trusts a new project, unless files were kept that govern it. Returns why it is not trusted.
    fn trust_new_project(
        &self,
        identity: &Identity,
        directory: &Path,
        kept: &[PathBuf],
    ) -> Option<String> {
        let governs = |path: &&PathBuf| GOVERNING.iter().any(|name| path.ends_with(name));
        if let Some(kept) = kept.iter().find(governs) {
            return Some(format!("`{}` was kept", kept.display()));
        }
        // A file that the caller names needs no trust.
        let files = self.configuration_files();
        let is_named =
            !files.is_discovered && files.project() == Some(directory.join(PROJECT_FILE).as_path());
        if is_named {
            return None;
        }
        let trusted = self.trust_written_project(identity, directory);
        trusted.err().map(|error| error.to_string())
    }
}

/// Writes a file, unless it exists. Returns whether it was written.
fn write(path: &Path, text: &str, is_overwrite: bool) -> std::io::Result<bool> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    // A link is replaced, not followed, so that its target stays unchanged.
    if is_overwrite && path.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        std::fs::remove_file(path)?;
    }
    // A file that everybody could write to would not be read.
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o644);
    match options.open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
