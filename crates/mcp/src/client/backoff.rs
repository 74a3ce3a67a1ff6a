//! Exponential backoff with jitter for servers that fail.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The bounds of the backoff.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
}

impl Backoff {
    /// How long to wait after so many failures in a row. The delay doubles each time up to `longest`; the
    /// result is a random value between half of the delay and all of it.
    pub(crate) fn after(self, failures: u32) -> Duration {
        let doubled = 2u32.saturating_pow(failures.saturating_sub(1));
        let full = self.first.saturating_mul(doubled).min(self.longest);
        full / 2 + full.mul_f64(random_fraction() / 2.0)
    }
}

/// A random number between 0 and 1. The hasher of the standard library has a random seed.
fn random_fraction() -> f64 {
    f64::from((RandomState::new().hash_one(0u8) >> 32) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_is_capped_and_has_jitter() {
        let backoff = Backoff {
            first: Duration::from_millis(100),
            longest: Duration::from_secs(5),
        };
        for (failures, full) in [(1, 100), (2, 200), (3, 400), (7, 5_000), (1_000, 5_000)] {
            let full = Duration::from_millis(full);
            let all: Vec<_> = (0..50).map(|_| backoff.after(failures)).collect();
            assert!(all.iter().all(|wait| *wait >= full / 2 && *wait <= full));
            assert!(all.iter().any(|wait| *wait != all[0]));
        }
    }
}
