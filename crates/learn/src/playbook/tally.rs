//! The votes of runs on one strategy. Each run counts once.

use std::collections::BTreeMap;

use windlass_spec::{RunId, ToolCallingStrategy};

use super::bounds::lower_bound;
use super::evidence::Vote;

/// Counts that a strategy had when it was imported, before any run here.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Prior {
    pub(super) helpful: u64,
    pub(super) harmful: u64,
    pub(super) iterations: Option<f64>,
}

impl From<&ToolCallingStrategy> for Prior {
    fn from(strategy: &ToolCallingStrategy) -> Self {
        Self {
            helpful: strategy.helpful_count,
            harmful: strategy.harmful_count,
            iterations: strategy.avg_iterations(),
        }
    }
}

impl Prior {
    /// The sum of both.
    pub(super) fn plus(self, other: Self) -> Self {
        let (mine, theirs) = (self.helpful, other.helpful);
        let helpful = mine.saturating_add(theirs);
        let iterations = match (self.iterations, other.iterations) {
            (Some(one), Some(two)) if helpful > 0 => {
                Some((one * mine as f64 + two * theirs as f64) / helpful as f64)
            }
            (one, two) => one.or(two),
        };
        Self {
            helpful,
            harmful: self.harmful.saturating_add(other.harmful),
            iterations,
        }
    }
}

/// The votes of runs on a strategy.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// The vote of each run, and how many turns it took. Of several votes of a run, harmful wins over
    /// helpful, and helpful over neutral.
    votes: BTreeMap<RunId, (Vote, u32)>,
    prior: Prior,
    recalled: u64,
}

impl Tally {
    pub(super) fn add_prior(&mut self, prior: Prior) {
        self.prior = self.prior.plus(prior);
    }

    /// Whether a run has voted.
    pub(super) fn has_vote_of(&self, run: &RunId) -> bool {
        self.votes.contains_key(run)
    }

    /// The votes of runs, without the prior.
    pub(super) fn without_prior(&self) -> Prior {
        Prior {
            helpful: self.count(Vote::Helpful),
            harmful: self.count(Vote::Harmful),
            iterations: None,
        }
    }

    pub(super) fn vote(&mut self, run: &RunId, vote: Vote, iterations: u32) {
        let counted = self.votes.entry(run.clone()).or_insert((vote, iterations));
        // Harmful wins over helpful, and helpful over neutral.
        let rank = |vote: Vote| match vote {
            Vote::Harmful => 2,
            Vote::Helpful => 1,
            Vote::Neutral => 0,
        };
        if rank(vote) > rank(counted.0) {
            counted.0 = vote;
        }
    }

    /// Adds the votes on an equal strategy.
    pub(super) fn merge_votes(&mut self, other: Self) {
        for (run, (vote, iterations)) in &other.votes {
            self.vote(run, *vote, *iterations);
        }
        self.recalled += other.recalled;
    }

    pub(super) fn count_recall(&mut self) {
        self.recalled += 1;
    }

    /// In how many runs it led to success.
    #[must_use]
    pub fn helpful(&self) -> u64 {
        self.prior.helpful.saturating_add(self.count(Vote::Helpful))
    }

    /// In how many runs it led to failure.
    #[must_use]
    pub fn harmful(&self) -> u64 {
        self.prior.harmful.saturating_add(self.count(Vote::Harmful))
    }

    /// How often a model was shown it.
    #[must_use]
    pub fn recalled(&self) -> u64 {
        self.recalled
    }

    fn count(&self, wanted: Vote) -> u64 {
        self.votes
            .values()
            .filter(|(vote, _)| *vote == wanted)
            .count() as u64
    }

    /// The share of success; `None` without votes.
    #[must_use]
    pub fn success_rate(&self) -> Option<f64> {
        let (helpful, harmful) = (self.helpful() as f64, self.harmful() as f64);
        (helpful + harmful > 0.0).then(|| helpful / (helpful + harmful))
    }

    /// The average number of turns of the runs in which it succeeded. Failed runs do not count, because they may
    /// end early.
    #[must_use]
    pub fn avg_iterations(&self) -> Option<f64> {
        let took = self
            .votes
            .values()
            .filter(|(vote, _)| *vote == Vote::Helpful);
        let (mut turns, mut runs) = (0.0, 0.0);
        for (_, iterations) in took {
            turns += f64::from(*iterations);
            runs += 1.0;
        }
        if let Some(prior) = self.prior.iterations {
            turns += prior * self.prior.helpful as f64;
            runs += self.prior.helpful as f64;
        }
        (runs > 0.0).then(|| turns / runs)
    }

    /// The lower bound of the share of success.
    #[must_use]
    pub fn lower_bound(&self) -> f64 {
        lower_bound(self.helpful(), self.harmful())
    }

    /// The runs that voted helpful or harmful, with their votes, in the order of their ids, which is the order
    /// in which they began.
    pub fn votes(&self) -> impl DoubleEndedIterator<Item = (&RunId, Vote)> {
        let counted = self.votes.iter();
        counted
            .filter(|(_, (vote, _))| *vote != Vote::Neutral)
            .map(|(run, (vote, _))| (run, *vote))
    }
}
