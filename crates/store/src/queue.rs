//! What waits for the thread that writes. Unlike a channel it wakes that thread only when there is a
//! reason to: what nobody waits for waits a moment for company, so that several things share one
//! wake-up and one wait for the disk.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many may wait. Whoever sends more waits too, so that a slow disk cannot fill memory.
const CAPACITY: usize = 1024;

/// How long what nobody waits for may stay here.
const LINGER: Duration = Duration::from_millis(10);

/// A queue with one taker, who takes everything at once.
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    /// Tells the taker.
    filled: Condvar,
    /// Tells those who wait for room.
    emptied: Condvar,
}

struct State<T> {
    items: Vec<T>,
    /// Whether somebody waits for one of them.
    is_awaited: bool,
    is_closed: bool,
    /// Whether the taker sleeps.
    is_asleep: bool,
    /// How many wait for room.
    without_room: usize,
}

/// The taker is gone.
pub(crate) struct Closed;

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                items: Vec::new(),
                is_awaited: false,
                is_closed: false,
                is_asleep: false,
                without_room: 0,
            }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        }
    }

    /// Puts something at the end, when there is room.
    pub(crate) fn push(&self, item: T, is_awaited: bool) -> Result<(), Closed> {
        let mut state = self.lock();
        while state.items.len() >= CAPACITY && !state.is_closed {
            state.without_room += 1;
            state = self
                .emptied
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.without_room -= 1;
        }
        if state.is_closed {
            return Err(Closed);
        }
        state.items.push(item);
        state.is_awaited |= is_awaited;
        // The first starts the moment; after that only what is awaited ends it early, or the last
        // that there is room for.
        let count = state.items.len();
        if state.is_asleep && (is_awaited || count == 1 || count == CAPACITY) {
            state.is_asleep = false;
            drop(state);
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Takes everything, as soon as somebody waits for it or has waited long enough. Nothing if the
    /// queue is closed and empty.
    pub(crate) fn take(&self) -> Option<Vec<T>> {
        let mut state = self.lock();
        let mut deadline = None;
        loop {
            if state.is_awaited || state.is_closed || state.items.len() >= CAPACITY {
                break;
            }
            if state.items.is_empty() {
                state.is_asleep = true;
                state = self
                    .filled
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            } else {
                let now = Instant::now();
                let left = *deadline.get_or_insert(now + LINGER) - now;
                if left.is_zero() {
                    break;
                }
                state.is_asleep = true;
                let woken = self.filled.wait_timeout(state, left);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
            state.is_asleep = false;
        }
        state.is_awaited = false;
        let items = std::mem::take(&mut state.items);
        if state.without_room > 0 {
            self.emptied.notify_all();
        }
        (!items.is_empty()).then_some(items)
    }

    /// Whether so many wait that putting something here might have to wait for room.
    pub(crate) fn is_crowded(&self) -> bool {
        self.lock().items.len() > CAPACITY / 2
    }

    /// Lets nothing more in. What is here can still be taken.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_all();
        self.emptied.notify_all();
    }

    /// Drops what is here.
    pub(crate) fn clear(&self) {
        let items = std::mem::take(&mut self.lock().items);
        drop(items);
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn what_is_awaited_takes_along_what_came_before_it() {
        let queue = Arc::new(Queue::new());
        let taker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.take())
        };
        for number in 0..3 {
            assert!(queue.push(number, false).is_ok());
        }
        assert!(queue.push(3, true).is_ok());
        assert_eq!(taker.join().unwrap(), Some(vec![0, 1, 2, 3]));
    }

    #[test]
    fn what_nobody_waits_for_is_taken_all_the_same() {
        let queue = Arc::new(Queue::new());
        assert!(queue.push(1, false).is_ok());
        assert_eq!(queue.take(), Some(vec![1]));
    }

    #[test]
    fn a_full_queue_makes_room_before_it_takes_more() {
        let queue = Arc::new(Queue::new());
        let sender = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || (0..3 * CAPACITY).all(|number| queue.push(number, false).is_ok()))
        };
        let mut taken = Vec::new();
        while taken.len() < 3 * CAPACITY {
            let items = queue.take().unwrap();
            assert!(items.len() <= CAPACITY);
            taken.extend(items);
        }
        assert!(sender.join().unwrap());
        assert!(taken.is_sorted());
    }

    #[test]
    fn a_closed_queue_gives_what_it_has_and_then_nothing() {
        let queue = Queue::new();
        assert!(queue.push(1, false).is_ok());
        queue.close();
        assert!(queue.push(2, false).is_err());
        assert_eq!(queue.take(), Some(vec![1]));
        assert_eq!(queue.take(), None);
    }
}
