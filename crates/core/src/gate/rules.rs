//! The operator's rules for the calls of one agent: policies checked against its tools, and the known
//! risk of these tools.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use windlass_policy::{
    DEFAULT_POLICIES, FloorSettings, GroupDemand, ParsedPolicies, Policies, PolicyError, Request,
};
use windlass_spec::registry::{CategoryName, Permission, RateLimits};
use windlass_spec::{Agent, AgentName, RiskLevel, TimeoutSeconds, ToolName, ToolSpecification};

use super::terms::ApproverGroups;
use crate::approval::{DEFAULT_EXPIRY, DEFAULT_UNDO_WINDOW, TenantPrincipal};
use crate::catalog::{CallKind, callable};
use crate::limits::{Breaker, Limit, LimitScope};
use crate::risk::{Annotations, Assessment, KnownTool, ToolRisk, Trust};

/// The environment of runs, unless another one is set.
pub const DEFAULT_ENVIRONMENT: &str = "development";

/// The settings of an operator. Defaults are as documented.
#[derive(Debug, Clone, PartialEq)]
pub struct Governance {
    /// The policies, as text.
    pub policies: String,
    /// Further policies, as text. They can only restrict what the others permit.
    pub restricting_policies: Vec<String>,
    /// The settings of the floor.
    pub floor: FloorSettings,
    /// The environment of runs, such as `production`.
    pub environment: String,
    /// The undo window of calls whose specification sets none.
    pub undo_window: Duration,
    /// How long an approver has to decide, unless the question sets an earlier time.
    pub approval_expiry: Duration,
    /// The risk of tools, overriding all other sources.
    pub overrides: BTreeMap<String, RiskLevel>,
    /// The least risk of tools, whatever the other sources are.
    pub least_risks: BTreeMap<String, RiskLevel>,
    /// The HTTP method behind tools that are HTTP requests.
    pub http_methods: BTreeMap<String, String>,
    /// The annotations of servers about their tools, and whether the operator trusts the server.
    pub annotations: BTreeMap<String, (Annotations, Trust)>,
    /// Tools of other agents that policies may name.
    pub other_tools: Vec<Arc<ToolSpecification>>,
    /// The rules of single tools.
    pub tools: BTreeMap<String, ToolRule>,
    /// The rate limits of all tools of a category together.
    pub category_limits: BTreeMap<CategoryName, RateLimits>,
    /// The permissions and rate limits of principals.
    pub principals: BTreeMap<String, Entitlement>,
    /// The permissions that an agent may hold at most, whatever its principal holds. Agents that are
    /// absent are not limited.
    pub agents: BTreeMap<String, BTreeSet<Permission>>,
    /// When a failing tool is paused.
    pub breaker: Breaker,
    /// The groups of approvers that policies may name.
    pub approvers: ApproverGroups,
    /// The digest of the configuration these settings come from, if any.
    pub configuration: Option<String>,
}

/// The rules of one tool in the current environment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolRule {
    /// The category it belongs to.
    pub category: Option<CategoryName>,
    /// Why it is switched off, if it is: the cause only, as shown in parentheses.
    pub switched_off: Option<String>,
    /// The permissions that a caller must hold.
    pub demands: BTreeSet<Permission>,
    /// Its rate limits.
    pub limits: RateLimits,
    /// The time limit of a call.
    pub timeout: Option<TimeoutSeconds>,
    /// The arguments to set where a call omits them.
    pub parameters: Map<String, Value>,
}

/// The permissions and rate limits of a principal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entitlement {
    /// The permissions.
    pub permissions: BTreeSet<Permission>,
    /// The rate limits of all calls, whatever the tool.
    pub limits: RateLimits,
}

/// The name of the entry that applies to every principal.
pub const EVERYBODY: &str = "*";

impl Default for Governance {
    fn default() -> Self {
        Self {
            policies: DEFAULT_POLICIES.to_owned(),
            restricting_policies: Vec::new(),
            floor: FloorSettings::default(),
            environment: DEFAULT_ENVIRONMENT.to_owned(),
            undo_window: DEFAULT_UNDO_WINDOW,
            approval_expiry: DEFAULT_EXPIRY,
            overrides: BTreeMap::new(),
            least_risks: BTreeMap::new(),
            http_methods: BTreeMap::new(),
            annotations: BTreeMap::new(),
            other_tools: Vec::new(),
            tools: BTreeMap::new(),
            category_limits: BTreeMap::new(),
            principals: BTreeMap::new(),
            agents: BTreeMap::new(),
            breaker: Breaker::default(),
            approvers: ApproverGroups::new(),
            configuration: None,
        }
    }
}

/// The rules for the calls of one agent.
#[derive(Debug, Clone)]
pub struct Rules {
    policies: Policies,
    restricting_policies: Vec<Policies>,
    risks: HashMap<ToolName, ToolRisk>,
    environment: String,
    undo_window: Duration,
    approval_expiry: Duration,
    tools: BTreeMap<String, ToolRule>,
    category_limits: BTreeMap<CategoryName, RateLimits>,
    principals: BTreeMap<String, Entitlement>,
    agents: BTreeMap<String, BTreeSet<Permission>>,
    breaker: Breaker,
    approvers: ApproverGroups,
    configuration: Option<String>,
}

impl Rules {
    /// Prepares the settings of an operator for an agent and those it may delegate to.
    ///
    /// # Errors
    /// All errors in the policies.
    pub fn new(
        governance: &Governance,
        agent: &Agent,
        agents: &[Agent],
    ) -> Result<Self, Vec<PolicyError>> {
        let callable = callable(agent, agents);
        // A policy may name tools of other agents. Only those it names are checked, because each takes
        // time.
        let parsed = ParsedPolicies::parse(&governance.policies)?;
        let restricting = governance.restricting_policies.iter();
        let restricting = restricting
            .map(|text| ParsedPolicies::parse(text))
            .collect::<Result<Vec<_>, Vec<PolicyError>>>()?;
        let mut named = BTreeSet::new();
        if !governance.other_tools.is_empty() {
            for policies in std::iter::once(&parsed).chain(&restricting) {
                named.extend(policies.named_tools()?);
            }
        }
        let is_other = |tool: &&Arc<ToolSpecification>| {
            let name = tool.name();
            callable.iter().all(|(_, own)| own.name() != name) && named.contains(name.as_str())
        };
        let others = governance.other_tools.iter().filter(is_other);
        let own = callable.iter().map(|(_, tool)| tool);
        let specifications = own.chain(others).map(AsRef::as_ref);
        let groups: BTreeSet<&str> = governance.approvers.keys().map(String::as_str).collect();
        let load = |parsed: &ParsedPolicies| {
            let policies = parsed.load(specifications.clone())?;
            policies.check_groups(&groups)?;
            Ok(policies.with_floor(governance.floor))
        };
        let policies = load(&parsed)?;
        let restricting_policies = restricting
            .iter()
            .map(load)
            .collect::<Result<_, Vec<PolicyError>>>()?;
        let risks = callable.iter().map(|(kind, tool)| {
            let name = tool.name();
            let method = governance.http_methods.get(name.as_str());
            let annotated = governance.annotations.get(name.as_str());
            let (annotations, trust) = annotated.copied().unwrap_or_default();
            // Questions and searches change nothing, whatever words they contain.
            let is_of_agent = matches!(kind, CallKind::Tool | CallKind::SubAgent);
            let reversible = (!is_of_agent).then_some(RiskLevel::Reversible);
            let overridden = governance.overrides.get(name.as_str()).copied();
            let known = KnownTool {
                operator_override: overridden.or(reversible),
                at_least: governance.least_risks.get(name.as_str()).copied(),
                http_method: method.map(String::as_str),
                annotations,
                trust,
                is_from_server: annotated.is_some(),
                ..KnownTool::specified(tool)
            };
            (name.clone(), ToolRisk::of(&known))
        });
        Ok(Self {
            policies,
            restricting_policies,
            risks: risks.collect(),
            environment: governance.environment.clone(),
            undo_window: governance.undo_window,
            approval_expiry: governance.approval_expiry,
            tools: governance.tools.clone(),
            category_limits: governance.category_limits.clone(),
            principals: governance.principals.clone(),
            agents: governance.agents.clone(),
            breaker: governance.breaker,
            approvers: governance.approvers.clone(),
            configuration: governance.configuration.clone(),
        })
    }

    /// The risk of a call. An unknown tool is irreversible.
    #[must_use]
    pub fn assess(&self, tool: &ToolName, arguments: &Map<String, Value>) -> Assessment {
        match self.risks.get(tool) {
            Some(risk) => risk.with_arguments(arguments),
            None => ToolRisk::of(&KnownTool::default()).with_arguments(arguments),
        }
    }

    /// The policies that decide, without those that only restrict them.
    #[must_use]
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// The decision of all policies about a call: the strictest one.
    #[must_use]
    pub(crate) fn decide_by_policies(&self, request: &Request<'_>) -> windlass_policy::Decision {
        let first = self.policies.decide(request);
        let others = self.restricting_policies.iter();
        others.fold(first, |strictest, policies| {
            let decided = policies.decide(request);
            let security_level = decided.security_level.max(strictest.security_level);
            let is_stricter =
                (decided.verdict, decided.policies) > (strictest.verdict, strictest.policies);
            let approvers = both_demands(&strictest.approvers, &decided.approvers);
            let usual = self.approval_expiry.as_secs();
            let expires_seconds = match (strictest.expires_seconds, decided.expires_seconds) {
                (set, None) => set,
                (set, Some(other)) => Some(set.unwrap_or(usual).min(other)),
            };
            let stricter = if is_stricter { decided } else { strictest };
            windlass_policy::Decision {
                security_level,
                approvers,
                expires_seconds,
                ..stricter
            }
        })
    }

    /// The groups of approvers.
    pub(crate) fn approvers(&self) -> &ApproverGroups {
        &self.approvers
    }

    /// The settings of the floor.
    #[must_use]
    pub fn floor(&self) -> &FloorSettings {
        self.policies.floor()
    }

    /// The environment of runs.
    #[must_use]
    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// Why a tool is switched off, if it is.
    #[must_use]
    pub fn switched_off(&self, tool: &str) -> Option<&str> {
        self.tools.get(tool)?.switched_off.as_deref()
    }

    /// The time limit of a call of a tool, if one is set.
    #[must_use]
    pub fn timeout(&self, tool: &str) -> Option<Duration> {
        let timeout = self.tools.get(tool)?.timeout?;
        Some(Duration::from_secs(timeout.get().into()))
    }

    /// When a failing tool is paused.
    #[must_use]
    pub fn breaker(&self) -> Breaker {
        self.breaker
    }

    /// The rate limits that apply to a call of a tool on behalf of a principal.
    #[must_use]
    pub fn limits(&self, tool: &ToolName, principal: &TenantPrincipal) -> Vec<Limit> {
        let mut limits = Vec::new();
        let mut add = |scope: LimitScope, of: &RateLimits| {
            limits.extend(of.iter().map(|(window, count)| Limit {
                scope: scope.clone(),
                window,
                count,
            }));
        };
        if let Some(rule) = self.tools.get(tool.as_str()) {
            add(LimitScope::Tool(tool.clone()), &rule.limits);
            if let Some(category) = &rule.category
                && let Some(of) = self.category_limits.get(category)
            {
                add(LimitScope::Category(category.clone()), of);
            }
        }
        // Limits of a principal override those of every principal, window by window.
        let of = |name: &str| self.principals.get(name).map(|held| &held.limits);
        let own = of(principal.principal.as_str());
        let everybody = of(EVERYBODY).cloned().unwrap_or_default();
        let of_principal =
            own.map_or_else(|| everybody.clone(), |own| everybody.overridden_by(own));
        add(
            LimitScope::Principal(principal.principal.clone()),
            &of_principal,
        );
        limits
    }

    /// The permissions of a run: those of its principal, limited to those of the agent and of the run
    /// that delegated the work.
    #[must_use]
    pub fn permissions(
        &self,
        principal: &TenantPrincipal,
        agent: &AgentName,
        inherited: Option<&BTreeSet<Permission>>,
    ) -> BTreeSet<Permission> {
        let names = [principal.principal.as_str(), EVERYBODY];
        let held = names.iter().filter_map(|name| self.principals.get(*name));
        let mut held: BTreeSet<Permission> = held
            .flat_map(|entitlement| entitlement.permissions.iter().cloned())
            .collect();
        for limit in [self.agents.get(agent.as_str()), inherited]
            .into_iter()
            .flatten()
        {
            held.retain(|permission| limit.contains(permission));
        }
        held
    }

    /// The permissions that a caller of a tool must hold, and the category of the tool.
    pub(crate) fn demands(
        &self,
        tool: &str,
    ) -> Option<(&BTreeSet<Permission>, Option<&CategoryName>)> {
        let rule = self.tools.get(tool)?;
        (!rule.demands.is_empty()).then_some((&rule.demands, rule.category.as_ref()))
    }

    /// The arguments of a tool to set where a call omits them.
    pub(crate) fn parameters(&self, tool: &str) -> Option<&Map<String, Value>> {
        let rule = self.tools.get(tool)?;
        (!rule.parameters.is_empty()).then_some(&rule.parameters)
    }

    /// The names of the arguments of each tool that are set where a call omits them.
    pub fn set_arguments(&self) -> impl Iterator<Item = (&str, Vec<String>)> {
        let set = self
            .tools
            .iter()
            .filter(|(_, rule)| !rule.parameters.is_empty());
        set.map(|(tool, rule)| (tool.as_str(), rule.parameters.keys().cloned().collect()))
    }

    /// The digest of the configuration these rules come from, if any.
    #[must_use]
    pub fn configuration(&self) -> Option<&str> {
        self.configuration.as_deref()
    }

    /// How long an approver has to decide.
    pub(crate) const fn approval_expiry(&self) -> Duration {
        self.approval_expiry
    }

    /// The undo window of a call of a tool.
    pub(crate) fn undo_window(&self, tool: Option<&ToolSpecification>) -> Duration {
        tool.and_then(|tool| tool.attributes().undo_window_seconds)
            .map_or(self.undo_window, |seconds| {
                Duration::from_secs(seconds.into())
            })
    }
}

/// The demands of both: the others can only add groups, or raise the number of approvers of a group.
fn both_demands(demands: &[GroupDemand], others: &[GroupDemand]) -> Vec<GroupDemand> {
    let mut both = demands.to_vec();
    for other in others {
        match both.iter_mut().find(|demand| demand.group == other.group) {
            Some(demand) => demand.count = demand.count.max(other.count),
            None => both.push(other.clone()),
        }
    }
    both
}
