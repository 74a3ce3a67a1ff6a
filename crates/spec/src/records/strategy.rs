//! A strategy: a lesson of earlier runs about using tools, as one line of a playbook. People edit the
//! lines too, so unknown fields are kept, and only violations of a rule are errors. Strategies are
//! learned, counted and searched in `windlass-learn`.

mod lines;
mod raw;

pub use lines::{StrategyLine, StrategyLineError, StrategyLines, read_strategies};

use std::fmt::{self, Write as _};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::id::RunId;
use super::task::{UnknownTool, missing_tools};
use crate::names::{NonEmptyText, TextError, ToolName};
use crate::time::{NotATime, Timestamp};
use crate::words::words;
use crate::{checked_text, parsed_text};

use self::raw::RawStrategy;

words! {
    /// The kind of a strategy: what to do, what to avoid, or an observation.
    StrategySection, "section" {
        /// What worked.
        Strategies = "Strategies",
        /// What went wrong.
        Pitfalls = "Pitfalls",
        /// Other useful observations.
        Observations = "Observations",
    }
}

/// The version of the data model that this program writes.
pub const STRATEGY_VERSION: DataVersion = DataVersion {
    major: 1,
    minor: 0,
    patch: 0,
};

/// A version of the data model. A newer major version cannot be read; the unknown fields of a newer minor
/// version are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DataVersion {
    /// Changes when a field is removed or changes its meaning.
    pub major: u32,
    /// Changes when a field is added.
    pub minor: u32,
    /// Changes when only the wording changes.
    pub patch: u32,
}

impl fmt::Display for DataVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for DataVersion {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<Self, StrategyError> {
        let parts: Vec<Option<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
        match parts[..] {
            [Some(major), Some(minor), Some(patch)] => Ok(Self {
                major,
                minor,
                patch,
            }),
            _ => Err(StrategyError::NoVersion(text.chars().take(40).collect())),
        }
    }
}

parsed_text!(DataVersion);

checked_text! {
    /// The id of a strategy. The same lesson learned twice has the same id.
    StrategyId(String), StrategyError, check_id
}

fn check_id(id: &str) -> Result<(), StrategyError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match (1..=64).contains(&id.len()) && id.chars().all(is_allowed) {
        true => Ok(()),
        false => Err(StrategyError::Id(id.chars().take(80).collect())),
    }
}

impl StrategyId {
    /// The id of a strategy in a section, from a digest of its content.
    #[must_use]
    pub fn of_digest(section: StrategySection, digest: &[u8]) -> Self {
        let mut id = match section {
            StrategySection::Strategies => "s-",
            StrategySection::Pitfalls => "p-",
            StrategySection::Observations => "o-",
        }
        .to_owned();
        for byte in digest.iter().take(6) {
            let _ = write!(id, "{byte:02x}");
        }
        Self(id)
    }
}

/// One line of a playbook. Only the content and the section are required; the sequence of tools is
/// optional.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RawStrategy", into = "RawStrategy")]
#[schemars(with = "RawStrategy")]
pub struct ToolCallingStrategy {
    /// What to do or to avoid.
    pub content: NonEmptyText,
    /// The kind of the strategy.
    pub section: StrategySection,
    /// The number of runs in which it led to success.
    pub helpful_count: u64,
    /// The number of runs in which it led to failure; for a pitfall, the number of occurrences.
    pub harmful_count: u64,
    /// Its topics.
    pub tags: Vec<String>,
    /// The tools to call, in order; never empty.
    tool_sequence: Option<Vec<ToolName>>,
    /// The success rate of the sequence, from 0 to 1.
    tool_success_rate: Option<f64>,
    /// The average number of turns of successful runs.
    avg_iterations: Option<f64>,
    /// A task for which it worked.
    pub example_task: Option<NonEmptyText>,
    /// When it was first written.
    pub created_at: Option<Timestamp>,
    /// When it was last changed.
    pub last_updated: Option<Timestamp>,
    /// The id; every stored line has one.
    pub id: Option<StrategyId>,
    /// Other tasks for which it worked.
    pub examples: Vec<NonEmptyText>,
    /// The latest runs that support it.
    pub runs: Vec<RunId>,
    /// The ids of strategies merged into it.
    pub aliases: Vec<StrategyId>,
    /// Whether it is kept regardless of later runs.
    pub pinned: bool,
    /// Whether a person disabled it.
    pub disabled: bool,
    /// Why it is retired, if it is.
    pub retired: Option<NonEmptyText>,
    /// The version of the data model it was written with; `None` means 1.0.0.
    pub data_model_version: Option<DataVersion>,
    /// Unknown fields, written by a newer program.
    pub other: Map<String, Value>,
}

/// Why a strategy is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StrategyError {
    /// An empty text or an invalid name.
    #[error("{field}: {error}")]
    Text {
        /// The field.
        field: &'static str,
        /// Its error.
        error: TextError,
    },
    /// An empty sequence.
    #[error("tool_sequence must have at least one tool; omit it if there is none")]
    EmptySequence,
    /// An invalid rate.
    #[error("tool_success_rate must be between 0.0 and 1.0, not {0}")]
    Rate(f64),
    /// A negative number of turns.
    #[error("avg_iterations must not be negative, but is {0}")]
    Iterations(f64),
    /// An invalid timestamp.
    #[error("{field}: {error}")]
    Time {
        /// The field.
        field: &'static str,
        /// Its error.
        error: NotATime,
    },
    /// An invalid id.
    #[error(
        "`{0}` is not a strategy id; use 1 to 64 letters, digits, dots, dashes and underscores"
    )]
    Id(String),
    /// An invalid version.
    #[error("`{0}` is not a version of the data model; write it as `1.0.0`")]
    NoVersion(String),
    /// The version is newer than this program.
    #[error(
        "the data model {0} is newer than {STRATEGY_VERSION}, which this program reads; use a newer program"
    )]
    NewerVersion(DataVersion),
}

/// A possible problem of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum StrategyWarning {
    /// It is counted as helpful but mostly did not succeed.
    #[error(
        "helpful_count is {helpful}, but tool_success_rate is only {rate}; above 0.5 is expected"
    )]
    RarelySucceeds {
        /// The number of runs it helped.
        helpful: u64,
        /// The success rate of the sequence.
        rate: f64,
    },
}

impl ToolCallingStrategy {
    /// A strategy with only its section and content.
    #[must_use]
    pub fn new(section: StrategySection, content: NonEmptyText) -> Self {
        Self {
            content,
            section,
            helpful_count: 0,
            harmful_count: 0,
            tags: Vec::new(),
            tool_sequence: None,
            tool_success_rate: None,
            avg_iterations: None,
            example_task: None,
            created_at: None,
            last_updated: None,
            id: None,
            examples: Vec::new(),
            runs: Vec::new(),
            aliases: Vec::new(),
            pinned: false,
            disabled: false,
            retired: None,
            data_model_version: Some(STRATEGY_VERSION),
            other: Map::new(),
        }
    }

    /// The same strategy with the tools to call, in order.
    ///
    /// # Errors
    /// If there are none.
    pub fn with_sequence(mut self, sequence: Vec<ToolName>) -> Result<Self, StrategyError> {
        if sequence.is_empty() {
            return Err(StrategyError::EmptySequence);
        }
        self.tool_sequence = Some(sequence);
        Ok(self)
    }

    /// The same strategy with the success rate of its sequence and the average number of turns.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, or the number of turns is negative.
    pub fn with_figures(
        mut self,
        rate: Option<f64>,
        iterations: Option<f64>,
    ) -> Result<Self, StrategyError> {
        if let Some(rate) = rate.filter(|rate| !(0.0..=1.0).contains(rate)) {
            return Err(StrategyError::Rate(rate));
        }
        let is_invalid = |iterations: &f64| !(iterations.is_finite() && *iterations >= 0.0);
        if let Some(iterations) = iterations.filter(is_invalid) {
            return Err(StrategyError::Iterations(iterations));
        }
        self.tool_success_rate = rate;
        self.avg_iterations = iterations;
        Ok(self)
    }

    /// The tools to call, in order. Empty only if it is not about tools.
    #[must_use]
    pub fn tool_sequence(&self) -> &[ToolName] {
        self.tool_sequence.as_deref().unwrap_or_default()
    }

    /// The success rate of the sequence.
    #[must_use]
    pub fn tool_success_rate(&self) -> Option<f64> {
        self.tool_success_rate
    }

    /// The average number of turns of successful runs.
    #[must_use]
    pub fn avg_iterations(&self) -> Option<f64> {
        self.avg_iterations
    }

    /// A possible problem, if there is one.
    #[must_use]
    pub fn warning(&self) -> Option<StrategyWarning> {
        let rate = self.tool_success_rate?;
        (self.helpful_count > 0 && rate <= 0.5).then_some(StrategyWarning::RarelySucceeds {
            helpful: self.helpful_count,
            rate,
        })
    }

    /// Checks that every tool of its sequence is registered.
    ///
    /// # Errors
    /// Every tool that is not, with the most similar names.
    pub fn check_tools<'a>(
        &self,
        registered: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Vec<UnknownTool>> {
        missing_tools(self.tool_sequence(), registered)
    }
}
