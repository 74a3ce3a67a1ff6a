//! The health of an installation: checks everything an agent needs, with a fix for each problem.

mod examination;
mod isolation;
mod servers;
mod webhooks;

use std::path::{Path, PathBuf};

use windlass_spec::AgentFile;

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;
use examination::Examination;

windlass_spec::word_set! {
    /// The status of a finding.
    FindingStatus, "status" {
        /// It works.
        Ok = "ok",
        /// It works, but is probably a mistake.
        Warning = "warning",
        /// It must be fixed.
        Error = "error",
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthFinding {
    /// What it is about, such as `policies`.
    pub about: &'static str,
    /// Its status.
    pub status: FindingStatus,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub fix: Option<String>,
}

impl HealthFinding {
    fn ok(about: &'static str, found: impl Into<String>) -> Self {
        Self {
            about,
            status: FindingStatus::Ok,
            found: found.into(),
            fix: None,
        }
    }

    fn warning(about: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            about,
            status: FindingStatus::Warning,
            found: found.into(),
            fix: Some(fix.into()),
        }
    }

    fn error(about: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            status: FindingStatus::Error,
            ..Self::warning(about, found, fix)
        }
    }
}

/// An agent file that is checked. The caller, which reads it, reports its mistakes.
#[derive(Debug, Clone)]
pub struct ExaminedFile {
    /// Its name in findings.
    pub name: String,
    /// Its content.
    pub content: FileContent,
}

/// The content of an agent file.
#[derive(Debug, Clone)]
pub enum FileContent {
    /// There is no such file.
    Missing,
    /// It cannot be read, or has mistakes.
    Invalid,
    /// These agents.
    Declared(Box<AgentFile>),
}

/// What is checked.
#[derive(Debug, Clone, Default)]
pub struct HealthRequest {
    /// The agent files.
    pub agent_files: Vec<ExaminedFile>,
    /// Whether no server is contacted.
    pub is_offline: bool,
}

impl Service {
    /// Checks everything an agent needs: configuration, clock, store, libraries, agents, policies, models
    /// and servers. Starts no MCP server and calls no tool.
    ///
    /// # Errors
    /// If the identity may not read. A problem is a finding, not an error.
    pub async fn examine(
        &self,
        identity: &Identity,
        request: &HealthRequest,
    ) -> Result<Vec<HealthFinding>, ServiceError> {
        identity.require(Scope::Read)?;
        let mut examination = Examination::new(self, identity);
        examination.configuration();
        examination.clock();
        examination.store();
        examination.isolation();
        examination.files();
        for file in &request.agent_files {
            examination.agents(file);
        }
        examination.tools();
        examination.policies();
        examination.models();
        if !request.is_offline {
            examination.endpoints().await;
        }
        examination.servers();
        examination.webhooks();
        Ok(examination.findings)
    }

    /// The agent files in the directory of the project's configuration, sorted by name.
    ///
    /// # Errors
    /// If the identity may not read.
    pub fn project_agent_files(&self, identity: &Identity) -> Result<Vec<PathBuf>, ServiceError> {
        identity.require(Scope::Read)?;
        let files = self.configuration_files();
        let directory = files.project().and_then(Path::parent);
        let Some(entries) = directory.and_then(|directory| {
            let directory = match directory == Path::new("") {
                true => Path::new("."),
                false => directory,
            };
            std::fs::read_dir(directory).ok()
        }) else {
            return Ok(Vec::new());
        };
        let is_agent_file = |path: &PathBuf| {
            path.extension()
                .is_some_and(|extension| extension == "gram")
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut files: Vec<PathBuf> = paths.filter(is_agent_file).collect();
        files.sort();
        Ok(files)
    }
}
