//! The JSON form of a strategy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    DataVersion, STRATEGY_VERSION, StrategyError, StrategyId, StrategySection, ToolCallingStrategy,
};
use crate::names::{NonEmptyText, ToolName};
use crate::records::id::RunId;
use crate::records::schema;
use crate::time::Timestamp;

/// The JSON form of a strategy, before validation.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ToolCallingStrategy")]
pub(super) struct RawStrategy {
    /// What to do or to avoid.
    #[schemars(with = "schema::Text")]
    content: String,
    /// The kind: Strategies, Pitfalls or Observations.
    section: StrategySection,
    /// The number of runs in which it led to success.
    #[serde(default)]
    helpful_count: u64,
    /// The number of runs in which it led to failure; for a pitfall, the number of occurrences.
    #[serde(default)]
    harmful_count: u64,
    /// Its topics.
    #[serde(default)]
    tags: Vec<String>,
    /// The tools to call, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<schema::Name>>", length(min = 1))]
    tool_sequence: Option<Vec<String>>,
    /// The success rate of the sequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ZeroToOne>")]
    tool_success_rate: Option<f64>,
    /// The average number of turns of successful runs, rounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ZeroOrMore>")]
    avg_iterations: Option<Value>,
    /// A task for which it worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    example_task: Option<String>,
    /// When it was first written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Time>")]
    created_at: Option<String>,
    /// When it was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Time>")]
    last_updated: Option<String>,
    /// The id of the strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    id: Option<StrategyId>,
    /// Other tasks for which it worked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    examples: Vec<String>,
    /// The latest runs that support it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::RunId>")]
    runs: Vec<RunId>,
    /// The ids of strategies merged into it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    aliases: Vec<StrategyId>,
    /// Whether it is kept regardless of later runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pinned: bool,
    /// Whether a person disabled it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    disabled: bool,
    /// Why it is retired, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retired: Option<String>,
    /// The version of the data model; absent means 1.0.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    data_model_version: Option<DataVersion>,
    /// Unknown fields, written by a newer program.
    #[serde(flatten)]
    #[schemars(skip)]
    other: Map<String, Value>,
}

impl From<ToolCallingStrategy> for RawStrategy {
    fn from(strategy: ToolCallingStrategy) -> Self {
        let names = |names: Vec<ToolName>| names.into_iter().map(String::from).collect();
        Self {
            content: strategy.content.into(),
            section: strategy.section,
            helpful_count: strategy.helpful_count,
            harmful_count: strategy.harmful_count,
            tags: strategy.tags,
            tool_sequence: strategy.tool_sequence.map(names),
            tool_success_rate: strategy.tool_success_rate,
            // The mean is written as the nearest integer.
            avg_iterations: strategy
                .avg_iterations
                .map(|mean| Value::from(mean.round().min(u32::MAX.into()) as u64)),
            example_task: strategy.example_task.map(String::from),
            created_at: strategy.created_at.map(String::from),
            last_updated: strategy.last_updated.map(String::from),
            id: strategy.id,
            examples: strategy.examples.into_iter().map(String::from).collect(),
            runs: strategy.runs,
            aliases: strategy.aliases,
            pinned: strategy.pinned,
            disabled: strategy.disabled,
            retired: strategy.retired.map(String::from),
            data_model_version: strategy.data_model_version,
            other: strategy.other,
        }
    }
}

impl TryFrom<RawStrategy> for ToolCallingStrategy {
    type Error = StrategyError;

    fn try_from(raw: RawStrategy) -> Result<Self, StrategyError> {
        if let Some(version) = raw.data_model_version
            && version.major > STRATEGY_VERSION.major
        {
            return Err(StrategyError::NewerVersion(version));
        }
        let text = |field, text: String| {
            NonEmptyText::new(text).map_err(|error| StrategyError::Text { field, error })
        };
        // An empty example is dropped, not an error.
        let example = |text: String| NonEmptyText::new(text).ok();
        let time = |field, written: Option<String>| {
            let read = written.map(|written| written.parse::<Timestamp>());
            read.transpose()
                .map_err(|error| StrategyError::Time { field, error })
        };
        let mut strategy = Self::new(raw.section, text("content", raw.content)?);
        if let Some(names) = raw.tool_sequence {
            let names = names.into_iter().map(|name| {
                ToolName::new(name).map_err(|error| StrategyError::Text {
                    field: "tool_sequence",
                    error,
                })
            });
            strategy = strategy.with_sequence(names.collect::<Result<_, _>>()?)?;
        }
        // A value that is not a number becomes NaN, which `with_figures` rejects.
        let number = |value: Value| value.as_f64().unwrap_or(f64::NAN);
        let iterations = raw.avg_iterations.map(number);
        strategy = strategy.with_figures(raw.tool_success_rate, iterations)?;
        Ok(Self {
            helpful_count: raw.helpful_count,
            harmful_count: raw.harmful_count,
            tags: raw.tags,
            example_task: raw.example_task.and_then(example),
            created_at: time("created_at", raw.created_at)?,
            last_updated: time("last_updated", raw.last_updated)?,
            id: raw.id,
            examples: raw.examples.into_iter().filter_map(example).collect(),
            runs: raw.runs,
            aliases: raw.aliases,
            pinned: raw.pinned,
            disabled: raw.disabled,
            retired: raw.retired.and_then(example),
            data_model_version: raw.data_model_version,
            other: raw.other,
            ..strategy
        })
    }
}
