//! The effective configuration: read-only, cheap to share, with an accessor for each setting.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_spec::registry::{
    Categories, CategoryName, Environment, Environments, Permission, RateLimits, ToolCategory,
    Vocabulary,
};
use windlass_spec::server::ServerSettings;
use windlass_spec::{AgentName, IsolationLevel, RiskLevel, ToolName};

use crate::build::build;
use crate::keys;
use crate::origin::Origin;
use crate::prices::PriceTable;
use crate::restrict::Restricted;
use crate::settings::{
    AgentSettings, ApprovalSettings, BreakerSettings, BudgetLimits, BudgetSettings, Ceilings,
    FileToolSettings, GapSettings, GateSettings, IntentSettings, LearningSettings, Library,
    OidcSettings, PrincipalSettings, RetentionSettings, SearchSettings, SelectionSettings,
    WebToolSettings, WebhookSettings,
};
use crate::tree::Node;

/// The name that stands for every principal.
const EVERY_PRINCIPAL: &str = "*";

/// The effective configuration, merged from all layers.
#[derive(Debug, Clone)]
pub struct Configuration {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug, Clone)]
pub(crate) struct Inner {
    pub(crate) environment: Environment,
    pub(crate) environments: Environments,
    pub(crate) model: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) libraries: Vec<Library>,
    pub(crate) policies: Option<PathBuf>,
    pub(crate) restricting_policies: Option<PathBuf>,
    pub(crate) least_risks: BTreeMap<ToolName, RiskLevel>,
    /// The tools whose category only a project's file sets.
    pub(crate) categorized_by_project: BTreeSet<ToolName>,
    pub(crate) trusted_directories: Vec<PathBuf>,
    pub(crate) data_directory: Option<PathBuf>,
    pub(crate) isolation: IsolationLevel,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) binds_compatible: bool,
    pub(crate) gate: GateSettings,
    pub(crate) approvals: ApprovalSettings,
    pub(crate) risk: BTreeMap<ToolName, RiskLevel>,
    pub(crate) principals: BTreeMap<String, PrincipalSettings>,
    pub(crate) approvers: BTreeMap<String, Vec<String>>,
    pub(crate) agents: BTreeMap<AgentName, AgentSettings>,
    pub(crate) servers: Vec<ServerSettings>,
    pub(crate) webhooks: Vec<WebhookSettings>,
    pub(crate) known_categories: Categories,
    pub(crate) categories: BTreeMap<CategoryName, Category>,
    pub(crate) category_of: BTreeMap<ToolName, CategoryName>,
    pub(crate) ceilings: Ceilings,
    pub(crate) breaker: BreakerSettings,
    pub(crate) budgets: BudgetSettings,
    pub(crate) prices: PriceTable,
    pub(crate) retention: RetentionSettings,
    pub(crate) selection: SelectionSettings,
    pub(crate) intents: IntentSettings,
    pub(crate) gaps: GapSettings,
    pub(crate) learning: LearningSettings,
    pub(crate) files: FileToolSettings,
    pub(crate) http: WebToolSettings,
    pub(crate) search: SearchSettings,
    pub(crate) automation: Option<String>,
    pub(crate) oidc: Option<OidcSettings>,
    pub(crate) tree: Node,
    pub(crate) digest: String,
}

/// A category with the settings that only the configuration has.
#[derive(Debug, Clone)]
pub(crate) struct Category {
    pub(crate) category: ToolCategory,
    pub(crate) rate_limits: RateLimits,
    /// Whether the category is enabled, for each environment that overrides it.
    pub(crate) overrides: BTreeMap<Environment, bool>,
    /// The permissions that single tools require in addition to those of the category.
    pub(crate) demands: BTreeMap<ToolName, BTreeSet<Permission>>,
}

fn own_or_shared(own: BudgetLimits, shared: BudgetLimits) -> BudgetLimits {
    BudgetLimits {
        tokens: own.tokens.or(shared.tokens),
        money: own.money.or(shared.money),
    }
}

impl Default for Configuration {
    /// The built-in values of all keys.
    fn default() -> Self {
        build(keys::built_in(), &Restricted::default())
    }
}

impl Configuration {
    /// The current environment.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.inner.environment
    }

    /// The same configuration in another environment.
    #[must_use]
    pub fn in_environment(&self, environment: &Environment) -> Self {
        let mut inner = Inner::clone(&self.inner);
        inner.environment = environment.clone();
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The environments that exist.
    #[must_use]
    pub fn environments(&self) -> &Environments {
        &self.inner.environments
    }

    /// The model that agents use instead of the one they declare.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.inner.model.as_deref()
    }

    /// The base URL of the model, if it is not its provider's usual one.
    #[must_use]
    pub fn base_url(&self) -> Option<&str> {
        self.inner.base_url.as_deref()
    }

    /// Where the tools come from.
    #[must_use]
    pub fn libraries(&self) -> &[Library] {
        &self.inner.libraries
    }

    /// The file with the policies. Without it, the built-in policies apply.
    #[must_use]
    pub fn policies(&self) -> Option<&Path> {
        self.inner.policies.as_deref()
    }

    /// The file with the policies of a project that restrict all other policies, if there is one.
    #[must_use]
    pub fn restricting_policies(&self) -> Option<&Path> {
        self.inner.restricting_policies.as_deref()
    }

    /// The least risk of tools, whatever the other sources are: a project that is not trusted can only raise the
    /// risk of a tool.
    #[must_use]
    pub fn least_risks(&self) -> &BTreeMap<ToolName, RiskLevel> {
        &self.inner.least_risks
    }

    /// The directories whose projects are trusted.
    #[must_use]
    pub fn trusted_directories(&self) -> &[PathBuf] {
        &self.inner.trusted_directories
    }

    /// The directory where runs are stored, if it is set.
    #[must_use]
    pub fn data_directory(&self) -> Option<&Path> {
        self.inner.data_directory.as_deref()
    }

    /// How strictly programs are isolated.
    #[must_use]
    pub fn isolation(&self) -> IsolationLevel {
        self.inner.isolation
    }

    /// The permissions that exist.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.inner.vocabulary
    }

    /// Whether an implementation may accept more than its specification allows. Otherwise their schemas must be
    /// equal.
    #[must_use]
    pub fn binds_compatible(&self) -> bool {
        self.inner.binds_compatible
    }

    /// The settings of the gate that every call passes before it runs.
    #[must_use]
    pub fn gate(&self) -> GateSettings {
        self.inner.gate
    }

    /// The settings of questions to people.
    #[must_use]
    pub fn approvals(&self) -> ApprovalSettings {
        self.inner.approvals
    }

    /// How reversible tools are. Takes precedence over every other source.
    #[must_use]
    pub fn risk(&self) -> &BTreeMap<ToolName, RiskLevel> {
        &self.inner.risk
    }

    /// The principals that the configuration names. `*` stands for every principal.
    #[must_use]
    pub fn principals(&self) -> &BTreeMap<String, PrincipalSettings> {
        &self.inner.principals
    }

    /// The members of the groups of approvers, by the name of the group.
    #[must_use]
    pub fn approvers(&self) -> &BTreeMap<String, Vec<String>> {
        &self.inner.approvers
    }

    /// The permissions, rate limits and budgets of a principal. Permissions are those granted to it and to `*`.
    /// Each rate limit is its own, else that of `*`, and never above the ceiling. Each budget is its own, else that
    /// of `*`.
    #[must_use]
    pub fn principal(&self, name: &str) -> PrincipalSettings {
        let of = |name: &str| self.inner.principals.get(name).cloned().unwrap_or_default();
        let (shared, own) = (of(EVERY_PRINCIPAL), of(name));
        let limits = shared.rate_limits.overridden_by(&own.rate_limits);
        PrincipalSettings {
            permissions: &shared.permissions | &own.permissions,
            rate_limits: limits.capped_at(&self.inner.ceilings.rate_limits),
            budgets: BudgetSettings {
                run: own_or_shared(own.budgets.run, shared.budgets.run),
                day: own_or_shared(own.budgets.day, shared.budgets.day),
            },
        }
    }

    /// The permissions of an agent that acts for a principal: those of the principal, restricted to
    /// those that the agent may use.
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

    /// The agents that the configuration names.
    #[must_use]
    pub fn agents(&self) -> &BTreeMap<AgentName, AgentSettings> {
        &self.inner.agents
    }

    /// The MCP servers of the configuration, in the order of their names. Includes disabled servers.
    #[must_use]
    pub fn servers(&self) -> &[ServerSettings] {
        &self.inner.servers
    }

    /// Who is notified of events, in the order of their names. Includes disabled webhooks.
    #[must_use]
    pub fn webhooks(&self) -> &[WebhookSettings] {
        &self.inner.webhooks
    }

    /// The categories that exist, predefined or declared.
    #[must_use]
    pub fn known_categories(&self) -> &Categories {
        &self.inner.known_categories
    }

    /// The categories that the configuration names.
    pub fn categories(&self) -> impl Iterator<Item = &ToolCategory> {
        self.inner.categories.values().map(|known| &known.category)
    }

    /// Limits that no other value of the configuration can exceed.
    #[must_use]
    pub fn ceilings(&self) -> &Ceilings {
        &self.inner.ceilings
    }

    /// The circuit breaker for tools that keep failing.
    #[must_use]
    pub fn breaker(&self) -> BreakerSettings {
        self.inner.breaker
    }

    /// What all runs may use up. Agents and principals have their own budgets in addition.
    #[must_use]
    pub fn budgets(&self) -> BudgetSettings {
        self.inner.budgets
    }

    /// What models cost.
    #[must_use]
    pub fn prices(&self) -> &PriceTable {
        &self.inner.prices
    }

    /// How long what is stored about ended runs is kept.
    #[must_use]
    pub fn retention(&self) -> RetentionSettings {
        self.inner.retention
    }

    /// Which tools a model is shown when there are many.
    #[must_use]
    pub fn selection(&self) -> &SelectionSettings {
        &self.inner.selection
    }

    /// The intents of user requests.
    #[must_use]
    pub fn intents(&self) -> &IntentSettings {
        &self.inner.intents
    }

    /// The detection of missing tools.
    #[must_use]
    pub fn gaps(&self) -> GapSettings {
        self.inner.gaps
    }

    /// The settings for learning from runs.
    #[must_use]
    pub fn learning(&self) -> &LearningSettings {
        &self.inner.learning
    }

    /// What the built-in file tools may do.
    #[must_use]
    pub fn files(&self) -> &FileToolSettings {
        &self.inner.files
    }

    /// What the built-in web tools may do.
    #[must_use]
    pub fn http(&self) -> &WebToolSettings {
        &self.inner.http
    }

    /// The settings of the built-in web search.
    #[must_use]
    pub fn search(&self) -> &SearchSettings {
        &self.inner.search
    }

    /// The address of a service that drives a browser, if one is set.
    #[must_use]
    pub fn automation_endpoint(&self) -> Option<&str> {
        self.inner.automation.as_deref()
    }

    /// The issuer whose tokens the server accepts, if there is one.
    #[must_use]
    pub fn oidc(&self) -> Option<&OidcSettings> {
        self.inner.oidc.as_ref()
    }

    /// A short digest of all effective values, independent of their origins.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.inner.digest
    }

    /// The origin of a key's value, such as that of `gate.undo_window_seconds`.
    #[must_use]
    pub fn origin(&self, key: &[&str]) -> Option<&Origin> {
        self.inner.tree.at(key).map(|node| &node.origin)
    }
}
