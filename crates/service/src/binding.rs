//! The record of what a run was bound to. It is stored with the run, so that another process can check
//! whether it would bind the run identically.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_config::{Configuration, is_setting_variable};
use windlass_core::run::Run;
use windlass_runtime::{
    Crew, FileDigests, LibraryScan, PROGRAM, file_digests, text_digest, tools_digest,
};
use windlass_spec::server::{EnvTemplate, Transport};

use crate::file_changes::FileChange;
use crate::libraries::LibraryTexts;
use crate::options::RunOptions;
use crate::service::Project;

/// What a run was bound to. Configuration and policies are not part of it: they are read again for every
/// decision about a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingRecord {
    /// The directory relative paths and commands start from.
    pub working_directory: PathBuf,
    /// The library files and the programs and scripts of their commands, each with the digest of its content.
    /// Programs that are found through `PATH` belong to the machine and are not included.
    pub files: FileDigests,
    /// The agent file, with the digest of its content. The run keeps the agent as it was declared, so a change
    /// of this file does not affect it.
    #[serde(default, skip_serializing_if = "FileDigests::is_empty")]
    pub agent_file: FileDigests,
    /// The files that had changed since the last run, and those that tools of agents wrote, which the user
    /// accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_changes: Vec<FileChange>,
    /// The digest of all bound tools: names, descriptions, schemas.
    pub tools: String,
    /// The environment variables that libraries and servers take values from, and that were set.
    pub variables: BTreeSet<String>,
    /// Those that were not set.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unset_variables: BTreeSet<String>,
    /// The environment of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The model that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The digest of the environment variables and the URL that choose settings and servers of models. Their
    /// values are not stored: they can be secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
    /// The configuration files and the policy file. Their content may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_files: Option<Vec<PathBuf>>,
}

impl BindingRecord {
    /// The record of a crew that is bound with the libraries of these texts.
    pub(crate) fn of(
        crew: &Crew,
        libraries: &LibraryTexts,
        project: &Project,
        working_directory: &Path,
        options: &RunOptions,
        model: &str,
    ) -> Self {
        let configuration = project.configuration();
        let mut named = server_variables(configuration);
        let mut programs = Vec::new();
        for (path, text) in libraries {
            let scan = LibraryScan::of_text(text, path.parent().unwrap_or(Path::new("")));
            programs.extend(scan.existing().cloned());
            named.extend(scan.variables);
        }
        let mut files = file_digests(&programs);
        // The texts that are used, which may not be those that are in the files now.
        let texts = libraries.iter();
        files.extend(texts.map(|(path, text)| (absolute(path), text_digest(text))));
        let is_set = |name: &String| std::env::var_os(name).is_some();
        let (variables, unset_variables) = named.into_iter().partition(is_set);
        Self {
            working_directory: working_directory.to_owned(),
            files,
            agent_file: FileDigests::new(),
            file_changes: Vec::new(),
            tools: tools_digest(crew),
            variables,
            unset_variables,
            environment: Some(configuration.environment().to_string()),
            model: Some(model.to_owned()),
            settings: Some(settings_digest(project, options)),
            configuration_files: Some(project.read.paths().map(absolute).collect()),
        }
    }

    /// The differences between this record and a current one; empty if there are none.
    pub(crate) fn differences(&self, now: &Self) -> Vec<String> {
        let mut differences = file_differences(&self.files, &now.files);
        if self.tools != now.tools {
            differences.push("the definitions of its tools changed".to_owned());
        }
        if self.working_directory != now.working_directory {
            differences.push(format!(
                "it was started in `{}`",
                self.working_directory.display()
            ));
        }
        let unset = self.variables.difference(&now.variables);
        differences.extend(unset.map(|name| format!("the variable `{name}` is not set")));
        let set = self.unset_variables.intersection(&now.variables);
        differences.extend(set.map(|name| format!("the variable `{name}` is set now")));
        let values = [
            ("environment", &self.environment, &now.environment),
            ("model", &self.model, &now.model),
        ];
        for (name, before, now) in values {
            if let (Some(before), Some(now)) = (before, now)
                && before != now
            {
                differences.push(format!("its {name} is `{now}` now, and was `{before}`"));
            }
        }
        if self.settings.is_none() || self.configuration_files.is_none() {
            differences.push("it was started by an earlier version of Windlass".to_owned());
            return differences;
        }
        if self.settings != now.settings {
            let what = "`WINDLASS_` variables or the URL of its model";
            differences.push(format!("{what} are not the same as when it was started"));
        }
        if self.configuration_files != now.configuration_files {
            differences.push("its configuration is read from other files".to_owned());
        }
        differences
    }

    /// Describes which of the files have changed.
    pub(crate) fn changed_files(&self) -> Vec<String> {
        let paths: Vec<PathBuf> = self.files.keys().cloned().collect();
        file_differences(&self.files, &file_digests(&paths))
    }
}

fn file_differences(before: &FileDigests, now: &FileDigests) -> Vec<String> {
    let mut differences = Vec::new();
    for (path, digest) in before {
        let path_shown = path.display();
        match now.get(path) {
            Some(found) if found == digest => {}
            Some(found) if found.is_empty() => {
                differences.push(format!("`{path_shown}` cannot be read"));
            }
            Some(_) => differences.push(format!("`{path_shown}` changed")),
            None => differences.push(format!("`{path_shown}` is not used any more")),
        }
    }
    differences
}

/// The digest of what chooses settings and servers of models besides the configuration files. The data directory
/// belongs to the process, not to a run.
fn settings_digest(project: &Project, options: &RunOptions) -> String {
    let variables = project.files.variables.iter();
    let mut chosen: Vec<(&str, String)> = variables
        .filter(|(name, _)| name != "WINDLASS_DATA")
        .filter(|(name, _)| {
            let is_endpoint = name.ends_with("_BASE_URL") || name.ends_with("_PROTOCOL");
            is_setting_variable(name) || is_endpoint
        })
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    chosen.extend(
        std::env::var("OLLAMA_HOST")
            .ok()
            .map(|host| ("OLLAMA_HOST", host)),
    );
    let url = options.base_url.clone();
    let url = url.or_else(|| project.configuration().base_url().map(str::to_owned));
    chosen.extend(url.map(|url| ("base_url", url)));
    chosen.sort();
    text_digest(&format!("{chosen:?}"))
}

fn absolute(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The library files, and the files that their commands run.
pub(crate) fn bound_files(libraries: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = libraries.to_vec();
    for library in libraries {
        files.extend(LibraryScan::of_file(library).existing().cloned());
    }
    files
}

/// How a stored run can be bound again.
#[derive(Debug, Clone)]
pub(crate) enum StoredBinding {
    /// By these options, from files.
    Options(Box<RunOptions>),
    /// Only by the program that started it: its tools are functions of that program.
    Program(Option<String>),
}

impl StoredBinding {
    pub(crate) fn of(run: &Run) -> Self {
        Self::of_assembly(run.assembly())
    }

    pub(crate) fn of_assembly(assembly: &Map<String, Value>) -> Self {
        let kept = Value::Object(assembly.clone());
        match serde_json::from_value(kept) {
            Ok(options) => Self::Options(Box::new(options)),
            Err(_) => {
                let program = assembly.get(PROGRAM).and_then(Value::as_str);
                Self::Program(program.map(str::to_owned))
            }
        }
    }
}

fn server_variables(configuration: &Configuration) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for server in configuration.servers() {
        let given: Vec<&EnvTemplate> = match &server.transport {
            Transport::Command(program) => program.environment.values().collect(),
            Transport::Http(http) => http.headers.values().collect(),
        };
        let variables = given.into_iter().filter_map(EnvTemplate::variable);
        names.extend(variables.map(str::to_owned));
    }
    names
}
