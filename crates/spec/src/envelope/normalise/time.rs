//! Normalises the timestamp of an answer and other times in it. A time without a zone is read as UTC,
//! the only guess that does not depend on the local time zone.

use serde_json::Value;

use super::draft::Draft;
use super::notice::DeprecationCode;
use crate::time::Timestamp;

const CANONICAL: &str = "ISO 8601 with a zone, such as 2026-01-31T12:00:00Z";

/// Normalises the timestamp.
pub(super) fn normalise_timestamp(draft: &mut Draft, received_at: Timestamp) {
    let given = draft.top.shift_remove("timestamp");
    let given = given.filter(|value| !value.is_null());
    let (pointer, given) = match given {
        Some(given) => ("/timestamp", Some(given)),
        None => ("/created_at", draft.top.shift_remove("created_at")),
    };
    let time = match given.filter(|value| !value.is_null()) {
        None => {
            draft.report_missing(DeprecationCode::TimestampMissing, "/timestamp", CANONICAL);
            received_at.to_string().into()
        }
        Some(given) => {
            if pointer == "/created_at" {
                draft.report(DeprecationCode::CreatedAt, pointer, &given, "`timestamp`");
            }
            readable(draft, pointer, &given).unwrap_or_else(|| {
                draft.report(
                    DeprecationCode::UnreadableTimestamp,
                    pointer,
                    &given,
                    CANONICAL,
                );
                draft.keep_as_reported("timestamp", given);
                received_at.to_string().into()
            })
        }
    };
    draft.top.insert("timestamp".to_owned(), time);
}

/// The time in a form that the strict reader accepts; `None` if it cannot be read.
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
    draft.report(code, pointer, given, format!("`{written}`"));
    Some(written.into())
}

/// Seconds since 1970, or milli- or microseconds for larger numbers. `None` for
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
