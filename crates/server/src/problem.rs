//! Problem documents (RFC 9457): what every error of the API is.

use std::path::Path;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_service::{ErrorKind, ServiceError};

/// Why a request was refused or failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Problem {
    /// Names the code as a URI: `urn:windlass:problem:CODE`.
    #[serde(rename = "type")]
    kind: Box<str>,
    /// What happened.
    title: Box<str>,
    /// The HTTP status.
    #[schemars(range(min = 400, max = 599))]
    status: u16,
    /// The exact reason, for programs. Codes are stable.
    code: Box<str>,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<Box<str>>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Box<str>>,
    #[serde(skip)]
    retry_after: Option<u64>,
    #[serde(skip)]
    parameter: Option<Box<str>>,
}

/// An error in the form of OpenAI's API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct OpenAiError {
    error: OpenAiErrorDetails,
}

/// What happened, in the form of OpenAI's API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct OpenAiErrorDetails {
    /// What happened and what to do about it.
    message: Box<str>,
    /// The kind, such as `invalid_request_error`.
    #[serde(rename = "type")]
    kind: Box<str>,
    /// The parameter that was refused.
    param: Option<Box<str>>,
    /// The exact reason, for programs: the code that a problem document would have.
    code: Box<str>,
}

impl Problem {
    pub(crate) fn new(status: u16, code: &str, title: &str) -> Self {
        Self {
            kind: format!("urn:windlass:problem:{code}").into(),
            title: title.into(),
            status,
            code: code.into(),
            detail: None,
            hint: None,
            retry_after: None,
            parameter: None,
        }
    }

    pub(crate) fn with_detail(mut self, detail: impl Into<Box<str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same problem, with the parameter that it is about.
    pub(crate) fn about(mut self, parameter: &str) -> Self {
        self.parameter = Some(parameter.into());
        self
    }

    /// The same problem, with how many seconds to wait.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds.max(1));
        self
    }

    /// The server stops.
    pub(crate) fn closing() -> Self {
        Self::new(503, "closing", "The server stops")
            .with_hint("try again")
            .retry_after(1)
    }

    /// The problem as an error of OpenAI's API, which clients of that API understand.
    pub(crate) fn to_openai(&self) -> OpenAiError {
        let mut message = self.title.to_string();
        if let Some(detail) = &self.detail {
            message.push_str(": ");
            message.push_str(detail);
        }
        if let Some(hint) = &self.hint {
            message.push_str("\nhint: ");
            message.push_str(hint);
        }
        OpenAiError {
            error: OpenAiErrorDetails {
                message: message.into(),
                kind: match self.status {
                    401 => "authentication_error",
                    403 => "permission_error",
                    429 => "rate_limit_error",
                    500.. => "server_error",
                    _ => "invalid_request_error",
                }
                .into(),
                param: self.parameter.clone(),
                code: self.code.clone(),
            },
        }
    }

    /// The answer with the error in OpenAI's form.
    pub(crate) fn into_openai_response(self) -> Response {
        let body = serde_json::to_vec(&self.to_openai()).unwrap_or_default();
        // The official clients repeat requests on their own. What may succeed later says so with `Retry-After`.
        let may_repeat = self.retry_after.is_some();
        let mut response = self.into_response();
        *response.body_mut() = Body::from(body);
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
        if !may_repeat {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        response
    }

    /// Its code.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// An operation that failed for a reason that is the operator's business. The log has it at the level `trace`: a
    /// message can contain content.
    pub(crate) fn internal(reason: &dyn std::fmt::Display) -> Self {
        tracing::error!("a request failed");
        tracing::trace!(%reason, "a request failed");
        Self::new(500, "failed", "The operation failed")
            .with_detail("The log of the server says why.")
            .with_hint("ask the operator of this server")
    }

    /// What a request asked for cannot be done as the server is configured, such as to start an agent with a tool that
    /// no library has.
    pub(crate) fn of_configuration(error: ServiceError) -> Self {
        match error.kind() {
            ErrorKind::Failed => {
                log_refused(&error);
                Self::new(409, "cannot_be_started", "This cannot be started")
                    .with_detail(without_directories(error.message()))
                    .with_hint("ask the operator of this server")
            }
            _ => error.into(),
        }
    }
}

/// Logs what cannot be carried out: its code, and its message only at the level `trace`.
fn log_refused(error: &ServiceError) {
    let kind = error.kind();
    tracing::warn!(error.type = error.code(), ?kind, "a request cannot be carried out");
    tracing::trace!(%error, "a request cannot be carried out");
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        let (status, title) = match error.kind() {
            ErrorKind::Invalid => (422, "The request is not valid"),
            ErrorKind::Unauthenticated => (401, "The token cannot be used"),
            ErrorKind::Denied => (403, "Not permitted"),
            ErrorKind::NotFound => (404, "Not found"),
            ErrorKind::Conflict => (409, "Not possible in the present state"),
            ErrorKind::Unavailable if error.code() == "issuer_unavailable" => {
                tracing::error!(%error, "tokens of the issuer cannot be checked");
                let title = "The token cannot be checked now, because its issuer does not answer";
                return Self::new(503, error.code(), title)
                    .with_hint("try again later")
                    .retry_after(5);
            }
            ErrorKind::Unavailable => {
                tracing::error!(error.type = error.code(), "the store cannot be used");
                tracing::trace!(%error, "the store cannot be used");
                return Self::new(503, error.code(), "The store cannot be used now")
                    .with_hint("try again later")
                    .retry_after(1);
            }
            ErrorKind::Failed => return Self::internal(&error),
        };
        let problem = Self::new(status, error.code(), title);
        let problem = problem.with_detail(without_directories(error.message()));
        match error.hint() {
            // Hints of the service name commands, which the operator can run.
            Some(hint) => problem.with_hint(&without_directories(hint)),
            None => problem,
        }
    }
}

/// The text with paths of files shortened to the names of the files, because callers are not told how the server's disk
/// is organised.
pub(crate) fn without_directories(text: &str) -> String {
    let shorten = |part: &str| match Path::new(part).file_name() {
        Some(name) if part.starts_with('/') => name.to_string_lossy().into_owned(),
        _ => part.to_owned(),
    };
    let is_border = |c: char| c.is_whitespace() || "`'\"(),;".contains(c);
    let mut shortened = String::with_capacity(text.len());
    for part in text.split_inclusive(is_border) {
        let (word, border) = match part.char_indices().last() {
            Some((at, last)) if is_border(last) => part.split_at(at),
            _ => (part, ""),
        };
        shortened.push_str(&shorten(word));
        shortened.push_str(border);
    }
    shortened
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let problem = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, problem);
        if status == StatusCode::UNAUTHORIZED {
            // A request without a token is not told that something is wrong with it.
            let challenge = HeaderValue::from_static(match self.code.starts_with("token_") {
                true if &*self.code != "token_needed" => {
                    "Bearer realm=\"windlass\", error=\"invalid_token\""
                }
                _ => "Bearer realm=\"windlass\"",
            });
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_not_shown() {
        let text =
            "`/home/ada/secret/a.gram` and (/srv/b.gram) declare 1/2, see https://a.example/x";
        let expected = "`a.gram` and (b.gram) declare 1/2, see https://a.example/x";
        assert_eq!(without_directories(text), expected);
    }

    #[test]
    fn the_reason_of_a_failure_is_not_shown() {
        let error = ServiceError::failed("SELECT failed in /srv/windlass.db");
        let problem = Problem::from(error);
        let shown = serde_json::to_string(&problem).unwrap();
        assert!(
            !shown.contains("SELECT") && !shown.contains("srv"),
            "{shown}"
        );
        assert_eq!(problem.status, 500);
    }
}
