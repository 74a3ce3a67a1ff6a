//! Trust in projects that were found by walking up from the working directory. What a user trusts is recorded with the
//! digest of every file concerned, outside all projects. If one of them changes, the project is not trusted any more.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windlass_config::{
    ConfigSource, Configuration, Library, UntrustedSetting, WebhookSecretSource, WebhookSettings,
    WebhookTarget, load,
};
use windlass_files::{OwnerError, check_owner, create_directory, replace};
use windlass_spec::Timestamp;
use windlass_spec::server::{EnvTemplate, ServerSettings, Transport};
use windlass_tools::{CommandFiles, FileDigests, file_digests};

use super::scan::{LibraryScan, read_text};
use crate::assembly::text_digest;

/// The variable that trusts the project of the working directory, for programs that no person watches.
const VARIABLE: &str = "WINDLASS_TRUST_PROJECT";

/// The largest text that is recorded, so that a later change can be shown.
const MAX_TEXT: usize = 256 * 1024;

/// Whether a project is trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProjectTrust {
    /// There is no project, or its file was named by the caller.
    #[default]
    NotNeeded,
    /// The caller, or the user's own configuration, trusts its directory whatever is in it.
    Directory,
    /// Its files are those that were trusted.
    Files(FileDigests),
    /// It was never trusted.
    No,
    /// Some of its files are not as they were when it was trusted.
    Changed(Vec<PathBuf>),
}

impl ProjectTrust {
    /// Whether all settings of the project have an effect.
    #[must_use]
    pub const fn is_trusted(&self) -> bool {
        matches!(self, Self::NotNeeded | Self::Directory | Self::Files(_))
    }
}

/// What a project is allowed if it is trusted, in the words of a person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrustGrants {
    /// The command lines it starts.
    pub programs: BTreeSet<String>,
    /// The hosts that get data or credentials.
    pub hosts: BTreeSet<String>,
    /// The directories that file tools may access.
    pub roots: BTreeSet<String>,
    /// The risks it lowers.
    pub risks: BTreeSet<String>,
    /// The policies it replaces.
    pub policies: BTreeSet<String>,
    /// The environment variables it reads.
    pub environment: BTreeSet<String>,
    /// Other settings that loosen rules.
    pub settings: BTreeSet<String>,
}

impl TrustGrants {
    /// Each kind with its title.
    #[must_use]
    pub fn kinds(&self) -> [(&'static str, &BTreeSet<String>); 7] {
        [
            ("programs", &self.programs),
            ("hosts", &self.hosts),
            ("roots", &self.roots),
            ("risks", &self.risks),
            ("policies", &self.policies),
            ("environment", &self.environment),
            ("settings", &self.settings),
        ]
    }

    /// Whether trust changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds().iter().all(|(_, granted)| granted.is_empty())
    }
}

/// The files of a project and what they would be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectSubject {
    /// The project's directory, without links.
    pub directory: PathBuf,
    /// The files concerned: the configuration, libraries, policies, and the programs and scripts they name.
    pub files: FileDigests,
    /// What they are allowed.
    pub grants: TrustGrants,
    /// The files because of which the project cannot be trusted, each with the reason: another user can change them
    /// after they were compared, or they cannot be reviewed.
    pub unfit: BTreeMap<PathBuf, String>,
    /// The configuration file with the text that is used.
    configuration: (PathBuf, String),
}

impl ProjectSubject {
    /// The subject of a project's file, which is one of `sources`. `settings` are those that need trust. `None` if the
    /// files have mistakes.
    #[must_use]
    pub fn of(
        source: &ConfigSource,
        sources: &[ConfigSource],
        settings: &[UntrustedSetting],
    ) -> Option<Self> {
        // Only what the project sets itself, unless it needs names that the user's own files declare.
        let own = load(std::slice::from_ref(source), [], &[]);
        let own = own.or_else(|_| load(sources, [], &[])).ok()?.configuration;
        let mut grants = TrustGrants::default();
        for setting in settings {
            grant(setting, &own, &mut grants);
        }
        let configuration = source.directory.join(Path::new(&source.name).file_name()?);
        let mut files = vec![configuration.clone()];
        let mut unfit = BTreeMap::new();
        files.extend(own.policies().map(Path::to_owned));
        for library in own.libraries() {
            if let Library::File(path) = library {
                let scan = LibraryScan::of_file(path);
                files.push(path.clone());
                files.extend(scan.existing().cloned());
                unfit.extend(scan.problem.map(|problem| (absolute(path), problem)));
                if path.is_file() && scan.commands.is_empty() && scan.hosts.is_empty() {
                    let path = path.display();
                    let text = format!("libraries: `{path}`, which starts and contacts nothing");
                    grants.settings.insert(text);
                }
                grants.environment.extend(scan.variables);
                grants.hosts.extend(scan.hosts);
                let commands = scan.commands.iter();
                grants.programs.extend(
                    commands
                        .map(|(tool, words)| format!("{} (tool `{tool}`)", command_line(words))),
                );
            }
        }
        let mut commands = Vec::new();
        for server in own.servers() {
            if let Transport::Command(command) = &server.transport {
                commands.push(CommandFiles::of_server(command));
            }
            server_grants(server, &mut grants);
        }
        for webhook in own.webhooks() {
            webhook_grants(webhook, &mut grants);
            if let WebhookTarget::Command {
                command, directory, ..
            } = &webhook.target
            {
                commands.push(CommandFiles::of(command, directory, &[]));
            }
        }
        let checker = &own.learning().checker;
        commands.push(CommandFiles::of(checker, &source.directory, &[]));
        for named in commands {
            files.extend(named.existing().cloned());
            let problem = "it has too many files".to_owned();
            unfit.extend(named.too_large.map(|directory| (directory, problem)));
        }
        let configuration = absolute(&configuration);
        let directory = absolute(&source.directory);
        unfit.extend(changeable_files(&files));
        files.retain(|path| absolute(path) != configuration);
        let mut files = file_digests(&files);
        // The text that is used, which may not be the one that is in the file now.
        files.insert(configuration.clone(), text_digest(&source.text));
        Some(Self {
            directory,
            files,
            grants,
            unfit,
            configuration: (configuration, source.text.clone()),
        })
    }

    /// The texts of the files that are text and not large, as far as they are still those that the digests are of.
    fn texts(&self) -> BTreeMap<PathBuf, String> {
        let (configuration, text) = &self.configuration;
        let text_of = |path: &PathBuf| match path == configuration {
            true => Some(text.clone()),
            false => read_text(path).ok(),
        };
        let texts = self.files.iter().filter_map(|(path, digest)| {
            let text = text_of(path)?;
            (text.len() <= MAX_TEXT && text_digest(&text) == *digest).then(|| (path.clone(), text))
        });
        texts.collect()
    }
}

/// The files that another user can change, wherever they are.
fn changeable_files(files: &[PathBuf]) -> BTreeMap<PathBuf, String> {
    let found = files.iter().filter_map(|path| match check_owner(path) {
        Ok(()) | Err(OwnerError::Unknown(_)) => None,
        Err(why) => Some((absolute(path), why.to_string())),
    });
    found.collect()
}

fn grant(setting: &UntrustedSetting, own: &Configuration, grants: &mut TrustGrants) {
    let value = match &setting.value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let text = format!("{} = {value}", setting.key);
    match setting.key.split('.').next().unwrap_or_default() {
        // These have a list of their own.
        "servers" | "webhooks" => drop(grants.settings.insert(text)),
        "libraries" => {}
        "learning" if setting.key == "learning.checker" => {
            let line = command_line(&own.learning().checker);
            grants.programs.insert(format!("{line} (checks answers)"));
        }
        "learning" if setting.key == "learning.checker_environment" => {
            let variables = own.learning().checker_environment.iter();
            grants.environment.extend(variables.cloned());
        }
        "files" if setting.key == "files.roots" => {
            let roots = own.files().roots.iter();
            grants
                .roots
                .extend(roots.map(|root| absolute(root).display().to_string()));
        }
        "risk" => drop(grants.risks.insert(text)),
        "policies" => {
            let path = own
                .policies()
                .map(|path| absolute(path).display().to_string());
            grants.policies.extend(path);
        }
        "base_url" | "model" | "http" | "search" | "automation" => drop(grants.hosts.insert(text)),
        _ => drop(grants.settings.insert(text)),
    }
}

fn server_grants(server: &ServerSettings, grants: &mut TrustGrants) {
    let name = &server.name;
    let given: Vec<&EnvTemplate> = match &server.transport {
        Transport::Command(command) => {
            let words = std::iter::once(&command.program).chain(&command.arguments);
            let words: Vec<String> = words.cloned().collect();
            let line = command_line(&words);
            grants
                .programs
                .insert(format!("{line} (MCP server `{name}`)"));
            command.environment.values().collect()
        }
        Transport::Http(http) => {
            grants
                .hosts
                .insert(format!("{} (MCP server `{name}`)", http.url));
            let secret = http
                .oauth
                .as_ref()
                .and_then(|oauth| oauth.client_secret.as_ref());
            http.headers.values().chain(secret).collect()
        }
    };
    let variables = given.into_iter().filter_map(EnvTemplate::variable);
    grants.environment.extend(variables.map(str::to_owned));
}

fn webhook_grants(webhook: &WebhookSettings, grants: &mut TrustGrants) {
    let name = &webhook.name;
    match &webhook.target {
        WebhookTarget::Command {
            command,
            environment,
            ..
        } => {
            let line = command_line(command);
            grants.programs.insert(format!("{line} (webhook `{name}`)"));
            grants.environment.extend(environment.iter().cloned());
        }
        WebhookTarget::Url { url, secret } => {
            grants.hosts.insert(format!("{url} (webhook `{name}`)"));
            if let WebhookSecretSource::Variable(variable) = secret {
                let variable = variable.variable().map(str::to_owned);
                grants.environment.extend(variable);
            }
        }
    }
}

/// A command line with quotes where a word has spaces.
fn command_line(words: &[String]) -> String {
    let quoted =
        words.iter().map(
            |word| match word.is_empty() || word.contains(char::is_whitespace) {
                true => format!("{word:?}"),
                false => word.clone(),
            },
        );
    quoted.collect::<Vec<_>>().join(" ")
}

fn absolute(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether the caller trusts the project of the working directory by a variable of the process.
#[must_use]
pub(super) fn is_granted_by_variable() -> bool {
    env::var(VARIABLE).is_ok_and(|value| ["1", "true"].contains(&value.as_str()))
}

/// What a user trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRecord {
    /// The project's directory, without links.
    pub directory: PathBuf,
    /// When it was trusted.
    pub trusted_at: Timestamp,
    /// The files, each with the digest of its content.
    pub files: FileDigests,
    /// What it is allowed.
    pub grants: TrustGrants,
    /// The texts of these files, so that changes can be shown.
    #[serde(default)]
    texts: BTreeMap<PathBuf, String>,
}

/// The difference between what was trusted and what is there now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TrustDifference {
    /// What the project would be allowed and was not, each with its kind.
    pub added: Vec<(String, String)>,
    /// What it was allowed and does not need any more.
    pub removed: Vec<(String, String)>,
    /// The files that changed, each with its lines that are not the same: `-` for old, `+` for new ones.
    pub files: BTreeMap<PathBuf, Vec<String>>,
}

impl TrustRecord {
    /// The record of a project as it is now.
    #[must_use]
    pub fn new(subject: ProjectSubject, trusted_at: Timestamp) -> Self {
        Self {
            texts: subject.texts(),
            directory: subject.directory,
            trusted_at,
            files: subject.files,
            grants: subject.grants,
        }
    }

    /// The files that are not as they were trusted.
    #[must_use]
    pub fn changed_files(&self, files: &FileDigests) -> Vec<PathBuf> {
        let all: BTreeSet<&PathBuf> = self.files.keys().chain(files.keys()).collect();
        let is_changed = |path: &&&PathBuf| {
            let (before, now) = (self.files.get(**path), files.get(**path));
            // A file that cannot be read has no digest, and is never as it was.
            before != now || now.is_none_or(String::is_empty)
        };
        all.iter()
            .filter(is_changed)
            .map(|path| (*path).clone())
            .collect()
    }

    /// The difference to a project as it is now.
    #[must_use]
    pub fn difference(&self, subject: &ProjectSubject) -> TrustDifference {
        let listed = |of: &TrustGrants, without: &TrustGrants| -> Vec<(String, String)> {
            let without = without.kinds();
            let kinds = of.kinds().into_iter().zip(without);
            kinds
                .flat_map(|((kind, granted), (_, without))| {
                    let only = granted.difference(without);
                    only.map(move |one| (kind.to_owned(), one.clone()))
                })
                .collect()
        };
        let now = subject.texts();
        let changed = self.changed_files(&subject.files).into_iter().map(|path| {
            let text =
                |texts: &BTreeMap<PathBuf, String>| texts.get(&path).cloned().unwrap_or_default();
            let lines = changed_lines(&text(&self.texts), &text(&now));
            (path, lines)
        });
        TrustDifference {
            added: listed(&subject.grants, &self.grants),
            removed: listed(&self.grants, &subject.grants),
            files: changed.collect(),
        }
    }
}

/// The lines between the common beginning and the common end of two texts.
fn changed_lines(before: &str, now: &str) -> Vec<String> {
    let (before, now): (Vec<&str>, Vec<&str>) = (before.lines().collect(), now.lines().collect());
    let start = before
        .iter()
        .zip(&now)
        .take_while(|(one, other)| one == other)
        .count();
    let end = before[start..]
        .iter()
        .rev()
        .zip(now[start..].iter().rev())
        .take_while(|(one, other)| one == other)
        .count();
    let old = before[start..before.len() - end]
        .iter()
        .map(|line| format!("-{line}"));
    let new = now[start..now.len() - end]
        .iter()
        .map(|line| format!("+{line}"));
    old.chain(new).collect()
}

/// The records of trusted projects, in the user's state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustRecords {
    directory: PathBuf,
}

impl TrustRecords {
    /// The records of the user. `None` if there is no home directory.
    #[must_use]
    pub fn of_user() -> Option<Self> {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let state = set("XDG_STATE_HOME").map(PathBuf::from);
        let state = state.or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/state")))?;
        Some(Self {
            directory: state.join("windlass").join("trust"),
        })
    }

    /// Where they are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn path(&self, project: &Path) -> PathBuf {
        let digest = text_digest(&project.to_string_lossy());
        self.directory.join(format!("{digest}.json"))
    }

    /// The record of a project, if it is trusted. A record that another user can change does not count.
    #[must_use]
    pub fn find(&self, project: &Path) -> Option<TrustRecord> {
        let record = read_record(&self.path(project))?;
        (record.directory == project).then_some(record)
    }

    /// All records, by directory.
    #[must_use]
    pub fn all(&self) -> Vec<TrustRecord> {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten();
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut records: Vec<TrustRecord> = paths.filter_map(|path| read_record(&path)).collect();
        records.sort_by(|one, other| one.directory.cmp(&other.directory));
        records
    }

    /// Stores a record.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&self, record: &TrustRecord) -> io::Result<()> {
        create_directory(&self.directory)?;
        let text = serde_json::to_string_pretty(record)?;
        replace(&self.path(&record.directory), text)
    }

    /// Removes the record of a project. Returns whether there was one.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, project: &Path) -> io::Result<bool> {
        match std::fs::remove_file(self.path(project)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn read_record(path: &Path) -> Option<TrustRecord> {
    check_owner(path).ok()?;
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::changed_lines;

    #[test]
    fn only_the_changed_lines_of_a_text_are_shown() {
        assert_eq!(
            changed_lines("a\nb\nc\n", "a\nx\ny\nc\n"),
            ["-b", "+x", "+y"]
        );
        assert_eq!(changed_lines("a\n", "a\nb\n"), ["+b"]);
        assert_eq!(changed_lines("a\na\n", "a\n"), ["-a"]);
        assert_eq!(changed_lines("", ""), Vec::<String>::new());
    }
}
