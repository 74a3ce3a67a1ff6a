//! The status of a strategy: active, disabled, or retired for a reason.

use std::fmt;

use windlass_spec::{StrategySection, ToolCallingStrategy, ToolName};

use crate::playbook::bounds::{lower_bound, lower_bound_at};
use crate::playbook::tally::Tally;

/// The standard deviations of the bound that shows harm.
const HARM_DEVIATIONS: f64 = 1.96;

/// Whether a strategy is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StrategyStatus {
    /// It is used.
    Active,
    /// A person disabled it.
    Disabled,
    /// It is retired. It becomes active again when the reason no longer applies.
    Retired(RetiredReason),
}

/// Why a strategy is no longer used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetiredReason {
    /// An agent lacks a tool it names.
    MissingTool(ToolName),
    /// Its share of harm is significantly above one half.
    Harmful,
    /// No recent run has proved or recalled it.
    Unused,
    /// The limits are reached, and other strategies are better.
    Budget,
}

impl fmt::Display for RetiredReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingTool(tool) => write!(f, "the tool `{tool}` is gone"),
            Self::Harmful => f.write_str("it harms more than it helps"),
            Self::Unused => f.write_str("it was not used for long"),
            Self::Budget => f.write_str("there is no room for it"),
        }
    }
}

/// Whether a stored line is retired only because a tool is missing. It is compared by its text. An agent without
/// the tool never recalls such a strategy, and an agent with the tool can use it at once.
pub(in crate::playbook) fn lacks_tool_only(strategy: &ToolCallingStrategy) -> bool {
    let Some(why) = &strategy.retired else {
        return false;
    };
    let mut tools = strategy.tool_sequence().iter();
    tools.any(|tool| RetiredReason::MissingTool(tool.clone()).to_string() == why.as_str())
}

/// The lower bound of the share of success; for a pitfall, of failure, because a pitfall states that something
/// fails.
pub(in crate::playbook) fn reliability(
    section: StrategySection,
    helpful: u64,
    harmful: u64,
) -> f64 {
    match section {
        StrategySection::Pitfalls => lower_bound(harmful, helpful),
        StrategySection::Strategies | StrategySection::Observations => {
            lower_bound(helpful, harmful)
        }
    }
}

/// Whether its share of harm is significantly above one half. A pitfall is never harmful.
pub(super) fn is_harmful(section: StrategySection, tally: &Tally) -> bool {
    section != StrategySection::Pitfalls
        && tally.harmful() > 0
        && lower_bound_at(tally.harmful(), tally.helpful(), HARM_DEVIATIONS) > 0.5
}
