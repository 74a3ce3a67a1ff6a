//! The timeout between the pieces of an answer. One timer serves a whole answer: a new timer per piece
//! would wake the runtime's other threads each time.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// The longest limit. It can be added to any `Instant` without overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A deadline that is renewed with every piece.
pub(super) struct IdleTimer {
    until: Instant,
    /// May fire before the deadline; then it is reset.
    timer: Pin<Box<Sleep>>,
}

impl IdleTimer {
    /// A timer with the limit `first`. `later` is the limit of later renewals.
    pub(super) fn new(first: Duration, later: Duration) -> Self {
        Self {
            until: Instant::now() + first.min(LONGEST),
            // Not later than any later deadline, so that the timer never has to be moved back.
            timer: Box::pin(sleep(first.min(later))),
        }
    }

    /// Sets the deadline to `limit` from now.
    pub(super) fn renew(&mut self, limit: Duration) {
        self.until = Instant::now() + limit.min(LONGEST);
    }

    /// Whether the deadline has passed. Work that is always ready never lets the timer fire.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// The output of `work`, or `None` at the deadline.
    pub(super) async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                output = &mut work => return Some(output),
                () = &mut self.timer => {
                    if Instant::now() >= self.until {
                        return None;
                    }
                    self.timer.as_mut().reset(self.until);
                }
            }
        }
    }
}
