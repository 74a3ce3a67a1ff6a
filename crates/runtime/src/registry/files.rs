//! Finds and reads the files of a configuration.

use std::collections::BTreeMap;
use std::env;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use windlass_config::{
    ConfigSource, Configuration, Layer, LoadedConfiguration, Origin, ProjectRules, load_with,
    settings_that_need_trust,
};
use windlass_files::{OwnerError, check_owner};
use windlass_policy::DEFAULT_POLICIES;
use windlass_spec::text::{TextUse, escape_line};
use windlass_tools::FileDigests;

use super::stamp::FileStamp;
use super::trust::{ProjectSubject, ProjectTrust, TrustRecords, is_granted_by_variable};
use super::{ConfigurationError, Configured};
use crate::assembly::text_digest;

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
    /// Whether the project's file was found, and not named by the caller. It then needs trust.
    pub is_discovered: bool,
    /// Whether the caller trusts the project that was found.
    pub is_trust_granted: bool,
    /// The files of a run that was started under a named file. The same files need no trust when it is resumed.
    pub named_files: Option<FileDigests>,
    /// The project's file that was found and is not read, with the reason.
    pub refused: Option<(PathBuf, String)>,
}

impl ConfigurationFiles {
    /// Finds the files of the administrator, the user and the project, with the variables of this process.
    /// The project's file is `named`, else the nearest one in `directory` or above it that does not belong to
    /// another user.
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
        let mut refused = None;
        let mut is_discovered = false;
        if let Some(project) = named {
            files.push((Layer::Project, project.to_owned()));
        } else {
            let above = directory.ancestors();
            let above = above.map(|directory| directory.join(PROJECT_FILE));
            for project in above.filter(|file| file.symlink_metadata().is_ok()) {
                match check_owner(&project) {
                    // A file of another user is as good as none: it must not hide the rules of a project above it.
                    Err(error @ OwnerError::OtherUser(_)) => {
                        refused.get_or_insert((project, error.to_string()));
                    }
                    // One of the user that others can write to may have rules of the user. Reading it fails, so that
                    // no command runs without them. A dangling link is reported there too.
                    _ => {
                        is_discovered = true;
                        files.push((Layer::Project, project));
                        break;
                    }
                }
            }
        }
        let variables = env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with("WINDLASS_"))
            .collect();
        Self {
            files,
            variables,
            is_discovered,
            is_trust_granted: is_granted_by_variable(),
            refused,
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
        let mut texts = FileTexts::default();
        let mut sources = Vec::new();
        for (layer, path) in &self.files {
            let must_exist = *layer == Layer::Project || expected.texts.contains_key(path);
            let mut stamp = None;
            let text = match self.replacements.get(path) {
                Some(text) => Some(text.clone()),
                None => {
                    stamp = FileStamp::of(path);
                    let is_named = *layer == Layer::Project && !self.is_discovered;
                    if !is_named {
                        check_reader(path, "configuration")?;
                    }
                    read(path, "configuration", must_exist)?
                }
            };
            let Some(text) = text else {
                continue;
            };
            // An editor may truncate a file before it writes the new text, so an emptied file is an error.
            let previous = expected.texts.get(path);
            if text.trim().is_empty() && previous.is_some_and(|text| !text.trim().is_empty()) {
                return Err(ConfigurationError::Unreadable {
                    what: "configuration",
                    path: shown(path),
                    why: "it has become empty; to remove all settings, leave a comment in it"
                        .to_owned(),
                });
            }
            sources.push(config_source(*layer, path, text.clone()));
            texts.insert(path, text, stamp);
        }
        let trust = self.project_trust(&sources);
        let loaded = self.load(&sources, trust.is_trusted())?;
        let configuration = loaded.configuration;
        // A project that sets the data directory does not replace the policies in the user's own one.
        let has_own_data = layer_of(&configuration, "data_directory") == Some(Layer::Project);
        let usual = match has_own_data {
            true => usual_policies(&self.without_project(&sources)?),
            false => usual_policies(&configuration),
        };
        let chosen = self.choose_policies(&configuration, usual);
        let mut policies = Vec::new();
        for chosen in chosen {
            let must_exist = chosen.must_exist || expected.texts.contains_key(&chosen.path);
            if !chosen.is_named {
                check_reader(&chosen.path, "policy file")?;
            }
            let stamp = FileStamp::of(&chosen.path);
            let Some(text) = read(&chosen.path, "policy file", must_exist)? else {
                continue;
            };
            if let ProjectTrust::Files(digests) = &trust
                && let Some(digest) = digests.get(&canonical(&chosen.path))
                && *digest != text_digest(&text)
            {
                return Err(ConfigurationError::Unreadable {
                    what: "policy file",
                    path: shown(&chosen.path),
                    why: "it changed while it was read".to_owned(),
                });
            }
            texts.insert(&chosen.path, text.clone(), stamp);
            policies.push((chosen, text));
        }
        let mut restricting = Vec::new();
        let mut main = None;
        for (chosen, text) in policies {
            match chosen.restricts {
                true => restricting.push(text),
                false => main = Some((chosen.path, text)),
            }
        }
        let (policy_file, policies) = main.unzip();
        let configured = Configured {
            configuration,
            warnings: loaded.warnings,
            policies: policies.unwrap_or_else(|| DEFAULT_POLICIES.to_owned()),
            policy_file,
            restricting_policies: restricting,
            untrusted: loaded.untrusted,
            trust,
        };
        Ok((configured, texts))
    }

    /// Loads the texts of all layers.
    fn load(
        &self,
        sources: &[ConfigSource],
        is_trusted: bool,
    ) -> Result<LoadedConfiguration, ConfigurationError> {
        let rules = ProjectRules {
            is_trusted,
            resolve: &canonical,
        };
        load_with(sources, self.variables.iter().cloned(), &self.flags, rules)
            .map_err(ConfigurationError::Mistakes)
    }

    /// The policy files: the one that decides, if it is not the built-in one, and those that only restrict it.
    fn choose_policies(
        &self,
        configuration: &Configuration,
        usual: Option<PathBuf>,
    ) -> Vec<ChosenPolicies> {
        if let Some(path) = &self.policies {
            return vec![ChosenPolicies {
                is_named: true,
                ..ChosenPolicies::deciding(path)
            }];
        }
        let layer = |key| layer_of(configuration, key);
        // The user's own policies are not replaced by those of a project.
        let usual = usual.map(|path| ChosenPolicies {
            must_exist: false,
            ..ChosenPolicies::deciding(&path)
        });
        let has_usual = usual.as_ref().is_some_and(|usual| usual.path.exists());
        let mut chosen = Vec::new();
        match configuration.policies() {
            Some(path) if layer("policies") == Some(Layer::Project) && has_usual => {
                chosen.extend(usual);
                chosen.push(ChosenPolicies::restricting(path));
            }
            Some(path) => chosen.push(ChosenPolicies::deciding(path)),
            None => chosen.extend(usual),
        }
        let is_overridden = matches!(layer("policies"), Some(Layer::Variable | Layer::Flag));
        let restricting = configuration.restricting_policies();
        let restricting = restricting.filter(|_| !is_overridden);
        chosen.extend(restricting.map(ChosenPolicies::restricting));
        chosen
    }

    /// Whether a project that was trusted when these texts were read is not trusted any more, because one of its
    /// files changed: a library, or a program or script that it starts.
    #[must_use]
    pub fn has_lost_trust(&self, read: &FileTexts, trust: &ProjectTrust) -> bool {
        if !matches!(trust, ProjectTrust::Files(_)) {
            return false;
        }
        self.project_trust(&self.sources_of(read)) != *trust
    }

    /// The files of the project as they were read, with their digests now except for the text of its configuration.
    /// `None` if there is no project.
    #[must_use]
    pub fn subject_as_read(&self, read: &FileTexts) -> Option<ProjectSubject> {
        let sources = self.sources_of(read);
        let project = sources
            .iter()
            .find(|source| source.layer == Layer::Project)?;
        let mut subject = self.subject_of(project, &sources)?;
        // The texts that are used, which may not be those that are in the files now.
        for (path, text) in &read.texts {
            if let Some(digest) = subject.files.get_mut(&canonical(path)) {
                *digest = text_digest(text);
            }
        }
        Some(subject)
    }

    fn sources_of(&self, read: &FileTexts) -> Vec<ConfigSource> {
        let sources = self.files.iter().filter_map(|(layer, path)| {
            let text = read.texts.get(path)?;
            Some(config_source(*layer, path, text.clone()))
        });
        sources.collect()
    }

    /// Whether the project is trusted.
    fn project_trust(&self, sources: &[ConfigSource]) -> ProjectTrust {
        let project = sources.iter().find(|source| source.layer == Layer::Project);
        let Some(project) = project.filter(|_| self.is_discovered) else {
            return ProjectTrust::NotNeeded;
        };
        if self.is_trust_granted || self.is_in_trusted_directory(project, sources) {
            return ProjectTrust::Directory;
        }
        let Some(subject) = self.subject_of(project, sources) else {
            return ProjectTrust::No;
        };
        if self.named_files.as_ref() == Some(&subject.files) {
            return ProjectTrust::Files(subject.files);
        }
        let records = TrustRecords::of_user();
        let record = records.and_then(|records| records.find(&subject.directory));
        if record.is_some() && !subject.unfit.is_empty() {
            return ProjectTrust::Changed(subject.unfit.into_keys().collect());
        }
        match record.map(|record| record.changed_files(&subject.files)) {
            None => ProjectTrust::No,
            Some(changed) if changed.is_empty() => ProjectTrust::Files(subject.files),
            Some(changed) => ProjectTrust::Changed(changed),
        }
    }

    /// Whether the user's or the administrator's own file trusts the directory of a project.
    fn is_in_trusted_directory(&self, project: &ConfigSource, sources: &[ConfigSource]) -> bool {
        let Ok(own) = self.without_project(sources) else {
            return false;
        };
        let directory = canonical(&project.directory);
        let trusted = own.trusted_directories().iter();
        trusted
            .map(|trusted| canonical(trusted))
            .any(|trusted| directory.starts_with(trusted))
    }

    /// The configuration as it is without the project's file.
    fn without_project(
        &self,
        sources: &[ConfigSource],
    ) -> Result<Configuration, ConfigurationError> {
        let own = sources
            .iter()
            .filter(|source| source.layer < Layer::Project);
        let own: Vec<ConfigSource> = own.cloned().collect();
        Ok(self.load(&own, false)?.configuration)
    }

    fn subject_of(
        &self,
        project: &ConfigSource,
        sources: &[ConfigSource],
    ) -> Option<ProjectSubject> {
        let untrusted = settings_that_need_trust(sources, &canonical).ok()?;
        ProjectSubject::of(project, sources, &untrusted)
    }

    /// The files of the project and what they would be allowed. `None` if there is no project.
    ///
    /// # Errors
    /// If a file cannot be read, or the configuration has mistakes.
    pub fn subject(&self) -> Result<Option<ProjectSubject>, ConfigurationError> {
        let mut sources = Vec::new();
        for (layer, path) in &self.files {
            if *layer != Layer::Project || self.is_discovered {
                check_reader(path, "configuration")?;
            }
            let text = read(path, "configuration", *layer == Layer::Project)?;
            sources.extend(text.map(|text| config_source(*layer, path, text)));
        }
        let untrusted =
            settings_that_need_trust(&sources, &canonical).map_err(ConfigurationError::Mistakes)?;
        // Mistakes that only a trusted project has are reported too.
        self.load(&sources, true)?;
        let project = sources.iter().find(|source| source.layer == Layer::Project);
        Ok(project.and_then(|project| ProjectSubject::of(project, &sources, &untrusted)))
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

    /// Whether the files have changed since they were read.
    #[must_use]
    pub fn have_changed(&self, read: &FileTexts) -> bool {
        let mut watched = self.watched(read).into_iter();
        watched.any(|path| {
            !read.is_as_read(&path)
                && self::read(&path, "file", false).ok().as_ref()
                    != Some(&read.texts.get(&path).cloned())
        })
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

/// A policy file that is used.
struct ChosenPolicies {
    path: PathBuf,
    /// Whether it only restricts another one.
    restricts: bool,
    must_exist: bool,
    /// Whether the caller named it.
    is_named: bool,
}

impl ChosenPolicies {
    fn deciding(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            restricts: false,
            must_exist: true,
            is_named: false,
        }
    }

    fn restricting(path: &Path) -> Self {
        Self {
            restricts: true,
            ..Self::deciding(path)
        }
    }
}

fn config_source(layer: Layer, path: &Path, text: String) -> ConfigSource {
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    ConfigSource {
        layer,
        name: path.display().to_string(),
        directory: directory.unwrap_or(Path::new(".")).to_owned(),
        text,
    }
}

/// A path on one line, for messages: a stranger may have named it.
fn shown(path: &Path) -> String {
    escape_line(&path.to_string_lossy(), TextUse::Exact).into_owned()
}

/// The layer that sets a key.
fn layer_of(configuration: &Configuration, key: &str) -> Option<Layer> {
    configuration.origin(&[key]).map(Origin::layer)
}

/// A path without links. What does not exist is below the nearest directory that does.
fn canonical(path: &Path) -> PathBuf {
    if let Ok(path) = std::fs::canonicalize(path) {
        return path;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if parent != Path::new("") => canonical(parent).join(name),
        _ => path.to_owned(),
    }
}

/// Refuses a file that another user can change. A missing file is reported when it is read.
fn check_reader(path: &Path, what: &'static str) -> Result<(), ConfigurationError> {
    match check_owner(path) {
        Ok(()) | Err(OwnerError::Unknown(_)) => Ok(()),
        Err(error) => Err(ConfigurationError::Unreadable {
            what,
            path: shown(path),
            why: error.to_string(),
        }),
    }
}

/// The texts of files, or why they cannot be read; `None` for a missing file.
pub(super) type FileStates = BTreeMap<PathBuf, Result<Option<String>, String>>;

/// The texts of configuration files, as they were read.
#[derive(Debug, Clone, Default)]
pub struct FileTexts {
    texts: BTreeMap<PathBuf, String>,
    /// What the files were like before they were read.
    stamps: BTreeMap<PathBuf, FileStamp>,
}

impl PartialEq for FileTexts {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for FileTexts {}

impl FileTexts {
    /// Adds a file that was read, with its stamp before that.
    fn insert(&mut self, path: &Path, text: String, stamp: Option<FileStamp>) {
        self.texts.insert(path.to_owned(), text);
        self.stamps
            .extend(stamp.map(|stamp| (path.to_owned(), stamp)));
    }

    /// Whether a file is surely as it was read. It is not opened.
    fn is_as_read(&self, path: &Path) -> bool {
        let stamp = self.stamps.get(path);
        stamp.is_some() && stamp == FileStamp::of(path).as_ref()
    }

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
        path: shown(path),
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
