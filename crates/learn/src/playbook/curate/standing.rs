//! Whether a strategy is used, and why not.

use std::fmt;

use windlass_spec::{StrategySection, ToolCallingStrategy, ToolName};

use crate::playbook::bounds::{lower_bound, lower_bound_at};
use crate::playbook::tally::Tally;

/// How many standard deviations harm must be beyond doubt.
const HARM: f64 = 1.96;

/// Whether a strategy is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    Active,
    /// A person switched it off.
    Disabled,
    /// It was retired. It comes back when the reason is gone.
    Retired(Retired),
}

/// Why a strategy is no longer used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retired {
    /// A tool it names is gone.
    Gone(ToolName),
    /// It does more harm than good, beyond doubt.
    Harmful,
    /// No run has proved or recalled it for long.
    Unused,
    /// Others are better, and there is no room for all.
    Budget,
}

impl fmt::Display for Retired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(tool) => write!(f, "the tool `{tool}` is gone"),
            Self::Harmful => f.write_str("it harms more than it helps"),
            Self::Unused => f.write_str("it was not used for long"),
            Self::Budget => f.write_str("there is no room for it"),
        }
    }
}

/// Whether a line says that it is retired only because a tool is gone. Nobody recalls it who lacks the tool, and it is
/// of use again in the first run of whoever has it.
pub(in crate::playbook) fn is_gone(strategy: &ToolCallingStrategy) -> bool {
    let Some(why) = &strategy.retired else {
        return false;
    };
    let mut tools = strategy.tool_sequence().iter();
    tools.any(|tool| Retired::Gone(tool.clone()).to_string() == why.as_str())
}

/// The share of success that can be relied on. What counts against a pitfall counts for it: it says that
/// something fails.
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

/// Whether it does more harm than good, beyond doubt. A pitfall is about harm, and does none.
pub(super) fn is_harmful(section: StrategySection, tally: &Tally) -> bool {
    section != StrategySection::Pitfalls
        && tally.harmful() > 0
        && lower_bound_at(tally.harmful(), tally.helpful(), HARM) > 0.5
}
