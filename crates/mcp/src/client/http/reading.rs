//! How the answers of a server are read: a status that says no, an answer in one piece, events.

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

use super::answers::read;
use super::subject::Subject;
use super::{Client, Events, Failure};
use crate::client::shown;
use crate::client::wire::Inbound;

/// What an answer that is no good is read of, to say what it was.
const OF_BAD_ANSWER: usize = 64 * 1024;

impl Client {
    /// A request that was answered with a status that says no.
    pub(super) async fn refused(
        &self,
        subject: &Subject,
        response: reqwest::Response,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let status = response.status();
        let code = status.as_u16();
        if status.is_redirection() {
            let message =
                format!("the server sends one elsewhere (HTTP {code}), which is not followed");
            return Err(self.fail(subject, ErrorCategory::Unavailable, Effect::None, message));
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let message = format!("the server refuses who asks (HTTP {code})");
            return Err(self.fail(
                subject,
                ErrorCategory::Authentication,
                Effect::None,
                message,
            ));
        }
        if status == StatusCode::NOT_FOUND && has_session {
            // The library begins anew; what the server has may be something else then.
            self.wire.changed();
            return Err(StreamableHttpError::SessionExpired);
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            let wait = response
                .headers()
                .get(RETRY_AFTER)
                .and_then(|value| value.to_str().ok());
            let wait = wait.map_or(String::new(), |wait| {
                format!(", asks to wait {}", shown(wait, 40))
            });
            let message = format!("the server is asked too often (HTTP 429){wait}");
            return Err(self.fail(subject, ErrorCategory::RateLimited, Effect::None, message));
        }
        let body = read(response, OF_BAD_ANSWER)
            .await
            .unwrap_or_default()
            .unwrap_or_default();
        if let (Some(id), Ok(ServerJsonRpcMessage::Error(error))) =
            (&subject.id, serde_json::from_slice(&body))
        {
            // It may not have read whose error it is; there is only one it can be.
            let error = ServerJsonRpcMessage::error(error.error, Some(id.clone()));
            return Ok(StreamableHttpPostResponse::Json(error, None));
        }
        let message = format!("the server answered with HTTP {code}");
        if subject.is_probe {
            // A server of the legacy era need not say in what way it does not understand.
            return Ok(StreamableHttpPostResponse::Json(
                subject.error(&message),
                None,
            ));
        }
        Err(self.fail(
            subject,
            ErrorCategory::Unavailable,
            Effect::Unknown,
            message,
        ))
    }

    /// An answer in one piece.
    pub(super) async fn whole(
        &self,
        subject: &Subject,
        response: reqwest::Response,
        session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let most = self.wire.limits.message_bytes;
        let wrong = |message: String| {
            self.fail(
                subject,
                ErrorCategory::InvalidOutput,
                Effect::Unknown,
                message,
            )
        };
        let body = match read(response, most).await {
            Ok(Some(body)) => body,
            Ok(None) => {
                return Err(wrong(format!(
                    "the answer of the server is larger than {most} bytes"
                )));
            }
            Err(error) => return Err(self.not_answered(subject, error)),
        };
        let unreadable = |error: serde_json::Error| match &subject.id {
            None => Ok(StreamableHttpPostResponse::Accepted),
            Some(_) => Err(wrong(format!(
                "the answer of the server cannot be read: {error}"
            ))),
        };
        let message = match serde_json::from_slice::<Value>(&body) {
            Ok(message) => message,
            Err(error) => return unreadable(error),
        };
        match self.wire.take_in(message, true) {
            Inbound::Taken => Ok(StreamableHttpPostResponse::Accepted),
            Inbound::Pass(message) => match serde_json::from_value(message) {
                Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
                Err(error) => unreadable(error),
            },
        }
    }

    /// The events of a server, without those that end here.
    pub(super) fn watched(&self, events: Events, subject: Option<Subject>) -> Events {
        let client = self.clone();
        let watch = move |event: Result<Sse, SseError>| {
            let mut event = event.inspect_err(|error| {
                if let Some(subject) = &subject {
                    let message = format!("the answer of the server broke off: {error}");
                    client.fail(
                        subject,
                        ErrorCategory::InvalidOutput,
                        Effect::Unknown,
                        message,
                    );
                }
            })?;
            let Some(data) = event.data.take().filter(|data| !data.trim().is_empty()) else {
                return Ok(event);
            };
            event.data = match (serde_json::from_str::<Value>(&data), &subject) {
                (Ok(message), _) => match client.wire.take_in(message, true) {
                    Inbound::Taken => None,
                    Inbound::Pass(message) => Some(message.to_string()),
                },
                (Err(error), Some(subject)) if data.starts_with('{') && subject.id.is_some() => {
                    let message = format!("the answer of the server cannot be read: {error}");
                    client.fail(
                        subject,
                        ErrorCategory::InvalidOutput,
                        Effect::Unknown,
                        &*message,
                    );
                    serde_json::to_string(&subject.error(&message)).ok()
                }
                (Err(_), _) => None,
            };
            Ok(event)
        };
        events.map(watch).boxed()
    }
}
