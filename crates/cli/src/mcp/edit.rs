//! Changes a configuration file: one section more, or one less. Everything else in the file, comments
//! too, stays as it is; if that cannot be done, nothing is.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use windlass_config::{Configuration, Layer};
use windlass_runtime::Read;

use crate::settings;

/// The table of the configuration that servers stand in.
const TABLE: &str = "servers";

/// A configuration file that may be changed.
pub(super) struct File {
    pub(super) path: PathBuf,
    text: String,
}

impl File {
    /// The user's file, or the project's: the nearest one, else one in this directory.
    pub(super) fn open(is_users: bool) -> anyhow::Result<Self> {
        let layer = match is_users {
            true => Layer::User,
            false => Layer::Project,
        };
        let files = settings::files(None).files;
        let found = files.into_iter().find(|(other, _)| *other == layer);
        let path = match (found, is_users) {
            (Some((_, path)), _) => path,
            (None, false) => PathBuf::from("windlass.toml"),
            (None, true) => {
                anyhow::bail!("there is no place for a user's configuration: HOME is not set")
            }
        };
        Self::at(path)
    }

    /// The file that says how a server is reached.
    pub(super) fn of_server(configuration: &Configuration, name: &str) -> anyhow::Result<Self> {
        let origin = configuration.origin(&[TABLE, name]);
        let said = origin.map(ToString::to_string).unwrap_or_default();
        let files = settings::files(None).files;
        for (_, path) in files.into_iter().rev() {
            let file = Self::at(path)?;
            if file.has(name) {
                return Ok(file);
            }
        }
        anyhow::bail!("the server `{name}` stands in no file that can be changed here ({said})")
    }

    fn at(path: PathBuf) -> anyhow::Result<Self> {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(error).with_context(|| format!("`{}` cannot be read", path.display()));
            }
        };
        Ok(Self { path, text })
    }

    fn has(&self, name: &str) -> bool {
        let table: Option<toml::Table> = self.text.parse().ok();
        table.is_some_and(|table| servers(&table).is_some_and(|servers| servers.contains_key(name)))
    }

    /// The file with a section at its end.
    pub(super) fn with(&self, section: &str) -> String {
        let text = self.text.trim_end();
        match text.is_empty() {
            true => section.to_owned(),
            false => format!("{text}\n\n{section}"),
        }
    }

    /// The file without what it says of a server.
    pub(super) fn without(&self, name: &str) -> anyhow::Result<String> {
        let mut kept = String::with_capacity(self.text.len());
        let mut is_of_it = false;
        for line in self.text.split_inclusive('\n') {
            if let Some(header) = header(line) {
                is_of_it = header.len() >= 2 && header[0] == TABLE && header[1] == name;
            }
            if !is_of_it {
                kept.push_str(line);
            }
        }
        let by_hand = || {
            let path = self.path.display();
            anyhow::anyhow!(
                "the section of the server cannot be told from the rest of `{path}`\nhint: take it out by hand"
            )
        };
        let mut before: toml::Table = self.text.parse().map_err(|_| by_hand())?;
        let after: toml::Table = kept.parse().map_err(|_| by_hand())?;
        if let Some(toml::Value::Table(servers)) = before.get_mut(TABLE) {
            servers.remove(name);
            if servers.is_empty() {
                before.remove(TABLE);
            }
        }
        anyhow::ensure!(before == after, by_hand());
        Ok(kept)
    }

    /// What the configuration would be if the file said this.
    pub(super) fn read_as(&self, text: &str) -> anyhow::Result<Configuration> {
        let mut files = settings::files(Some(&self.path));
        files.instead.insert(self.path.clone(), text.to_owned());
        if !files.files.iter().any(|(_, path)| *path == self.path) {
            files.files.push((Layer::Project, self.path.clone()));
        }
        let (configured, _) = files.read(&Read::default())?;
        Ok(configured.configuration)
    }

    /// Writes the file, all of it or nothing.
    pub(super) fn write(&self, text: &str) -> anyhow::Result<()> {
        let written = || -> std::io::Result<()> {
            // A file that is a link stays one.
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
        written().with_context(|| format!("`{}` cannot be written", self.path.display()))
    }
}

fn servers(table: &toml::Table) -> Option<&toml::Table> {
    table.get(TABLE)?.as_table()
}

/// The parts of the name of a table, if the line begins one.
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

    use super::File;

    fn file(text: &str) -> File {
        File {
            path: PathBuf::from("windlass.toml"),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_section_is_taken_out_and_the_rest_stays_as_it_is() {
        let text = "# Ours.\nmodel = \"reflex\"\n\n[servers.time]\ncommand = \"t\"\n\n\
                    [servers.time.environment]\nTZ = \"UTC\"\n\n[servers.timer]\ncommand = \"u\" # Keep.\n";
        let kept = file(text).without("time").ok();
        let expected = "# Ours.\nmodel = \"reflex\"\n\n[servers.timer]\ncommand = \"u\" # Keep.\n";
        assert_eq!(kept.as_deref(), Some(expected));
    }

    #[test]
    fn what_cannot_be_told_apart_is_left_alone() {
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
