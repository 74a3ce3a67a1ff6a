//! What a run was bound to, stored with it, so that another process knows whether it would bind the run
//! to the same things.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_config::Configuration;
use windlass_core::run::Run;
use windlass_runtime::{Crew, PROGRAM, text_digest, tools_digest};
use windlass_spec::server::{Given, Transport};

use crate::options::RunOptions;

/// What a run was bound to. Configuration and policies are not part of it: they are read again whenever
/// a call is decided about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingRecord {
    /// The directory relative paths and commands start from.
    pub working_directory: PathBuf,
    /// The library files, each with the digest of its text.
    pub files: BTreeMap<PathBuf, String>,
    /// The digest of all bound tools: names, descriptions, schemas.
    pub tools: String,
    /// The environment variables that libraries and servers take values from.
    pub variables: BTreeSet<String>,
}

impl BindingRecord {
    /// What a crew is bound to, with these library files.
    pub(crate) fn of(
        crew: &Crew,
        library_files: &[PathBuf],
        configuration: &Configuration,
        working_directory: &Path,
    ) -> Self {
        let mut variables = server_variables(configuration);
        let mut files = BTreeMap::new();
        for path in library_files {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            if let Ok(table) = text.parse::<toml::Table>() {
                library_variables(&toml::Value::Table(table), &mut variables);
            }
            let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            files.insert(path, text_digest(&text));
        }
        Self {
            working_directory: working_directory.to_owned(),
            files,
            tools: tools_digest(crew),
            variables,
        }
    }

    /// Why a binding made now is not the stored one; nothing if it is.
    pub(crate) fn differences(&self, now: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        for (path, digest) in &self.files {
            match now.files.get(path) {
                Some(found) if found == digest => {}
                Some(_) => differences.push(format!("`{}` changed", path.display())),
                None => differences.push(format!("`{}` is not used any more", path.display())),
            }
        }
        if self.tools != now.tools {
            differences.push("the definitions of its tools changed".to_owned());
        }
        if self.working_directory != now.working_directory {
            differences.push(format!(
                "it was started in `{}`",
                self.working_directory.display()
            ));
        }
        let unset = self.variables.iter();
        let unset = unset.filter(|name| std::env::var_os(name).is_none());
        differences.extend(unset.map(|name| format!("the variable `{name}` is not set")));
        differences
    }
}

/// How a stored run says it can be bound again.
#[derive(Debug, Clone)]
pub(crate) enum StoredBinding {
    /// By these options, from files.
    Options(Box<RunOptions>),
    /// Only by the program that started it: its tools are functions of that program.
    Program(Option<String>),
}

impl StoredBinding {
    pub(crate) fn of(run: &Run) -> Self {
        let kept = Value::Object(run.assembly().clone());
        match serde_json::from_value(kept) {
            Ok(options) => Self::Options(Box::new(options)),
            Err(_) => {
                let program = run.assembly().get(PROGRAM).and_then(Value::as_str);
                Self::Program(program.map(str::to_owned))
            }
        }
    }
}

fn server_variables(configuration: &Configuration) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for server in configuration.servers() {
        let given: Vec<&Given> = match &server.transport {
            Transport::Command(program) => program.environment.values().collect(),
            Transport::Http(http) => http.headers.values().collect(),
        };
        let variables = given.into_iter().filter_map(Given::variable);
        names.extend(variables.map(str::to_owned));
    }
    names
}

/// The variables a library file names: those that commands are given, and those that values come from.
fn library_variables(value: &toml::Value, names: &mut BTreeSet<String>) {
    match value {
        toml::Value::String(text) => {
            if let Some(name) = Given::new(text)
                .ok()
                .and_then(|given| given.variable().map(str::to_owned))
            {
                names.insert(name);
            }
        }
        toml::Value::Array(items) => {
            for item in items {
                library_variables(item, names);
            }
        }
        toml::Value::Table(table) => {
            for (key, value) in table {
                match (key.as_str(), value) {
                    ("environment", toml::Value::Array(passed)) => {
                        let passed = passed.iter().filter_map(toml::Value::as_str);
                        names.extend(passed.map(str::to_owned));
                    }
                    _ => library_variables(value, names),
                }
            }
        }
        _ => {}
    }
}
