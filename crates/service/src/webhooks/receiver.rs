//! Sends one event to its receiver: a signed request, or the input of a program.

use std::error::Error as _;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, header};
use windlass_config::{WebhookSecretSource, WebhookSettings, WebhookTarget};
use windlass_keys::WebhookSecrets;
use windlass_runtime::OperatorCommand;
use windlass_spawn::Isolation;
use windlass_spec::Timestamp;

use crate::servers::environment_lookup;

/// The longest that a receiver can put off the next attempt.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3_600);

/// The largest file with secrets.
const MAX_SECRETS: u64 = 4 << 10;

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FailedAttempt {
    /// What happened.
    pub(super) reason: String,
    /// How long to wait at least before the next attempt.
    pub(super) wait: Option<Duration>,
    /// Whether further attempts make no sense.
    pub(super) is_final: bool,
}

impl From<String> for FailedAttempt {
    fn from(reason: String) -> Self {
        Self {
            reason,
            wait: None,
            is_final: false,
        }
    }
}

/// The client for all receivers. It follows no redirects: a receiver does not choose where events go.
pub(super) fn client() -> Result<Client, String> {
    let client = windlass_http::client_builder()
        .redirect(Policy::none())
        .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
        .build();
    client.map_err(|error| describe(&error))
}

/// Sends an event.
pub(super) async fn send(
    client: &Client,
    isolation: &Isolation,
    webhook: &WebhookSettings,
    id: &str,
    at: Timestamp,
    body: &str,
) -> Result<(), FailedAttempt> {
    match &webhook.target {
        WebhookTarget::Url { url, secret } => {
            let secrets = secrets_of(secret)?;
            let timestamp = at.as_microseconds() / 1_000_000;
            let request = client
                .post(url)
                .timeout(webhook.timeout)
                .header(header::CONTENT_TYPE, "application/json")
                .header("webhook-id", id)
                .header("webhook-timestamp", timestamp.to_string())
                .header(
                    "webhook-signature",
                    secrets.sign(id, timestamp, body.as_bytes()),
                )
                .body(body.to_owned());
            match request.send().await {
                // The content of the answer is not read.
                Ok(answer) => judge(&answer),
                Err(error) if error.is_timeout() => {
                    let seconds = webhook.timeout.as_secs();
                    Err(format!("the receiver did not answer within {seconds} s").into())
                }
                Err(error) => Err(describe(&error).into()),
            }
        }
        WebhookTarget::Command {
            command,
            directory,
            environment,
        } => {
            let command = OperatorCommand {
                command: command.clone(),
                directory: directory.clone(),
                environment: environment.clone(),
                programs: None,
            };
            let variables = [("WINDLASS_EVENT_ID", id)];
            let ended = command
                .run(body.as_bytes(), &variables, webhook.timeout, isolation)
                .await;
            match ended {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(format!("the command ended with {status}").into()),
                Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                    let seconds = webhook.timeout.as_secs();
                    Err(format!("the command did not end within {seconds} s").into())
                }
                Err(error) => Err(format!("the command cannot be run: {error}").into()),
            }
        }
    }
}

/// Whether an answer says that the event was received.
fn judge(answer: &Response) -> Result<(), FailedAttempt> {
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let code = status.as_u16();
    let is_limited = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    let wait = answer.headers().get(header::RETRY_AFTER);
    let wait = wait.and_then(|wait| wait.to_str().ok()?.trim().parse().ok());
    Err(FailedAttempt {
        reason: match (status, status.is_redirection()) {
            (StatusCode::GONE, _) => "the receiver is gone (410)".to_owned(),
            (_, true) => format!("the receiver answered {code}; redirects are not followed"),
            (_, false) => format!("the receiver answered {code}"),
        },
        wait: wait
            .filter(|_| is_limited)
            .map(|seconds| Duration::from_secs(seconds).min(LONGEST_WAIT)),
        is_final: status == StatusCode::GONE,
    })
}

/// The secrets of a webhook.
///
/// # Errors
/// A message without the secret.
pub(crate) fn secrets_of(source: &WebhookSecretSource) -> Result<WebhookSecrets, String> {
    let (place, text) = match source {
        WebhookSecretSource::Variable(variable) => {
            let lookup = environment_lookup();
            let name = variable.variable().unwrap_or_default();
            let value = variable.value(|name| lookup(name));
            let value = value.map_err(|error| format!("the secret is missing: {error}"))?;
            (format!("the variable `{name}`"), value)
        }
        WebhookSecretSource::File(path) => {
            let place = format!("the file `{}`", path.display());
            let size = std::fs::metadata(path).map(|file| file.len());
            if size.is_ok_and(|size| size > MAX_SECRETS) {
                return Err(format!("{place} is too large for a secret"));
            }
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| format!("{place} cannot be read: {error}"))?;
            (place, text)
        }
    };
    WebhookSecrets::parse(&text).map_err(|error| format!("{place} has no usable secret: {error}"))
}

/// An error with its causes, without the URL, which may have a secret in it.
fn describe(error: &reqwest::Error) -> String {
    let mut text = match error.is_connect() {
        true => "the receiver cannot be reached".to_owned(),
        false => "the request failed".to_owned(),
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        // The innermost cause says most.
        if error.source().is_none() {
            text = format!("{text}: {error}");
        }
        cause = error.source();
    }
    text
}
