//! Turns what worked into strategies, so that the next similar task takes fewer steps.
//!
//! A playbook is computed from its log. Each finished run becomes one [`PlaybookEntry`] entry
//! ([`GroundedReflector`]): which tools succeeded in which order, what failed, which strategies were
//! recalled and whether they were followed. Each change by a person is an entry too. [`SemanticCurator`]
//! folds the entries into a [`Playbook`]: strategies with their counts, each active or retired for a
//! reason. Nothing else is stored, so everything can be recomputed and undone.
//! [`PlaybookIndex`] finds the strategies for a task.
//!
//! A run counts at most once for a strategy, and its vote depends only on what happened in it: a strategy was
//! followed if its tools are a subsequence of those that succeeded. No model rates its own strategies.

mod bounds;
mod curate;
mod evidence;
mod index;
mod lexicon;
mod log;
mod reflect;
mod sign_index;
mod tally;
mod wording;
mod words;

#[cfg(test)]
mod tests;

pub use bounds::{lower_bound, lower_bound_at};
pub use curate::{
    CurationSettings, KeptStrategy, Playbook, RetiredReason, SemanticCurator, StrategyStatus,
};
pub use evidence::{Pitfall, PlaybookEntry, RunEvidence, RunVerdict, StrategyVote, Vote};
pub use index::{PlaybookIndex, RecallQuery, StrategyMatch};
pub use log::{LogError, ReadLog, hand_edits, log_line, read_log};
pub use reflect::{
    Experience, ExperienceEnd, GroundedReflector, ShownStrategy, ToolAttempt, is_followed,
    is_subsequence,
};
pub use tally::Tally;
pub use wording::{WordingError, accept_wording};
pub use words::id_of;
