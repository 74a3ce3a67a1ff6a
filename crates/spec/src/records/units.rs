//! Converts durations and times to and from JSON: milliseconds, whole or fractional, and Unix seconds.
//! Internally, everything is in microseconds.

use std::time::Duration;

use crate::time::Timestamp;

/// A number that is not a duration or not a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NumberError {
    /// Negative, not finite, or too long.
    #[error("a duration must be zero milliseconds or more")]
    Duration,
    /// Not finite, or in a year that cannot be written.
    #[error("a time must be a number of seconds since 1970, in the years -9999 to 9999")]
    Time,
}

/// The longest duration that is read, in microseconds. Up to here a float represents every integer.
const MAX_MICROSECONDS: f64 = 9_007_199_254_740_992.0;

pub(super) fn to_milliseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}

pub(super) fn from_milliseconds(milliseconds: f64) -> Result<Duration, NumberError> {
    let microseconds = (milliseconds * 1e3).round();
    // The range check also rejects NaN.
    if !(0.0..=MAX_MICROSECONDS).contains(&microseconds) {
        return Err(NumberError::Duration);
    }
    Ok(Duration::from_micros(microseconds as u64))
}

pub(super) fn to_whole_milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn from_unix_seconds(seconds: f64) -> Result<Timestamp, NumberError> {
    let microseconds = (seconds * 1e6).round();
    let earliest = Timestamp::from_microseconds(i64::MIN).as_microseconds() as f64;
    let latest = Timestamp::from_microseconds(i64::MAX).as_microseconds() as f64;
    if !(earliest..=latest).contains(&microseconds) {
        return Err(NumberError::Time);
    }
    Ok(Timestamp::from_microseconds(microseconds as i64))
}
