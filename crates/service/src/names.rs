//! Errors about unknown names.

use crate::error::ServiceError;
use crate::libraries::unknown_name_message;

/// The error that `place` has no such name. The hint lists the known names.
pub(crate) fn not_known(
    code: &'static str,
    what: &str,
    name: &str,
    known: &[&str],
    place: &str,
) -> ServiceError {
    let message = unknown_name_message(what, name, known, place);
    let (message, hint) = message.split_once("\nhint: ").unwrap_or((&message, ""));
    ServiceError::not_found(code, message).with_hint(hint)
}
