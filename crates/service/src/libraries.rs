//! Finds and builds the libraries that options or the configuration name: those that ship with the program,
//! and library files. Each is built once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use windlass_config::{Configuration, Library};
use windlass_files::{OwnerError, check_owner};
use windlass_mcp::LIBRARY;
use windlass_policy::{DEFAULT_POLICIES, named_tools};
use windlass_runtime::{read_text, text_digest};
use windlass_spec::server::ServerName;
use windlass_spec::{ToolSpecification, nearest};
use windlass_tools::{
    AutomationSettings, BUILTIN, BindingMode, BuiltinSettings, FileSettings, HttpSettings,
    SecurityFact, ToolLibrary, WebSearchSettings, builtin, builtin_libraries, builtin_library,
};

use crate::error::ServiceError;
use crate::governing::governed_by_files_in;
use crate::identity::{Identity, Scope};
use crate::outside::{outside_programs, outside_tools};
use crate::service::{BuiltLibrary, Project, Service, lock};
use crate::trust::{shown, trust_records};

/// How closely an implementation must match its specification under a configuration.
pub(crate) fn binding_mode(configuration: &Configuration) -> BindingMode {
    match configuration.binds_compatible() {
        true => BindingMode::Compatible,
        false => BindingMode::Exact,
    }
}

/// Whether the caller is about to use the tools of a server. Their problems are then reported.
pub(crate) type Wanted<'w> = Option<&'w dyn Fn(&ServerName) -> bool>;

/// Library files with their texts, as they were read.
pub(crate) type LibraryTexts = BTreeMap<PathBuf, String>;

impl Service {
    /// The libraries of these names, merged; those of the configuration and its servers if there are no names.
    /// Each is built once, and again if its file changes. Tools of servers are looked up each time: they are
    /// accepted and withdrawn while the service runs.
    pub(crate) fn library(
        &self,
        project: &Project,
        names: &[String],
        wanted: Wanted<'_>,
    ) -> Result<ToolLibrary, ServiceError> {
        Ok(self.library_with_texts(project, names, wanted)?.0)
    }

    /// Like [`Service::library`], with the texts of the files that the libraries were built from.
    pub(crate) fn library_with_texts(
        &self,
        project: &Project,
        names: &[String],
        wanted: Wanted<'_>,
    ) -> Result<(ToolLibrary, LibraryTexts), ServiceError> {
        let configuration = project.configuration();
        let texts = library_texts(&files_of(names, configuration));
        let build = LibraryBuild {
            configuration,
            names,
            texts: &texts,
            built: Some(&project.libraries),
        };
        let library = self.build(&build, wanted)?;
        Ok((library, texts))
    }

    /// Builds the libraries of these names, for instance for a reloaded configuration.
    pub(crate) fn build_library(
        &self,
        configuration: &Configuration,
        names: &[String],
        wanted: Wanted<'_>,
    ) -> Result<ToolLibrary, ServiceError> {
        let build = LibraryBuild {
            configuration,
            names,
            texts: &library_texts(&files_of(names, configuration)),
            built: None,
        };
        self.build(&build, wanted)
    }

    fn build(
        &self,
        build: &LibraryBuild<'_>,
        wanted: Wanted<'_>,
    ) -> Result<ToolLibrary, ServiceError> {
        let configuration = build.configuration;
        let named: Vec<ToolLibrary> = match build.names {
            [] => {
                let mut named = configuration
                    .libraries()
                    .iter()
                    .map(|library| match library {
                        Library::BuiltIn => self.builtin_once(build),
                        Library::File(path) => {
                            build.file_once(path, |text| self.check_configured_library(path, text))
                        }
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                if !configuration.servers().is_empty() {
                    named.push(self.server_library(configuration, wanted)?);
                }
                named
            }
            names => names
                .iter()
                .map(|name| self.named_library(build, name, wanted))
                .collect::<Result<_, _>>()?,
        };
        let mut named = named.into_iter();
        let first = named.next().unwrap_or_else(|| ToolLibrary::new("none"));
        Ok(named.try_fold(first, ToolLibrary::merge)?)
    }

    /// Refuses library files that the configuration does not name, unless the identity has the scope `admin`:
    /// their commands start programs.
    pub(crate) fn require_for_libraries(
        &self,
        identity: &Identity,
        names: &[String],
    ) -> Result<(), ServiceError> {
        let is_shipped =
            |name: &str| [BUILTIN, LIBRARY].contains(&name) || builtin_library(name).is_some();
        let is_configured = |name: &str| -> Result<bool, ServiceError> {
            let configured = library_files(self.project()?.configuration());
            let named = std::fs::canonicalize(name).ok();
            let files = configured
                .iter()
                .map(|file| std::fs::canonicalize(file).ok());
            Ok(named.is_some() && files.into_iter().any(|file| file == named))
        };
        for name in names {
            if !is_shipped(name) && !is_configured(name)? {
                identity.require(Scope::Admin)?;
            }
        }
        Ok(())
    }

    /// The library called `name`, or declared in the TOML file of that name. Problems with the tools of the
    /// server `wanted` are reported.
    ///
    /// # Errors
    /// If the identity may not read, or there is no such library.
    pub fn find_library(
        &self,
        identity: &Identity,
        name: &str,
        wanted: Option<&ServerName>,
    ) -> Result<ToolLibrary, ServiceError> {
        identity.require(Scope::Read)?;
        self.require_for_libraries(identity, &[name.to_owned()])?;
        if let Some(library) = builtin_library(name) {
            return Ok(library);
        }
        let is_wanted = |server: &ServerName| Some(server) == wanted;
        self.library(&*self.project()?, &[name.to_owned()], Some(&is_wanted))
    }

    /// The libraries of these names, merged; those of the configuration if there are no names.
    ///
    /// # Errors
    /// If the identity may not read, or one of them cannot be used.
    pub fn libraries(
        &self,
        identity: &Identity,
        names: &[String],
    ) -> Result<ToolLibrary, ServiceError> {
        identity.require(Scope::Read)?;
        self.require_for_libraries(identity, names)?;
        self.library(&*self.project()?, names, None)
    }

    /// The libraries that ship with the program, and the tools of servers whose definitions were
    /// accepted.
    ///
    /// # Errors
    /// If the identity may not read, or the configuration cannot be used.
    pub fn shipped_libraries(&self, identity: &Identity) -> Result<Vec<ToolLibrary>, ServiceError> {
        identity.require(Scope::Read)?;
        let mut shipped = builtin_libraries();
        let project = self.project()?;
        let configuration = project.configuration();
        shipped.push(self.builtin(configuration, &[])?);
        if !configuration.servers().is_empty() {
            shipped.push(self.server_library(configuration, None)?);
        }
        Ok(shipped)
    }

    /// The tools of the configured libraries that the policies name, besides `known`. Empty if the libraries
    /// cannot be used: that is reported where they are used.
    pub(crate) fn tools_named_in_policies(
        &self,
        project: &Project,
        known: &[Arc<ToolSpecification>],
    ) -> Vec<Arc<ToolSpecification>> {
        self.tools_named_in(&project.configured.policies, project, known)
    }

    /// The tools of the configured libraries that these policies name, besides `known`.
    pub(crate) fn tools_named_in(
        &self,
        policies: &str,
        project: &Project,
        known: &[Arc<ToolSpecification>],
    ) -> Vec<Arc<ToolSpecification>> {
        // The built-in policies name no tool, and building libraries takes time.
        if policies == DEFAULT_POLICIES {
            return Vec::new();
        }
        match self.library(project, &[], None) {
            Ok(library) => named_of(policies, &library, known),
            Err(_) => Vec::new(),
        }
    }

    /// The library of a name.
    fn named_library(
        &self,
        build: &LibraryBuild<'_>,
        name: &str,
        wanted: Wanted<'_>,
    ) -> Result<ToolLibrary, ServiceError> {
        if name == BUILTIN {
            return self.builtin_once(build);
        }
        if name == LIBRARY {
            return self.server_library(build.configuration, wanted);
        }
        if let Some(library) = builtin_library(name) {
            return Ok(library);
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|extension| extension != "toml") {
            let libraries = builtin_libraries();
            let mut known: Vec<&str> = libraries.iter().map(ToolLibrary::name).collect();
            known.extend([BUILTIN, LIBRARY]);
            let message = unknown_name_message("library", name, &known, "this program");
            return Err(ServiceError::failed(format!(
                "{message}\nhint: the name of a library file ends in `.toml`"
            )));
        }
        build.file_once(path, |_| Ok(()))
    }

    /// Checks a library file that a configuration names. Another user must not be able to change it, and it must be
    /// the one that was trusted.
    fn check_configured_library(&self, path: &Path, text: &str) -> Result<(), ServiceError> {
        match check_owner(path) {
            Ok(()) | Err(OwnerError::Unknown(_)) => {}
            Err(error) => {
                let name = shown(path);
                let message = format!("the library file `{name}` is not read: {error}");
                return Err(ServiceError::failed(message));
            }
        }
        let now = text_digest(text);
        match self.trusted_digest(path) {
            Some(digest) if digest != now && !is_trusted_now(path, &now) => {
                let why =
                    "it changed since its project was trusted; review it with `windlass trust`";
                Err(unreadable(path, why))
            }
            _ => Ok(()),
        }
    }

    fn builtin_once(&self, build: &LibraryBuild<'_>) -> Result<ToolLibrary, ServiceError> {
        // The programs that all libraries start are protected from the built-in tools.
        build.once(BUILTIN, build.texts.clone(), || {
            self.builtin(build.configuration, build.names)
        })
    }

    /// The built-in tools with their configured access, for an agent that also has the libraries `names`.
    fn builtin(
        &self,
        configuration: &Configuration,
        names: &[String],
    ) -> Result<ToolLibrary, ServiceError> {
        let mut settings = self.builtin_settings(configuration)?;
        if !names.is_empty() {
            let governing = self.governing_files(configuration, names);
            settings.files = settings.files.map(|files| {
                files
                    .protecting(governing.libraries)
                    .governed_by(governing.programs)
                    .governed_by(governing.arguments)
                    .governed_by(governing.installed)
            });
        }
        Ok(builtin(&settings))
    }

    /// The configured access of the built-in tools.
    ///
    /// # Errors
    /// If it names directories or hosts that cannot be used.
    pub(crate) fn builtin_settings(
        &self,
        configuration: &Configuration,
    ) -> Result<BuiltinSettings, ServiceError> {
        let (files, http) = (configuration.files(), configuration.http());
        let search = configuration.search();
        let files = match files.roots.as_slice() {
            [] => None,
            roots => {
                let files = FileSettings::new(roots.iter())?.with_max_bytes(files.max_bytes)?;
                let governing = self.governing_files(configuration, &[]);
                // Programs may be read; the others may contain secrets of other users of the project.
                let unreadable = [
                    governing.configuration,
                    governing.policies,
                    governing.libraries,
                    governing.data,
                    governing.state,
                    governing.keys,
                ];
                let files = files.protecting(unreadable.into_iter().flatten());
                let files = files.governed_by(governing.programs);
                let files = files.governed_by(governing.arguments);
                let files = files.governed_by(governing.installed);
                let files = files.asking(Arc::new(governed_by_files_in));
                let files = files.governed_by(governing.trusted);
                Some(files.recorded_by(self.write_recorder()))
            }
        };
        let results = usize::try_from(search.max_results)?;
        let search = search.endpoint.as_deref().map(|endpoint| {
            WebSearchSettings::new(endpoint).and_then(|search| search.with_max_results(results))
        });
        let automation = configuration.automation_endpoint();
        let gate = configuration.gate();
        let facts = [
            ("configuration", configuration.digest().to_owned()),
            (
                "undo_window_seconds",
                gate.undo_window.as_secs().to_string(),
            ),
            (
                "confidence_threshold",
                gate.confidence_threshold.to_string(),
            ),
        ];
        Ok(BuiltinSettings {
            files,
            http: HttpSettings::new(&http.hosts)?
                .with_max_bytes(http.max_bytes)?
                .with_timeout(http.timeout)?
                .allow_private(http.allow_private),
            search: search.transpose()?,
            automation: automation.map(AutomationSettings::new).transpose()?,
            environment: Some(configuration.environment().to_string()),
            facts: facts
                .into_iter()
                .map(|(name, value)| SecurityFact {
                    name: name.to_owned(),
                    value,
                })
                .collect(),
        })
    }
}

/// Whether the user has trusted a project with this digest of a file.
pub(crate) fn is_trusted_now(path: &Path, digest: &str) -> bool {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let records = trust_records().map(|records| records.all());
    let mut records = records.into_iter().flatten();
    records.any(|record| {
        record
            .files
            .get(&path)
            .is_some_and(|trusted| trusted == digest)
    })
}

/// The library files that a configuration names.
pub(crate) fn library_files(configuration: &Configuration) -> Vec<PathBuf> {
    let libraries = configuration.libraries().iter();
    libraries
        .filter_map(|library| match library {
            Library::File(path) => Some(path.clone()),
            Library::BuiltIn => None,
        })
        .collect()
}

/// The library files among these names; those that a configuration names if there are none.
pub(crate) fn files_of(names: &[String], configuration: &Configuration) -> Vec<PathBuf> {
    match names {
        [] => library_files(configuration),
        names => {
            let files = names.iter().map(PathBuf::from);
            files.filter(|file| file.is_file()).collect()
        }
    }
}

/// The texts of these files. One that cannot be read is left out, and reported when it is used.
pub(crate) fn library_texts(paths: &[PathBuf]) -> LibraryTexts {
    let texts = paths.iter();
    texts
        .filter_map(|path| Some((path.clone(), read_text(path).ok()?)))
        .collect()
}

/// The tools of a library that policies name, besides `known`. Errors of the policies are reported where they are
/// loaded.
pub(crate) fn named_of(
    policies: &str,
    library: &ToolLibrary,
    known: &[Arc<ToolSpecification>],
) -> Vec<Arc<ToolSpecification>> {
    let Ok(named) = named_tools(policies) else {
        return Vec::new();
    };
    let tools = library.iter().filter_map(|tool| tool.specification().ok());
    let mut tools: Vec<ToolSpecification> = tools.collect();
    for tool in outside_programs().flat_map(|program| outside_tools(program).unwrap_or_default()) {
        if tools.iter().all(|known| known.name() != tool.name()) {
            tools.push(tool);
        }
    }
    tools
        .into_iter()
        .filter(|tool| named.contains(tool.name().as_str()))
        .filter(|tool| known.iter().all(|known| known.name() != tool.name()))
        .map(Arc::new)
        .collect()
}

/// What libraries are built from.
struct LibraryBuild<'b> {
    configuration: &'b Configuration,
    /// The names of all of them; none for those of the configuration.
    names: &'b [String],
    /// The texts of their files, each read once.
    texts: &'b LibraryTexts,
    /// Those that were built before.
    built: Option<&'b Mutex<Vec<BuiltLibrary>>>,
}

impl LibraryBuild<'_> {
    /// A library that was built from these texts, or that `make` builds now.
    fn once(
        &self,
        name: &str,
        texts: LibraryTexts,
        make: impl FnOnce() -> Result<ToolLibrary, ServiceError>,
    ) -> Result<ToolLibrary, ServiceError> {
        let Some(built) = self.built else {
            return make();
        };
        let is_same = |known: &BuiltLibrary| known.name == name && known.names == self.names;
        let mut before = None;
        if let Some(known) = lock(built).iter().find(|known| is_same(known))
            && known.texts == texts
        {
            before = Some(known.library.clone());
        }
        if let Some(before) = before {
            return Ok(before);
        }
        let library = make()?;
        let mut known = lock(built);
        known.retain(|known| !is_same(known));
        known.push(BuiltLibrary {
            name: name.to_owned(),
            names: self.names.to_vec(),
            texts,
            library: library.clone(),
        });
        Ok(library)
    }

    /// The library of a file whose text is accepted by `check`.
    fn file_once(
        &self,
        path: &Path,
        check: impl FnOnce(&str) -> Result<(), ServiceError>,
    ) -> Result<ToolLibrary, ServiceError> {
        let text = match self.texts.get(path) {
            Some(text) => text.clone(),
            None => read_text(path).map_err(|error| unreadable(path, &error.to_string()))?,
        };
        let texts = LibraryTexts::from([(path.to_owned(), text.clone())]);
        self.once(&path.to_string_lossy(), texts, || {
            check(&text)?;
            from_text(path, &text)
        })
    }
}

fn unreadable(path: &Path, why: &str) -> ServiceError {
    let name = shown(path);
    ServiceError::failed(format!("the library file `{name}` cannot be read: {why}"))
}

/// The library with this text of a file.
fn from_text(path: &Path, text: &str) -> Result<ToolLibrary, ServiceError> {
    let name = shown(path);
    // The parent of a bare name is the empty path, which is no directory.
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    let directory = directory.unwrap_or(Path::new("."));
    ToolLibrary::from_toml(text, directory).map_err(|errors| {
        let lines: Vec<String> = errors
            .iter()
            .map(|error| format!("{name}:{error}"))
            .collect();
        ServiceError::failed(format!(
            "the library file is not valid\n{}",
            lines.join("\n")
        ))
    })
}

/// The plural of a noun.
fn plural_of(noun: &str) -> String {
    match noun.strip_suffix('y') {
        Some(start) => format!("{start}ies"),
        None => format!("{noun}s"),
    }
}

/// The message that a name is unknown, with the nearest known name or all of them.
#[must_use]
pub fn unknown_name_message(what: &str, name: &str, known: &[&str], place: &str) -> String {
    let hint = match nearest(name, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if known.is_empty() => format!("{place} has no {}", plural_of(what)),
        None => format!("known names: {}", known.join(", ")),
    };
    format!("no {what} `{name}` in {place}\nhint: {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_built_once_for_a_text() {
        let (configuration, built) = (Configuration::default(), Mutex::default());
        let build = LibraryBuild {
            configuration: &configuration,
            names: &[],
            texts: &LibraryTexts::new(),
            built: Some(&built),
        };
        let mut count = 0;
        for text in ["a", "a", "b", "b"] {
            let texts = LibraryTexts::from([(PathBuf::from("lib.toml"), text.to_owned())]);
            let make = || {
                count += 1;
                Ok(ToolLibrary::new("lib"))
            };
            build.once("lib.toml", texts, make).unwrap();
        }
        assert_eq!(count, 2);
    }
}
