//! Mistakes of models. A mistake is normal: the model receives the reason, the mistake is counted and
//! bounded, and it never ends the process.

use std::fmt;

use serde::{Deserialize, Serialize};
use windlass_spec::{CallId, ErrorCategory, Misfit};

use super::repair::NotJson;

/// A mistake of a model, with the data needed to explain it.
#[derive(Debug, Clone, PartialEq)]
pub enum Mistake {
    /// It named a tool that does not exist.
    UnknownTool {
        /// The name.
        name: String,
        /// Existing tools with similar names.
        nearest: Vec<String>,
        /// All tools.
        known: Vec<String>,
    },
    /// Its arguments are not JSON.
    NotJson(NotJson),
    /// Its arguments do not fit the schema.
    Misfits(Vec<Misfit>),
    /// It repeated an earlier call exactly.
    Repeated {
        /// The earlier call.
        first: CallId,
        /// The earlier result, if it may be shown again.
        result: Option<String>,
    },
    /// It asked for more calls in one turn than allowed.
    TooManyCalls {
        /// The limit.
        limit: u32,
    },
    /// It called `finish` together with other tools.
    FinishWithCalls,
    /// It returned neither text nor calls.
    EmptyAnswer,
}

/// The kind of a mistake, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MistakeKind {
    /// See [`Mistake::UnknownTool`].
    UnknownTool,
    /// See [`Mistake::NotJson`].
    NotJson,
    /// See [`Mistake::Misfits`].
    Misfits,
    /// See [`Mistake::Repeated`].
    Repeated,
    /// See [`Mistake::TooManyCalls`].
    TooManyCalls,
    /// See [`Mistake::FinishWithCalls`].
    FinishWithCalls,
    /// See [`Mistake::EmptyAnswer`].
    EmptyAnswer,
    /// Arguments that were almost JSON and could be repaired.
    RepairedJson,
    /// A confidence outside 0 to 1, which was clamped.
    ConfidenceOutOfRange,
    /// An answer in plain text instead of a call of `finish`.
    TextInsteadOfFinish,
}

impl Mistake {
    /// The kind of the mistake.
    #[must_use]
    pub const fn kind(&self) -> MistakeKind {
        match self {
            Self::UnknownTool { .. } => MistakeKind::UnknownTool,
            Self::NotJson(_) => MistakeKind::NotJson,
            Self::Misfits(_) => MistakeKind::Misfits,
            Self::Repeated { .. } => MistakeKind::Repeated,
            Self::TooManyCalls { .. } => MistakeKind::TooManyCalls,
            Self::FinishWithCalls => MistakeKind::FinishWithCalls,
            Self::EmptyAnswer => MistakeKind::EmptyAnswer,
        }
    }
}

impl Mistake {
    /// The error category of the call that was not made.
    #[must_use]
    pub const fn category(&self) -> ErrorCategory {
        match self {
            Self::UnknownTool { .. } => ErrorCategory::UnknownTool,
            Self::TooManyCalls { .. } => ErrorCategory::BudgetExceeded,
            Self::NotJson(_)
            | Self::Misfits(_)
            | Self::Repeated { .. }
            | Self::FinishWithCalls
            | Self::EmptyAnswer => ErrorCategory::InvalidArguments,
        }
    }
}

/// The message for the model: what is wrong, and what to do.
impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTool {
                name,
                nearest,
                known,
            } => {
                write!(f, "There is no tool `{name}`.")?;
                if !nearest.is_empty() {
                    write!(f, " Did you mean `{}`?", nearest.join("` or `"))?;
                }
                match known.is_empty() {
                    true => write!(f, " There are no tools; call `finish` with your answer."),
                    false => write!(f, " The tools are: {}, finish.", known.join(", ")),
                }
            }
            Self::NotJson(NotJson {
                position: (0, _),
                message,
            }) => write!(
                f,
                "The arguments are refused: {message}. Call the tool again with one complete JSON object."
            ),
            Self::NotJson(NotJson {
                position: (line, column),
                message,
            }) => write!(
                f,
                "The arguments are not valid JSON: {message} at line {line}, column {column}. \
                 Call the tool again with one complete JSON object."
            ),
            Self::Misfits(misfits) => {
                f.write_str("The arguments do not fit the tool:")?;
                for misfit in misfits {
                    write!(f, "\n- {misfit}")?;
                }
                f.write_str("\nCall the tool again with arguments that fit its schema.")
            }
            Self::Repeated { first, result } => {
                write!(
                    f,
                    "You made exactly this call before (turn {}).",
                    first.turn
                )?;
                match result {
                    Some(result) => write!(
                        f,
                        " Its result was: {result}\nUse it, or do something else."
                    ),
                    None => {
                        f.write_str(" It is not made again. Do something else, or call `finish`.")
                    }
                }
            }
            Self::TooManyCalls { limit } => write!(
                f,
                "At most {limit} calls are allowed in one turn; this one was not made. \
                 Ask for it again in your next turn."
            ),
            Self::FinishWithCalls => f.write_str(
                "`finish` must be the only call of a turn. The other calls were made; \
                 look at their results, then call `finish` alone.",
            ),
            Self::EmptyAnswer => f.write_str(
                "Your answer was empty. Call a tool, or call `finish` with your answer.",
            ),
        }
    }
}
