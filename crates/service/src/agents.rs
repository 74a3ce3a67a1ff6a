//! The agents of a project: those that the agent files next to its configuration declare.

use std::path::{Path, PathBuf};

use windlass_spec::{Agent, AgentFile};

use crate::assembly::DeclaredAgent;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::names::not_known;
use crate::service::Service;

/// An agent of the project.
#[derive(Debug, Clone)]
pub struct ProjectAgent {
    /// The file that declares it.
    pub file: PathBuf,
    /// Its declaration, for [`Service::bind`]. The tools of `agent()` have the JSON Schema of their arguments
    /// (`schema()`) and what they take and return (`signature()`).
    pub declared: DeclaredAgent,
}

impl ProjectAgent {
    /// Its declaration.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        self.declared.agent()
    }
}

/// An agent file of the project that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidAgentFile {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub errors: Vec<String>,
}

/// The agents of a project.
#[derive(Debug, Clone, Default)]
pub struct ProjectAgents {
    /// The agents, by file and in the order of their declaration.
    pub agents: Vec<ProjectAgent>,
    /// The files that cannot be used.
    pub invalid: Vec<InvalidAgentFile>,
}

impl Service {
    /// The agents that the project's agent files declare: the files `*.gram` in the directory of its
    /// configuration. The files are read each time.
    ///
    /// # Errors
    /// If the identity may not read. A file with mistakes is not an error but listed as invalid.
    pub fn list_agents(&self, identity: &Identity) -> Result<ProjectAgents, ServiceError> {
        let mut project = ProjectAgents::default();
        for file in self.project_agent_files(identity)? {
            match read_agent_file(&file) {
                Ok(declared) => project.agents.extend(agents_of(&file, &declared)),
                Err(errors) => project.invalid.push(InvalidAgentFile { file, errors }),
            }
        }
        Ok(project)
    }

    /// The agent of the project with that name. If several files declare one, the name is
    /// `FILE:NAME`, with the file's name.
    ///
    /// # Errors
    /// If the identity may not read, or the name matches no agent or several.
    pub fn show_agent(
        &self,
        identity: &Identity,
        name: &str,
    ) -> Result<ProjectAgent, ServiceError> {
        let ProjectAgents { agents, invalid } = self.list_agents(identity)?;
        let (file, agent) = match name.split_once(':') {
            Some((file, agent)) => (Some(file), agent),
            None => (None, name),
        };
        let is_in = |found: &ProjectAgent| file.is_none_or(|file| found.file.ends_with(file));
        let known: Vec<String> = agents
            .iter()
            .map(|a| a.agent().name().to_string())
            .collect();
        let mut found = agents
            .into_iter()
            .filter(|found| found.agent().name().as_str() == agent && is_in(found));
        match (found.next(), found.next()) {
            (Some(found), None) => Ok(found),
            (Some(first), Some(second)) => {
                let message = format!(
                    "`{}` and `{}` both declare `{agent}`",
                    first.file.display(),
                    second.file.display()
                );
                let file = first.file.file_name().unwrap_or_default().to_string_lossy();
                let hint = format!("name the file, too: `{file}:{agent}`");
                Err(ServiceError::invalid("ambiguous", message).with_hint(hint))
            }
            (None, _) => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let error = not_known("no_such_agent", "agent", agent, &known, "the project");
                Err(match (error.hint(), invalid.first()) {
                    (None, Some(invalid)) => {
                        let hint = format!("`{}` cannot be read", invalid.file.display());
                        error.with_hint(hint)
                    }
                    _ => error,
                })
            }
        }
    }
}

fn agents_of(file: &Path, declared: &AgentFile) -> Vec<ProjectAgent> {
    let agents = declared.agents().iter();
    agents
        .map(|agent| ProjectAgent {
            file: file.to_owned(),
            declared: DeclaredAgent::of_file(agent, declared).from_path(file),
        })
        .collect()
}

/// Reads an agent file, or returns what is wrong with it.
fn read_agent_file(path: &Path) -> Result<AgentFile, Vec<String>> {
    let text = std::fs::read_to_string(path).map_err(|error| vec![error.to_string()])?;
    let reading = windlass_spec::read(&text);
    reading.file.ok_or_else(|| {
        let diagnostics = reading.diagnostics.iter();
        diagnostics.map(|found| found.message.clone()).collect()
    })
}
