//! Rate limits and the circuit breaker. Rate limits use the generic cell rate algorithm: a limit of ten
//! a minute allows ten calls at once and then one every six seconds. The state is one timestamp for each
//! limit, so that any store can keep it, and a restart or a second process resets nothing.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use windlass_spec::registry::{CategoryName, Window};
use windlass_spec::{CallState, ErrorCategory, Timestamp, ToolName};

use crate::approval::Principal;

/// The calls that a limit counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LimitScope {
    /// Calls of one tool.
    Tool(ToolName),
    /// Calls of all tools of a category.
    Category(CategoryName),
    /// Calls on behalf of a principal, whatever the tool.
    Principal(Principal),
}

impl fmt::Display for LimitScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(tool) => write!(f, "the tool `{tool}`"),
            Self::Category(category) => write!(f, "the category `{category}`"),
            Self::Principal(principal) => write!(f, "{principal}"),
        }
    }
}

/// The stored state of a limit: until when it is used up, and how much time each call took. The second
/// shows how many calls that was if the limit changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitState {
    /// Until when it is used up.
    pub due: Timestamp,
    /// The time that one call used up, in microseconds.
    pub interval: i64,
}

/// A limit on calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Limit {
    /// The calls it counts.
    pub scope: LimitScope,
    /// The time window.
    pub window: Window,
    /// The maximum number of calls.
    pub count: NonZeroU32,
}

impl Limit {
    /// The key of its state. The count is not part of it: a changed limit continues from the previous
    /// usage.
    #[must_use]
    pub fn key(&self) -> String {
        let (kind, name) = match &self.scope {
            LimitScope::Tool(tool) => ("tool", tool.as_str()),
            LimitScope::Category(category) => ("category", category.as_str()),
            LimitScope::Principal(principal) => ("principal", principal.as_str()),
        };
        format!("{kind}:{name}:{}", self.window)
    }

    /// The time until one call is available again, in microseconds.
    fn interval(&self) -> i64 {
        let window = i64::from(self.window.seconds().unwrap_or(0)) * 1_000_000;
        (window / i64::from(self.count.get())).max(1)
    }

    /// The state after a taken call is given back.
    #[must_use]
    pub fn give_back(&self, kept: LimitState) -> LimitState {
        let due = kept.due.as_microseconds().saturating_sub(kept.interval);
        LimitState {
            due: Timestamp::from_microseconds(due),
            ..kept
        }
    }

    /// Takes one call. Returns the new state. A limit on concurrent calls has no window and refuses
    /// nothing here.
    ///
    /// # Errors
    /// The time from which a call can be taken, if none can be now.
    pub fn take(&self, kept: Option<LimitState>, now: Timestamp) -> Result<LimitState, Timestamp> {
        let Some(seconds) = self.window.seconds() else {
            return Ok(LimitState {
                due: now,
                interval: 1,
            });
        };
        let window = i64::from(seconds) * 1_000_000;
        let interval = self.interval();
        let now_at = now.as_microseconds();
        // Usage is converted to the same number of calls under the changed limit.
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
        // A clock that was set back must not block a tool for longer than its window.
        let due = now_at.saturating_add(used.min(window));
        let earliest = due.saturating_sub(window - interval);
        if now_at < earliest {
            return Err(Timestamp::from_microseconds(earliest));
        }
        Ok(LimitState {
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

/// An exhausted limit, and when a call can be taken again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExhaustedLimit {
    /// The limit.
    pub limit: Limit,
    /// When a call can be taken again.
    pub until: Timestamp,
}

/// Takes one call from all limits. Returns the new state of each, in order, or the limit that refuses
/// the call longest. `kept` reads the state of a limit.
///
/// # Errors
/// If `kept` fails.
pub fn take_all<E>(
    limits: &[Limit],
    now: Timestamp,
    mut kept: impl FnMut(&Limit) -> Result<Option<LimitState>, E>,
) -> Result<Result<Vec<LimitState>, ExhaustedLimit>, E> {
    let mut taken = Vec::with_capacity(limits.len());
    let mut used_up: Option<ExhaustedLimit> = None;
    for limit in limits {
        match limit.take(kept(limit)?, now) {
            Ok(kept) => taken.push(kept),
            Err(until) => {
                if used_up.as_ref().is_none_or(|other| other.until < until) {
                    let limit = limit.clone();
                    used_up = Some(ExhaustedLimit { limit, until });
                }
            }
        }
    }
    Ok(match used_up {
        Some(used_up) => Err(used_up),
        None => Ok(taken),
    })
}

/// Whether a call can run as far as rate limits and the breaker are concerned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Readiness {
    /// It can run.
    #[default]
    Ready,
    /// The tool kept failing, and one trial call is due.
    Trial {
        /// How often it failed in a row.
        failures: u32,
    },
    /// A rate limit is exhausted.
    Limited {
        /// The limit.
        limit: Limit,
        /// When a call can be made again; `None` if that depends on other calls ending.
        until: Option<Timestamp>,
        /// The time until then.
        wait: Duration,
    },
    /// The tool failed so often in a row that it is paused.
    Failing {
        /// The number of failures in a row.
        failures: u32,
        /// When it is tried again.
        until: Timestamp,
        /// The time until then.
        wait: Duration,
    },
}

impl Readiness {
    /// The state of a limit that is exhausted until then.
    #[must_use]
    pub fn limited(limit: Limit, until: Timestamp, now: Timestamp) -> Self {
        Self::Limited {
            limit,
            until: Some(until),
            wait: Duration::from_micros(until.microseconds_since(now)),
        }
    }

    /// When to try again, if known.
    #[must_use]
    pub fn retry_at(&self) -> Option<Timestamp> {
        match self {
            Self::Ready | Self::Trial { .. } => None,
            Self::Limited { until, .. } => *until,
            Self::Failing { until, .. } => Some(*until),
        }
    }
}

/// Whether the outcome of a call shows that the tool failed; `None` if it shows neither success nor failure.
#[must_use]
pub fn indicates_tool_failure(state: CallState, category: Option<ErrorCategory>) -> Option<bool> {
    match (state, category) {
        (CallState::Success, _) => Some(false),
        // A person stopped it.
        (CallState::Unknown, Some(ErrorCategory::Cancelled)) => None,
        (CallState::Timeout | CallState::Unknown, _) => Some(true),
        (
            CallState::Error,
            Some(
                ErrorCategory::Timeout
                | ErrorCategory::Unavailable
                | ErrorCategory::RateLimited
                | ErrorCategory::Authentication
                | ErrorCategory::InvalidOutput
                | ErrorCategory::ToolFailure,
            ),
        ) => Some(true),
        _ => None,
    }
}

/// Formats a duration for people: seconds if it is short, otherwise minutes or hours, rounded up.
pub(crate) fn format_wait(wait: Duration) -> String {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3600)),
    }
}

/// When a failing tool is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// The number of failures in a row that pauses it.
    pub failures: NonZeroU32,
    /// How long it is paused.
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
    /// Returns what the latest calls of a tool mean for the next one. `latest` has the newest first:
    /// whether the call failed, and when. After the cooldown one trial call is allowed, and one more
    /// failure pauses the tool again.
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
                // A clock that was set back does not make the pause longer.
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
