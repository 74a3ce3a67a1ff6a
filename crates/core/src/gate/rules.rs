//! What an operator lays down for calls, made ready for one agent: policies that were checked
//! against its tools, and what is known of their risk.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use windlass_policy::{DEFAULT_POLICIES, FloorSettings, Policies, PolicyError, named_tools};
use windlass_spec::registry::{CategoryName, Permission, RateLimits};
use windlass_spec::{Agent, AgentName, RiskLevel, TimeoutSeconds, ToolName, ToolSpecification};

use crate::approval::{DEFAULT_UNDO_WINDOW, Identity};
use crate::catalog::{CallKind, callable};
use crate::limits::{Breaker, Limit, Scope};
use crate::risk::{Annotations, Assessment, KnownTool, ToolRisk, Trust};

/// Where runs take place if nobody says.
pub const DEFAULT_ENVIRONMENT: &str = "development";

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
    /// What servers say of the tools that come from them, and whether the operator trusts them.
    pub annotations: BTreeMap<String, (Annotations, Trust)>,
    /// Tools that exist beside the agent's own: policies may name them.
    pub other_tools: Vec<Arc<ToolSpecification>>,
    /// What is laid down for single tools.
    pub tools: BTreeMap<String, ToolRule>,
    /// How often the tools of a category may be called, taken together.
    pub category_limits: BTreeMap<CategoryName, RateLimits>,
    /// Who holds what, and how often they may call.
    pub principals: BTreeMap<String, Entitlement>,
    /// What an agent may hold at most, whoever it acts for. Agents that are not here are not held
    /// back.
    pub agents: BTreeMap<String, BTreeSet<Permission>>,
    /// When a tool that keeps failing is left alone.
    pub breaker: Breaker,
    /// The digest of the configuration this comes from, if it comes from one.
    pub configuration: Option<String>,
}

/// What is laid down for one tool, here and now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolRule {
    /// The category it belongs to.
    pub category: Option<CategoryName>,
    /// What switched it off, if something did: the cause alone, as it stands in parentheses.
    pub switched_off: Option<String>,
    /// What whoever calls it must hold.
    pub demands: BTreeSet<Permission>,
    /// How often it may be called.
    pub limits: RateLimits,
    /// How long a call may take.
    pub timeout: Option<TimeoutSeconds>,
    /// The arguments that are set where a call leaves them out.
    pub parameters: Map<String, Value>,
}

/// What somebody holds, and how often they may call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entitlement {
    /// What they hold.
    pub permissions: BTreeSet<Permission>,
    /// How often they may call, whatever the tool.
    pub limits: RateLimits,
}

/// The name under which stands what everybody holds.
pub const EVERYBODY: &str = "*";

impl Default for Governance {
    fn default() -> Self {
        Self {
            policies: DEFAULT_POLICIES.to_owned(),
            floor: FloorSettings::default(),
            environment: DEFAULT_ENVIRONMENT.to_owned(),
            undo_window: DEFAULT_UNDO_WINDOW,
            overrides: BTreeMap::new(),
            http_methods: BTreeMap::new(),
            annotations: BTreeMap::new(),
            other_tools: Vec::new(),
            tools: BTreeMap::new(),
            category_limits: BTreeMap::new(),
            principals: BTreeMap::new(),
            agents: BTreeMap::new(),
            breaker: Breaker::default(),
            configuration: None,
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
    tools: BTreeMap<String, ToolRule>,
    category_limits: BTreeMap<CategoryName, RateLimits>,
    principals: BTreeMap<String, Entitlement>,
    agents: BTreeMap<String, BTreeSet<Permission>>,
    breaker: Breaker,
    configuration: Option<String>,
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
        let callable = callable(agent, agents);
        // A policy may be about tools that other agents have. Only those it names are looked at: each
        // costs time.
        let named = match governance.other_tools.is_empty() {
            true => BTreeSet::new(),
            false => named_tools(&governance.policies)?,
        };
        let is_other = |tool: &&Arc<ToolSpecification>| {
            let name = tool.name();
            callable.iter().all(|(_, own)| own.name() != name) && named.contains(name.as_str())
        };
        let others = governance.other_tools.iter().filter(is_other);
        let own = callable.iter().map(|(_, tool)| tool);
        let specifications = own.chain(others).map(AsRef::as_ref);
        let policies = Policies::load(&governance.policies, specifications)?;
        let risks = callable.iter().map(|(kind, tool)| {
            let name = tool.name();
            let method = governance.http_methods.get(name.as_str());
            let annotated = governance.annotations.get(name.as_str());
            let (annotations, trust) = annotated.copied().unwrap_or_default();
            // Questions and searches change nothing, whatever words are in them.
            let is_of_agent = matches!(kind, CallKind::Tool | CallKind::SubAgent);
            let harmless = (!is_of_agent).then_some(RiskLevel::Reversible);
            let said = governance.overrides.get(name.as_str()).copied();
            let known = KnownTool {
                operator_override: said.or(harmless),
                http_method: method.map(String::as_str),
                annotations,
                trust,
                is_of_server: annotated.is_some(),
                ..KnownTool::specified(tool)
            };
            (name.clone(), ToolRisk::of(&known))
        });
        Ok(Self {
            policies: policies.with_floor(governance.floor),
            risks: risks.collect(),
            environment: governance.environment.clone(),
            undo_window: governance.undo_window,
            tools: governance.tools.clone(),
            category_limits: governance.category_limits.clone(),
            principals: governance.principals.clone(),
            agents: governance.agents.clone(),
            breaker: governance.breaker,
            configuration: governance.configuration.clone(),
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

    /// Why a tool is switched off, if it is.
    #[must_use]
    pub fn switched_off(&self, tool: &str) -> Option<&str> {
        self.tools.get(tool)?.switched_off.as_deref()
    }

    /// How long a call of a tool may take, if that is laid down.
    #[must_use]
    pub fn timeout(&self, tool: &str) -> Option<Duration> {
        let timeout = self.tools.get(tool)?.timeout?;
        Some(Duration::from_secs(timeout.get().into()))
    }

    /// When a tool that keeps failing is left alone.
    #[must_use]
    pub fn breaker(&self) -> Breaker {
        self.breaker
    }

    /// The limits that count a call of a tool on behalf of somebody.
    #[must_use]
    pub fn limits(&self, tool: &ToolName, principal: &Identity) -> Vec<Limit> {
        let mut limits = Vec::new();
        let mut add = |scope: Scope, of: &RateLimits| {
            limits.extend(of.iter().map(|(window, count)| Limit {
                scope: scope.clone(),
                window,
                count,
            }));
        };
        if let Some(rule) = self.tools.get(tool.as_str()) {
            add(Scope::Tool(tool.clone()), &rule.limits);
            if let Some(category) = &rule.category
                && let Some(of) = self.category_limits.get(category)
            {
                add(Scope::Category(category.clone()), of);
            }
        }
        // What is laid down for somebody goes before what is for everybody, window by window.
        let of = |name: &str| self.principals.get(name).map(|held| &held.limits);
        let own = of(principal.principal.as_str());
        let everybody = of(EVERYBODY).cloned().unwrap_or_default();
        let of_principal =
            own.map_or_else(|| everybody.clone(), |own| everybody.overridden_by(own));
        add(Scope::Principal(principal.principal.clone()), &of_principal);
        limits
    }

    /// What a run holds that acts for somebody: what they hold, as far as the agent may hold it, and
    /// not more than whoever handed it the work.
    #[must_use]
    pub fn held(
        &self,
        principal: &Identity,
        agent: &AgentName,
        inherited: Option<&BTreeSet<Permission>>,
    ) -> BTreeSet<Permission> {
        let names = [principal.principal.as_str(), EVERYBODY];
        let held = names.iter().filter_map(|name| self.principals.get(*name));
        let mut held: BTreeSet<Permission> = held
            .flat_map(|standing| standing.permissions.iter().cloned())
            .collect();
        for most in [self.agents.get(agent.as_str()), inherited]
            .into_iter()
            .flatten()
        {
            held.retain(|permission| most.contains(permission));
        }
        held
    }

    /// What whoever calls a tool must hold.
    pub(crate) fn demands(
        &self,
        tool: &str,
    ) -> Option<(&BTreeSet<Permission>, Option<&CategoryName>)> {
        let rule = self.tools.get(tool)?;
        (!rule.demands.is_empty()).then_some((&rule.demands, rule.category.as_ref()))
    }

    /// The arguments of a tool that are set where a call leaves them out.
    pub(crate) fn parameters(&self, tool: &str) -> Option<&Map<String, Value>> {
        let rule = self.tools.get(tool)?;
        (!rule.parameters.is_empty()).then_some(&rule.parameters)
    }

    /// The arguments of each tool that are set where a call leaves them out, by name.
    pub fn set_arguments(&self) -> impl Iterator<Item = (&str, Vec<String>)> {
        let set = self
            .tools
            .iter()
            .filter(|(_, rule)| !rule.parameters.is_empty());
        set.map(|(tool, rule)| (tool.as_str(), rule.parameters.keys().cloned().collect()))
    }

    /// The digest of the configuration this comes from, if it comes from one.
    #[must_use]
    pub fn configuration(&self) -> Option<&str> {
        self.configuration.as_deref()
    }

    /// How long a call of a tool can be undone.
    pub(crate) fn undo_window(&self, tool: Option<&ToolSpecification>) -> Duration {
        tool.and_then(|tool| tool.attributes().undo_window_seconds)
            .map_or(self.undo_window, |seconds| {
                Duration::from_secs(seconds.into())
            })
    }
}
