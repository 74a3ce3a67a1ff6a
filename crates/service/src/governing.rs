//! The files that govern agents: no tool of an agent may change them.

use std::path::{Path, PathBuf};

use windlass_config::{ConfigSource, Configuration, Layer, WebhookTarget, load};
use windlass_runtime::{LibraryScan, PROJECT_FILE, read_text};
use windlass_spec::server::Transport;
use windlass_tools::CommandFiles;

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
    /// The other files that command lines name.
    pub arguments: Vec<PathBuf>,
    /// The programs that are found through `PATH`. They belong to the machine.
    pub installed: Vec<PathBuf>,
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
            &self.arguments,
            &self.installed,
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
        let commands = commands_of(configuration, &libraries);
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
            programs: commands.programs,
            arguments: commands.others,
            installed: commands.installed,
            data: data.into_iter().collect(),
            state: state.into_iter().collect(),
            keys: windlass_keys::key_files(),
            trusted,
        }
    }
}

/// The files that the command lines of a configuration with these libraries name. Packages and missing files are among
/// the programs: a file that is added to a package is executed with it.
fn commands_of(configuration: &Configuration, libraries: &[PathBuf]) -> CommandFiles {
    let mut commands = Vec::new();
    for library in libraries {
        commands.extend(LibraryScan::of_file(library).files);
    }
    for server in configuration.servers() {
        if let Transport::Command(command) = &server.transport {
            commands.push(CommandFiles::of_server(command));
        }
    }
    for webhook in configuration.webhooks() {
        if let WebhookTarget::Command {
            command, directory, ..
        } = &webhook.target
        {
            commands.push(CommandFiles::of(command, directory, &[]));
        }
    }
    let learning = configuration.learning();
    let checker = CommandFiles::of(&learning.checker, &learning.checker_directory, &[]);
    commands.push(checker);
    all_of(commands)
}

/// The files of several command lines together.
fn all_of(commands: Vec<CommandFiles>) -> CommandFiles {
    let mut all = CommandFiles::default();
    for named in commands {
        all.programs.extend(named.programs);
        all.programs.extend(named.packages);
        all.programs.extend(named.missing);
        all.others.extend(named.others);
        all.installed.extend(named.installed);
    }
    for files in [&mut all.programs, &mut all.others, &mut all.installed] {
        files.sort();
        files.dedup();
    }
    all
}

/// The files that govern agents of a project or a library in this directory, whether or not anybody has used it. Only
/// the beginning of a directory with very many library files is looked at.
pub(crate) fn governed_by_files_in(directory: &Path) -> Vec<PathBuf> {
    const MAX_FILES: usize = 200;
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let paths = paths.filter(|path| path.extension().is_some_and(|it| it == "toml"));
    let mut governed = Vec::new();
    for path in paths.take(MAX_FILES) {
        let configuration = match path.file_name().is_some_and(|name| name == PROJECT_FILE) {
            true => own_configuration(&path),
            false => None,
        };
        match configuration {
            Some(configuration) => {
                let libraries = files_of(&[], &configuration);
                let commands = commands_of(&configuration, &libraries);
                governed.extend(commands.programs.into_iter().chain(commands.others));
                governed.extend(configuration.policies().map(Path::to_owned));
                governed.extend(libraries);
            }
            None => {
                let commands = all_of(LibraryScan::of_file(&path).files);
                governed.extend(commands.programs.into_iter().chain(commands.others));
            }
        }
    }
    governed
}

/// What a project's file sets by itself. `None` if it cannot be read.
fn own_configuration(path: &Path) -> Option<Configuration> {
    let source = ConfigSource {
        layer: Layer::Project,
        name: path.display().to_string(),
        directory: path.parent()?.to_owned(),
        text: read_text(path).ok()?,
    };
    Some(load(&[source], [], &[]).ok()?.configuration)
}
