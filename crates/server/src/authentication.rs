//! Who sends a request: the holder of the token in `Authorization`, or of the session in a cookie.

use axum::http::{HeaderMap, Method, header};
use windlass_service::{AuthenticatedCaller, Service};

use crate::app::blocking;
use crate::problem::Problem;
use crate::session::SessionCookie;

/// What identifies a caller. It has no `Debug`, because it is a secret.
#[derive(Clone)]
pub(crate) enum Credential {
    /// A token in `Authorization`.
    Bearer(String),
    /// The session of a browser.
    Session(String),
}

impl Credential {
    /// The credential of a request. A request that changes something must show that a page of this server sends it if
    /// the browser adds the credential by itself; whose page it is was checked with `Host`.
    pub(crate) fn of(
        method: &Method,
        headers: &HeaderMap,
        cookie: &SessionCookie,
    ) -> Result<Self, Problem> {
        if headers.contains_key(header::AUTHORIZATION) {
            return bearer(headers).map(Self::Bearer);
        }
        let Some(session) = cookie.read(headers) else {
            return Err(needed());
        };
        if !method.is_safe() && !headers.contains_key(header::ORIGIN) {
            return Err(Problem::new(
                403,
                "origin_needed",
                "The request does not show which page sends it",
            )
            .with_hint(
                "send the header `Origin`, or a token in `Authorization` instead of the cookie",
            ));
        }
        Ok(Self::Session(session))
    }

    /// The caller that it identifies.
    pub(crate) async fn authenticate(
        &self,
        service: &Service,
    ) -> Result<AuthenticatedCaller, Problem> {
        let service = service.clone();
        match self.clone() {
            Self::Bearer(token) => Ok(service.authenticate_bearer(&token).await?),
            Self::Session(session) => {
                blocking(move || service.authenticate_session(&session)).await
            }
        }
    }
}

fn needed() -> Problem {
    Problem::new(401, "token_needed", "The request needs a token").with_hint(
        "send the header `Authorization: Bearer TOKEN`; the operator creates a token with `windlass token create`",
    )
}

/// The token of a request.
fn bearer(headers: &HeaderMap) -> Result<String, Problem> {
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
        true => Ok(token.trim().to_owned()),
        false => Err(needed()),
    }
}
