//! Guard rails: metrics that must not get worse while another gets better, such as failed calls. It is a
//! non-inferiority test: a missing difference is not enough, the data must show that B is not worse by more than a
//! margin.

use serde::Serialize;

use super::bootstrap::{Compare, Interval, Pair, effect, paired_interval};
use super::exact::mcnemar;

/// The margin: by how much per run B may be worse.
pub const MARGIN: f64 = 0.1;

/// The result for a guard rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardStatus {
    /// B is shown not to be worse by more than the margin.
    NotWorse,
    /// B is shown to be worse.
    Worse,
    /// Neither is shown.
    Open,
}

/// A guard rail and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Guard {
    /// The mean per run with A.
    pub a: f64,
    /// The mean per run with B.
    pub b: f64,
    /// The difference per run, B minus A.
    pub effect: f64,
    /// The confidence interval of the difference. Each end has an error rate of at most alpha.
    pub interval: Option<Interval>,
    /// The result.
    #[serde(rename = "standing")]
    pub status: GuardStatus,
}

/// Tests a guard rail on counts of bad events.
#[must_use]
pub fn guard(pairs: &[Pair], alpha: f64, seed: u64) -> Guard {
    let count = pairs.len().max(1) as f64;
    let a = pairs.iter().map(|pair| pair.a).sum::<f64>() / count;
    let b = pairs.iter().map(|pair| pair.b).sum::<f64>() / count;
    let effect = effect(pairs, Compare::Difference).unwrap_or(0.0);
    // A rare event may not have occurred yet: after `n` runs without it, its rate may be up to 3 / n (rule of
    // three).
    let unseen = -alpha.ln() / count;
    let found = paired_interval(pairs, Compare::Difference, 1.0 - 2.0 * alpha, seed);
    let interval = found.map(|(interval, _)| Interval {
        high: interval.high.max(effect + unseen),
        ..interval
    });
    // A rare event occurs in few pairs, too few for the bootstrap, so the sign test must agree.
    let more_in = |is: fn(&&Pair) -> bool| pairs.iter().filter(is).count() as u64;
    let (in_a, in_b) = (
        more_in(|pair| pair.a > pair.b),
        more_in(|pair| pair.b > pair.a),
    );
    let is_shown = mcnemar(in_a, in_b) / 2.0 <= alpha;
    let status = match interval {
        Some(interval) if interval.low > 0.0 && is_shown => GuardStatus::Worse,
        Some(interval) if interval.high < MARGIN => GuardStatus::NotWorse,
        _ => GuardStatus::Open,
    };
    Guard {
        a,
        b,
        effect,
        interval,
        status,
    }
}
