//! Assesses how risky a call is, and why. The sources are, in order of precedence: the operator, the
//! tool's specification, a trusted server's annotations, the HTTP method, and the words of name and
//! description. The first of them that applies sets the base level. The arguments and the annotations of
//! an untrusted server may only raise it. An unknown tool is irreversible.
//!
//! [`ToolRisk`] holds the risk of a tool before any call; [`ToolRisk::with_arguments`] assesses a call
//! in microseconds. Everything here is a pure function of its inputs.

mod arguments;
mod evaluate;
mod lexicon;
mod reading;
mod roles;
mod shell;
mod sources;
mod sql;
mod url;
mod words;

#[cfg(test)]
mod tests;

pub use evaluate::{EvaluationReport, EvaluationRow, Misjudged, RowError, evaluate, read_rows};
pub use sources::{Annotations, KnownTool, Trust};

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_spec::{Confidence, RiskLevel, ToolSpecification};

use roles::Shape;

/// A finding about the risk of a tool or call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The source of the finding.
    pub source: Source,
    /// The level that the finding supports.
    pub level: RiskLevel,
    /// A description of what was found, for people.
    pub what: String,
}

impl Evidence {
    fn new(source: Source, level: RiskLevel, what: impl Into<String>) -> Self {
        let what = what.into();
        Self {
            source,
            level,
            what,
        }
    }
}

windlass_spec::word_set! {
    /// The sources of risk levels, in order of precedence.
    Source, "source of a risk" {
        /// The operator's override for this tool. It is final.
        Override = "override",
        /// The tool's own specification.
        Declaration = "declaration",
        /// The annotations of a server the operator trusts.
        TrustedAnnotations = "trusted_annotations",
        /// The method of the HTTP request the tool makes.
        HttpMethod = "http_method",
        /// The words of the tool's name and description.
        Words = "words",
        /// No source applies.
        Nothing = "nothing",
        /// The annotations of a server the operator does not trust. They only raise.
        UntrustedAnnotations = "untrusted_annotations",
        /// The arguments of the call. They only raise.
        Arguments = "arguments",
        /// An argument that, by the specification, makes the call change nothing.
        DryRun = "dry_run",
    }
}

/// The risk of a tool or call, with all findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assessment {
    /// How reversible it is.
    pub level: RiskLevel,
    /// The findings, in order of precedence. The first one set the base level. Later sources that may
    /// not raise it are kept for the record.
    pub evidence: Vec<Evidence>,
    /// The source that decided.
    pub source: Source,
}

impl Assessment {
    /// Adds a finding that may raise the level and never lowers it.
    fn raise(&mut self, evidence: Evidence) {
        if evidence.level > self.level {
            self.level = evidence.level;
            self.source = evidence.source;
        }
        self.evidence.push(evidence);
    }
}

impl fmt::Display for Assessment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.level, self.source)?;
        for Evidence {
            source,
            level,
            what,
        } in &self.evidence
        {
            write!(f, "; {source}: {level}, {what}")?;
        }
        Ok(())
    }
}

/// The known risk of a tool before it is called. Made once for each tool and used for every call.
#[derive(Debug, Clone)]
pub struct ToolRisk {
    base: Assessment,
    shape: Shape,
    dry_run_argument: Option<String>,
}

impl ToolRisk {
    /// Assesses a tool by everything that is known of it.
    #[must_use]
    pub fn of(tool: &KnownTool<'_>) -> Self {
        Self {
            base: sources::base(tool),
            shape: Shape::of(tool),
            dry_run_argument: tool.dry_run_argument.map(str::to_owned),
        }
    }

    /// Assesses a tool by its specification only.
    #[must_use]
    pub fn of_specification(specification: &ToolSpecification) -> Self {
        Self::of(&KnownTool::specified(specification))
    }

    /// The risk before the arguments are known.
    #[must_use]
    pub fn base(&self) -> &Assessment {
        &self.base
    }

    /// The risk of the worst operation that the schema offers: what to expect while the arguments are
    /// unknown.
    #[must_use]
    pub fn at_worst(&self) -> Assessment {
        let mut assessment = self.base.clone();
        if assessment.source != Source::Override {
            for (_, evidence) in &self.shape.operations {
                assessment.raise(evidence.clone());
            }
        }
        assessment
    }

    /// The risk of a call with these arguments.
    #[must_use]
    pub fn with_arguments(&self, arguments: &Map<String, Value>) -> Assessment {
        let mut assessment = self.base.clone();
        if assessment.source == Source::Override {
            return assessment;
        }
        if let Some(name) = &self.dry_run_argument
            && arguments.get(name) == Some(&Value::Bool(true))
        {
            let what = format!("`{name}` is set, so nothing changes");
            let evidence = Evidence::new(Source::DryRun, RiskLevel::Reversible, what);
            assessment.level = evidence.level;
            assessment.source = evidence.source;
            assessment.evidence.push(evidence);
            return assessment;
        }
        arguments::assess(arguments, &self.shape, &mut assessment);
        assessment
    }
}

/// The risk of one call. If a tool is called often, make its [`ToolRisk`] once instead.
#[must_use]
pub fn assess(tool: &KnownTool<'_>, arguments: &Map<String, Value>) -> Assessment {
    ToolRisk::of(tool).with_arguments(arguments)
}

/// The risk of calling a tool of which only the name is known. Parameters that are not an object are
/// ignored.
#[must_use]
pub fn categorize_action_risk(tool: &str, parameters: &Value) -> RiskLevel {
    let tool = ToolRisk::of(&KnownTool::named(tool));
    match parameters {
        Value::Object(arguments) => tool.with_arguments(arguments).level,
        _ => tool.base().level,
    }
}

/// The words of a tool's name.
pub(crate) fn words_of(name: &str) -> Vec<String> {
    words::split_name(name)
}

/// Whether a call of that risk at that confidence needs approval: always if it is irreversible, below
/// [`Confidence::DEFAULT_THRESHOLD`] if it has an undo window, otherwise never. Confidence never weakens
/// a decision.
#[must_use]
pub fn requires_approval(risk: RiskLevel, confidence: Confidence) -> bool {
    requires_approval_below(risk, confidence, Confidence::DEFAULT_THRESHOLD.get())
}

/// [`requires_approval`] with another threshold. A threshold that is not a number always requires
/// approval.
#[must_use]
pub fn requires_approval_below(risk: RiskLevel, confidence: Confidence, threshold: f64) -> bool {
    match risk {
        RiskLevel::Reversible => false,
        RiskLevel::ReversibleWithDelay => threshold.is_nan() || confidence.get() < threshold,
        RiskLevel::Irreversible => true,
    }
}
