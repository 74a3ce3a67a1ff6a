//! Reports of missing tools. Detecting gaps is done in `windlass-learn`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::confidence::Confidence;
use super::schema;
use crate::names::{NonEmptyText, ToolName};

/// When a gap was detected.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum GapMoment {
    /// Before the first model call: no tool seems to fit the task.
    BeforeRun,
    /// During a run: its model requested a tool that does not exist, or reported that it
    /// cannot do the task.
    DuringRun,
    /// When an agent was loaded: a specified tool has no implementation.
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

/// An existing tool that is similar to the missing one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct NearestTool {
    /// Its name.
    #[schemars(with = "schema::Name")]
    pub name: ToolName,
    /// The probability that it does what is missing, from 0 to 1.
    pub nearness: Confidence,
}

/// One missing capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct MissingCapability {
    /// The missing capability; one of the report's `missing_tools`.
    #[schemars(with = "schema::Text")]
    pub capability: NonEmptyText,
    /// The words of the task that ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Text>")]
    pub request: Option<NonEmptyText>,
    /// The name of a tool that would have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Name>")]
    pub wanted_tool: Option<ToolName>,
    /// The probability that no tool has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// The most similar tools, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest_tools: Vec<NearestTool>,
    /// A specification of a tool that would have it, in the form of an agent file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Text>")]
    pub proposed_tool: Option<NonEmptyText>,
    /// Why an existing tool cannot be used, such as a missing configuration, and what to set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Text>")]
    pub because: Option<NonEmptyText>,
}

impl MissingCapability {
    /// What is missing, in the words of the task if they are known.
    #[must_use]
    pub fn words(&self) -> &NonEmptyText {
        self.request.as_ref().unwrap_or(&self.capability)
    }
}

/// A report of missing tools, with at least one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw")]
#[schemars(with = "Raw")]
pub struct ToolGapReport {
    missing_tools: Vec<NonEmptyText>,
    attempted_task: NonEmptyText,
    existing_tools_checked: Vec<ToolName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<Confidence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moment: Option<GapMoment>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    capabilities: Vec<MissingCapability>,
}

impl ToolGapReport {
    /// A report; `None` if nothing is missing.
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

    /// A report with details of each missing capability; `None` if nothing is missing.
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

    /// The same report with the details of each missing capability changed. The capabilities themselves do
    /// not change.
    #[must_use]
    pub fn with_each(mut self, change: impl Fn(&mut MissingCapability)) -> Self {
        for missing in &mut self.capabilities {
            let capability = missing.capability.clone();
            change(missing);
            missing.capability = capability;
        }
        self
    }

    /// The same report with a confidence.
    #[must_use]
    pub fn with_confidence(mut self, confidence: Confidence) -> Self {
        self.confidence = Some(confidence);
        self
    }

    /// The same report with the moment of detection.
    #[must_use]
    pub fn at_moment(mut self, moment: GapMoment) -> Self {
        self.moment = Some(moment);
        self
    }

    /// The confidence that something is missing, if known.
    #[must_use]
    pub fn confidence(&self) -> Option<Confidence> {
        self.confidence
    }

    /// When the gap was detected, if known.
    #[must_use]
    pub fn moment(&self) -> Option<GapMoment> {
        self.moment
    }

    /// The details of each missing capability; empty if only the names are known.
    #[must_use]
    pub fn capabilities(&self) -> &[MissingCapability] {
        &self.capabilities
    }

    /// What is missing, in the words of the task where they are known.
    pub fn requests(&self) -> impl Iterator<Item = &NonEmptyText> {
        self.missing_tools.iter().map(|missing| {
            self.detail(missing)
                .map_or(missing, MissingCapability::words)
        })
    }

    /// The details of a missing capability.
    #[must_use]
    pub fn detail(&self, missing: &NonEmptyText) -> Option<&MissingCapability> {
        let mut details = self.capabilities.iter();
        details.find(|detail| detail.capability == *missing)
    }

    /// The same report with only the capabilities for which `keep` is true; `None` if none is left.
    #[must_use]
    pub fn retain(mut self, keep: impl Fn(&MissingCapability) -> bool) -> Option<Self> {
        let (kept, dropped): (Vec<_>, Vec<_>) = self.capabilities.into_iter().partition(keep);
        self.missing_tools
            .retain(|name| dropped.iter().all(|dropped| dropped.capability != *name));
        self.capabilities = kept;
        (!self.missing_tools.is_empty()).then_some(self)
    }

    /// What is missing: short names of capabilities.
    #[must_use]
    pub fn missing_tools(&self) -> &[NonEmptyText] {
        &self.missing_tools
    }

    /// The task that needs it.
    #[must_use]
    pub fn attempted_task(&self) -> &str {
        self.attempted_task.as_str()
    }

    /// The existing tools that were checked and do not fit.
    #[must_use]
    pub fn existing_tools_checked(&self) -> &[ToolName] {
        &self.existing_tools_checked
    }
}

/// The JSON form of a report, before validation.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ToolGapReport")]
struct Raw {
    /// What is missing: short names of capabilities, one for each.
    #[schemars(with = "Vec<schema::Text>", length(min = 1))]
    missing_tools: Vec<NonEmptyText>,
    /// The task that needs it.
    #[schemars(with = "schema::Text")]
    attempted_task: NonEmptyText,
    /// The existing tools that were checked and do not fit.
    #[schemars(with = "Vec<schema::Name>")]
    existing_tools_checked: Vec<ToolName>,
    /// The confidence that something is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confidence: Option<Confidence>,
    /// When the gap was detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moment: Option<GapMoment>,
    /// The details of each missing capability.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    capabilities: Vec<MissingCapability>,
}

impl TryFrom<Raw> for ToolGapReport {
    type Error = &'static str;

    fn try_from(raw: Raw) -> Result<Self, &'static str> {
        let is_missing = |name: &NonEmptyText| raw.missing_tools.contains(name);
        if !raw
            .capabilities
            .iter()
            .all(|missing| is_missing(&missing.capability))
        {
            return Err("every entry of capabilities must be named in missing_tools");
        }
        let report = Self::new(
            raw.missing_tools,
            raw.attempted_task,
            raw.existing_tools_checked,
        );
        let report = report.ok_or("missing_tools must have at least one entry")?;
        Ok(Self {
            confidence: raw.confidence,
            moment: raw.moment,
            capabilities: raw.capabilities,
            ..report
        })
    }
}
