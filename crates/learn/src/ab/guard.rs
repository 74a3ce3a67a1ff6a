//! Guard rails: what must not get worse while something else gets better, such as calls that fail. The
//! question is not whether there is a difference but whether B is worse by more than can be put up with,
//! so "nothing was seen" is not enough: it must be shown that it is not worse (non-inferiority).

use serde::Serialize;

use super::bootstrap::{Compare, Interval, Pair, effect, paired_interval};
use super::exact::mcnemar;

/// By how many a run B may be worse without being called so.
pub const MARGIN: f64 = 0.1;

/// What can be said of a guard rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// B is shown not to be worse by more than the margin.
    NotWorse,
    /// B is shown to be worse.
    Worse,
    /// Neither is shown.
    Open,
}

/// A guard rail and what was seen of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Guard {
    /// How many a run with A.
    pub a: f64,
    /// How many a run with B.
    pub b: f64,
    /// How many more a run with B.
    pub effect: f64,
    /// Where that is. Each end errs in at most alpha of experiments.
    pub interval: Option<Interval>,
    /// What can be said.
    pub standing: Standing,
}

/// Looks at counts of what is bad.
#[must_use]
pub fn guard(pairs: &[Pair], alpha: f64, seed: u64) -> Guard {
    let count = pairs.len().max(1) as f64;
    let a = pairs.iter().map(|pair| pair.a).sum::<f64>() / count;
    let b = pairs.iter().map(|pair| pair.b).sum::<f64>() / count;
    let effect = effect(pairs, Compare::Difference).unwrap_or(0.0);
    // What happens in one run of many may not have happened yet: of `n` runs without it, it may come in
    // up to 3 / n of all.
    let unseen = -alpha.ln() / count;
    let found = paired_interval(pairs, Compare::Difference, 1.0 - 2.0 * alpha, seed);
    let interval = found.map(|(interval, _)| Interval {
        high: interval.high.max(effect + unseen),
        ..interval
    });
    // What is rare comes in few pairs, of which too little can be drawn: counting which side they are on
    // must agree.
    let more_in = |is: fn(&&Pair) -> bool| pairs.iter().filter(is).count() as u64;
    let (in_a, in_b) = (
        more_in(|pair| pair.a > pair.b),
        more_in(|pair| pair.b > pair.a),
    );
    let is_shown = mcnemar(in_a, in_b) / 2.0 <= alpha;
    let standing = match interval {
        Some(interval) if interval.low > 0.0 && is_shown => Standing::Worse,
        Some(interval) if interval.high < MARGIN => Standing::NotWorse,
        _ => Standing::Open,
    };
    Guard {
        a,
        b,
        effect,
        interval,
        standing,
    }
}
