//! What a guard gives, and how it refuses.

use rmcp::transport::auth::{AuthError, OAuthTokenResponse};
use serde_json::Value;

use super::error::{OAuthError, shown};
use super::kept::now;
use crate::Secret;

/// The parts of a guard's answer that are used.
pub(super) struct Given {
    pub(super) access_token: Secret,
    pub(super) refresh_token: Option<Secret>,
    pub(super) ends_at: Option<u64>,
    pub(super) scopes: Option<Vec<String>>,
}

impl Given {
    /// Reads them from the JSON form, which is the protocol's own.
    pub(super) fn of(issuer: &str, token: &OAuthTokenResponse) -> Result<Self, OAuthError> {
        let answer = serde_json::to_value(token).unwrap_or_default();
        let text = |name: &str| answer.get(name)?.as_str().filter(|text| !text.is_empty());
        let Some(access_token) = text("access_token") else {
            return Err(refusal(issuer, "its answer holds no token"));
        };
        if !access_token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(refusal(issuer, "its token cannot be sent"));
        }
        let lasts = answer.get("expires_in").and_then(Value::as_u64);
        Ok(Self {
            access_token: Secret::new(access_token),
            refresh_token: text("refresh_token").map(Secret::new),
            ends_at: lasts.map(|seconds| now().saturating_add(seconds)),
            scopes: text("scope").map(|scopes| words(scopes).collect()),
        })
    }
}

/// The scopes in a list of scopes.
pub(super) fn words(scopes: &str) -> impl Iterator<Item = String> {
    scopes.split_whitespace().map(str::to_owned)
}

pub(super) fn without_repeats(scopes: Vec<String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::with_capacity(scopes.len());
    for scope in scopes {
        if !once.contains(&scope) {
            once.push(scope);
        }
    }
    once
}

pub(super) fn refused(issuer: &str, error: &AuthError) -> OAuthError {
    refusal(issuer, &error.to_string())
}

pub(super) fn refusal(issuer: &str, reason: &str) -> OAuthError {
    OAuthError::Refused {
        issuer: shown(issuer),
        reason: shown(reason),
    }
}
