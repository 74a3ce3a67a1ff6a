//! How many requests a caller may make: a bucket of requests for each token, which fills steadily.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many seconds of requests a token may make at once.
const BURST_SECONDS: f64 = 2.0;

/// From how many buckets on full ones are dropped.
const MANY: usize = 10_000;

/// The requests that each caller may still make.
#[derive(Debug)]
pub(crate) struct Rates {
    per_second: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Rates {
    pub(crate) fn new(per_second: u32) -> Self {
        Self {
            per_second: f64::from(per_second.max(1)),
            buckets: Mutex::default(),
        }
    }

    /// Counts a request of a caller. The error is how long to wait.
    pub(crate) fn take(&self, caller: &str, now: Instant) -> Result<(), Duration> {
        let most = self.per_second * BURST_SECONDS;
        let refilled = |bucket: &Bucket| {
            let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
            (bucket.left + passed * self.per_second).min(most)
        };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MANY {
            buckets.retain(|_, bucket| refilled(bucket) < most);
        }
        let left = buckets.get(caller).map_or(most, refilled);
        let (left, taken) = match left >= 1.0 {
            true => (left - 1.0, Ok(())),
            false => {
                let missing = (1.0 - left) / self.per_second;
                (left, Err(Duration::from_secs_f64(missing)))
            }
        };
        buckets.insert(caller.to_owned(), Bucket { left, at: now });
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_waits_when_its_requests_are_used_up() {
        let rates = Rates::new(2);
        let now = Instant::now();
        for _ in 0..4 {
            assert_eq!(rates.take("a", now), Ok(()));
        }
        assert_eq!(rates.take("a", now), Err(Duration::from_millis(500)));
        assert_eq!(rates.take("b", now), Ok(()));
        let later = now + Duration::from_millis(500);
        assert_eq!(rates.take("a", later), Ok(()));
        assert!(rates.take("a", later).is_err());
    }
}
