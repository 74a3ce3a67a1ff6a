//! The registry: applies an operator's configuration to a crew. Files are read and watched here,
//! `windlass-config` interprets them, and the gate decides about calls.

mod files;
mod scan;
mod stamp;
mod trust;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use windlass_config::{ConfigMistake, Configuration, UntrustedSetting, WithoutConfidence};
use windlass_core::approval::Principal;
use windlass_core::gate::{Entitlement, Governance, ToolRule};
use windlass_core::limits::Breaker;
use windlass_policy::{DEFAULT_POLICIES, FloorSettings, Unstated};
use windlass_spec::{Agent, ToolName, ToolSpecification};

use crate::gap::GapCheck;
use crate::intake::Intake;
use crate::intents::Intents;
use crate::learning::Learning;
use crate::money::MoneySettings;
use crate::ranking::ToolIndexes;

pub use files::{ConfigurationFiles, FileTexts, PROJECT_FILE};
pub use scan::{LibraryScan, read_text};
pub use trust::{
    ProjectSubject, ProjectTrust, TrustDifference, TrustGrants, TrustRecord, TrustRecords,
};
pub use watch::{ConfigurationWatch, LibraryOf, OnReload, Reload, watch_configuration};

/// The length of a configuration's digest in bytes.
const DIGEST_BYTES: usize = 8;

/// A configuration, with the policies it names.
#[derive(Debug, Clone)]
pub struct Configured {
    /// The configuration.
    pub configuration: Configuration,
    /// Warnings about probable mistakes.
    pub warnings: Vec<ConfigMistake>,
    /// The text of the policies.
    pub policies: String,
    /// The file of that text; `None` for the built-in policies.
    pub policy_file: Option<PathBuf>,
    /// The texts of policies that only restrict these.
    pub restricting_policies: Vec<String>,
    /// The settings of the project that have no effect because it is not trusted.
    pub untrusted: Vec<UntrustedSetting>,
    /// Whether the project is trusted.
    pub trust: ProjectTrust,
}

impl Default for Configured {
    fn default() -> Self {
        Self {
            configuration: Configuration::default(),
            warnings: Vec::new(),
            policies: DEFAULT_POLICIES.to_owned(),
            policy_file: None,
            restricting_policies: Vec::new(),
            untrusted: Vec::new(),
            trust: ProjectTrust::default(),
        }
    }
}

/// Why there is no configuration.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConfigurationError {
    /// A file cannot be read.
    #[error("the {what} `{path}` cannot be read: {why}")]
    Unreadable {
        /// What kind of file it is.
        what: &'static str,
        /// Its path.
        path: String,
        /// Why.
        why: String,
    },
    /// The configuration has mistakes.
    #[error("{}", mistakes_message(.0))]
    Mistakes(Vec<ConfigMistake>),
}

fn mistakes_message(mistakes: &[ConfigMistake]) -> String {
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    let count = mistakes.iter().filter(|mistake| mistake.is_error()).count();
    let noun = if count == 1 { "error" } else { "errors" };
    format!("the configuration has {count} {noun}\n{}", lines.join("\n"))
}

impl Configured {
    /// The rules that the configuration sets for the calls of agents.
    #[must_use]
    pub fn governance<'a>(&self, agents: impl IntoIterator<Item = &'a Agent>) -> Governance {
        let configuration = &self.configuration;
        let mut governance = Governance {
            policies: self.policies.clone(),
            restricting_policies: self.restricting_policies.clone(),
            environment: configuration.environment().to_string(),
            undo_window: configuration.gate().undo_window,
            approval_expiry: configuration.approvals().expiry,
            floor: self.floor(),
            overrides: configuration
                .risk()
                .iter()
                .map(|(tool, risk)| (tool.to_string(), *risk))
                .collect(),
            least_risks: configuration
                .least_risks()
                .iter()
                .map(|(tool, risk)| (tool.to_string(), *risk))
                .collect(),
            principals: configuration
                .principals()
                .iter()
                .map(|(name, held)| {
                    let entitlement = Entitlement {
                        permissions: held.permissions.clone(),
                        limits: held.rate_limits.clone(),
                    };
                    (name.clone(), entitlement)
                })
                .collect(),
            approvers: configuration
                .approvers()
                .iter()
                .map(|(group, members)| {
                    let members = members.iter();
                    let members = members.filter_map(|name| Principal::new(name.as_str()).ok());
                    (group.clone(), members.collect())
                })
                .collect(),
            agents: configuration
                .agents()
                .iter()
                .filter_map(|(name, agent)| Some((name.to_string(), agent.permissions.clone()?)))
                .collect(),
            breaker: Breaker {
                failures: NonZeroU32::new(configuration.breaker().failures)
                    .unwrap_or(NonZeroU32::MIN),
                cooldown: configuration.breaker().cooldown,
            },
            configuration: Some(self.digest()),
            ..Governance::default()
        };
        for (name, tool) in callable(agents) {
            let settings = configuration.tool(&name, tool);
            if let Some(category) = &settings.category {
                let limits = settings.category_rate_limits.clone();
                governance.category_limits.insert(category.clone(), limits);
            }
            let rule = ToolRule {
                category: settings.category,
                switched_off: settings.switched_off.map(|off| off.cause()),
                demands: settings.demands,
                limits: settings.rate_limits,
                timeout: Some(settings.timeout),
                parameters: settings.parameters,
            };
            governance.tools.insert(name.to_string(), rule);
        }
        governance
    }

    /// A short digest of the configuration and the policies.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.configuration.digest());
        hash.update([0]);
        hash.update(&self.policies);
        for restricting in &self.restricting_policies {
            hash.update([0]);
            hash.update(restricting);
        }
        let bytes = hash.finalize();
        bytes
            .iter()
            .take(DIGEST_BYTES)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// The settings of the built-in floor.
    #[must_use]
    pub fn floor(&self) -> FloorSettings {
        let gate = self.configuration.gate();
        FloorSettings {
            confidence_threshold: gate.confidence_threshold,
            unstated_confidence: match gate.without_confidence {
                WithoutConfidence::Hold => Unstated::Hold,
                WithoutConfidence::Ask => Unstated::Ask,
            },
        }
    }

    /// The intake settings of the configuration.
    pub(crate) fn intake(&self) -> Intake {
        let selection = self.configuration.selection();
        Intake {
            token_budget: usize::try_from(selection.token_budget).unwrap_or(usize::MAX),
            always: selection.always.clone(),
            intents: Intents::of(&self.configuration).map(Arc::new),
            gaps: GapCheck::of(&self.configuration),
            learning: self.learning(),
            indexes: ToolIndexes::default(),
            isolation: self.configuration.isolation(),
            money: MoneySettings::of(&self.configuration),
        }
    }

    /// The learning settings of the configuration; `None` if learning is disabled.
    #[must_use]
    pub fn learning(&self) -> Option<Learning> {
        Learning::of(&self.configuration)
    }

    /// Checks the configuration against the tools of agents. Returns everything that does not fit.
    #[must_use]
    pub fn check<'a>(&self, agents: impl IntoIterator<Item = &'a Agent>) -> Vec<ConfigMistake> {
        let mut seen = BTreeSet::new();
        let tools: Vec<ToolSpecification> = agents
            .into_iter()
            .flat_map(Agent::tools)
            .filter(|tool| seen.insert(tool.name().clone()))
            .map(|tool| (**tool).clone())
            .collect();
        self.configuration.check_tools(&tools)
    }
}

/// The names that calls of the agents may use: their tools, and the agents themselves.
fn callable<'a>(
    agents: impl IntoIterator<Item = &'a Agent>,
) -> BTreeMap<ToolName, Option<&'a ToolSpecification>> {
    let mut callable = BTreeMap::new();
    for agent in agents {
        for tool in agent.tools() {
            callable.insert(tool.name().clone(), Some(&**tool));
        }
        if let Ok(name) = ToolName::new(agent.name().as_str()) {
            callable.entry(name).or_insert(None);
        }
    }
    callable
}
