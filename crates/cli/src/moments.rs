//! Relative times for people: how long ago, how long until.

use windlass_spec::Timestamp;

const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];

/// Formats a duration in its two largest units.
pub(super) fn format_duration(microseconds: u64) -> String {
    let seconds = microseconds / 1_000_000;
    let Some(largest) = UNITS.iter().position(|(unit, _)| seconds >= *unit) else {
        return "less than 1 s".to_owned();
    };
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (unit, name) in UNITS.iter().skip(largest).take(2) {
        if rest >= *unit {
            parts.push(format!("{} {name}", rest / unit));
            rest %= unit;
        }
    }
    parts.join(" ")
}

/// Formats how long ago a time was. A future time means that the clock was set back.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> String {
    match at > now {
        true => format!("{} after now", format_duration(at.microseconds_since(now))),
        false => format!("{} ago", format_duration(now.microseconds_since(at))),
    }
}

/// Formats the time left until a point in time; `None` if it has passed.
pub(super) fn left(until: Timestamp, now: Timestamp) -> Option<String> {
    (until > now).then(|| format_duration(until.microseconds_since(now)))
}

/// Parses a time, or an age relative to now.
pub(super) fn time_or_age(text: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    relative_time(text, "an age", |age| {
        now.as_microseconds().saturating_sub(age)
    })
}

/// Parses a time, or how long it is until then.
pub(super) fn time_or_duration(text: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    relative_time(text, "a duration", |duration| {
        now.as_microseconds().saturating_add(duration)
    })
}

fn relative_time(
    text: &str,
    what: &str,
    moment: impl FnOnce(i64) -> i64,
) -> anyhow::Result<Timestamp> {
    let invalid = || {
        anyhow::anyhow!(
            "`{text}` is neither a time nor {what}\n\
             hint: write 2026-05-01T00:00:00Z, or 90m, 12h or 7d"
        )
    };
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let unit = match text.chars().last() {
        Some('m') => 60,
        Some('h') => 3_600,
        Some('d') => 86_400,
        _ => return Err(invalid()),
    };
    let number: i64 = text[..text.len() - 1].parse().map_err(|_| invalid())?;
    let distance = number
        .checked_mul(unit * 1_000_000)
        .filter(|distance| *distance >= 0)
        .ok_or_else(invalid)?;
    Ok(Timestamp::from_microseconds(moment(distance)))
}

#[cfg(test)]
mod tests {
    use windlass_spec::Timestamp;

    use super::{ago, format_duration, left};

    #[test]
    fn a_duration_has_its_two_largest_units() {
        let formatted =
            [0, 1, 61, 3_600, 86_399, 90_061].map(|seconds| format_duration(seconds * 1_000_000));
        let expected = [
            "less than 1 s",
            "1 s",
            "1 min 1 s",
            "1 h",
            "23 h 59 min",
            "1 d 1 h",
        ];
        assert_eq!(formatted, expected);
    }

    #[test]
    fn past_and_future_times_are_distinguished() {
        let at = |second: i64| Timestamp::from_microseconds(second * 1_000_000);
        assert_eq!(ago(at(0), at(60)), "1 min ago");
        assert_eq!(ago(at(60), at(0)), "1 min after now");
        assert_eq!(left(at(60), at(0)).as_deref(), Some("1 min"));
        assert_eq!(left(at(60), at(60)), None);
    }
}
