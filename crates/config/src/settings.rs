//! The tables of a configuration as checked values.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use windlass_spec::registry::{Permission, RateLimits};
use windlass_spec::server::{EnvTemplate, ServerName};
use windlass_spec::{Confidence, Money, NonEmptyText, TimeoutSeconds, ToolName};

/// A source of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Library {
    /// The tools that come with the program.
    BuiltIn,
    /// A library file.
    File(PathBuf),
}

impl Library {
    /// The name of the built-in library in a configuration.
    pub const BUILT_IN: &'static str = "builtin";
}

/// The settings of the gate that every call passes before it runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateSettings {
    /// How long a call can be undone, if its specification does not set it.
    pub undo_window: Duration,
    /// A call with a stated confidence below this needs approval.
    pub confidence_threshold: Confidence,
    /// What happens to a call without a stated confidence.
    pub without_confidence: WithoutConfidence,
}

/// The settings of questions to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// How long an approver has to decide.
    pub expiry: Duration,
}

/// What happens to a call with an undo window and without a stated confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WithoutConfidence {
    /// The call is held for the undo window.
    Hold,
    /// The call needs approval.
    Ask,
}

/// The permissions, rate limits and budgets of a principal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrincipalSettings {
    /// The permissions that are granted to it.
    pub permissions: BTreeSet<Permission>,
    /// The limits on calls that are made for it.
    pub rate_limits: RateLimits,
    /// What the runs for it may use up.
    pub budgets: BudgetSettings,
}

/// The settings of one agent, for any principal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentSettings {
    /// The permissions that it may use. `None` means all of its principal's.
    pub permissions: Option<BTreeSet<Permission>>,
    /// Servers of which it gets all usable tools, in addition to the tools that it declares.
    pub servers: BTreeSet<ServerName>,
    /// What its runs may use up.
    pub budgets: BudgetSettings,
}

/// What runs may use up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetSettings {
    /// One run, with the runs that work for it.
    pub run: BudgetLimits,
    /// All runs in one day, which begins at midnight UTC.
    pub day: BudgetLimits,
}

/// The limits of one budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetLimits {
    /// Tokens of models, input and output.
    pub tokens: Option<u64>,
    /// Money.
    pub money: Option<Money>,
}

impl BudgetLimits {
    /// Whether nothing is limited.
    #[must_use]
    pub const fn is_unlimited(&self) -> bool {
        self.tokens.is_none() && self.money.is_none()
    }
}

/// How long what is stored about ended runs is kept. `None` means that it is never removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionSettings {
    /// Prompts, arguments and results, from the end of the run on.
    pub payloads: Option<Duration>,
    /// The record of the run, from its end on.
    pub audit: Option<Duration>,
    /// Whether the steps of ended runs are also written to files.
    pub trace_files: bool,
}

/// Limits that no other value of the configuration can exceed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ceilings {
    /// The highest rate limits that anything may have.
    pub rate_limits: RateLimits,
    /// The longest timeout that a call may have.
    pub timeout: Option<TimeoutSeconds>,
}

/// The circuit breaker for tools that keep failing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// The number of consecutive failures that opens the breaker.
    pub failures: u32,
    /// How long the breaker stays open.
    pub cooldown: Duration,
}

/// Which tools a model is shown when there are many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectionSettings {
    /// The number of tokens that their definitions may take.
    pub token_budget: u32,
    /// Tools that are always shown.
    pub always: Vec<ToolName>,
}

/// The detection of missing tools.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GapSettings {
    /// Whether missing tools are detected before a run.
    pub check: bool,
    /// The least probability at which a missing tool is reported.
    pub threshold: Confidence,
    /// Whether the model is asked which capabilities a task needs.
    pub ask_model: bool,
}

/// Learning from runs.
#[derive(Debug, Clone, PartialEq)]
pub struct LearningSettings {
    /// Whether strategies are recalled and learned.
    pub enabled: bool,
    /// Whether the playbook is read-only.
    pub frozen: bool,
    /// The most strategies that a model is shown.
    pub recall: u32,
    /// The least similarity of a shown strategy to the task.
    pub similarity_floor: Confidence,
    /// A run counts as a success only if its confidence is above this.
    pub min_confidence: Confidence,
    /// A command that checks whether an answer is correct; empty if there is none.
    pub checker: Vec<String>,
    /// The directory that the command runs in: that of the file that sets it. Empty for the current directory.
    pub checker_directory: PathBuf,
    /// The names of the environment variables that the command gets, besides `PATH`, `HOME` and `LANG`.
    pub checker_environment: Vec<String>,
    /// Whether the model rewords what is learned.
    pub wording: bool,
    /// The most strategies of a domain that are in use.
    pub max_strategies: u32,
    /// The most tokens that the texts of a domain's strategies have.
    pub max_tokens: u32,
    /// The number of runs without use after which a strategy is retired.
    pub unused_after: u32,
}

/// The intents of user requests, defined by examples.
#[derive(Debug, Clone, PartialEq)]
pub struct IntentSettings {
    /// The least confidence at which an intent is recognised.
    pub threshold: Confidence,
    /// The intents that the configuration defines or changes, by name.
    pub intents: BTreeMap<NonEmptyText, IntentDefinition>,
}

/// One intent. What is left out of a predefined intent keeps its built-in value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntentDefinition {
    /// Examples of requests with this intent.
    pub examples: Option<Vec<String>>,
    /// Tools that can serve it.
    pub tools: Option<Vec<ToolName>>,
    /// Information that is needed to serve it.
    pub context: Option<Vec<String>>,
    /// Alternatives if its tools fail.
    pub fallbacks: Option<Vec<String>>,
}

impl IntentSettings {
    /// The names of the predefined intents.
    pub const PREDEFINED: [&'static str; 4] = ["summarize", "analyze", "fetch", "explain"];
}

/// What the built-in file tools may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileToolSettings {
    /// The directories they may access. Empty means none.
    pub roots: Vec<PathBuf>,
    /// The largest file that is read or written.
    pub max_bytes: u64,
}

/// What the built-in web tools may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebToolSettings {
    /// The hosts they may contact: exact, `*.` and a suffix, or `*`; a port may follow.
    pub hosts: Vec<String>,
    /// The largest response that is accepted.
    pub max_bytes: u64,
    /// How long a single request may take.
    pub timeout: Duration,
    /// Whether listed hosts with a private or local address may be contacted.
    pub allow_private: bool,
}

/// The settings of the built-in web search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchSettings {
    /// The URL of a search server, if one is set.
    pub endpoint: Option<String>,
    /// The most results that a search returns.
    pub max_results: u32,
}

/// The issuer whose tokens the server accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcSettings {
    /// Its URL, as its tokens name it.
    pub issuer: String,
    /// What the audience of a token must contain.
    pub audience: String,
    /// The claim that names the principal.
    pub principal_claim: String,
    /// The claim with the roles.
    pub roles_claim: String,
    /// The names of the scopes of each role.
    pub roles: BTreeMap<String, Vec<String>>,
    /// The tenant of a token.
    pub tenant: OidcTenant,
}

/// Where the tenant of a token comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OidcTenant {
    /// It is that of the server.
    OfServer,
    /// It is this one.
    Fixed(String),
    /// This claim names it.
    Claim(String),
}

windlass_spec::word_set! {
    /// An event that a webhook is sent for.
    WebhookEvent, "event of a webhook" {
        /// An agent asks a person.
        ApprovalAsked = "approval.asked",
        /// A person decided; another one may be needed.
        ApprovalDecided = "approval.decided",
        /// A question will expire soon.
        ApprovalExpiring = "approval.expiring",
        /// A question expired, or is not asked any more.
        ApprovalClosed = "approval.closed",
        /// A run ended.
        RunEnded = "run.ended",
        /// An agent lacks a tool.
        GapRecorded = "gap.recorded",
    }
}

/// Who is notified of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Its name.
    pub name: String,
    /// The file that declares it. The same name in another file is another webhook.
    pub declared_in: String,
    /// Where events go.
    pub target: WebhookTarget,
    /// The events that are sent.
    pub events: BTreeSet<WebhookEvent>,
    /// Whether events contain the arguments of calls.
    pub has_arguments: bool,
    /// The address with which links begin.
    pub server: Option<String>,
    /// How long before it expires a question is announced.
    pub expiring: Duration,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// How many attempts are made.
    pub attempts: u32,
    /// How long after the first attempt the second one is made.
    pub first_retry: Duration,
    /// Whether events are sent.
    pub is_enabled: bool,
}

/// Where the events of a webhook go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookTarget {
    /// To a URL, signed.
    Url {
        /// The URL.
        url: String,
        /// Where the secret is.
        secret: WebhookSecretSource,
    },
    /// To the standard input of a program.
    Command {
        /// The program and its arguments; never empty.
        command: Vec<String>,
        /// Where it runs.
        directory: PathBuf,
        /// The names of the environment variables that it gets.
        environment: Vec<String>,
    },
}

/// Where the secret of a webhook is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookSecretSource {
    /// In a variable.
    Variable(EnvTemplate),
    /// In a file.
    File(PathBuf),
}
