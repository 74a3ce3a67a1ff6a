//! A request that passed all checks of the server, and what it is answered with.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_service::{AuthenticatedCaller, Identity, Service, ServiceError};

use crate::app::{App, blocking};
use crate::authentication::Credential;
use crate::problem::Problem;

/// The longest time that a caller can wait for the end of a run.
const MAX_WAIT: Duration = Duration::from_secs(300);

/// No query, or no body.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// A request of a caller, with its query `Q` and its body `B`.
pub(crate) struct Call<Q = Nothing, B = Nothing> {
    pub(crate) app: Arc<App>,
    pub(crate) caller: AuthenticatedCaller,
    /// What it was authenticated with, which is checked again during long answers.
    pub(crate) credential: Credential,
    /// The parts of the path that the route names, in order.
    pub(crate) path: Vec<String>,
    pub(crate) query: Q,
    pub(crate) body: B,
    pub(crate) headers: HeaderMap,
    /// What is the same in a repeated request: method, path and body.
    pub(crate) fingerprint: Bytes,
}

impl<Q, B> Call<Q, B> {
    /// The part of the path with this number.
    pub(crate) fn part(&self, number: usize) -> &str {
        self.path.get(number).map_or("", String::as_str)
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.caller.identity
    }

    /// Runs an operation of the service that blocks, with the caller's identity and the first part of the path.
    pub(crate) async fn operate<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Service, &Identity, &str) -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<T, Problem> {
        let (service, identity) = (self.app.service.clone(), self.identity().clone());
        let id = self.part(0).to_owned();
        blocking(move || operation(&service, &identity, &id)).await
    }

    /// The key of a request that can be repeated (`Idempotency-Key`).
    pub(crate) fn idempotency_key(&self) -> Result<Option<String>, Problem> {
        let mut keys = self.headers.get_all("idempotency-key").iter();
        let key = match (keys.next(), keys.next()) {
            (None, _) => return Ok(None),
            (Some(key), None) => key.to_str().ok(),
            _ => None,
        };
        let key = key.map(str::to_owned);
        key.map(Some).ok_or_else(|| {
            Problem::new(
                400,
                "invalid_key",
                "The header `Idempotency-Key` is not valid",
            )
        })
    }

    /// How long the caller waits for the result (`Prefer: wait=SECONDS`).
    pub(crate) fn wait(&self) -> Option<Duration> {
        let preferences = self.headers.get_all("prefer").iter();
        let preferences = preferences.filter_map(|value| value.to_str().ok());
        let mut preferences = preferences.flat_map(|value| value.split([',', ';']));
        let seconds = preferences.find_map(|one| one.trim().strip_prefix("wait="))?;
        let seconds: u64 = seconds.trim().parse().ok()?;
        Some(Duration::from_secs(seconds).min(MAX_WAIT))
    }
}

/// The answer to a request.
pub(crate) struct Reply<R> {
    status: StatusCode,
    body: R,
    headers: Vec<(HeaderName, String)>,
}

impl<R: Serialize> Reply<R> {
    /// What was asked for.
    pub(crate) fn ok(body: R) -> Self {
        Self::with(StatusCode::OK, body)
    }

    pub(crate) fn with(status: StatusCode, body: R) -> Self {
        Self {
            status,
            body,
            headers: Vec::new(),
        }
    }

    pub(crate) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn into_response(self) -> Result<Response, Problem> {
        let body = match self.status {
            StatusCode::NO_CONTENT => Vec::new(),
            _ => serde_json::to_vec(&self.body).map_err(|error| Problem::internal(&error))?,
        };
        let has_body = !body.is_empty();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if has_body {
            let json = HeaderValue::from_static("application/json");
            headers.insert(header::CONTENT_TYPE, json);
        }
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
        Ok(response)
    }
}
