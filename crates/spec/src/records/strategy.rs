//! A strategy: what earlier runs taught about using tools, as one line of a playbook. The line is for
//! people as much as for programs: what it does not know is kept as it stands, and only what breaks a
//! rule is refused. How strategies are learned, counted and found is elsewhere.

mod lines;
mod raw;

pub use lines::{StrategyLine, StrategyLineError, StrategyLines, read_strategies};

use std::fmt::{self, Write as _};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::id::RunId;
use super::task::{MissingTool, missing_tools};
use super::words::words;
use crate::names::{NonEmptyText, TextError, ToolName};
use crate::time::{NotATime, Timestamp};

use self::raw::RawStrategy;

words! {
    /// What a strategy says: what to do, what not to do, or what is so.
    StrategySection {
        /// What worked.
        Strategies = "Strategies",
        /// What went wrong.
        Pitfalls = "Pitfalls",
        /// What is worth knowing and neither.
        Observations = "Observations",
    }
}

/// The version of the data model that this program writes.
pub const STRATEGY_VERSION: DataVersion = DataVersion {
    major: 1,
    minor: 0,
    patch: 0,
};

/// A version of the data model: another major one cannot be read, a newer minor one has fields that are
/// kept without being understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DataVersion {
    /// Changes when something is no longer there, or means something else.
    pub major: u32,
    /// Changes when something is added.
    pub minor: u32,
    /// Changes when only words do.
    pub patch: u32,
}

impl fmt::Display for DataVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl TryFrom<String> for DataVersion {
    type Error = StrategyError;

    fn try_from(text: String) -> Result<Self, StrategyError> {
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

impl From<DataVersion> for String {
    fn from(version: DataVersion) -> Self {
        version.to_string()
    }
}

/// Which strategy; the same thing learned twice has the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StrategyId(String);

impl StrategyId {
    /// Checks and takes an id.
    ///
    /// # Errors
    /// If it is not 1 to 64 letters, digits, dots, dashes and underscores.
    pub fn new(id: impl Into<String>) -> Result<Self, StrategyError> {
        let id = id.into();
        let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if (1..=64).contains(&id.len()) && id.chars().all(is_good) {
            Ok(Self(id))
        } else {
            Err(StrategyError::Id(id.chars().take(80).collect()))
        }
    }

    /// The id of what a section says, by a digest of it.
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

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StrategyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for StrategyId {
    type Error = StrategyError;

    fn try_from(id: String) -> Result<Self, StrategyError> {
        Self::new(id)
    }
}

impl From<StrategyId> for String {
    fn from(id: StrategyId) -> Self {
        id.0
    }
}

/// What a playbook says in one line. Only the content and the section must be given: a line without a
/// sequence of tools is as good as one with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RawStrategy", into = "RawStrategy")]
#[schemars(with = "RawStrategy")]
pub struct ToolCallingStrategy {
    /// What to do, or what not to.
    pub content: NonEmptyText,
    /// Which of the two, or neither.
    pub section: StrategySection,
    /// In how many runs it led to success.
    pub helpful_count: u64,
    /// In how many runs following it led to failure; of a pitfall, how often it was seen.
    pub harmful_count: u64,
    /// What it is about.
    pub tags: Vec<String>,
    /// The tools to call, in order; never empty.
    tool_sequence: Option<Vec<ToolName>>,
    /// How often the sequence succeeded; 0 to 1.
    tool_success_rate: Option<f64>,
    /// How many turns it took on average where it succeeded.
    avg_iterations: Option<f64>,
    /// A task for which it worked.
    pub example_task: Option<NonEmptyText>,
    /// When it was first written.
    pub created_at: Option<Timestamp>,
    /// When it was last changed.
    pub last_updated: Option<Timestamp>,
    /// Which strategy; given to every line that is kept.
    pub id: Option<StrategyId>,
    /// Other tasks for which it worked.
    pub examples: Vec<NonEmptyText>,
    /// Runs that prove it, the latest ones.
    pub runs: Vec<RunId>,
    /// Ids under which it was known before it was merged.
    pub aliases: Vec<StrategyId>,
    /// Whether it stays, whatever is learned.
    pub pinned: bool,
    /// Whether a person switched it off.
    pub disabled: bool,
    /// Why it is no longer used, if it is not.
    pub retired: Option<NonEmptyText>,
    /// The version of the data model it was written in; none means 1.0.0.
    pub data_model_version: Option<DataVersion>,
    /// What a newer program wrote beside this.
    pub other: Map<String, Value>,
}

/// Why a strategy was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StrategyError {
    /// A text that must say something, or a name that is none.
    #[error("{field}: {error}")]
    Text {
        /// Where it stands.
        field: &'static str,
        /// What is wrong with it.
        error: TextError,
    },
    /// A sequence of nothing.
    #[error("tool_sequence names at least one tool; leave it out if there is none")]
    EmptySequence,
    /// A rate that is none.
    #[error("tool_success_rate is between 0.0 and 1.0, not {0}")]
    Rate(f64),
    /// A number of turns below nothing.
    #[error("avg_iterations is not negative, so not {0}")]
    Iterations(f64),
    /// A point in time that is none.
    #[error("{field}: {error}")]
    Time {
        /// Where it stands.
        field: &'static str,
        /// What is wrong with it.
        error: NotATime,
    },
    /// An id that is none.
    #[error("`{0}` is no id; one has 1 to 64 letters, digits, dots, dashes and underscores")]
    Id(String),
    /// A version that is none.
    #[error("`{0}` is no version of the data model; one is written 1.0.0")]
    NoVersion(String),
    /// It was written by a newer program.
    #[error("it is of data model {0}, and this program reads {STRATEGY_VERSION}; use a newer one")]
    NewerVersion(DataVersion),
}

/// What may be wrong with a strategy, and need not be.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum StrategyWarning {
    /// It is said to help and mostly did not.
    #[error("helpful_count is {helpful}, yet tool_success_rate is {rate}; above 0.5 is expected")]
    RarelySucceeds {
        /// How often it helped.
        helpful: u64,
        /// How often the sequence succeeded.
        rate: f64,
    },
}

impl ToolCallingStrategy {
    /// A strategy of which nothing is known beyond its words.
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

    /// The same strategy with how often its sequence succeeded and how many turns that took.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, or the turns are fewer than none.
    pub fn with_figures(
        mut self,
        rate: Option<f64>,
        iterations: Option<f64>,
    ) -> Result<Self, StrategyError> {
        if let Some(rate) = rate.filter(|rate| !(0.0..=1.0).contains(rate)) {
            return Err(StrategyError::Rate(rate));
        }
        let is_wrong = |iterations: &f64| !(iterations.is_finite() && *iterations >= 0.0);
        if let Some(iterations) = iterations.filter(is_wrong) {
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

    /// How often the sequence succeeded.
    #[must_use]
    pub fn tool_success_rate(&self) -> Option<f64> {
        self.tool_success_rate
    }

    /// How many turns it took on average where it succeeded.
    #[must_use]
    pub fn avg_iterations(&self) -> Option<f64> {
        self.avg_iterations
    }

    /// What may be wrong with it.
    #[must_use]
    pub fn warning(&self) -> Option<StrategyWarning> {
        let rate = self.tool_success_rate?;
        (self.helpful_count > 0 && rate <= 0.5).then_some(StrategyWarning::RarelySucceeds {
            helpful: self.helpful_count,
            rate,
        })
    }

    /// Checks that every tool of its sequence is among the registered ones.
    ///
    /// # Errors
    /// Every tool that is not, with the names nearest to it.
    pub fn check_tools<'a>(
        &self,
        registered: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Vec<MissingTool>> {
        missing_tools(self.tool_sequence(), registered)
    }
}
