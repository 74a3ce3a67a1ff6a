//! The token response of an authorization server, and its errors.

use rmcp::transport::auth::{AuthError, OAuthTokenResponse};
use serde_json::Value;

use super::error::{OAuthError, shown};
use super::login_files::now;
use crate::Secret;

/// The fields of a token response that are used.
pub(super) struct TokenResponse {
    pub(super) access_token: Secret,
    pub(super) refresh_token: Option<Secret>,
    pub(super) ends_at: Option<u64>,
    pub(super) scopes: Option<Vec<String>>,
}

impl TokenResponse {
    /// Reads the fields from the JSON form of the response.
    pub(super) fn read(issuer: &str, token: &OAuthTokenResponse) -> Result<Self, OAuthError> {
        let answer = serde_json::to_value(token).unwrap_or_default();
        let text = |name: &str| answer.get(name)?.as_str().filter(|text| !text.is_empty());
        let Some(access_token) = text("access_token") else {
            return Err(refusal(issuer, "its response contains no access token"));
        };
        if !access_token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(refusal(
                issuer,
                "its access token has characters that cannot be sent",
            ));
        }
        let expires_in = answer.get("expires_in").and_then(Value::as_u64);
        Ok(Self {
            access_token: Secret::new(access_token),
            refresh_token: text("refresh_token").map(Secret::new),
            ends_at: expires_in.map(|seconds| now().saturating_add(seconds)),
            scopes: text("scope").map(|scopes| split_scopes(scopes).collect()),
        })
    }
}

/// The scopes in a space-separated list.
pub(super) fn split_scopes(scopes: &str) -> impl Iterator<Item = String> {
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
