//! Timestamps in UTC, to the microsecond. Reading the clock is not done here.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A timestamp: microseconds since 1970 in UTC. Written as ISO 8601 with a `Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

/// A text that is not a timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a timestamp; write it as `2026-01-31T12:00:00Z`")]
pub struct NotATime(String);

impl Timestamp {
    /// The timestamp `microseconds` after the start of 1970, clamped to the years that can be written.
    #[must_use]
    pub fn from_microseconds(microseconds: i64) -> Self {
        // The last second that can be written cannot be read back to the microsecond.
        let last = jiff::Timestamp::MAX.as_second() * 1_000_000;
        Self(microseconds.clamp(jiff::Timestamp::MIN.as_second() * 1_000_000, last))
    }

    /// Microseconds since the start of 1970.
    #[must_use]
    pub const fn as_microseconds(self) -> i64 {
        self.0
    }

    /// Seconds since the start of 1970.
    #[must_use]
    pub fn as_unix_seconds(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The microseconds from `earlier` to this; zero if this is not later.
    #[must_use]
    pub fn microseconds_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(time) => write!(f, "{time}"),
            Err(_) => write!(f, "{}µs", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = NotATime;

    /// Reads ISO 8601 with any offset; the default is UTC.
    fn from_str(text: &str) -> Result<Self, NotATime> {
        let with_offset = text.parse::<jiff::Timestamp>().ok();
        let time = with_offset.or_else(|| {
            let civil = text.parse::<jiff::civil::DateTime>().ok()?;
            jiff::tz::TimeZone::UTC.to_timestamp(civil).ok()
        });
        time.map(|time| Self(time.as_microsecond()))
            .ok_or_else(|| NotATime(text.chars().take(60).collect()))
    }
}

crate::parsed_text!(Timestamp);
