//! What an agent could not do for want of a tool. Finding gaps is done elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use crate::names::{NonEmptyText, ToolName};

/// A report of missing tools. There is none without at least one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct ToolGapReport {
    missing_tools: Vec<NonEmptyText>,
    attempted_task: NonEmptyText,
    existing_tools_checked: Vec<ToolName>,
}

impl ToolGapReport {
    /// A report, unless nothing is missing: then there is no gap.
    #[must_use]
    pub fn new(
        missing_tools: Vec<NonEmptyText>,
        attempted_task: NonEmptyText,
        existing_tools_checked: Vec<ToolName>,
    ) -> Option<Self> {
        (!missing_tools.is_empty()).then_some(Self {
            missing_tools,
            attempted_task,
            existing_tools_checked,
        })
    }

    /// What is missing: names of tools, or what they would have to do.
    #[must_use]
    pub fn missing_tools(&self) -> &[NonEmptyText] {
        &self.missing_tools
    }

    /// The task that needed it.
    #[must_use]
    pub fn attempted_task(&self) -> &str {
        self.attempted_task.as_str()
    }

    /// The tools that were there and did not do.
    #[must_use]
    pub fn existing_tools_checked(&self) -> &[ToolName] {
        &self.existing_tools_checked
    }
}

/// The JSON form of a report, before it is checked.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Raw {
    /// What is missing: names of tools, or what they would have to do.
    #[schemars(with = "Vec<schema::Text>", length(min = 1))]
    missing_tools: Vec<NonEmptyText>,
    /// The task that needed it.
    #[schemars(with = "schema::Text")]
    attempted_task: NonEmptyText,
    /// The tools that were there and did not do.
    #[schemars(with = "Vec<schema::Name>")]
    existing_tools_checked: Vec<ToolName>,
}

impl From<ToolGapReport> for Raw {
    fn from(report: ToolGapReport) -> Self {
        Self {
            missing_tools: report.missing_tools,
            attempted_task: report.attempted_task,
            existing_tools_checked: report.existing_tools_checked,
        }
    }
}

impl TryFrom<Raw> for ToolGapReport {
    type Error = &'static str;

    fn try_from(raw: Raw) -> Result<Self, &'static str> {
        Self::new(
            raw.missing_tools,
            raw.attempted_task,
            raw.existing_tools_checked,
        )
        .ok_or("missing_tools has at least one entry; without one there is no gap")
    }
}
