//! A decision about one call: the verdict, and the parts of policy and floor that led to it.

use std::fmt;

use serde::{Deserialize, Serialize};
use windlass_spec::SecurityLevel;

use crate::approvers::GroupDemand;
use crate::floor::FloorReason;
use crate::verdict::Verdict;

/// The verdict about a call, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The stricter of floor and policies.
    pub verdict: Verdict,
    /// The reason of the floor.
    pub floor: FloorReason,
    /// The verdict of the policies alone: allow, ask or deny.
    pub policies: Verdict,
    /// The security level that an approval needs.
    pub security_level: SecurityLevel,
    /// The rules that decided in the policies: those that permit if they allow, those that forbid
    /// otherwise. Empty where no rule permits the call, and where a fault occurred.
    pub rules: Vec<String>,
    /// The reasons of these rules, for people.
    pub reasons: Vec<String>,
    /// The groups whose approval these rules demand, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<GroupDemand>,
    /// After how many seconds a request for approval expires, if these rules set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_seconds: Option<u64>,
    /// The faults. Each of them denies.
    pub faults: Vec<Fault>,
}

/// Why a decision could not be evaluated. The call is denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "fault")]
#[non_exhaustive]
pub enum Fault {
    /// The policies were loaded without this tool.
    #[error("the policies were loaded without the tool `{tool}`")]
    UnknownTool {
        /// The tool.
        tool: String,
    },
    /// The tool does not take this argument.
    #[error("the tool has no argument `{argument}`")]
    UndeclaredArgument {
        /// The argument.
        argument: String,
    },
    /// A rule uses an argument that is missing or has the wrong type.
    #[error("the argument `{argument}` is missing or has the wrong type")]
    Misfit {
        /// The argument.
        argument: String,
    },
    /// A rule uses an argument whose value has no exact representation in Cedar.
    #[error(
        "the value of the argument `{argument}` cannot be represented for the rules that use it"
    )]
    Inexpressible {
        /// The argument.
        argument: String,
    },
    /// A rule could not be evaluated.
    #[error("the rule `{rule}` could not be evaluated: {message}")]
    Evaluation {
        /// The rule.
        rule: String,
        /// Why.
        message: String,
    },
    /// The call could not be converted for Cedar.
    #[error("the call could not be evaluated: {message}")]
    Request {
        /// Why.
        message: String,
    },
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verdict)?;
        if let Some(fault) = self.faults.first() {
            return write!(f, ": {fault}");
        }
        if self.policies == self.verdict || self.floor.verdict() != self.verdict {
            match self.rules.as_slice() {
                [] => write!(f, ": no rule permits the call"),
                rules => write!(f, ": by rule `{}`", rules.join("`, `")),
            }
        } else {
            write!(f, ": {}", self.floor)
        }
    }
}
