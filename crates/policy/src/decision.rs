//! A decision about one call: what is to happen, and which part of policy and floor led to it.

use std::fmt;

use serde::{Deserialize, Serialize};
use windlass_spec::SecurityLevel;

use crate::floor::FloorReason;
use crate::verdict::Verdict;

/// What is to happen with a call, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What is to happen: the stricter of floor and policies.
    pub verdict: Verdict,
    /// What the floor goes by.
    pub floor: FloorReason,
    /// What the policies alone say: allow, ask or deny.
    pub policies: Verdict,
    /// How much care a person's decision needs.
    pub security_level: SecurityLevel,
    /// The rules by which the policies say so: those that permit if they allow, those that forbid
    /// otherwise. Empty where no rule permits the call, and where something went wrong.
    pub rules: Vec<String>,
    /// What these rules tell people.
    pub reasons: Vec<String>,
    /// What went wrong. Each of them denies.
    pub faults: Vec<Fault>,
}

/// Why a decision could not be made as it should. The call is denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "fault")]
#[non_exhaustive]
pub enum Fault {
    /// The policies were loaded without this tool.
    #[error("the policies know no tool `{tool}`")]
    UnknownTool {
        /// The tool.
        tool: String,
    },
    /// The tool does not take this argument.
    #[error("the tool takes no argument `{argument}`")]
    UndeclaredArgument {
        /// The argument.
        argument: String,
    },
    /// A rule looks at an argument that is missing or not of its type.
    #[error("the argument `{argument}` is missing or not of its type")]
    Misfit {
        /// The argument.
        argument: String,
    },
    /// A rule looks at an argument whose value has no exact counterpart in the policy language.
    #[error(
        "the value of the argument `{argument}` cannot be expressed for the rules that look at it"
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
    /// The call could not be put before the policies.
    #[error("the call could not be put before the policies: {message}")]
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
