//! What the gate decided about a call, and which of its stages did.

use std::fmt;

use serde::{Deserialize, Serialize};
use windlass_spec::{Effect, ErrorCategory, Failure};

/// A decision about one call: one record that explains it to everyone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    verdict: Verdict,
    stage: Stage,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    category: Option<ErrorCategory>,
}

/// What is to happen with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// It may not.
    Deny,
}

/// A stage of the gate, in the order calls pass them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Is there such a tool?
    KnownTool,
    /// Is it switched on?
    Enabled,
    /// Do the arguments fit its schema?
    Arguments,
    /// Does the run have calls left?
    Budget,
    /// Nothing stood in the way.
    Passed,
}

impl Decision {
    pub(super) fn allow() -> Self {
        Self {
            verdict: Verdict::Allow,
            stage: Stage::Passed,
            reason: String::new(),
            category: None,
        }
    }

    pub(super) fn deny(stage: Stage, category: ErrorCategory, reason: String) -> Self {
        Self {
            verdict: Verdict::Deny,
            stage,
            reason,
            category: Some(category),
        }
    }

    /// What is to happen.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Which stage decided.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Why; empty if nothing stood in the way.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The failure a denied call ends with; `None` if it was allowed.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        (self.verdict == Verdict::Deny).then(|| {
            // A denial without a category can only come from a damaged journal. It stays a denial.
            let category = self.category.unwrap_or(ErrorCategory::PermissionDenied);
            Failure::new(category, Effect::None, self.reason.clone())
        })
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verdict {
            Verdict::Allow => f.write_str("allowed"),
            Verdict::Deny => write!(f, "denied: {}", self.reason),
        }
    }
}
