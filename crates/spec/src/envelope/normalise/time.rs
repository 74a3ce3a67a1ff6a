//! When an answer was given, and other times in it. A time without a zone is taken for UTC: that is
//! a guess, but the only one that does not depend on where this runs.

use serde_json::Value;

use super::draft::Draft;
use super::notice::DeprecationCode;
use crate::time::Timestamp;

const CANONICAL: &str = "ISO 8601 with a zone, such as 2026-01-31T12:00:00Z";

/// Decides the timestamp.
pub(super) fn settle(draft: &mut Draft, received_at: Timestamp) {
    let given = draft.top.shift_remove("timestamp");
    let given = given.filter(|value| !value.is_null());
    let (pointer, given) = match given {
        Some(given) => ("/timestamp", Some(given)),
        None => ("/created_at", draft.top.shift_remove("created_at")),
    };
    let time = match given.filter(|value| !value.is_null()) {
        None => {
            draft.missing(DeprecationCode::TimestampMissing, "/timestamp", CANONICAL);
            received_at.to_string().into()
        }
        Some(given) => {
            if pointer == "/created_at" {
                draft.found(DeprecationCode::CreatedAt, pointer, &given, "`timestamp`");
            }
            readable(draft, pointer, &given).unwrap_or_else(|| {
                draft.found(
                    DeprecationCode::UnreadableTimestamp,
                    pointer,
                    &given,
                    CANONICAL,
                );
                draft.put_aside("timestamp", given);
                received_at.to_string().into()
            })
        }
    };
    draft.top.insert("timestamp".to_owned(), time);
}

/// A time that the strict reader and everyone else understands.
pub(super) fn readable(draft: &mut Draft, pointer: &str, given: &Value) -> Option<Value> {
    let (code, time) = match given {
        Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => {
            return Some(given.clone());
        }
        Value::String(text) => (
            DeprecationCode::NaiveTimestamp,
            text.trim().parse::<Timestamp>().ok()?,
        ),
        Value::Number(number) => {
            let number = number.as_f64().filter(|number| *number >= 0.0)?;
            (DeprecationCode::UnixTimestamp, from_unix(number)?)
        }
        _ => return None,
    };
    let written = time.to_string();
    draft.found(code, pointer, given, format!("`{written}`"));
    Some(written.into())
}

/// Seconds since 1970, unless they are so many that they must be milli- or microseconds. `None` for
/// a number too large for any date.
fn from_unix(number: f64) -> Option<Timestamp> {
    let microseconds = match number {
        seconds if seconds < 1e11 => seconds * 1e6,
        milliseconds if milliseconds < 1e14 => milliseconds * 1e3,
        microseconds => microseconds,
    };
    let microseconds = microseconds.round() as i64;
    let time = Timestamp::from_microseconds(microseconds);
    (time.as_microseconds() == microseconds).then_some(time)
}
