//! Trust in projects: what a project would be allowed, and the user's decision about it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;
use windlass_config::Layer;
use windlass_runtime::{
    ConfigurationFiles, Configured, FileDigests, FileTexts, PROJECT_FILE, ProjectSubject,
    ProjectTrust, TrustDifference, TrustGrants, TrustRecord, TrustRecords, now,
};
use windlass_spec::Timestamp;
use windlass_spec::text::{TextUse, escape_line, is_clean};

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::options::Notice;
use crate::service::{Service, lock};

/// What a project would be allowed if it is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrustReview {
    /// The project's directory, without links.
    pub directory: PathBuf,
    /// Whether it is trusted, and why it is not.
    pub state: TrustState,
    /// What it is allowed.
    pub grants: TrustGrants,
    /// The files concerned, each with the digest of its content. If one changes, the project is not trusted any more.
    pub files: FileDigests,
    /// What changed since it was trusted, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<TrustDifference>,
}

/// Whether a project is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustState {
    /// It is, by its directory: the user's own configuration or the caller trusts it.
    TrustedDirectory,
    /// Its files are those that were trusted.
    Trusted,
    /// Some of its files changed since it was trusted.
    Changed,
    /// It is not trusted.
    Untrusted,
}

/// A trusted project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrustedProject {
    /// Its directory.
    pub directory: PathBuf,
    /// When it was trusted.
    pub trusted_at: Timestamp,
    /// Whether its files are as they were then.
    pub is_unchanged: bool,
    /// What it is allowed.
    pub grants: TrustGrants,
}

impl Service {
    /// What the project in a directory, or above it, would be allowed. Nothing in it is started.
    ///
    /// # Errors
    /// If the identity may not read, there is no project, or its files cannot be read or have mistakes.
    pub fn review_trust(
        &self,
        identity: &Identity,
        directory: &Path,
    ) -> Result<TrustReview, ServiceError> {
        identity.require(Scope::Read)?;
        let (files, subject) = self.trust_subject(directory)?;
        let (configured, _) = files.read(&FileTexts::default())?;
        let record = trust_records()?.find(&subject.directory);
        let state = match configured.trust {
            ProjectTrust::NotNeeded | ProjectTrust::Directory => TrustState::TrustedDirectory,
            ProjectTrust::Files(_) => TrustState::Trusted,
            ProjectTrust::Changed(_) => TrustState::Changed,
            ProjectTrust::No => TrustState::Untrusted,
        };
        let difference = record.map(|record| record.difference(&subject));
        Ok(TrustReview {
            directory: subject.directory,
            state,
            grants: subject.grants,
            files: subject.files,
            difference: difference.filter(|_| state == TrustState::Changed),
        })
    }

    /// Trusts a project as it was reviewed.
    ///
    /// # Errors
    /// If the identity may not administrate, the files changed since the review, or the record cannot be written.
    pub fn grant_trust(
        &self,
        identity: &Identity,
        review: &TrustReview,
    ) -> Result<(), ServiceError> {
        identity.require(Scope::Admin)?;
        let (_, subject) = self.trust_subject(&review.directory)?;
        if subject.files != review.files || subject.grants != review.grants {
            let message = "the project changed while you reviewed it";
            return Err(ServiceError::conflict("project_changed", message)
                .with_hint("run `windlass trust` again"));
        }
        self.record_trust(identity, subject)
    }

    /// Trusts a project that the user has just written, such as a new one.
    ///
    /// # Errors
    /// If the identity may not administrate, or the record cannot be written.
    pub fn trust_written_project(
        &self,
        identity: &Identity,
        directory: &Path,
    ) -> Result<(), ServiceError> {
        identity.require(Scope::Admin)?;
        self.record_trust(identity, self.trust_subject(directory)?.1)
    }

    /// Takes the trust in the project in a directory, or above it, back. Returns its directory, and whether it was
    /// trusted.
    ///
    /// # Errors
    /// If the identity may not administrate, or the record cannot be removed.
    pub fn revoke_trust(
        &self,
        identity: &Identity,
        directory: &Path,
    ) -> Result<(PathBuf, bool), ServiceError> {
        identity.require(Scope::Admin)?;
        let directory = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
        let mut above = directory.ancestors();
        let project = above.find(|above| above.join(PROJECT_FILE).symlink_metadata().is_ok());
        let project = project.unwrap_or(&directory);
        let was_trusted = trust_records()?.remove(project)?;
        if was_trusted {
            let subject = json!({"directory": project});
            self.record_admin_change(identity, "project_trust_revoked", subject)?;
        }
        Ok((project.to_owned(), was_trusted))
    }

    /// The trusted projects, by directory.
    ///
    /// # Errors
    /// If the identity may not read.
    pub fn trusted_projects(
        &self,
        identity: &Identity,
    ) -> Result<Vec<TrustedProject>, ServiceError> {
        identity.require(Scope::Read)?;
        let records = trust_records()?.all().into_iter();
        let projects = records.map(|record| {
            let subject = self.trust_subject(&record.directory);
            TrustedProject {
                is_unchanged: subject
                    .is_ok_and(|(_, subject)| record.changed_files(&subject.files).is_empty()),
                directory: record.directory,
                trusted_at: record.trusted_at,
                grants: record.grants,
            }
        });
        Ok(projects.collect())
    }

    /// Trusts a project, and records that.
    fn record_trust(
        &self,
        identity: &Identity,
        subject: ProjectSubject,
    ) -> Result<(), ServiceError> {
        if let Some((path, _)) = subject.files.iter().find(|(_, digest)| digest.is_empty()) {
            let message = format!(
                "the project cannot be trusted: `{}` cannot be read, or its files have more than 1 GiB together",
                shown(path)
            );
            return Err(ServiceError::failed(message));
        }
        let change = json!({"directory": subject.directory, "files": subject.files});
        record(subject)?;
        self.record_admin_change(identity, "project_trusted", change)
    }

    fn trust_subject(
        &self,
        directory: &Path,
    ) -> Result<(ConfigurationFiles, ProjectSubject), ServiceError> {
        let directory = std::fs::canonicalize(directory).map_err(|error| {
            let doing = format!("the directory `{}` cannot be used", shown(directory));
            ServiceError::from(error).context(doing)
        })?;
        let mut files = ConfigurationFiles::find(None, &directory);
        if let Some((path, why)) = &files.refused {
            let message = format!("`{}` is not read: {why}", shown(path));
            return Err(ServiceError::failed(message));
        }
        files.flags.clone_from(&self.configuration_files().flags);
        let subject = files.subject()?;
        let subject = subject.ok_or_else(|| {
            let message = format!(
                "there is no {PROJECT_FILE} in `{}` or above it",
                shown(&directory)
            );
            ServiceError::not_found("no_project", message)
        })?;
        if let Some((path, why)) = subject.unfit.first_key_value() {
            let message = format!("the project cannot be trusted: `{}`: {why}", shown(path));
            return Err(ServiceError::failed(message));
        }
        Ok((files, subject))
    }

    /// Notifies the operator once which settings of a project have no effect.
    pub(crate) fn announce(&self, files: &ConfigurationFiles, configured: &Configured) {
        let refused = files
            .refused
            .as_ref()
            .map(|(path, why)| format!("warning: `{}` is not read: {why}", shown(path)));
        let message = refused.or_else(|| untrusted_message(files, configured));
        if let Some(message) = message
            && lock(self.announced()).insert(message.clone())
        {
            self.notify(&Notice::Warning(message));
        }
    }

    /// Keeps a project trusted whose file the user has just changed with a command of this program. `before` is its
    /// trust before the change, `None` if there was no file.
    pub(crate) fn keep_trust(
        &self,
        identity: &Identity,
        before: Option<&ProjectTrust>,
        file: &Path,
    ) -> Result<(), ServiceError> {
        let own = self.configuration_files().files;
        let is_own = |(layer, path): &(Layer, PathBuf)| *layer != Layer::Project && path == file;
        if own.iter().any(is_own) {
            return Ok(());
        }
        let parent = file.parent().filter(|parent| *parent != Path::new(""));
        match before {
            None | Some(ProjectTrust::Files(_)) => {
                self.trust_written_project(identity, parent.unwrap_or(Path::new(".")))
            }
            Some(_) => Ok(()),
        }
    }
}

fn record(subject: ProjectSubject) -> Result<(), ServiceError> {
    let records = trust_records()?;
    records
        .add(&TrustRecord::new(subject, now()))
        .map_err(|error| {
            let doing = format!("`{}` cannot be written", records.directory().display());
            ServiceError::from(error).context(doing)
        })
}

pub(crate) fn trust_records() -> Result<TrustRecords, ServiceError> {
    TrustRecords::of_user().ok_or_else(|| {
        ServiceError::failed("there is no directory for the list of trusted projects; set HOME")
    })
}

/// The command that reviews a project, ready to paste: its directory may have any name.
pub(crate) fn review_command(files: &ConfigurationFiles) -> String {
    let directory = project_directory(files).to_string_lossy();
    match is_clean(&directory, TextUse::Name) {
        true => format!("windlass trust {}", shell_word(&directory)),
        // A name that cannot be typed.
        false => "windlass trust".to_owned(),
    }
}

fn project_directory(files: &ConfigurationFiles) -> &Path {
    let parent = files.project().and_then(Path::parent);
    let parent = parent.filter(|parent| *parent != Path::new(""));
    parent.unwrap_or(Path::new("."))
}

/// A word of a command line, quoted if a shell would change it.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    match !word.starts_with('-') && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A path on one line.
pub(crate) fn shown(path: &Path) -> String {
    escape_line(&path.to_string_lossy(), TextUse::Exact).into_owned()
}

/// The message that a project is not trusted, if that changes anything.
fn untrusted_message(files: &ConfigurationFiles, configured: &Configured) -> Option<String> {
    if configured.untrusted.is_empty() {
        return None;
    }
    let directory = shown(project_directory(files));
    let reason = match &configured.trust {
        ProjectTrust::Changed(changed) => {
            let changed: Vec<String> = changed
                .iter()
                .map(|path| format!("`{}`", shown(path)))
                .collect();
            format!("changed since you trusted it ({})", changed.join(", "))
        }
        _ => "is not trusted".to_owned(),
    };
    let settings: Vec<String> = configured
        .untrusted
        .iter()
        .map(|setting| format!("`{}` ({})", setting.key, setting.power))
        .collect();
    Some(format!(
        "warning: the project `{directory}` {reason}, so these settings can only make rules stricter or have no \
         effect: {}\nhint: review them with `{}`",
        settings.join(", "),
        review_command(files)
    ))
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn a_directory_is_one_word_in_a_command_to_paste() {
        assert_eq!(shell_word("/home/ada/work-1"), "/home/ada/work-1");
        assert_eq!(shell_word("/tmp/a; id"), "'/tmp/a; id'");
        assert_eq!(shell_word("/tmp/$(id)"), "'/tmp/$(id)'");
        assert_eq!(shell_word("/tmp/it's"), r"'/tmp/it'\''s'");
        assert_eq!(shell_word("-rf"), "'-rf'");
    }
}
