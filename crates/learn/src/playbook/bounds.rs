//! The lower end of Wilson's score interval for a share. It ranks 20 successes of 22 above 1 of 1, which a plain
//! ratio does not.

/// The standard deviations below the estimate that ranking uses: two in three strategies with such counts are
/// better. More would rank frequent use above similarity to the task.
const RANKING: f64 = 0.5;

/// The lower bound of the share of successes, for ranking; 0.5 without observations.
#[must_use]
pub fn lower_bound(successes: u64, failures: u64) -> f64 {
    lower_bound_at(successes, failures, RANKING)
}

/// Like [`lower_bound`], `deviations` standard deviations below the estimate.
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
