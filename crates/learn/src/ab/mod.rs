//! Statistics of A/B experiments: the same tasks were run with two arms, and the analysis decides which arm is
//! better, by how much, and whether the data show it. [`judge`] gives a [`ExperimentVerdict`] on pairs of runs,
//! [`judge_groups`] on groups of principals. [`guard`] decides whether a guard rail got worse.
//!
//! The methods and the reasons for them:
//!
//! - Pairs, because tasks differ more than tools do.
//! - Exact tests ([`mcnemar`], [`sign_flip`]), because their error rate holds with any number of pairs.
//! - Intervals by resampling tasks, because runs of one task are correlated.
//! - An e-process ([`EProcess`]) instead of a test if the length of an experiment is not fixed before it begins,
//!   because repeated looks at a fixed-length test raise its error rate.
//! - A check of the sample ratio ([`sample_ratio`]) before anything else, because missing runs are seldom missing
//!   by chance.
//!
//! The result depends only on the arguments and a seed.

mod bootstrap;
mod exact;
mod guard;
mod random;
mod sequential;
mod special;
mod verdict;

pub use bootstrap::{
    Compare, Interval, Pair, RESAMPLES, ResampledUnit, group_interval, paired_interval,
};
pub use exact::{mcnemar, sample_ratio, sign_flip};
pub use guard::{Guard, GuardStatus, MARGIN, guard};
pub use random::Random;
pub use sequential::{EProcess, Outcomes, relative_difference};
pub use verdict::{
    Analysis, AnalysisSettings, Arm, ExperimentVerdict, Measure, SAMPLE_RATIO_ALARM, Stopping,
    judge, judge_groups,
};
