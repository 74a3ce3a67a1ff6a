//! Gaps that are found when an agent cannot be loaded.

use windlass_spec::{Agent, AgentName, ToolGapReport};
use windlass_tools::ToolLibrary;

use crate::crew::CrewError;
use crate::gap::at_load;

/// The tools that an agent lacks, which could not be loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct GapAtLoad {
    /// The agent.
    pub agent: AgentName,
    /// The tools it lacks.
    pub report: ToolGapReport,
}

impl GapAtLoad {
    /// The tools that one of `agents`, or `lead`, lacks in `library`; `None` if `error` has another cause.
    #[must_use]
    pub fn of(
        error: &CrewError,
        agents: &[Agent],
        lead: &Agent,
        library: &ToolLibrary,
    ) -> Option<Self> {
        let CrewError::Binding {
            agent, failures, ..
        } = error
        else {
            return None;
        };
        let mut all = agents.iter().chain([lead]);
        let agent = all.find(|known| known.name() == agent)?;
        Some(Self {
            agent: agent.name().clone(),
            report: at_load(agent, library, failures)?,
        })
    }
}
