//! The limits of a run.

use serde::{Deserialize, Serialize};

/// What a run may use up and how much it is shown. Part of the run's first event, so that a run
/// keeps its limits when defaults change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Turns.
    pub max_iterations: u32,
    /// Calls in all.
    pub max_calls: u32,
    /// Calls in one turn.
    pub max_calls_per_turn: u32,
    /// Tokens in all, read and written.
    pub max_tokens: Option<u64>,
    /// Time from the first event, in seconds.
    pub max_seconds: Option<u64>,
    /// Money in millionths of a dollar, where prices are known.
    pub max_microdollars: Option<u64>,
    /// Turns in a row in which a model may do nothing right.
    pub max_mistaken_turns: u32,
    /// Messages shown to a model.
    pub max_messages: usize,
    /// Tokens of a request, estimated at four bytes each.
    pub context_tokens: usize,
    /// Characters of one observation shown to a model; the journal keeps all of it.
    pub max_observation: usize,
    /// Whether the model may put questions to people, as if that were a tool. Runs from before it
    /// could have no such tool.
    #[serde(default = "no")]
    pub ask_people: bool,
    /// Whether the model may make plans, as if that were a tool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plans: bool,
}

const fn no() -> bool {
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
        }
    }
}

/// What a run used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// Tokens.
    Tokens,
    /// Time.
    Time,
    /// Money.
    Money,
}

impl Budget {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Time => "time",
            Self::Money => "money",
        }
    }
}
