//! The queue of the writer thread. Unlike a channel it wakes that thread only when needed: items that no
//! caller waits for linger a short time, so that several items share one wake-up and one wait for the
//! disk. A consumer that has just worked wakes up by itself, so that the next such items need not wake it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many items may be queued. Senders block beyond that, so that a slow disk cannot fill memory.
const CAPACITY: usize = 1024;

/// How long items that no caller waits for may stay in the queue.
const LINGER: Duration = Duration::from_millis(10);

/// A queue with one consumer, which takes all items at once.
pub(crate) struct Queue<T> {
    state: Mutex<QueueState<T>>,
    /// Wakes the consumer.
    filled: Condvar,
    /// Wakes the senders that wait for room.
    emptied: Condvar,
}

struct QueueState<T> {
    items: Vec<T>,
    /// Whether a caller waits for one of them.
    is_awaited: bool,
    is_closed: bool,
    /// When the first item was added.
    since: Option<Instant>,
    consumer: Consumer,
    /// How many senders wait for room.
    blocked_senders: usize,
}

/// What the consumer does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Consumer {
    Awake,
    /// It sleeps until it is woken.
    Asleep,
    /// It sleeps for at most the linger time.
    Dozing,
}

/// The error of sending to a closed queue.
pub(crate) struct QueueClosed;

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(QueueState {
                items: Vec::new(),
                is_awaited: false,
                is_closed: false,
                since: None,
                consumer: Consumer::Awake,
                blocked_senders: 0,
            }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        }
    }

    /// Adds an item at the end, and waits for room first.
    pub(crate) fn push(&self, item: T, is_awaited: bool) -> Result<(), QueueClosed> {
        let mut state = self.lock();
        while state.items.len() >= CAPACITY && !state.is_closed {
            state.blocked_senders += 1;
            state = self
                .emptied
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.blocked_senders -= 1;
        }
        if state.is_closed {
            return Err(QueueClosed);
        }
        state.items.push(item);
        state.is_awaited |= is_awaited;
        let is_full = state.items.len() >= CAPACITY;
        if !is_awaited && state.since.is_none() {
            state.since = Some(Instant::now());
        }
        let must_wake = match state.consumer {
            Consumer::Awake => false,
            Consumer::Asleep => true,
            Consumer::Dozing => is_awaited || is_full,
        };
        if must_wake {
            state.consumer = Consumer::Awake;
            drop(state);
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Takes all items as soon as a caller waits for one or the linger time is over. `None` if the
    /// queue is closed and empty.
    pub(crate) fn take(&self) -> Option<Vec<T>> {
        let mut state = self.lock();
        // More items usually follow soon.
        let mut doze_end = Some(Instant::now() + LINGER);
        loop {
            if state.is_awaited || state.is_closed || state.items.len() >= CAPACITY {
                break;
            }
            let end = match state.since {
                Some(since) => Some(since + LINGER),
                None => doze_end.take(),
            };
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let Some(left) = left.filter(|left| state.since.is_some() || !left.is_zero()) else {
                state.consumer = Consumer::Asleep;
                state = self
                    .filled
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                state.consumer = Consumer::Awake;
                continue;
            };
            if left.is_zero() {
                break;
            }
            state.consumer = Consumer::Dozing;
            let woken = self.filled.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            state.consumer = Consumer::Awake;
        }
        state.since = None;
        state.is_awaited = false;
        let items = std::mem::take(&mut state.items);
        if state.blocked_senders > 0 {
            self.emptied.notify_all();
        }
        (!items.is_empty()).then_some(items)
    }

    /// Whether the queue is so full that adding an item may have to wait for room.
    pub(crate) fn is_crowded(&self) -> bool {
        self.lock().items.len() > CAPACITY / 2
    }

    /// Refuses further items. Those in the queue can still be taken.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_all();
        self.emptied.notify_all();
    }

    /// Drops all items.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        state.since = None;
        let items = std::mem::take(&mut state.items);
        drop(state);
        drop(items);
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn an_awaited_item_is_taken_together_with_earlier_items() {
        let queue = Arc::new(Queue::new());
        let consumer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.take())
        };
        for number in 0..3 {
            assert!(queue.push(number, false).is_ok());
        }
        assert!(queue.push(3, true).is_ok());
        assert_eq!(consumer.join().unwrap(), Some(vec![0, 1, 2, 3]));
    }

    #[test]
    fn items_that_no_caller_waits_for_are_taken_too() {
        let queue = Arc::new(Queue::new());
        assert!(queue.push(1, false).is_ok());
        assert_eq!(queue.take(), Some(vec![1]));
    }

    #[test]
    fn consumer_takes_items_that_come_while_it_dozes_and_after() {
        let queue = Arc::new(Queue::new());
        let consumer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || (0..2).map(|_| queue.take()).collect::<Vec<_>>())
        };
        thread::sleep(LINGER / 4);
        assert!(queue.push(1, false).is_ok());
        thread::sleep(5 * LINGER);
        assert!(queue.push(2, false).is_ok());
        assert_eq!(
            consumer.join().unwrap(),
            [Some(vec![1]), Some(vec![2])],
            "both are taken although no thread waits for them"
        );
    }

    #[test]
    fn items_that_were_added_while_the_consumer_worked_linger_from_then() {
        let queue = Queue::new();
        assert!(queue.push(1, false).is_ok());
        thread::sleep(2 * LINGER);
        let started = Instant::now();
        assert_eq!(queue.take(), Some(vec![1]));
        assert!(started.elapsed() < LINGER, "{:?}", started.elapsed());
    }

    #[test]
    fn a_full_queue_blocks_senders_until_there_is_room() {
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
    fn a_closed_queue_returns_its_items_and_then_none() {
        let queue = Queue::new();
        assert!(queue.push(1, false).is_ok());
        queue.close();
        assert!(queue.push(2, false).is_err());
        assert_eq!(queue.take(), Some(vec![1]));
        assert_eq!(queue.take(), None);
    }
}
