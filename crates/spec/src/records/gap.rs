//! What an agent could not do for want of a tool. Finding gaps is done elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::confidence::Confidence;
use super::schema;
use crate::names::{NonEmptyText, ToolName};

/// When a gap showed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum GapMoment {
    /// Before a model was asked: no tool seems to do what the task asks.
    BeforeRun,
    /// While a run was going on: its model asked for a tool that does not exist, or said that it
    /// cannot do the task.
    DuringRun,
    /// When an agent was loaded: a tool is specified and has no implementation.
    AtLoad,
}

impl GapMoment {
    /// All moments.
    pub const ALL: [Self; 3] = [Self::BeforeRun, Self::DuringRun, Self::AtLoad];

    /// The word for it in JSON and SQL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BeforeRun => "before_run",
            Self::DuringRun => "during_run",
            Self::AtLoad => "at_load",
        }
    }
}

/// A tool that comes near to what is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct NearestTool {
    /// Its name.
    #[schemars(with = "schema::Name")]
    pub name: ToolName,
    /// How likely it does what is missing, from 0 to 1.
    pub nearness: Confidence,
}

/// One thing that no tool does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct MissingCapability {
    /// What is missing; one of the report's `missing_tools`.
    #[schemars(with = "schema::Text")]
    pub capability: NonEmptyText,
    /// What a tool that does it would be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Name>")]
    pub wanted_tool: Option<ToolName>,
    /// How likely no tool does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// The tools that come nearest, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest_tools: Vec<NearestTool>,
    /// A specification of a tool that would do it, as it would stand in an agent file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Text>")]
    pub proposed_tool: Option<NonEmptyText>,
    /// Why a tool that the agent has does not do it: that it is not configured, say, and what to set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Text>")]
    pub because: Option<NonEmptyText>,
}

/// A report of missing tools. There is none without at least one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct ToolGapReport {
    missing_tools: Vec<NonEmptyText>,
    attempted_task: NonEmptyText,
    existing_tools_checked: Vec<ToolName>,
    confidence: Option<Confidence>,
    moment: Option<GapMoment>,
    capabilities: Vec<MissingCapability>,
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
            confidence: None,
            moment: None,
            capabilities: Vec::new(),
        })
    }

    /// A report that says more about each thing that is missing, unless nothing is.
    #[must_use]
    pub fn of_capabilities(
        capabilities: Vec<MissingCapability>,
        attempted_task: NonEmptyText,
        existing_tools_checked: Vec<ToolName>,
    ) -> Option<Self> {
        let missing = capabilities
            .iter()
            .map(|missing| missing.capability.clone());
        let report = Self::new(missing.collect(), attempted_task, existing_tools_checked)?;
        Some(Self {
            capabilities,
            ..report
        })
    }

    /// The same report, with what is known about each thing that is missing put otherwise. What is missing
    /// stays.
    #[must_use]
    pub fn with_each(mut self, change: impl Fn(&mut MissingCapability)) -> Self {
        for missing in &mut self.capabilities {
            let capability = missing.capability.clone();
            change(missing);
            missing.capability = capability;
        }
        self
    }

    /// The same report, with how sure it is.
    #[must_use]
    pub fn with_confidence(mut self, confidence: Confidence) -> Self {
        self.confidence = Some(confidence);
        self
    }

    /// The same report, with when the gap showed.
    #[must_use]
    pub fn at_moment(mut self, moment: GapMoment) -> Self {
        self.moment = Some(moment);
        self
    }

    /// How sure it is that something is missing, if that is known.
    #[must_use]
    pub fn confidence(&self) -> Option<Confidence> {
        self.confidence
    }

    /// When the gap showed, if that is known.
    #[must_use]
    pub fn moment(&self) -> Option<GapMoment> {
        self.moment
    }

    /// What is known about each thing that is missing; empty if only the names are known.
    #[must_use]
    pub fn capabilities(&self) -> &[MissingCapability] {
        &self.capabilities
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
    /// How sure it is that something is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confidence: Option<Confidence>,
    /// When the gap showed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moment: Option<GapMoment>,
    /// What is known about each thing that is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    capabilities: Vec<MissingCapability>,
}

impl From<ToolGapReport> for Raw {
    fn from(report: ToolGapReport) -> Self {
        Self {
            missing_tools: report.missing_tools,
            attempted_task: report.attempted_task,
            existing_tools_checked: report.existing_tools_checked,
            confidence: report.confidence,
            moment: report.moment,
            capabilities: report.capabilities,
        }
    }
}

impl TryFrom<Raw> for ToolGapReport {
    type Error = &'static str;

    fn try_from(raw: Raw) -> Result<Self, &'static str> {
        let is_missing = |name: &NonEmptyText| raw.missing_tools.contains(name);
        if !raw
            .capabilities
            .iter()
            .all(|told| is_missing(&told.capability))
        {
            return Err("capabilities tells only of what missing_tools names");
        }
        let report = Self::new(
            raw.missing_tools,
            raw.attempted_task,
            raw.existing_tools_checked,
        );
        let report =
            report.ok_or("missing_tools has at least one entry; without one there is no gap")?;
        Ok(Self {
            confidence: raw.confidence,
            moment: raw.moment,
            capabilities: raw.capabilities,
            ..report
        })
    }
}
