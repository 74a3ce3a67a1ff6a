//! Errors about names that mean nothing.

use crate::error::ServiceError;
use crate::libraries::unknown;

/// Nothing in `place` has that name; the hint says which names there are.
pub(crate) fn not_known(
    code: &'static str,
    what: &str,
    name: &str,
    known: &[&str],
    place: &str,
) -> ServiceError {
    let message = unknown(what, name, known, place);
    let (message, hint) = message.split_once("\nhint: ").unwrap_or((&message, ""));
    ServiceError::not_found(code, message).with_hint(hint)
}
