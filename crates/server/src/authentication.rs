//! Who sends a request: the holder of the token in `Authorization`.

use axum::http::{HeaderMap, header};

use crate::problem::Problem;

/// The token of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let needed = || {
        Problem::new(401, "token_needed", "The request needs a token").with_hint(
            "send the header `Authorization: Bearer TOKEN`; the operator creates a token with `windlass token create`",
        )
    };
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(needed());
    };
    let (scheme, token) = value
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .ok_or_else(needed)?;
    match scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() {
        true => Ok(token.trim()),
        false => Err(needed()),
    }
}
