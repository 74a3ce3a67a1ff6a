//! The generation of a server's list of tools: a number that grows when the list may have changed.
//! Notifications change it at most once per interval. No background task is needed.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::lock;

/// The generation of the list of tools.
#[derive(Debug)]
pub(crate) struct Listing {
    state: Mutex<State>,
    interval: Duration,
    shortest_ttl: Duration,
}

#[derive(Debug, Default)]
struct State {
    generation: u64,
    last_change: Option<Instant>,
    has_pending_change: bool,
    expires_at: Option<Instant>,
}

/// The longest TTL of a list.
const LONGEST_TTL: Duration = Duration::from_secs(24 * 60 * 60);

impl Listing {
    pub(crate) fn new(interval: Duration, shortest_ttl: Duration) -> Self {
        Self {
            state: Mutex::default(),
            interval,
            shortest_ttl,
        }
    }

    /// The current generation.
    pub(crate) fn generation(&self) -> u64 {
        let mut state = lock(&self.state);
        self.update(&mut state, Instant::now());
        state.generation
    }

    /// The server was reconnected.
    pub(crate) fn reconnected(&self) {
        let mut state = lock(&self.state);
        state.generation += 1;
        state.has_pending_change = false;
        state.expires_at = None;
    }

    /// The server notified that the list changed.
    pub(crate) fn changed(&self) {
        let mut state = lock(&self.state);
        state.has_pending_change = true;
        self.update(&mut state, Instant::now());
    }

    /// The list was read. `ttl` is how long it is valid, if the server says.
    pub(crate) fn listed(&self, ttl: Option<Duration>) {
        let ttl = ttl.map(|ttl| ttl.clamp(self.shortest_ttl, LONGEST_TTL.max(self.shortest_ttl)));
        lock(&self.state).expires_at = ttl.map(|ttl| Instant::now() + ttl);
    }

    fn update(&self, state: &mut State, now: Instant) {
        if state.expires_at.is_some_and(|until| until <= now) {
            state.expires_at = None;
            state.generation += 1;
        }
        let is_due = state
            .last_change
            .is_none_or(|last| now - last >= self.interval);
        if state.has_pending_change && is_due {
            state.has_pending_change = false;
            state.last_change = Some(now);
            state.generation += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_notifications_change_the_generation_once_per_interval() {
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
    fn an_expired_list_changes_the_generation_once() {
        let listing = Listing::new(Duration::ZERO, Duration::from_millis(20));
        listing.listed(Some(Duration::ZERO));
        assert_eq!(
            listing.generation(),
            0,
            "a server cannot force a list request on every use"
        );
        std::thread::sleep(Duration::from_millis(25));
        assert_eq!(listing.generation(), 1);
        assert_eq!(listing.generation(), 1);
    }

    #[test]
    fn the_largest_ttl_does_not_overflow() {
        let listing = Listing::new(Duration::ZERO, Duration::ZERO);
        listing.listed(Some(Duration::from_millis(u64::MAX)));
        assert_eq!(listing.generation(), 0);
    }
}
