//! The configuration that holds: read-only, cheap to share, with accessors for everything in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_spec::registry::{
    Categories, CategoryName, Environment, Environments, Permission, RateLimits, ToolCategory,
    Vocabulary,
};
use windlass_spec::server::ServerSettings;
use windlass_spec::{AgentName, RiskLevel, ToolName};

use crate::build::build;
use crate::keys;
use crate::origin::Origin;
use crate::settings::{
    AgentSettings, Breaker, Ceilings, Files, Gaps, Gate, Http, Intents, Learning, Library,
    Principal, Search, Selection,
};
use crate::tree::Node;

/// The principal that stands for everybody.
const EVERYBODY: &str = "*";

/// The configuration that holds.
#[derive(Debug, Clone)]
pub struct Configuration {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) environment: Environment,
    pub(crate) environments: Environments,
    pub(crate) model: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) libraries: Vec<Library>,
    pub(crate) policies: Option<PathBuf>,
    pub(crate) data_directory: Option<PathBuf>,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) gate: Gate,
    pub(crate) risk: BTreeMap<ToolName, RiskLevel>,
    pub(crate) principals: BTreeMap<String, Principal>,
    pub(crate) agents: BTreeMap<AgentName, AgentSettings>,
    pub(crate) servers: Vec<ServerSettings>,
    pub(crate) known_categories: Categories,
    pub(crate) categories: BTreeMap<CategoryName, Category>,
    pub(crate) category_of: BTreeMap<ToolName, CategoryName>,
    pub(crate) ceilings: Ceilings,
    pub(crate) breaker: Breaker,
    pub(crate) selection: Selection,
    pub(crate) intents: Intents,
    pub(crate) gaps: Gaps,
    pub(crate) learning: Learning,
    pub(crate) files: Files,
    pub(crate) http: Http,
    pub(crate) search: Search,
    pub(crate) automation: Option<String>,
    pub(crate) tree: Node,
    pub(crate) digest: String,
}

/// A category with what only the configuration knows of it.
#[derive(Debug)]
pub(crate) struct Category {
    pub(crate) category: ToolCategory,
    pub(crate) rate_limits: RateLimits,
    /// Whether it is on in environments that say so.
    pub(crate) overrides: BTreeMap<Environment, bool>,
    /// What single tools demand beside what all of them do.
    pub(crate) demands: BTreeMap<ToolName, BTreeSet<Permission>>,
}

impl Default for Configuration {
    /// What holds if nobody says anything.
    fn default() -> Self {
        build(keys::built_in())
    }
}

impl Configuration {
    /// Which of the environments this is.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.inner.environment
    }

    /// The environments that exist.
    #[must_use]
    pub fn environments(&self) -> &Environments {
        &self.inner.environments
    }

    /// The model that agents are given in place of the one they declare.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.inner.model.as_deref()
    }

    /// Where the model is asked, if not where its provider usually is.
    #[must_use]
    pub fn base_url(&self) -> Option<&str> {
        self.inner.base_url.as_deref()
    }

    /// Where the tools come from.
    #[must_use]
    pub fn libraries(&self) -> &[Library] {
        &self.inner.libraries
    }

    /// The file with the policies; without it the built-in ones hold.
    #[must_use]
    pub fn policies(&self) -> Option<&Path> {
        self.inner.policies.as_deref()
    }

    /// Where runs are kept, if it is set.
    #[must_use]
    pub fn data_directory(&self) -> Option<&Path> {
        self.inner.data_directory.as_deref()
    }

    /// The permissions that exist.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.inner.vocabulary
    }

    /// What every call passes before it runs.
    #[must_use]
    pub fn gate(&self) -> Gate {
        self.inner.gate
    }

    /// How reversible tools are, whatever else speaks.
    #[must_use]
    pub fn risk(&self) -> &BTreeMap<ToolName, RiskLevel> {
        &self.inner.risk
    }

    /// The principals that the configuration speaks about; `*` is everybody.
    #[must_use]
    pub fn principals(&self) -> &BTreeMap<String, Principal> {
        &self.inner.principals
    }

    /// What a principal holds: what is granted to it and to everybody. Its rate limits are its own
    /// where it has any, else everybody's, and in no window above the ceiling.
    #[must_use]
    pub fn principal(&self, name: &str) -> Principal {
        let of = |name: &str| self.inner.principals.get(name).cloned().unwrap_or_default();
        let (everybody, own) = (of(EVERYBODY), of(name));
        let limits = everybody.rate_limits.overridden_by(&own.rate_limits);
        Principal {
            permissions: &everybody.permissions | &own.permissions,
            rate_limits: limits.capped_at(&self.inner.ceilings.rate_limits),
        }
    }

    /// What counts when an agent acts for a principal: what the principal holds, narrowed to what
    /// the agent may use.
    #[must_use]
    pub fn permissions(&self, principal: &str, agent: &AgentName) -> BTreeSet<Permission> {
        let held = self.principal(principal).permissions;
        match self
            .inner
            .agents
            .get(agent)
            .and_then(|agent| agent.permissions.as_ref())
        {
            Some(allowed) => &held & allowed,
            None => held,
        }
    }

    /// The agents that the configuration speaks about.
    #[must_use]
    pub fn agents(&self) -> &BTreeMap<AgentName, AgentSettings> {
        &self.inner.agents
    }

    /// The MCP servers that the configuration names, also those that are switched off, by name.
    #[must_use]
    pub fn servers(&self) -> &[ServerSettings] {
        &self.inner.servers
    }

    /// The categories that exist, predefined or declared.
    #[must_use]
    pub fn known_categories(&self) -> &Categories {
        &self.inner.known_categories
    }

    /// The categories that the configuration speaks about.
    pub fn categories(&self) -> impl Iterator<Item = &ToolCategory> {
        self.inner.categories.values().map(|known| &known.category)
    }

    /// Limits that nothing else in the configuration exceeds.
    #[must_use]
    pub fn ceilings(&self) -> &Ceilings {
        &self.inner.ceilings
    }

    /// When a tool that keeps failing is left alone.
    #[must_use]
    pub fn breaker(&self) -> Breaker {
        self.inner.breaker
    }

    /// Which tools a model is shown when there are many.
    #[must_use]
    pub fn selection(&self) -> &Selection {
        &self.inner.selection
    }

    /// What people want.
    #[must_use]
    pub fn intents(&self) -> &Intents {
        &self.inner.intents
    }

    /// What is found out about tools that a task lacks.
    #[must_use]
    pub fn gaps(&self) -> Gaps {
        self.inner.gaps
    }

    /// What runs teach.
    #[must_use]
    pub fn learning(&self) -> &Learning {
        &self.inner.learning
    }

    /// What the built-in file tools may do.
    #[must_use]
    pub fn files(&self) -> &Files {
        &self.inner.files
    }

    /// What the built-in web tools may do.
    #[must_use]
    pub fn http(&self) -> &Http {
        &self.inner.http
    }

    /// Where the built-in web search asks.
    #[must_use]
    pub fn search(&self) -> &Search {
        &self.inner.search
    }

    /// The address of a service that drives a browser, if one is set.
    #[must_use]
    pub fn automation_endpoint(&self) -> Option<&str> {
        self.inner.automation.as_deref()
    }

    /// A short digest of everything that holds, the same wherever it comes from.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.inner.digest
    }

    /// Where the value of a key comes from, such as that of `gate.undo_window_seconds`.
    #[must_use]
    pub fn origin(&self, key: &[&str]) -> Option<&Origin> {
        self.inner.tree.at(key).map(|node| &node.origin)
    }
}
