//! The limits of a run.

use serde::{Deserialize, Serialize};
use windlass_spec::Money;

/// The limits of a run and how much a model is shown. Stored in the run's first event, so that a run
/// keeps its limits when defaults change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Turns.
    pub max_iterations: u32,
    /// Calls in total.
    pub max_calls: u32,
    /// Calls in one turn.
    pub max_calls_per_turn: u32,
    /// Tokens in total, input and output.
    pub max_tokens: Option<u64>,
    /// Time from the first event, in seconds.
    pub max_seconds: Option<u64>,
    /// Money in millionths of a dollar, where prices are known.
    pub max_microdollars: Option<Money>,
    /// Turns in a row in which a model may make only mistakes.
    pub max_mistaken_turns: u32,
    /// Messages shown to a model.
    pub max_messages: usize,
    /// Tokens of a request, estimated at four bytes each.
    pub context_tokens: usize,
    /// Characters of one observation that a model is shown; the journal keeps all of it.
    pub max_observation: usize,
    /// Whether the model may ask people questions through reserved tools. Runs from before these tools
    /// existed do not have them.
    #[serde(default = "default_ask_people")]
    pub ask_people: bool,
    /// Whether the model may make plans through reserved tools.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plans: bool,
    /// Whether a reversible call is answered with the result of the same call before, as long as nothing may
    /// have changed since. Runs from before this existed refuse such a call.
    #[serde(
        default = "default_reuse_results",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub reuse_results: bool,
    /// Whether a run fails that ends after an approver rejected its last call. Older runs complete.
    #[serde(
        default = "default_rejection_fails",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub rejection_fails: bool,
    /// How often a failed call that may be repeated is tried again.
    pub max_retries: u32,
}

const fn default_ask_people() -> bool {
    false
}

const fn default_reuse_results() -> bool {
    false
}

const fn default_rejection_fails() -> bool {
    false
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_iterations: 10,
            max_calls: 50,
            max_calls_per_turn: 16,
            max_tokens: None,
            max_seconds: None,
            max_microdollars: None,
            max_mistaken_turns: 3,
            max_messages: 100,
            context_tokens: 32_000,
            max_observation: 16_000,
            ask_people: true,
            plans: false,
            reuse_results: true,
            rejection_fails: true,
            max_retries: 2,
        }
    }
}

impl Settings {
    /// The same settings with these budgets, where they are lower.
    #[must_use]
    pub fn with_budgets(mut self, tokens: Option<u64>, money: Option<Money>) -> Self {
        self.max_tokens = lower(self.max_tokens, tokens);
        self.max_microdollars = lower(self.max_microdollars, money);
        self
    }
}

/// The lower of two limits. None is higher than every other.
fn lower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

windlass_spec::word_set! {
    /// A budget that can be used up.
    Budget, "budget" {
        /// Tokens.
        Tokens = "tokens",
        /// Time.
        Time = "time",
        /// Money.
        Money = "money",
    }
}
