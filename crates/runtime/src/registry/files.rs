//! The files a configuration comes from: found, and read as they are at one moment.

use std::collections::BTreeMap;
use std::env;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use windlass_config::{Configuration, Layer, Source, load};
use windlass_policy::DEFAULT_POLICIES;

use super::{ConfigurationError, Configured};

/// The name of a project's configuration.
pub const PROJECT_FILE: &str = "windlass.toml";

/// Where whoever administers the machine lays down what holds for everybody on it.
const ADMIN_FILE: &str = "/etc/windlass/windlass.toml";

/// More than this is no configuration.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The files a configuration comes from, and what is said beside them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigurationFiles {
    /// The files, by layer. Those that are not there say nothing.
    pub files: Vec<(Layer, PathBuf)>,
    /// The policies that hold if the configuration names none; nothing if they are not there.
    pub usual_policies: Option<PathBuf>,
    /// The policies that hold whatever the configuration names.
    pub policies: Option<PathBuf>,
    /// Environment variables.
    pub variables: Vec<(String, String)>,
    /// What was set on the command line: `KEY=VALUE`.
    pub flags: Vec<String>,
    /// What is to be read in the place of what stands in a file.
    pub instead: BTreeMap<PathBuf, String>,
}

impl ConfigurationFiles {
    /// The files of the machine and of the user, and that of the project: the one that is named, else
    /// the nearest one in `directory` or above it. With the variables of this process.
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

    /// The project's file, whether it is there or not.
    #[must_use]
    pub fn project(&self) -> Option<&Path> {
        let mut files = self.files.iter();
        let found = files.find(|(layer, _)| *layer == Layer::Project)?;
        Some(&found.1)
    }

    /// What the files say now. A project's file must be there, as must all those in `expected`.
    ///
    /// # Errors
    /// If one cannot be read, or what they say cannot be used.
    pub fn read(&self, expected: &Read) -> Result<(Configured, Read), ConfigurationError> {
        self.read_with(expected, |_| self.usual_policies.clone())
    }

    /// The same, where the configuration says which policies hold if it names none, such as those in its
    /// data directory.
    ///
    /// # Errors
    /// If one cannot be read, or what they say cannot be used.
    pub fn read_with(
        &self,
        expected: &Read,
        usual_policies: impl FnOnce(&Configuration) -> Option<PathBuf>,
    ) -> Result<(Configured, Read), ConfigurationError> {
        let mut texts = BTreeMap::new();
        let mut sources = Vec::new();
        for (layer, path) in &self.files {
            let must_be = *layer == Layer::Project || expected.texts.contains_key(path);
            let text = match self.instead.get(path) {
                Some(text) => Some(text.clone()),
                None => read(path, "configuration", must_be)?,
            };
            let Some(text) = text else {
                continue;
            };
            // Whoever writes a file anew empties it first, and nobody means to drop all of it.
            let held = expected.texts.get(path);
            if text.trim().is_empty() && held.is_some_and(|held| !held.trim().is_empty()) {
                return Err(ConfigurationError::Unreadable {
                    what: "configuration",
                    path: path.display().to_string(),
                    why: "it is empty now; to drop all of it, leave a comment in it".to_owned(),
                });
            }
            let directory = path.parent().filter(|parent| *parent != Path::new(""));
            sources.push(Source {
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
                let must_be = expected.texts.contains_key(&path);
                let text = read(&path, "policy file", must_be)?;
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
        Ok((configured, Read { texts }))
    }

    /// The files whose change may change the configuration, whether they are there or not.
    pub(super) fn watched(&self, read: &Read) -> Vec<PathBuf> {
        let files = self.files.iter().map(|(_, path)| path.clone());
        let policies = [&self.policies, &self.usual_policies];
        let policies = policies.into_iter().flatten().cloned();
        let mut watched: Vec<PathBuf> = files.chain(policies).collect();
        watched.extend(read.texts.keys().cloned());
        watched.sort();
        watched.dedup();
        watched
    }

    /// What the watched files hold now, told apart by whether they can be read and by their text.
    pub(super) fn look(&self, read: &Read) -> Seen {
        let look = |path: PathBuf| {
            let text = self::read(&path, "file", false).map_err(|error| error.to_string());
            (path, text)
        };
        self.watched(read).into_iter().map(look).collect()
    }

    /// What the watched files held when they were read.
    pub(super) fn seen(&self, read: &Read) -> Seen {
        let held = |path: PathBuf| {
            let text = read.texts.get(&path).cloned();
            (path, Ok(text))
        };
        self.watched(read).into_iter().map(held).collect()
    }
}

/// What files hold, or why they cannot be read; nothing if they are not there.
pub(super) type Seen = BTreeMap<PathBuf, Result<Option<String>, String>>;

/// What files held when they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Read {
    texts: BTreeMap<PathBuf, String>,
}

/// Where the administrator's file is. In tests it is elsewhere; in releases that cannot be chosen.
fn admin_file() -> PathBuf {
    let tested = match cfg!(debug_assertions) {
        true => env::var_os("WINDLASS_TEST_ADMIN_FILE"),
        false => None,
    };
    tested.map_or_else(|| PathBuf::from(ADMIN_FILE), PathBuf::from)
}

/// The text of a file; nothing if it is not there and need not be.
fn read(
    path: &Path,
    what: &'static str,
    must_be: bool,
) -> Result<Option<String>, ConfigurationError> {
    let unreadable = |why: String| ConfigurationError::Unreadable {
        what,
        path: path.display().to_string(),
        why,
    };
    // What is no file is not opened: a pipe would keep everybody waiting.
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => {
            let is_absent = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
            // A link to nothing is a mistake, not an absence.
            let is_link = path.symlink_metadata().is_ok();
            return match is_absent && !must_be && !is_link {
                true => Ok(None),
                false => Err(unreadable(error.to_string())),
            };
        }
    };
    if !metadata.is_file() {
        return Err(unreadable("it is no file".to_owned()));
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
