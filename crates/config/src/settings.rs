//! What a configuration says, table by table, as checked values.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use windlass_spec::registry::{Permission, RateLimits};
use windlass_spec::server::ServerName;
use windlass_spec::{Confidence, NonEmptyText, TimeoutSeconds, ToolName};

/// Where tools come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Library {
    /// The tools that come with the program.
    BuiltIn,
    /// A library file.
    File(PathBuf),
}

impl Library {
    /// How the built-in library is written.
    pub const BUILT_IN: &'static str = "builtin";
}

/// What every call passes before it runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// How long a call can be undone, if its specification does not say.
    pub undo_window: Duration,
    /// A stated confidence below this needs a person.
    pub confidence_threshold: Confidence,
    /// What happens to a call that states none.
    pub without_confidence: WithoutConfidence,
}

/// What happens to a call that can be undone for a while and states no confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WithoutConfidence {
    /// It is held for the undo window.
    Hold,
    /// A person is asked.
    Ask,
}

/// What is granted to someone whom agents act for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Principal {
    /// The permissions it holds.
    pub permissions: BTreeSet<Permission>,
    /// How many calls may be made for it.
    pub rate_limits: RateLimits,
}

/// What holds for one agent, whomever it acts for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentSettings {
    /// The only permissions that count when it calls a tool; `None` means all of its principal's.
    pub permissions: Option<BTreeSet<Permission>>,
    /// Servers whose usable tools it is all given, beside those that it declares.
    pub servers: BTreeSet<ServerName>,
}

/// Limits that nothing else in the configuration exceeds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ceilings {
    /// The most calls that anything may be allowed.
    pub rate_limits: RateLimits,
    /// The longest that a call may take.
    pub timeout: Option<TimeoutSeconds>,
}

/// When a tool that keeps failing is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// After how many failures in a row.
    pub failures: u32,
    /// For how long.
    pub cooldown: Duration,
}

/// Which tools a model is shown when there are many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// How many tokens they may take.
    pub token_budget: u32,
    /// Those that are always shown.
    pub always: Vec<ToolName>,
}

/// What is found out about tools that a task lacks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gaps {
    /// Whether anything is, before a run.
    pub check: bool,
    /// What is less likely missing than this is not told.
    pub threshold: Confidence,
    /// Whether the model is asked which capabilities a task needs.
    pub ask_model: bool,
}

/// What runs teach.
#[derive(Debug, Clone, PartialEq)]
pub struct Learning {
    /// Whether anything is recalled or learned.
    pub enabled: bool,
    /// Whether the playbook is only read.
    pub frozen: bool,
    /// How many strategies a model is shown at most.
    pub recall: u32,
    /// How similar to the task they must be.
    pub similarity_floor: Confidence,
    /// A run of which the model is less sure is no success.
    pub min_confidence: Confidence,
    /// A command that says whether an answer is right; empty if there is none.
    pub checker: Vec<String>,
    /// Whether the model puts what is learned in its own words.
    pub wording: bool,
    /// How many strategies of a domain are in use at most.
    pub max_strategies: u32,
    /// How many tokens their words have at most.
    pub max_tokens: u32,
    /// After how many runs without it a strategy is retired.
    pub unused_after: u32,
}

/// What people want, by examples of how they say it.
#[derive(Debug, Clone, PartialEq)]
pub struct Intents {
    /// An intent that is less sure than this is none.
    pub threshold: Confidence,
    /// The intents that the configuration speaks about, by name.
    pub intents: BTreeMap<NonEmptyText, Intent>,
}

/// One thing that people want. What is left out of a predefined one is as it comes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Intent {
    /// How people say it.
    pub examples: Option<Vec<String>>,
    /// Tools that can do it.
    pub tools: Option<Vec<ToolName>>,
    /// What must be known to do it.
    pub context: Option<Vec<String>>,
    /// What else can be done if its tools fail.
    pub fallbacks: Option<Vec<String>>,
}

impl Intents {
    /// The intents that exist without being declared.
    pub const PREDEFINED: [&'static str; 4] = ["summarize", "analyze", "fetch", "explain"];
}

/// What the built-in file tools may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The directories they may work in; none means nowhere.
    pub roots: Vec<PathBuf>,
    /// The largest file that is read or written.
    pub max_bytes: u64,
}

/// What the built-in web tools may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// The hosts they may ask: exact, `*.` and an end, or `*`; a port may follow.
    pub hosts: Vec<String>,
    /// The largest answer that is taken.
    pub max_bytes: u64,
    /// How long a single request may take.
    pub timeout: Duration,
    /// Whether hosts listed by a private or local address may be asked.
    pub allow_private: bool,
}

/// Where the built-in web search asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// The address of a server, if one is set.
    pub endpoint: Option<String>,
    /// The most results that a search gives.
    pub max_results: u32,
}
