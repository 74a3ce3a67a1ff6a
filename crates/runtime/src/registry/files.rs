//! Finds and reads the files of a configuration.

use std::collections::BTreeMap;
use std::env;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use windlass_config::{ConfigSource, Configuration, Layer, load};
use windlass_policy::DEFAULT_POLICIES;

use super::{ConfigurationError, Configured};

/// The name of a project's configuration.
pub const PROJECT_FILE: &str = "windlass.toml";

/// The administrator's configuration for all users of the machine.
const ADMIN_FILE: &str = "/etc/windlass/windlass.toml";

/// The largest size of a configuration or policy file.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The sources of a configuration: files, variables and flags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigurationFiles {
    /// The files, by layer. Missing files are skipped.
    pub files: Vec<(Layer, PathBuf)>,
    /// The policy file that is used if the configuration names none. It may be missing.
    pub usual_policies: Option<PathBuf>,
    /// The policy file that is used whatever the configuration names.
    pub policies: Option<PathBuf>,
    /// Environment variables.
    pub variables: Vec<(String, String)>,
    /// Settings of the command line: `KEY=VALUE`.
    pub flags: Vec<String>,
    /// Texts that replace the content of files.
    pub replacements: BTreeMap<PathBuf, String>,
}

impl ConfigurationFiles {
    /// Finds the files of the administrator, the user and the project, with the variables of this process.
    /// The project's file is `named`, else the nearest one in `directory` or above it.
    #[must_use]
    pub fn find(named: Option<&Path>, directory: &Path) -> Self {
        let mut files = vec![(Layer::Admin, admin_file())];
        let set = |name: &str| {
            let value = env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let home = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
        if let Some(home) = home {
            files.push((Layer::User, home.join("windlass").join(PROJECT_FILE)));
        }
        let nearest = || {
            let above = directory.ancestors();
            let mut above = above.map(|directory| directory.join(PROJECT_FILE));
            above.find(|file| file.symlink_metadata().is_ok())
        };
        if let Some(project) = named.map(Path::to_owned).or_else(nearest) {
            files.push((Layer::Project, project));
        }
        let variables = env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with("WINDLASS_"))
            .collect();
        Self {
            files,
            variables,
            ..Self::default()
        }
    }

    /// The project's file, whether it exists or not.
    #[must_use]
    pub fn project(&self) -> Option<&Path> {
        let mut files = self.files.iter();
        let found = files.find(|(layer, _)| *layer == Layer::Project)?;
        Some(&found.1)
    }

    /// Reads the configuration. The project's file and all files in `expected` must exist.
    ///
    /// # Errors
    /// If a file cannot be read, or the configuration has mistakes.
    pub fn read(
        &self,
        expected: &FileTexts,
    ) -> Result<(Configured, FileTexts), ConfigurationError> {
        self.read_with(expected, |_| self.usual_policies.clone())
    }

    /// Reads the configuration, where `usual_policies` returns the policy file that is used if the
    /// configuration names none, such as one in its data directory.
    ///
    /// # Errors
    /// If a file cannot be read, or the configuration has mistakes.
    pub fn read_with(
        &self,
        expected: &FileTexts,
        usual_policies: impl FnOnce(&Configuration) -> Option<PathBuf>,
    ) -> Result<(Configured, FileTexts), ConfigurationError> {
        let mut texts = BTreeMap::new();
        let mut sources = Vec::new();
        for (layer, path) in &self.files {
            let must_exist = *layer == Layer::Project || expected.texts.contains_key(path);
            let text = match self.replacements.get(path) {
                Some(text) => Some(text.clone()),
                None => read(path, "configuration", must_exist)?,
            };
            let Some(text) = text else {
                continue;
            };
            // An editor may truncate a file before it writes the new text, so an emptied file is an error.
            let previous = expected.texts.get(path);
            if text.trim().is_empty() && previous.is_some_and(|text| !text.trim().is_empty()) {
                return Err(ConfigurationError::Unreadable {
                    what: "configuration",
                    path: path.display().to_string(),
                    why: "it has become empty; to remove all settings, leave a comment in it"
                        .to_owned(),
                });
            }
            let directory = path.parent().filter(|parent| *parent != Path::new(""));
            sources.push(ConfigSource {
                layer: *layer,
                name: path.display().to_string(),
                directory: directory.unwrap_or(Path::new(".")).to_owned(),
                text: text.clone(),
            });
            texts.insert(path.clone(), text);
        }
        let loaded = load(&sources, self.variables.iter().cloned(), &self.flags)
            .map_err(ConfigurationError::Mistakes)?;
        let named = self.policies.as_deref();
        let named = named.or_else(|| loaded.configuration.policies());
        let (policy_file, policies) = match (named, usual_policies(&loaded.configuration)) {
            (Some(path), _) => (Some(path.to_owned()), read(path, "policy file", true)?),
            (None, Some(path)) => {
                let must_exist = expected.texts.contains_key(&path);
                let text = read(&path, "policy file", must_exist)?;
                (text.is_some().then_some(path), text)
            }
            (None, None) => (None, None),
        };
        if let (Some(path), Some(text)) = (&policy_file, &policies) {
            texts.insert(path.clone(), text.clone());
        }
        let configured = Configured {
            configuration: loaded.configuration,
            warnings: loaded.warnings,
            policies: policies.unwrap_or_else(|| DEFAULT_POLICIES.to_owned()),
            policy_file,
        };
        Ok((configured, FileTexts { texts }))
    }

    /// The files that the configuration depends on, whether they exist or not.
    pub(super) fn watched(&self, read: &FileTexts) -> Vec<PathBuf> {
        let files = self.files.iter().map(|(_, path)| path.clone());
        let policies = [&self.policies, &self.usual_policies];
        let policies = policies.into_iter().flatten().cloned();
        let mut watched: Vec<PathBuf> = files.chain(policies).collect();
        watched.extend(read.texts.keys().cloned());
        watched.sort();
        watched.dedup();
        watched
    }

    /// Reads the current state of the watched files.
    pub(super) fn current_states(&self, read: &FileTexts) -> FileStates {
        let state = |path: PathBuf| {
            let text = self::read(&path, "file", false).map_err(|error| error.to_string());
            (path, text)
        };
        self.watched(read).into_iter().map(state).collect()
    }

    /// The state of the watched files when they were read.
    pub(super) fn states_when_read(&self, read: &FileTexts) -> FileStates {
        let state = |path: PathBuf| {
            let text = read.texts.get(&path).cloned();
            (path, Ok(text))
        };
        self.watched(read).into_iter().map(state).collect()
    }
}

/// The texts of files, or why they cannot be read; `None` for a missing file.
pub(super) type FileStates = BTreeMap<PathBuf, Result<Option<String>, String>>;

/// The texts of configuration files, as they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileTexts {
    texts: BTreeMap<PathBuf, String>,
}

impl FileTexts {
    /// The files, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.texts.keys().map(PathBuf::as_path)
    }
}

/// The administrator's file. Tests can set another one; release builds cannot.
fn admin_file() -> PathBuf {
    let tested = match cfg!(debug_assertions) {
        true => env::var_os("WINDLASS_TEST_ADMIN_FILE"),
        false => None,
    };
    tested.map_or_else(|| PathBuf::from(ADMIN_FILE), PathBuf::from)
}

/// The text of a file; `None` if it is missing and need not exist.
fn read(
    path: &Path,
    what: &'static str,
    must_exist: bool,
) -> Result<Option<String>, ConfigurationError> {
    let unreadable = |why: String| ConfigurationError::Unreadable {
        what,
        path: path.display().to_string(),
        why,
    };
    // Only regular files are opened: reading a pipe would block.
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => {
            let is_absent = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
            // A dangling link is an error, not a missing file.
            let is_link = path.symlink_metadata().is_ok();
            return match is_absent && !must_exist && !is_link {
                true => Ok(None),
                false => Err(unreadable(error.to_string())),
            };
        }
    };
    if !metadata.is_file() {
        return Err(unreadable("it is not a regular file".to_owned()));
    }
    let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut text = String::new();
    let mut limited = file.take(MAX_BYTES + 1);
    limited
        .read_to_string(&mut text)
        .map_err(|error| unreadable(error.to_string()))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(unreadable(format!("it has more than {MAX_BYTES} bytes")));
    }
    Ok(Some(text))
}
