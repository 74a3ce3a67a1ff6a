//! How long a model is waited for. One timer serves a whole answer: to set one for each piece of it
//! would wake the runtime's other threads each time.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// As good as for ever, and can be added to any time.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A limit that is moved with every sign of life.
pub(super) struct Patience {
    until: Instant,
    /// May end before the limit is reached; then it is set again.
    timer: Pin<Box<Sleep>>,
}

impl Patience {
    /// Waits as long as `first` and later as long as `later`.
    pub(super) fn new(first: Duration, later: Duration) -> Self {
        Self {
            until: Instant::now() + first.min(LONGEST),
            // Never later than a limit that is set from now on, so that it need not be moved back.
            timer: Box::pin(sleep(first.min(later))),
        }
    }

    /// Waits for `limit` from now.
    pub(super) fn renew(&mut self, limit: Duration) {
        self.until = Instant::now() + limit.min(LONGEST);
    }

    /// What `work` comes to, if it does so in time.
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
