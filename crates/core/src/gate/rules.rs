//! What an operator lays down for calls, made ready for one agent: policies that were checked
//! against its tools, and what is known of their risk.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::{Map, Value};
use windlass_policy::{DEFAULT_POLICIES, FloorSettings, Policies, PolicyError};
use windlass_spec::{Agent, RiskLevel, ToolName, ToolSpecification};

use crate::approval::DEFAULT_UNDO_WINDOW;
use crate::risk::{Assessment, KnownTool, ToolRisk};
use crate::run::offered;

/// Where runs take place if nobody says.
pub const DEFAULT_ENVIRONMENT: &str = "local";

/// What an operator lays down. What is not said is as the documentation says it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Governance {
    /// The policies, as text.
    pub policies: String,
    /// What the floor goes by.
    pub floor: FloorSettings,
    /// Where runs take place, such as `production`.
    pub environment: String,
    /// How long a call can be undone if its specification does not say.
    pub undo_window: Duration,
    /// How reversible tools are, whatever else speaks.
    pub overrides: BTreeMap<String, RiskLevel>,
    /// The HTTP method behind tools that are HTTP requests.
    pub http_methods: BTreeMap<String, String>,
}

impl Default for Governance {
    fn default() -> Self {
        Self {
            policies: DEFAULT_POLICIES.to_owned(),
            floor: FloorSettings::default(),
            environment: DEFAULT_ENVIRONMENT.to_owned(),
            undo_window: DEFAULT_UNDO_WINDOW,
            overrides: BTreeMap::new(),
            http_methods: BTreeMap::new(),
        }
    }
}

/// What holds for the calls of one agent.
#[derive(Debug, Clone)]
pub struct Rules {
    policies: Policies,
    risks: HashMap<ToolName, ToolRisk>,
    environment: String,
    undo_window: Duration,
}

impl Rules {
    /// What an operator lays down, made ready for an agent and those it may hand work to.
    ///
    /// # Errors
    /// Everything that is wrong with the policies.
    pub fn new(
        governance: &Governance,
        agent: &Agent,
        agents: &[Agent],
    ) -> Result<Self, Vec<PolicyError>> {
        let tools = offered(agent, agents);
        let specifications = tools.iter().map(AsRef::as_ref);
        let policies = Policies::load(&governance.policies, specifications)?;
        let risks = tools.iter().map(|tool| {
            let name = tool.name();
            let method = governance.http_methods.get(name.as_str());
            let known = KnownTool {
                operator_override: governance.overrides.get(name.as_str()).copied(),
                http_method: method.map(String::as_str),
                ..KnownTool::specified(tool)
            };
            (name.clone(), ToolRisk::of(&known))
        });
        Ok(Self {
            policies: policies.with_floor(governance.floor),
            risks: risks.collect(),
            environment: governance.environment.clone(),
            undo_window: governance.undo_window,
        })
    }

    /// How reversible a call is. What nothing is known of is irreversible.
    #[must_use]
    pub fn assess(&self, tool: &ToolName, arguments: &Map<String, Value>) -> Assessment {
        match self.risks.get(tool) {
            Some(risk) => risk.with_arguments(arguments),
            None => ToolRisk::of(&KnownTool::default()).with_arguments(arguments),
        }
    }

    /// The policies.
    #[must_use]
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Where runs take place.
    #[must_use]
    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// How long a call of a tool can be undone.
    pub(crate) fn undo_window(&self, tool: Option<&ToolSpecification>) -> Duration {
        tool.and_then(|tool| tool.attributes().undo_window_seconds)
            .map_or(self.undo_window, |seconds| {
                Duration::from_secs(seconds.into())
            })
    }
}
