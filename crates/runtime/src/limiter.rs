//! Rate limits and circuit breakers within this process. Limits over a minute or more are in the store as
//! well, where other processes see them. They are also here, for runs that are not stored.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use windlass_core::limits::{Breaker, Limit, LimitState, Readiness};
use windlass_spec::registry::Window;
use windlass_spec::{CallId, Timestamp, ToolName};

use crate::durable::TurnRequest;

/// How many ends of calls are remembered for each tool.
const REMEMBERED: usize = 64;

/// How long the ends that were read from the store are cached. Ends of this process are known at once; those of
/// other processes may be known this much later.
const CACHE_TIME: Duration = Duration::from_millis(50);

/// The rate limits and breakers that all drivers of a process share.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The state of each rate limit.
    dues: HashMap<Key, LimitState>,
    /// The number of running calls under each concurrency limit.
    running: HashMap<Key, u32>,
    /// Until when the turn of each key is taken.
    turns: Turns,
    /// How the latest calls of each tool ended, oldest first.
    ends: HashMap<(String, ToolName), VecDeque<End>>,
    /// The ends that were read from the store for each tool, and when.
    stored: HashMap<(String, ToolName), (Instant, Vec<End>)>,
}

/// The tenant and the key of a limit or turn.
pub(crate) type Key = (String, String);

/// The end of a call that counts for the health of its tool: whether it failed, and when.
pub(crate) type End = (CallId, bool, Timestamp);

/// The admission of a call that was taken from its limits. Dropped when the call has ended.
#[derive(Debug)]
pub(crate) struct Admitted {
    limiter: Arc<Limiter>,
    running: Vec<Key>,
    /// The limits over time it was taken from.
    taken: Vec<(Key, Limit)>,
}

impl Admitted {
    /// An admission without limits.
    pub(crate) fn uncounted(limiter: &Arc<Limiter>) -> Self {
        Self {
            limiter: Arc::clone(limiter),
            running: Vec::new(),
            taken: Vec::new(),
        }
    }

    /// Returns the call to its limits, because it was not made.
    pub(crate) fn give_back(mut self) {
        let taken = std::mem::take(&mut self.taken);
        let mut state = self.limiter.state();
        for (key, limit) in taken {
            if let Some(due) = state.dues.get_mut(&key) {
                *due = limit.give_back(*due);
            }
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut state = self.limiter.state();
        for key in &self.running {
            if let Some(count) = state.running.get_mut(key) {
                *count = count.saturating_sub(1);
            }
        }
    }
}

impl Limiter {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call could be taken now. Nothing is used up.
    pub(crate) fn readiness(&self, tenant: &str, limits: &[Limit], now: Timestamp) -> Readiness {
        match self.state().taken(tenant, limits, now) {
            Ok(_) => Readiness::Ready,
            Err(limited) => limited,
        }
    }

    /// Takes a call from all of the limits, or from none of them if one is used up.
    pub(crate) fn admit(
        self: &Arc<Self>,
        tenant: &str,
        limits: &[Limit],
        now: Timestamp,
    ) -> Result<Admitted, Readiness> {
        let mut state = self.state();
        let dues = state.taken(tenant, limits, now)?;
        state.dues.extend(dues);
        let (mut running, mut taken) = (Vec::new(), Vec::new());
        for limit in limits {
            let key = key(tenant, limit);
            if limit.window != Window::Concurrent {
                taken.push((key, limit.clone()));
            } else {
                *state.running.entry(key.clone()).or_default() += 1;
                running.push(key);
            }
        }
        drop(state);
        let limiter = Arc::clone(self);
        Ok(Admitted {
            limiter,
            running,
            taken,
        })
    }

    /// Takes the turn of a key. If it is taken, returns when it is free again.
    pub(crate) fn take_turn(&self, turn: TurnRequest<'_>) -> Option<Timestamp> {
        take_turn(&mut self.state().turns, turn)
    }

    /// Remembers the end of a call of a tool.
    pub(crate) fn ended(&self, tenant: &str, tool: &ToolName, end: End) {
        let mut state = self.state();
        let ends = state.ends.entry((tenant.to_owned(), tool.clone()));
        let ends = ends.or_default();
        if ends.len() == REMEMBERED {
            ends.pop_front();
        }
        ends.push_back(end);
    }

    /// The cached ends from the store for a tool, if they are recent.
    pub(crate) fn stored(&self, tenant: &str, tool: &ToolName) -> Option<Vec<End>> {
        let state = self.state();
        let (read_at, ends) = state.stored.get(&(tenant.to_owned(), tool.clone()))?;
        (read_at.elapsed() < CACHE_TIME).then(|| ends.clone())
    }

    /// Caches the ends that were read from the store.
    pub(crate) fn note_stored(&self, tenant: &str, tool: &ToolName, ends: &[End]) {
        let read = (Instant::now(), ends.to_vec());
        let key = (tenant.to_owned(), tool.clone());
        self.state().stored.insert(key, read);
    }

    /// Whether a tool keeps failing, by the ends that this process remembers and those in the store, which
    /// may lack the latest.
    pub(crate) fn health(
        &self,
        tenant: &str,
        tool: &ToolName,
        stored: Vec<End>,
        breaker: Breaker,
        now: Timestamp,
    ) -> Readiness {
        let mut ends = stored;
        if let Some(remembered) = self.state().ends.get(&(tenant.to_owned(), tool.clone())) {
            let mut all = remembered.iter().chain(&ends);
            // Without failures there is nothing to merge or sort.
            if all.all(|(_, has_failed, _)| !has_failed) {
                return Readiness::Ready;
            }
            let new = remembered
                .iter()
                .filter(|(call, ..)| ends.iter().all(|(stored, ..)| stored != call));
            let new: Vec<End> = new.cloned().collect();
            ends.extend(new);
        }
        ends.sort_by_key(|(_, _, at)| std::cmp::Reverse(*at));
        let ends = ends.into_iter().map(|(_, has_failed, at)| (has_failed, at));
        breaker.readiness(ends, now)
    }
}

impl State {
    /// The new state of the limits if a call is taken from them.
    fn taken(
        &self,
        tenant: &str,
        limits: &[Limit],
        now: Timestamp,
    ) -> Result<Vec<(Key, LimitState)>, Readiness> {
        let mut dues = Vec::new();
        for limit in limits {
            let key = key(tenant, limit);
            if limit.window == Window::Concurrent {
                let running = self.running.get(&key).copied().unwrap_or(0);
                if running >= limit.count.get() {
                    return Err(Readiness::Limited {
                        limit: limit.clone(),
                        until: None,
                        wait: Duration::ZERO,
                    });
                }
                continue;
            }
            let due = limit.take(self.dues.get(&key).copied(), now);
            let due = due.map_err(|until| Readiness::limited(limit.clone(), until, now))?;
            dues.push((key, due));
        }
        Ok(dues)
    }
}

/// When the turn of each key ends, by tenant and key.
pub(crate) type Turns = HashMap<Key, Timestamp>;

/// Takes a turn. If it is not free yet, returns when it is.
pub(crate) fn take_turn(turns: &mut Turns, turn: TurnRequest<'_>) -> Option<Timestamp> {
    let key = (turn.tenant.to_owned(), turn.key.to_owned());
    let taken_until = turns.entry(key).or_insert(turn.now);
    // After the clock was set back, no call waits much longer than a turn lasts.
    let length = turn.until.microseconds_since(turn.now);
    let is_free = *taken_until <= turn.now || taken_until.microseconds_since(turn.until) > length;
    match is_free {
        true => {
            *taken_until = turn.until;
            None
        }
        false => Some(*taken_until),
    }
}

fn key(tenant: &str, limit: &Limit) -> Key {
    (tenant.to_owned(), limit.key())
}

/// The limits that must outlive a process.
#[must_use]
pub fn lasting(limits: &[Limit]) -> Vec<Limit> {
    let lasts = |limit: &&Limit| limit.window.seconds().is_some_and(|seconds| seconds >= 60);
    limits.iter().filter(lasts).cloned().collect()
}
