//! What worked becomes a strategy, so that the next task of its kind takes fewer steps.
//!
//! A playbook is what its log says. A run that is over becomes one [`Evidence`] entry
//! ([`GroundedReflector`]): which tools succeeded in which order, what failed, which strategies were
//! recalled and whether they were followed. Whatever people change is an entry too. [`SemanticCurator`]
//! folds the entries into a [`Playbook`]: strategies with their counts, each active or retired for a
//! reason. Nothing else is stored, so everything can be reckoned again, and undone.
//! [`PlaybookIndex`] finds the strategies for a task.
//!
//! A run counts at most once for a strategy, and what it says is what happened in it: a strategy was
//! followed if its tools are a subsequence of those that succeeded. Nobody is asked whether it helped.

mod bounds;
mod curate;
mod evidence;
mod index;
mod lexicon;
mod log;
mod reflect;
mod signs;
mod tally;
mod wording;
mod words;

#[cfg(test)]
mod tests;

pub use bounds::{lower_bound, lower_bound_at};
pub use curate::{CurationSettings, KeptStrategy, Playbook, Retired, SemanticCurator, Standing};
pub use evidence::{Evidence, Pitfall, RunEvidence, Verdict, Vote, Voted};
pub use index::{PlaybookIndex, RecallQuery, Recalled};
pub use log::{LogError, ReadLog, hand_edits, log_line, read_log};
pub use reflect::{
    Ended, Experience, GroundedReflector, RecalledBefore, Tried, is_followed, is_subsequence,
};
pub use tally::Tally;
pub use wording::{WordingError, accept_wording};
pub use words::id_of;
