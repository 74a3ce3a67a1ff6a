//! The files that govern agents: no tool of an agent may change them.

use std::path::{Path, PathBuf};

use windlass_config::{Configuration, WebhookTarget};
use windlass_runtime::{LibraryScan, is_script, program_in_path};
use windlass_spec::server::Transport;

use crate::libraries::files_of;
use crate::service::Service;
use crate::trust::trust_records;

/// The files and directories that govern the agents of a project, by what they are. They may be missing: a file
/// that does not exist yet would govern them once it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GoverningFiles {
    /// The configuration files of all layers.
    pub configuration: Vec<PathBuf>,
    /// The policies.
    pub policies: Vec<PathBuf>,
    /// The library files.
    pub libraries: Vec<PathBuf>,
    /// The programs and scripts that libraries, MCP servers, webhooks and the checker of answers start, and the parts of
    /// these servers.
    pub programs: Vec<PathBuf>,
    /// The data directory, with journals, approvals, pins and tokens.
    pub data: Vec<PathBuf>,
    /// The user's state directory, with the records of trusted projects and with keys.
    pub state: Vec<PathBuf>,
    /// Keys that variables name.
    pub keys: Vec<PathBuf>,
    /// The files of all trusted projects.
    pub trusted: Vec<PathBuf>,
}

impl GoverningFiles {
    /// All of them.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let all = [
            &self.configuration,
            &self.policies,
            &self.libraries,
            &self.programs,
            &self.data,
            &self.state,
            &self.keys,
            &self.trusted,
        ];
        all.into_iter().flatten().map(PathBuf::as_path)
    }
}

impl Service {
    /// The files that govern agents under a configuration, with these libraries instead of its own if there are
    /// any.
    pub(crate) fn governing_files(
        &self,
        configuration: &Configuration,
        libraries: &[String],
    ) -> GoverningFiles {
        let libraries = files_of(libraries, configuration);
        let files = self.configuration_files();
        let mut programs = Vec::new();
        for library in &libraries {
            let scan = LibraryScan::of_file(library);
            programs.extend(scan.files);
            programs.extend(scan.missing);
            let commands = scan.commands.iter();
            programs.extend(commands.filter_map(|(_, words)| installed_program(words.first()?)));
        }
        for server in configuration.servers() {
            if let Transport::Command(command) = &server.transport {
                let program = Some(&command.program).filter(|program| program.contains('/'));
                let directory = command.directory.as_deref().unwrap_or(Path::new(""));
                let named = program.into_iter().chain(&command.arguments);
                programs.extend(named_files(named, directory));
                programs.extend(installed_program(&command.program));
                programs.extend(command.parts.iter().cloned());
            }
        }
        for webhook in configuration.webhooks() {
            if let WebhookTarget::Command {
                command, directory, ..
            } = &webhook.target
            {
                programs.extend(named_files(command, directory));
                programs.extend(command.first().and_then(|name| installed_program(name)));
            }
        }
        let learning = configuration.learning();
        programs.extend(named_files(&learning.checker, &learning.checker_directory));
        programs.extend(
            learning
                .checker
                .first()
                .and_then(|name| installed_program(name)),
        );
        programs.sort();
        programs.dedup();
        let named = [
            configuration.policies(),
            configuration.restricting_policies(),
        ];
        let named = named.into_iter().flatten().map(Path::to_owned);
        let records = trust_records().ok();
        let state = records
            .as_ref()
            .and_then(|records| records.directory().parent().map(Path::to_owned));
        let trusted = records.into_iter().flat_map(|records| records.all());
        let trusted = trusted
            .flat_map(|record| record.files.into_keys())
            .collect();
        let data = self.data_directory().ok();
        let usual = data.as_ref().map(|data| data.join("policy.cedar"));
        GoverningFiles {
            configuration: files.files.into_iter().map(|(_, path)| path).collect(),
            policies: named
                .chain(self.overrides().policies.clone())
                .chain(usual)
                .collect(),
            libraries,
            programs,
            data: data.into_iter().collect(),
            state: state.into_iter().collect(),
            keys: windlass_keys::key_files(),
            trusted,
        }
    }
}

/// The program that a name without a slash starts.
fn installed_program(name: &str) -> Option<PathBuf> {
    match name.contains('/') {
        true => None,
        false => program_in_path(name),
    }
}

/// The files among the words of a command line: those that exist, and programs and scripts that do not exist yet.
fn named_files<'a>(
    words: impl IntoIterator<Item = &'a String>,
    directory: &Path,
) -> impl Iterator<Item = PathBuf> {
    let paths = words.into_iter().enumerate().flat_map(|(place, word)| {
        let is_program = place == 0 && word.contains('/');
        let path = PathBuf::from(word);
        [directory.join(&path), path].map(|path| (is_program, path))
    });
    paths.filter_map(|(is_program, path)| {
        let is_awaited = || (is_program || is_script(&path)) && path.symlink_metadata().is_err();
        (path.is_file() || is_awaited()).then_some(path)
    })
}
