//! Adds a section to a configuration file or removes one. Everything else in the file, comments too, stays as it
//! is; if that is not possible, nothing is changed.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use windlass_config::{Configuration, Layer};
use windlass_runtime::{ConfigurationFiles, FileTexts, PROJECT_FILE};

use crate::error::ServiceError;

/// The table of the configuration that servers are in.
const TABLE: &str = "servers";

/// Which configuration file a server is written to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ServerFile {
    /// The project's: the nearest one, else a new one in the working directory.
    #[default]
    Project,
    /// The user's.
    User,
}

/// A configuration file that may be changed.
pub(super) struct EditableFile {
    pub(super) path: PathBuf,
    /// Whether there was such a file.
    pub(super) existed: bool,
    text: String,
}

impl EditableFile {
    /// The user's file, or the project's.
    pub(super) fn open(
        which: ServerFile,
        files: &ConfigurationFiles,
        directory: &Path,
    ) -> Result<Self, ServiceError> {
        let layer = match which {
            ServerFile::User => Layer::User,
            ServerFile::Project => Layer::Project,
        };
        if let (ServerFile::Project, Some((path, why))) = (which, &files.refused) {
            let message = format!("`{}` is not changed: {why}", path.display());
            return Err(ServiceError::failed(message));
        }
        let found = files.files.iter().find(|(other, _)| *other == layer);
        let path = match (found, which) {
            (Some((_, path)), _) => path.clone(),
            (None, ServerFile::Project) => new_project_file(directory),
            (None, ServerFile::User) => {
                return Err(ServiceError::failed(
                    "there is no directory for the user's configuration; set HOME",
                ));
            }
        };
        Self::at(path)
    }

    /// The file with the section of a server.
    pub(super) fn of_server(
        name: &str,
        files: &ConfigurationFiles,
        configuration: &Configuration,
    ) -> Result<Self, ServiceError> {
        for (_, path) in files.files.iter().rev() {
            let file = Self::at(path.clone())?;
            if file.has(name) {
                return Ok(file);
            }
        }
        let origin = configuration.origin(&[TABLE, name]);
        let origin = origin.map(ToString::to_string).unwrap_or_default();
        Err(ServiceError::failed(format!(
            "the server `{name}` is not in a file that can be changed ({origin})"
        )))
    }

    fn at(path: PathBuf) -> Result<Self, ServiceError> {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                let doing = format!("`{}` cannot be read", path.display());
                return Err(ServiceError::from(error).context(doing));
            }
        };
        let existed = path.exists();
        Ok(Self {
            path,
            existed,
            text,
        })
    }

    /// Whether the file has a table of a server, whatever is in it.
    pub(super) fn has(&self, name: &str) -> bool {
        let table: Option<toml::Table> = self.text.parse().ok();
        let servers = table.and_then(|mut table| table.remove(TABLE));
        servers.is_some_and(|servers| servers.get(name).is_some())
    }

    /// The text of the file with a section at its end.
    pub(super) fn with(&self, section: &str) -> String {
        let text = self.text.trim_end();
        match text.is_empty() {
            true => section.to_owned(),
            false => format!("{text}\n\n{section}"),
        }
    }

    /// The text of the file without the sections of a server.
    pub(super) fn without(&self, name: &str) -> Result<String, ServiceError> {
        let mut kept = String::with_capacity(self.text.len());
        let mut is_in_section = false;
        for line in self.text.split_inclusive('\n') {
            if let Some(header) = header(line) {
                is_in_section = header.len() >= 2 && header[0] == TABLE && header[1] == name;
            }
            if !is_in_section {
                kept.push_str(line);
            }
        }
        let not_removable = || {
            let path = self.path.display();
            ServiceError::failed(format!(
                "the section of the server in `{path}` cannot be removed automatically"
            ))
            .with_hint("remove it with an editor")
        };
        let mut before: toml::Table = self.text.parse().map_err(|_| not_removable())?;
        let after: toml::Table = kept.parse().map_err(|_| not_removable())?;
        if let Some(toml::Value::Table(servers)) = before.get_mut(TABLE) {
            servers.remove(name);
            if servers.is_empty() {
                before.remove(TABLE);
            }
        }
        match before == after {
            true => Ok(kept),
            false => Err(not_removable()),
        }
    }

    /// The configuration with this text in the file.
    pub(super) fn read_as(
        &self,
        text: &str,
        mut files: ConfigurationFiles,
    ) -> Result<Configuration, ServiceError> {
        // The user writes the file now.
        files.is_trust_granted = true;
        files
            .replacements
            .insert(self.path.clone(), text.to_owned());
        if !files.files.iter().any(|(_, path)| *path == self.path) {
            files.files.push((Layer::Project, self.path.clone()));
        }
        let (configured, _) = files.read(&FileTexts::default())?;
        Ok(configured.configuration)
    }

    /// Writes the file atomically.
    pub(super) fn write(&self, text: &str) -> Result<(), ServiceError> {
        let write = || -> std::io::Result<()> {
            // A symbolic link stays one.
            let path = std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
            let parent = path.parent().filter(|parent| *parent != Path::new(""));
            let directory = parent.unwrap_or(Path::new("."));
            std::fs::create_dir_all(directory)?;
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            file.write_all(text.as_bytes())?;
            if let Ok(before) = std::fs::metadata(&path) {
                file.as_file().set_permissions(before.permissions())?;
            }
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|error| {
            let doing = format!("`{}` cannot be written", self.path.display());
            ServiceError::from(error).context(doing)
        })
    }
}

/// The path of a new project configuration. In the working directory of the process it is only the file
/// name, as messages show it.
fn new_project_file(directory: &Path) -> PathBuf {
    let is_here = std::env::current_dir().is_ok_and(|here| here == directory);
    match is_here {
        true => PathBuf::from(PROJECT_FILE),
        false => directory.join(PROJECT_FILE),
    }
}

/// The parts of a table's name, if the line is a table header.
fn header(line: &str) -> Option<Vec<String>> {
    let line = line.trim_start();
    if !line.starts_with('[') {
        return None;
    }
    let inner = line.trim_start_matches('[').split(']').next()?;
    let parts = inner
        .split('.')
        .map(|part| part.trim().trim_matches(['"', '\'']).to_owned());
    Some(parts.collect())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::EditableFile;

    fn file(text: &str) -> EditableFile {
        EditableFile {
            path: PathBuf::from("windlass.toml"),
            existed: true,
            text: text.to_owned(),
        }
    }

    #[test]
    fn removing_a_section_leaves_the_rest_unchanged() {
        let text = "# Ours.\nmodel = \"reflex\"\n\n[servers.time]\ncommand = \"t\"\n\n\
                    [servers.time.environment]\nTZ = \"UTC\"\n\n[servers.timer]\ncommand = \"u\" # Keep.\n";
        let kept = file(text).without("time").ok();
        let expected = "# Ours.\nmodel = \"reflex\"\n\n[servers.timer]\ncommand = \"u\" # Keep.\n";
        assert_eq!(kept.as_deref(), Some(expected));
    }

    #[test]
    fn a_section_that_cannot_be_isolated_is_not_removed() {
        let inline = "servers = { time = { command = \"t\" } }\n";
        assert!(file(inline).without("time").is_err());
        let in_text = "[servers.time]\ncommand = \"\"\"\n[gate]\n\"\"\"\n";
        assert!(file(in_text).without("time").is_err());
    }

    #[test]
    fn a_section_is_added_at_the_end() {
        let added = file("a = 1\n\n\n").with("[servers.time]\n");
        assert_eq!(added, "a = 1\n\n[servers.time]\n");
        assert_eq!(file("").with("[servers.time]\n"), "[servers.time]\n");
    }
}
