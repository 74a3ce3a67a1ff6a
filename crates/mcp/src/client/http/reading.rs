//! Reading of responses: error statuses, JSON bodies and event streams.

use futures::stream::StreamExt as _;
use reqwest::StatusCode;
use reqwest::header::RETRY_AFTER;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpError, StreamableHttpPostResponse,
};
use serde_json::Value;
use sse_stream::Sse;
use windlass_spec::{Effect, ErrorCategory};

use super::request_info::RequestInfo;
use super::response::read;
use super::{Client, Events, Failure};
use crate::client::shown;
use crate::client::wire::Inbound;

/// How many bytes of an error response are read for the message.
const MAX_ERROR_BODY: usize = 64 * 1024;

impl Client {
    /// The result of a request that was answered with an error status.
    pub(super) async fn refused(
        &self,
        info: &RequestInfo,
        response: reqwest::Response,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let status = response.status();
        let code = status.as_u16();
        if status.is_redirection() {
            let message = format!(
                "the server redirects to another place (HTTP {code}), which is not followed; check its URL"
            );
            return Err(self.fail(info, ErrorCategory::Unavailable, Effect::None, message));
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let message = format!("the server refused authorization (HTTP {code})");
            return Err(self.fail(info, ErrorCategory::Authentication, Effect::None, message));
        }
        if status == StatusCode::NOT_FOUND && has_session {
            // `rmcp` starts a new session, in which the tools may have changed.
            self.wire.changed();
            return Err(StreamableHttpError::SessionExpired);
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            let wait = response
                .headers()
                .get(RETRY_AFTER)
                .and_then(|value| value.to_str().ok());
            let wait = wait.map_or(String::new(), |wait| {
                format!("; retry after {}", shown(wait, 40))
            });
            let message = format!("the server limits the request rate (HTTP 429){wait}");
            return Err(self.fail(info, ErrorCategory::RateLimited, Effect::None, message));
        }
        let body = read(response, MAX_ERROR_BODY)
            .await
            .unwrap_or_default()
            .unwrap_or_default();
        if let (Some(id), Ok(ServerJsonRpcMessage::Error(error))) =
            (&info.id, serde_json::from_slice(&body))
        {
            // The error may lack the request id. It can only belong to this request.
            let error = ServerJsonRpcMessage::error(error.error, Some(id.clone()));
            return Ok(StreamableHttpPostResponse::Json(error, None));
        }
        let message = format!("the server answered with HTTP {code}");
        if info.is_probe {
            // A server of the legacy era may answer an unknown request with any error.
            return Ok(StreamableHttpPostResponse::Json(info.error(&message), None));
        }
        Err(self.fail(info, ErrorCategory::Unavailable, Effect::Unknown, message))
    }

    /// The result of a request that was answered with a JSON body.
    pub(super) async fn json_body(
        &self,
        info: &RequestInfo,
        response: reqwest::Response,
        session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let most = self.wire.limits.message_bytes;
        let invalid = |message: String| {
            self.fail(info, ErrorCategory::InvalidOutput, Effect::Unknown, message)
        };
        let body = match read(response, most).await {
            Ok(Some(body)) => body,
            Ok(None) => {
                return Err(invalid(format!(
                    "the server's answer is larger than {most} bytes"
                )));
            }
            Err(error) => return Err(self.no_response(info, error)),
        };
        let unreadable = |error: serde_json::Error| match &info.id {
            None => Ok(StreamableHttpPostResponse::Accepted),
            Some(_) => Err(invalid(format!(
                "the server's answer cannot be read: {error}"
            ))),
        };
        let message = match serde_json::from_slice::<Value>(&body) {
            Ok(message) => message,
            Err(error) => return unreadable(error),
        };
        match self.wire.receive(message, true) {
            Inbound::Consumed => Ok(StreamableHttpPostResponse::Accepted),
            Inbound::Pass(message) => match serde_json::from_value(message) {
                Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
                Err(error) => unreadable(error),
            },
        }
    }

    /// The events of a server, without those that `Wire` consumes.
    pub(super) fn filter_events(&self, events: Events, info: Option<RequestInfo>) -> Events {
        let client = self.clone();
        let watch = move |event: Result<Sse, SseError>| {
            let mut event = event.inspect_err(|error| {
                if let Some(info) = &info {
                    let message = format!("the server's answer ended early: {error}");
                    client.fail(info, ErrorCategory::InvalidOutput, Effect::Unknown, message);
                }
            })?;
            let Some(data) = event.data.take().filter(|data| !data.trim().is_empty()) else {
                return Ok(event);
            };
            event.data = match (serde_json::from_str::<Value>(&data), &info) {
                (Ok(message), _) => match client.wire.receive(message, true) {
                    Inbound::Consumed => None,
                    Inbound::Pass(message) => Some(message.to_string()),
                },
                (Err(error), Some(info)) if data.starts_with('{') && info.id.is_some() => {
                    let message = format!("the server's answer cannot be read: {error}");
                    client.fail(
                        info,
                        ErrorCategory::InvalidOutput,
                        Effect::Unknown,
                        &*message,
                    );
                    serde_json::to_string(&info.error(&message)).ok()
                }
                (Err(_), _) => None,
            };
            Ok(event)
        };
        events.map(watch).boxed()
    }
}
