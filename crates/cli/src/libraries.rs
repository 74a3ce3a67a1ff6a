//! Finds the libraries named on the command line or in the configuration: those that ship with the
//! program, and library files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_config::{Configuration, Library};
use windlass_mcp::LIBRARY;
use windlass_policy::DEFAULT_POLICIES;
use windlass_spec::ToolSpecification;
use windlass_spec::server::ServerName;
use windlass_tools::{
    AutomationSettings, BUILTIN, BuiltinSettings, Fact, FileSettings, HttpSettings, SearchSettings,
    ToolLibrary, builtin, builtin_libraries, builtin_library,
};

use super::schema::unknown;
use super::settings::configured;
use super::{data, servers, settings};

/// Whose servers' tools are looked for: where what is known of servers is kept, and which of them may
/// have to be met first.
#[derive(Clone, Copy, Default)]
pub(super) struct Sought<'s> {
    pub(super) data: Option<&'s Path>,
    pub(super) wanted: Option<&'s dyn Fn(&ServerName) -> bool>,
}

impl Sought<'_> {
    fn library(self, configuration: &Configuration) -> anyhow::Result<ToolLibrary> {
        servers::library(configuration, self.data, self.wanted)
    }
}

/// The libraries of these names, as one; those that the configuration names, and its servers, if there
/// are none.
pub(super) fn all(
    names: &[String],
    configuration: &Configuration,
    sought: Sought<'_>,
) -> anyhow::Result<ToolLibrary> {
    let named: Vec<ToolLibrary> = match names {
        [] => {
            let mut named = configuration
                .libraries()
                .iter()
                .map(|library| match library {
                    Library::BuiltIn => with_settings(configuration),
                    Library::File(path) => from_file(path),
                })
                .collect::<Result<Vec<_>, _>>()?;
            if !configuration.servers().is_empty() {
                named.push(sought.library(configuration)?);
            }
            named
        }
        names => names
            .iter()
            .map(|name| find_under(name, configuration, sought))
            .collect::<Result<_, _>>()?,
    };
    let mut named = named.into_iter();
    let first = named.next().unwrap_or_else(|| ToolLibrary::new("none"));
    Ok(named.try_fold(first, ToolLibrary::merge)?)
}

/// The library called `name`, or declared in the TOML file of that name.
pub(super) fn find(name: &str, sought: Sought<'_>) -> anyhow::Result<ToolLibrary> {
    match [BUILTIN, LIBRARY].contains(&name) {
        true => find_under(name, &configured()?.configuration, sought),
        false => find_under(name, &Configuration::default(), sought),
    }
}

/// The tools of the libraries that the configuration names which a policy may be about, besides
/// `known`. None, if the libraries cannot be used: that is told elsewhere.
pub(super) fn named_in(
    policies: &str,
    configuration: &Configuration,
    known: &[Arc<ToolSpecification>],
) -> Vec<Arc<ToolSpecification>> {
    // The built-in policies are about no single tool, and building libraries takes time.
    if policies == DEFAULT_POLICIES {
        return Vec::new();
    }
    let Ok(library) = all(&[], configuration, Sought::default()) else {
        return Vec::new();
    };
    let tools = library.iter().filter_map(|tool| tool.specification().ok());
    tools
        .filter(|tool| policies.contains(&format!("\"{}\"", tool.name())))
        .filter(|tool| known.iter().all(|known| known.name() != tool.name()))
        .map(Arc::new)
        .collect()
}

/// The libraries that ship with the program, and the tools of servers that were met.
pub(super) fn shipped() -> anyhow::Result<Vec<ToolLibrary>> {
    let mut shipped = builtin_libraries();
    let configuration = &configured()?.configuration;
    shipped.push(with_settings(configuration)?);
    if !configuration.servers().is_empty() {
        shipped.push(Sought::default().library(configuration)?);
    }
    Ok(shipped)
}

fn find_under(
    name: &str,
    configuration: &Configuration,
    sought: Sought<'_>,
) -> anyhow::Result<ToolLibrary> {
    if name == BUILTIN {
        return with_settings(configuration);
    }
    if name == LIBRARY {
        return sought.library(configuration);
    }
    if let Some(library) = builtin_library(name) {
        return Ok(library);
    }
    let path = Path::new(name);
    if path.extension().is_none_or(|extension| extension != "toml") {
        let libraries = builtin_libraries();
        let mut known: Vec<&str> = libraries.iter().map(ToolLibrary::name).collect();
        known.extend([BUILTIN, LIBRARY]);
        let told = unknown("library", name, &known, "this program");
        anyhow::bail!("{told}\nhint: the name of a library file ends in `.toml`");
    }
    from_file(path)
}

fn from_file(path: &Path) -> anyhow::Result<ToolLibrary> {
    let name = path.display();
    let unreadable =
        |why: String| anyhow::anyhow!("the library file `{name}` cannot be read: {why}");
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    // A pipe would keep everybody waiting.
    if !metadata.is_file() {
        return Err(unreadable("it is no file".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    // The parent of a bare name is the empty path, which is no directory.
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    let directory = directory.unwrap_or(Path::new("."));
    ToolLibrary::from_toml(&text, directory).map_err(|errors| {
        let told: Vec<String> = errors
            .iter()
            .map(|error| format!("{name}:{error}"))
            .collect();
        anyhow::anyhow!("the library file is not valid\n{}", told.join("\n"))
    })
}

/// The built-in tools, with what the configuration lets them touch.
fn with_settings(configuration: &Configuration) -> anyhow::Result<ToolLibrary> {
    Ok(builtin(&builtin_settings(configuration)?))
}

/// What no agent may touch: what lays down its rules, and what is kept of its runs.
fn rules_and_records(configuration: &Configuration) -> Vec<PathBuf> {
    let files = settings::files(None);
    let mut protected: Vec<PathBuf> = files.files.into_iter().map(|(_, path)| path).collect();
    protected.extend(configuration.policies().map(Path::to_owned));
    protected.extend(
        configuration
            .libraries()
            .iter()
            .filter_map(|library| match library {
                Library::File(path) => Some(path.clone()),
                Library::BuiltIn => None,
            }),
    );
    protected.extend(data::directory(None));
    protected
}

/// What the configuration lets the built-in tools touch.
pub(super) fn builtin_settings(configuration: &Configuration) -> anyhow::Result<BuiltinSettings> {
    let (files, http) = (configuration.files(), configuration.http());
    let search = configuration.search();
    let files = match files.roots.as_slice() {
        [] => None,
        roots => {
            let files = FileSettings::new(roots.iter())?.with_max_bytes(files.max_bytes)?;
            Some(files.protecting(rules_and_records(configuration)))
        }
    };
    let results = usize::try_from(search.max_results)?;
    let search = search.endpoint.as_deref().map(|endpoint| {
        SearchSettings::new(endpoint).and_then(|search| search.with_max_results(results))
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
            .map(|(name, value)| Fact {
                name: name.to_owned(),
                value,
            })
            .collect(),
    })
}
