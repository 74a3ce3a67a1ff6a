//! How long a server that fails is left alone: longer after every failure, up to a limit, and never
//! exactly as long as somebody else waits.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The waiting times after failures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
}

impl Backoff {
    /// How long to wait after so many failures in a row: doubled each time, then between half of it
    /// and all of it.
    pub(crate) fn after(self, failures: u32) -> Duration {
        let doubled = 2u32.saturating_pow(failures.saturating_sub(1));
        let full = self.first.saturating_mul(doubled).min(self.longest);
        full / 2 + full.mul_f64(fraction() / 2.0)
    }
}

/// Something between nought and one. The hasher of the standard library is seeded by chance.
fn fraction() -> f64 {
    f64::from((RandomState::new().hash_one(0u8) >> 32) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_grows_and_is_capped_and_differs() {
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
