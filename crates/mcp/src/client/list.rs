//! Whether the list of a server's tools may have changed, told as a number that grows. A storm of
//! notices makes it grow once in a while, not once per notice; nothing runs in the background for it.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::lock;

/// How often the list may have changed.
#[derive(Debug)]
pub(crate) struct Listing {
    state: Mutex<State>,
    interval: Duration,
    shortest_ttl: Duration,
}

#[derive(Debug, Default)]
struct State {
    generation: u64,
    told: Option<Instant>,
    is_told_late: bool,
    holds_until: Option<Instant>,
}

/// Longer than this no list is taken to hold.
const LONGEST_TTL: Duration = Duration::from_secs(24 * 60 * 60);

impl Listing {
    pub(crate) fn new(interval: Duration, shortest_ttl: Duration) -> Self {
        Self {
            state: Mutex::default(),
            interval,
            shortest_ttl,
        }
    }

    /// The number.
    pub(crate) fn generation(&self) -> u64 {
        let mut state = lock(&self.state);
        self.settle(&mut state, Instant::now());
        state.generation
    }

    /// The server is a new one.
    pub(crate) fn reconnected(&self) {
        let mut state = lock(&self.state);
        state.generation += 1;
        state.is_told_late = false;
        state.holds_until = None;
    }

    /// The server says that the list changed.
    pub(crate) fn changed(&self) {
        let mut state = lock(&self.state);
        state.is_told_late = true;
        self.settle(&mut state, Instant::now());
    }

    /// The list was read, and holds so long if the server says.
    pub(crate) fn listed(&self, ttl: Option<Duration>) {
        let ttl = ttl.map(|ttl| ttl.clamp(self.shortest_ttl, LONGEST_TTL.max(self.shortest_ttl)));
        lock(&self.state).holds_until = ttl.map(|ttl| Instant::now() + ttl);
    }

    fn settle(&self, state: &mut State, now: Instant) {
        if state.holds_until.is_some_and(|until| until <= now) {
            state.holds_until = None;
            state.generation += 1;
        }
        let is_time = state.told.is_none_or(|told| now - told >= self.interval);
        if state.is_told_late && is_time {
            state.is_told_late = false;
            state.told = Some(now);
            state.generation += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storm_of_changes_is_told_once_at_once_and_once_later() {
        let listing = Listing::new(Duration::from_millis(40), Duration::ZERO);
        for _ in 0..1_000 {
            listing.changed();
        }
        assert_eq!(listing.generation(), 1);
        std::thread::sleep(Duration::from_millis(45));
        assert_eq!(listing.generation(), 2);
        std::thread::sleep(Duration::from_millis(45));
        assert_eq!(listing.generation(), 2);
    }

    #[test]
    fn list_whose_time_is_over_may_have_changed_once() {
        let listing = Listing::new(Duration::ZERO, Duration::from_millis(20));
        listing.listed(Some(Duration::ZERO));
        assert_eq!(
            listing.generation(),
            0,
            "a server cannot make every use a list"
        );
        std::thread::sleep(Duration::from_millis(25));
        assert_eq!(listing.generation(), 1);
        assert_eq!(listing.generation(), 1);
    }

    #[test]
    fn endless_time_to_live_does_not_overflow() {
        let listing = Listing::new(Duration::ZERO, Duration::ZERO);
        listing.listed(Some(Duration::from_millis(u64::MAX)));
        assert_eq!(listing.generation(), 0);
    }
}
