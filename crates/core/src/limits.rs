//! Rate limits: which hold for a call, and the arithmetic by which one is kept. The arithmetic is the
//! generic cell rate algorithm: a limit of ten a minute lets ten calls through at once and then one
//! every six seconds. All it has to remember is one moment for each limit, so that any store can keep
//! it, and a restart or a second process resets nothing.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use windlass_spec::registry::{CategoryName, Window};
use windlass_spec::{Timestamp, ToolName};

use crate::approval::Principal;

/// Whose calls a limit counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Those of one tool.
    Tool(ToolName),
    /// Those of all tools of a category.
    Category(CategoryName),
    /// Those made on behalf of somebody, whatever the tool.
    Principal(Principal),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(tool) => write!(f, "the tool `{tool}`"),
            Self::Category(category) => write!(f, "the category `{category}`"),
            Self::Principal(principal) => write!(f, "{principal}"),
        }
    }
}

/// What is kept of a limit: up to when calls have used it up, and how long each of them counted. If
/// the limit is changed, it is known how many calls that were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Up to when it is used up.
    pub due: Timestamp,
    /// How long a call took to flow back, in microseconds.
    pub interval: i64,
}

/// A limit on calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Limit {
    /// Whose calls it counts.
    pub scope: Scope,
    /// In which time.
    pub window: Window,
    /// How many there may be.
    pub count: NonZeroU32,
}

impl Limit {
    /// What it is kept under. The count is not part of it: a limit that is changed goes on from what
    /// was used up before.
    #[must_use]
    pub fn key(&self) -> String {
        let (kind, name) = match &self.scope {
            Scope::Tool(tool) => ("tool", tool.as_str()),
            Scope::Category(category) => ("category", category.as_str()),
            Scope::Principal(principal) => ("principal", principal.as_str()),
        };
        format!("{kind}:{name}:{}", self.window)
    }

    /// How long a call takes to flow back, in microseconds.
    fn interval(&self) -> i64 {
        let window = i64::from(self.window.seconds().unwrap_or(0)) * 1_000_000;
        (window / i64::from(self.count.get())).max(1)
    }

    /// What is to be kept after a call that was taken is given back.
    #[must_use]
    pub fn give_back(&self, kept: Kept) -> Kept {
        let due = kept.due.as_microseconds().saturating_sub(kept.interval);
        Kept {
            due: Timestamp::from_microseconds(due),
            ..kept
        }
    }

    /// Takes one call, given what was kept of the calls before it: what is to be kept then, or when
    /// the next call can be taken. A limit on calls at the same time has no such moment and refuses
    /// nothing here.
    ///
    /// # Errors
    /// The moment from which a call can be taken, if none can now.
    pub fn take(&self, kept: Option<Kept>, now: Timestamp) -> Result<Kept, Timestamp> {
        let Some(seconds) = self.window.seconds() else {
            return Ok(Kept {
                due: now,
                interval: 1,
            });
        };
        let window = i64::from(seconds) * 1_000_000;
        let interval = self.interval();
        let now_at = now.as_microseconds();
        // What was used up is worth as many calls under this limit as it was under the one before.
        let used = kept.map_or(0, |kept| {
            let used = kept.due.as_microseconds().saturating_sub(now_at).max(0);
            match kept.interval == interval {
                true => used,
                false => {
                    let used = i128::from(used) * i128::from(interval);
                    let used = used / i128::from(kept.interval.max(1));
                    i64::try_from(used).unwrap_or(i64::MAX)
                }
            }
        });
        // A clock that was set back must not shut a tool off for longer than its window.
        let due = now_at.saturating_add(used.min(window));
        let earliest = due.saturating_sub(window - interval);
        if now_at < earliest {
            return Err(Timestamp::from_microseconds(earliest));
        }
        Ok(Kept {
            due: Timestamp::from_microseconds(due.saturating_add(interval)),
            interval,
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} for {}", self.window, self.count, self.scope)
    }
}

/// A limit that is used up, and when a call can be taken again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedUp {
    /// Which.
    pub limit: Limit,
    /// When a call can be taken again.
    pub until: Timestamp,
}

/// Takes one call from all of the limits: what is to be kept of each of them then, in their order, or
/// the limit that refuses the call longest. `kept` says what was kept of a limit before.
///
/// # Errors
/// If `kept` cannot be read.
pub fn take_all<E>(
    limits: &[Limit],
    now: Timestamp,
    mut kept: impl FnMut(&Limit) -> Result<Option<Kept>, E>,
) -> Result<Result<Vec<Kept>, UsedUp>, E> {
    let mut taken = Vec::with_capacity(limits.len());
    let mut used_up: Option<UsedUp> = None;
    for limit in limits {
        match limit.take(kept(limit)?, now) {
            Ok(kept) => taken.push(kept),
            Err(until) => {
                if used_up.as_ref().is_none_or(|other| other.until < until) {
                    let limit = limit.clone();
                    used_up = Some(UsedUp { limit, until });
                }
            }
        }
    }
    Ok(match used_up {
        Some(used_up) => Err(used_up),
        None => Ok(taken),
    })
}

/// What stands in the way of a call besides rules: it comes too often, or its tool keeps failing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Readiness {
    /// Nothing.
    #[default]
    Ready,
    /// The tool kept failing, and it is time to try it again, once.
    Trial {
        /// How often it failed in a row.
        failures: u32,
    },
    /// A limit is used up.
    Limited {
        /// Which.
        limit: Limit,
        /// When a call can be made again; unknown where it depends on others ending.
        until: Option<Timestamp>,
        /// How long that is from now.
        wait: Duration,
    },
    /// The tool failed so often in a row that it is left alone for a while.
    Failing {
        /// How often in a row.
        failures: u32,
        /// When it is tried again.
        until: Timestamp,
        /// How long that is from now.
        wait: Duration,
    },
}

impl Readiness {
    /// A limit that is used up until then.
    #[must_use]
    pub fn limited(limit: Limit, until: Timestamp, now: Timestamp) -> Self {
        Self::Limited {
            limit,
            until: Some(until),
            wait: Duration::from_micros(until.microseconds_since(now)),
        }
    }

    /// When to try again, if that is known.
    #[must_use]
    pub fn retry_at(&self) -> Option<Timestamp> {
        match self {
            Self::Ready | Self::Trial { .. } => None,
            Self::Limited { until, .. } => *until,
            Self::Failing { until, .. } => Some(*until),
        }
    }
}

/// A length of time for people: seconds where it is short, else minutes or hours, rounded up.
pub(crate) fn told(wait: Duration) -> String {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3600)),
    }
}

/// When a tool that keeps failing is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// How many failures in a row it takes.
    pub failures: NonZeroU32,
    /// For how long.
    pub cooldown: Duration,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            failures: NonZeroU32::new(5).unwrap_or(NonZeroU32::MIN),
            cooldown: Duration::from_secs(30),
        }
    }
}

impl Breaker {
    /// What the latest ends of a tool's calls mean for the next one. `latest` has the last first;
    /// whether each failed, and when. After the time it is left alone the tool is tried again, and
    /// one more failure is enough.
    #[must_use]
    pub fn readiness(
        &self,
        latest: impl IntoIterator<Item = (bool, Timestamp)>,
        now: Timestamp,
    ) -> Readiness {
        let mut failures = 0;
        let mut last = None;
        for (has_failed, at) in latest {
            if !has_failed {
                break;
            }
            failures += 1;
            last = last.max(Some(at));
        }
        let cooldown = i64::try_from(self.cooldown.as_micros()).unwrap_or(i64::MAX);
        match last {
            Some(last) if failures >= self.failures.get() => {
                let until = last.as_microseconds().saturating_add(cooldown);
                // A clock that was set back does not make it longer.
                let latest = now.as_microseconds().saturating_add(cooldown);
                let until = Timestamp::from_microseconds(until.min(latest));
                if now >= until {
                    return Readiness::Trial { failures };
                }
                Readiness::Failing {
                    failures,
                    until,
                    wait: Duration::from_micros(until.microseconds_since(now)),
                }
            }
            _ => Readiness::Ready,
        }
    }
}

#[cfg(test)]
mod tests;
