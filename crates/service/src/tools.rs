//! Tools: their list with settings, the details of one, a call of it, and statistics of its executions.

mod call;
mod executions;
mod stage;

use std::sync::Arc;

use serde_json::Value;
use windlass_config::{Configuration, ToolSettings};
use windlass_reflex::{ToolIndex, ToolView};
use windlass_spec::{RiskLevel, Signature, ToolName, ToolSpecification, nearest_all};
use windlass_store::ToolStatistics;
use windlass_tools::{
    BUILTIN, BindingFailure, BindingMode, BoundTool, Tool, ToolLibrary, builtin_specifications,
};

pub use call::ToolCallRequest;
pub use executions::{ExecutionQuery, execution_result};
pub use stage::ToolStage;

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::libraries::binding_mode;
use crate::names::not_known;
use crate::servers::server_of;
use crate::service::Service;
use stage::History;

/// How many names are suggested for one that does not exist.
const SUGGESTIONS: usize = 3;

/// Selects tools: those of a library, those of an agent file, or all that ship with the program and its
/// servers.
#[derive(Debug, Clone, Default)]
pub struct ToolQuery {
    /// Only those of the library of that name or file.
    pub library: Option<String>,
    /// The tools of an agent file. With a library, each entry shows whether it can be bound to it.
    pub declared: Option<Vec<Arc<ToolSpecification>>>,
}

/// A tool in a list.
#[derive(Debug, Clone)]
pub struct ToolEntry {
    /// Its name.
    pub name: ToolName,
    /// The library with an implementation; `None` if none was named, or none fits.
    pub library: Option<String>,
    /// What it takes and returns, or why no signature can express it.
    pub signature: Result<Signature, String>,
    /// Its declaration, if there is one.
    pub specification: Option<Arc<ToolSpecification>>,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
}

/// A tool with what is configured for it and how its calls ended.
#[derive(Debug, Clone)]
pub struct ToolStatus {
    /// The tool.
    pub entry: ToolEntry,
    /// The risk that the operator set, else the declared one.
    pub risk: Option<RiskLevel>,
    /// Its stage in the life cycle.
    pub stage: ToolStage,
    /// Its configured settings: category, limits, permissions.
    pub settings: ToolSettings,
    /// How the calls of the identity's tenant ended, if there were any.
    pub statistics: Option<ToolStatistics>,
}

/// A tool that matches a search.
#[derive(Debug, Clone)]
pub struct FoundTool {
    /// The tool.
    pub entry: ToolEntry,
    /// How well it fits; more is better.
    pub score: f32,
}

/// The tools that an agent file declares, with the name of the file in messages.
#[derive(Debug, Clone)]
pub struct DeclaredTools {
    /// The tools of the file.
    pub tools: Vec<Arc<ToolSpecification>>,
    /// The name of the file.
    pub place: String,
}

/// The details of a tool, from the library that implements it and the agent file that declares it. Only
/// declarations state risk and time limits.
#[derive(Debug, Clone)]
pub struct ToolDetails {
    /// The library.
    pub library: ToolLibrary,
    /// The name or file that the library was found by.
    pub source: Option<String>,
    /// The implementation.
    pub tool: Tool,
    /// Its declaration, if there is one.
    pub declared: Option<Arc<ToolSpecification>>,
}

impl ToolDetails {
    /// What it takes and returns.
    ///
    /// # Errors
    /// If no signature can express it; the text says why.
    pub fn signature(&self) -> Result<Signature, String> {
        match &self.declared {
            Some(declared) => Ok(declared.signature().clone()),
            None => self.tool.signature(),
        }
    }

    /// Its specification: the declared one, or one that states what the implementation states.
    ///
    /// # Errors
    /// If no signature can express it; the text says why.
    pub fn specification(&self) -> Result<Arc<ToolSpecification>, String> {
        match &self.declared {
            Some(declared) => Ok(Arc::clone(declared)),
            None => self.tool.specification().map(Arc::new),
        }
    }

    /// The specification for a call without an agent.
    ///
    /// # Errors
    /// If no signature can express the tool.
    pub fn callable(&self) -> Result<Arc<ToolSpecification>, ServiceError> {
        self.specification().map_err(|reason| {
            let name = self.tool.name();
            let message = format!("the tool `{name}` cannot be called without an agent: {reason}");
            ServiceError::failed(message)
                .with_hint("declare it in an agent file and use `--agent-file FILE`")
        })
    }
}

/// Which declared tools a library implements.
#[derive(Debug, Clone, Default)]
pub struct BindingReport {
    /// The name of the library, or of the merged libraries.
    pub library: String,
    /// How closely the tools had to match.
    pub mode: BindingMode,
    /// The implemented tools, bound to it.
    pub bound: Vec<BoundTool>,
    /// Why the others are not implemented.
    pub failures: Vec<BindingFailure>,
}

impl Service {
    /// Tools with their settings and the statistics of the tenant's calls, sorted by
    /// name.
    ///
    /// # Errors
    /// If the identity may not read; if there is no such library; or if the configuration or the store
    /// cannot be used.
    pub fn list_tools(
        &self,
        identity: &Identity,
        query: &ToolQuery,
    ) -> Result<Vec<ToolStatus>, ServiceError> {
        let mut entries = self.tool_entries(identity, query)?;
        entries.sort_by(|a, b| (&a.name, &a.library).cmp(&(&b.name, &b.library)));
        let project = self.project()?;
        let configuration = project.configuration();
        let history = History::read(self, identity)?;
        let status = |entry: ToolEntry| {
            let specification = entry.specification.as_deref();
            let settings = configuration.tool(&entry.name, specification);
            ToolStatus {
                risk: risk(&entry, configuration),
                stage: history.stage(&entry.name, specification, &settings),
                settings,
                statistics: history.statistics(&entry.name).cloned(),
                entry,
            }
        };
        Ok(entries.into_iter().map(status).collect())
    }

    /// The tools that match a description of what to do, the best first.
    ///
    /// # Errors
    /// If the identity may not read; if there is no such library; or if the configuration cannot be used.
    pub fn find_tools(
        &self,
        identity: &Identity,
        wanted: &str,
        limit: usize,
        query: &ToolQuery,
    ) -> Result<Vec<FoundTool>, ServiceError> {
        let entries = self.tool_entries(identity, query)?;
        let index = ToolIndex::build(entries.iter().map(|entry| ToolView {
            name: entry.name.as_str(),
            description: &entry.description,
            input_schema: &entry.schema,
        }));
        let hits = index.search(wanted, limit).into_iter();
        let found = hits.filter_map(|hit| {
            let entry = entries.get(hit.index)?.clone();
            let score = hit.score;
            Some(FoundTool { entry, score })
        });
        Ok(found.collect())
    }

    /// The details of a tool of a library, or of the libraries of the configuration. If an agent file declares it, the library must implement the
    /// declaration.
    ///
    /// # Errors
    /// If the identity may not read, there is no such library or tool, or the library does not implement
    /// what is declared.
    pub fn describe_tool(
        &self,
        identity: &Identity,
        library: Option<&str>,
        name: &str,
        declared_in: Option<&DeclaredTools>,
    ) -> Result<ToolDetails, ServiceError> {
        let source = library.map(str::to_owned);
        let library = match library {
            Some(library) => self.find_library(identity, library, server_of(name).as_ref())?,
            None => self.libraries(identity, &[])?,
        };
        let Some(tool) = library.lookup(name).cloned() else {
            return Err(no_such_tool(name, &library));
        };
        let is_meant = |tool: &&Arc<ToolSpecification>| tool.name().as_str() == name;
        let declared = match declared_in {
            Some(file) => {
                let specification = file.tools.iter().find(is_meant).ok_or_else(|| {
                    let names: Vec<&str> = file.tools.iter().map(|t| t.name().as_str()).collect();
                    not_known("no_such_tool", "tool", name, &names, &file.place)
                })?;
                library
                    .bind_tool(specification, BindingMode::Exact)
                    .map_err(|failure| ServiceError::failed(failure.to_string()))?;
                Some(Arc::clone(specification))
            }
            // The built-in tools have their own declarations.
            None if library.name() == BUILTIN => builtin_specifications()
                .into_iter()
                .find(|tool| is_meant(&tool)),
            None => None,
        };
        Ok(ToolDetails {
            library,
            source,
            tool,
            declared,
        })
    }

    /// Which of these tools the libraries of these names implement, and why they do not implement the others.
    /// Without names, the libraries of the configuration are meant, and without a mode, its mode.
    ///
    /// # Errors
    /// If the identity may not read, or there is no such library.
    pub fn check_binding(
        &self,
        identity: &Identity,
        libraries: &[String],
        tools: &[Arc<ToolSpecification>],
        mode: Option<BindingMode>,
    ) -> Result<BindingReport, ServiceError> {
        let library = self.libraries(identity, libraries)?;
        let mode = mode.unwrap_or(binding_mode(self.project()?.configuration()));
        let mut report = BindingReport {
            library: library.name().to_owned(),
            mode,
            ..BindingReport::default()
        };
        for tool in tools {
            match library.bind_tool(tool, mode) {
                Ok(bound) => report.bound.push(bound),
                Err(failure) => report.failures.push(failure),
            }
        }
        Ok(report)
    }

    fn tool_entries(
        &self,
        identity: &Identity,
        query: &ToolQuery,
    ) -> Result<Vec<ToolEntry>, ServiceError> {
        identity.require(Scope::Read)?;
        let library = match &query.library {
            Some(name) => Some(self.find_library(identity, name, None)?),
            None => None,
        };
        Ok(match (&query.declared, &library) {
            (Some(declared), _) => {
                let entry = |tool: &Arc<_>| declared_entry(tool, library.as_ref());
                declared.iter().map(entry).collect()
            }
            (None, Some(library)) => entries_of(library),
            (None, None) => {
                let shipped = self.shipped_libraries(identity)?;
                shipped.iter().flat_map(entries_of).collect()
            }
        })
    }
}

fn entries_of(library: &ToolLibrary) -> Vec<ToolEntry> {
    let own = match library.name() == BUILTIN {
        true => builtin_specifications(),
        false => Vec::new(),
    };
    let entry = |tool: &Tool| ToolEntry {
        name: tool.name().clone(),
        library: Some(library.name().to_owned()),
        signature: tool.signature(),
        specification: own.iter().find(|own| own.name() == tool.name()).cloned(),
        description: tool.description().to_owned(),
        schema: tool.schema().clone(),
    };
    library.iter().map(entry).collect()
}

fn declared_entry(tool: &Arc<ToolSpecification>, library: Option<&ToolLibrary>) -> ToolEntry {
    let library = library.filter(|library| library.bind_tool(tool, BindingMode::Exact).is_ok());
    ToolEntry {
        name: tool.name().clone(),
        library: library.map(|library| library.name().to_owned()),
        signature: Ok(tool.signature().clone()),
        specification: Some(Arc::clone(tool)),
        description: tool.description().to_owned(),
        schema: tool.schema().clone(),
    }
}

fn risk(entry: &ToolEntry, configuration: &Configuration) -> Option<RiskLevel> {
    let set = configuration.risk().get(&entry.name).copied();
    let declared = || entry.specification.as_ref()?.attributes().risk;
    set.or_else(declared)
}

fn no_such_tool(name: &str, library: &ToolLibrary) -> ServiceError {
    let names: Vec<&str> = library.iter().map(|tool| tool.name().as_str()).collect();
    let nearest = nearest_all(name, names.iter().copied(), SUGGESTIONS);
    if nearest.len() < 2 {
        return not_known("no_such_tool", "tool", name, &names, library.name());
    }
    let message = format!("no tool `{name}` in {}", library.name());
    let hint = format!("did you mean one of `{}`?", nearest.join("`, `"));
    ServiceError::not_found("no_such_tool", message).with_hint(hint)
}
