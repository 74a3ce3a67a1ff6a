//! How good something is at least, seen so often: the lower end of Wilson's interval for a share. It
//! ranks twenty of twenty-two above one of one, as a ratio would not.

/// How many standard deviations a rank looks down: two in three that are seen like this are better. Looking
/// further down would rank what is often used before what is like the task.
const RANKING: f64 = 0.5;

/// The share of successes that can be relied on, for ranking. A half if nothing was seen.
#[must_use]
pub fn lower_bound(successes: u64, failures: u64) -> f64 {
    lower_bound_at(successes, failures, RANKING)
}

/// The same, so many standard deviations down.
#[must_use]
pub fn lower_bound_at(successes: u64, failures: u64, deviations: f64) -> f64 {
    let seen = successes as f64 + failures as f64;
    if seen == 0.0 {
        return 0.5;
    }
    let share = successes as f64 / seen;
    let z = deviations * deviations;
    let middle = share + z / (2.0 * seen);
    let spread = deviations * (share * (1.0 - share) / seen + z / (4.0 * seen * seen)).sqrt();
    ((middle - spread) / (1.0 + z / seen)).clamp(0.0, 1.0)
}
