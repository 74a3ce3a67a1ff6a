//! What an experiment shows: the same tasks were done in two ways, and this says which is better, by how
//! much, and whether that can be said at all. [`judge`] gives a [`Verdict`] on pairs of runs,
//! [`judge_groups`] on groups of principals, [`guard`] says whether something else got worse.
//!
//! The choices, and why. Pairs, because tasks differ more than tools do. Exact tests, because a verdict is
//! a promise with any number of pairs ([`mcnemar`], [`sign_flip`]). Intervals by resampling tasks, because
//! runs of a task are alike. Where the length of an experiment is not fixed before, an e-process instead of
//! a test ([`Evidence`]), because a test that is looked at again and again errs far more often than it says.
//! A check of the sample ratio before anything else ([`sample_ratio`]), because what is missing is seldom
//! missing by chance.
//!
//! Everything follows from what is passed in and a seed.

mod bootstrap;
mod exact;
mod guard;
mod random;
mod sequential;
mod special;
mod verdict;

pub use bootstrap::{Compare, Drawn, Interval, Pair, RESAMPLES, group_interval, paired_interval};
pub use exact::{mcnemar, sample_ratio, sign_flip};
pub use guard::{Guard, MARGIN, Standing, guard};
pub use random::Random;
pub use sequential::{Evidence, Outcomes, relative_difference};
pub use verdict::{
    Analysis, Arm, Measure, Question, SAMPLE_RATIO_ALARM, Stopping, Verdict, judge, judge_groups,
};
