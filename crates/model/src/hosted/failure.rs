//! Classifies the errors of providers: the kind of error, whether a retry can help, and the message.
//! Providers have little in common but the HTTP status.

use std::time::Duration;

use serde_json::Value;
use windlass_core::model::ModelErrorKind;

use super::endpoint::Endpoint;
use super::limits::ExceededLimit;
use crate::client::ModelError;

/// The longest quote of a provider's message, in characters. Some repeat the request in it.
const LONGEST_QUOTE: usize = 300;

/// Why an attempt failed.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) error: ModelError,
    /// Whether a retry may help.
    pub(super) is_transient: bool,
    /// Whether the model does not support native tools.
    pub(super) lacks_tools: bool,
}

impl Failure {
    pub(super) fn permanent(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            error: ModelError::new(kind, message),
            is_transient: false,
            lacks_tools: false,
        }
    }

    pub(super) fn transient(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            is_transient: true,
            ..Self::permanent(kind, message)
        }
    }

    /// From an HTTP error status.
    pub(super) fn from_status(
        endpoint: &Endpoint,
        status: u16,
        body: &str,
        retry_after: Option<Duration>,
    ) -> Self {
        let quoted = quote(endpoint, body);
        let lowercase = body.to_ascii_lowercase();
        let mut failure = Self::of(
            endpoint,
            kind_of(status, &lowercase),
            &format!("{status}{quoted}"),
            &lowercase,
        );
        failure.error.retry_after = retry_after.or_else(|| retry_delay(body));
        failure
    }

    /// From an error event in a stream with a success status.
    pub(super) fn from_event(endpoint: &Endpoint, body: &str) -> Self {
        let lowercase = body.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lowercase.contains(word));
        let status = match () {
            () if has(&["rate_limit", "rate limit", "too many requests"]) => 429,
            () if has(&[
                "overloaded",
                "server_error",
                "internal",
                "unavailable",
                "api_error",
            ]) =>
            {
                503
            }
            () if has(&["authentication", "permission_error"]) => 401,
            () => 400,
        };
        let quoted = quote(endpoint, body);
        Self::of(
            endpoint,
            kind_of(status, &lowercase),
            &format!("in the stream{quoted}"),
            &lowercase,
        )
    }

    fn of(endpoint: &Endpoint, kind: ModelErrorKind, details: &str, lowercase: &str) -> Self {
        let Endpoint {
            provider,
            model,
            key_variable,
            ..
        } = endpoint;
        let url = endpoint.shown_url();
        let message = match kind {
            ModelErrorKind::RateLimited => {
                format!("{provider} limits the request rate ({details}).")
            }
            ModelErrorKind::Overloaded => {
                format!("{provider} is unavailable at the moment ({details}). Try again later.")
            }
            ModelErrorKind::Authentication if endpoint.key.is_none() => {
                format!("{provider} needs a key ({details}). Set `{key_variable}`.")
            }
            ModelErrorKind::Authentication => {
                format!("{provider} refused the key in `{key_variable}` ({details}).")
            }
            ModelErrorKind::ContextTooLong => {
                format!("The conversation is too long for {model} ({details}).")
            }
            ModelErrorKind::UnknownModel => {
                format!(
                    "{provider} has no model `{model}` at {url} ({details}). Check the name and the address."
                )
            }
            ModelErrorKind::Unreachable
            | ModelErrorKind::Malformed
            | ModelErrorKind::Timeout
            | ModelErrorKind::Cancelled => {
                format!("{provider} did not accept the request ({details}).")
            }
        };
        // An exhausted quota does not recover within a retry.
        let is_used_up = lowercase.contains("insufficient_quota") || lowercase.contains("billing");
        let is_transient = matches!(
            kind,
            ModelErrorKind::RateLimited | ModelErrorKind::Overloaded
        ) && !is_used_up;
        let lacks_tools = kind == ModelErrorKind::Malformed
            && lowercase.contains("tool")
            && [
                "not support",
                "unsupported",
                "unknown",
                "unrecognized",
                "not permitted",
                "--jinja",
            ]
            .iter()
            .any(|words| lowercase.contains(words));
        Self {
            error: ModelError::new(kind, message),
            is_transient,
            lacks_tools,
        }
    }
}

impl From<ExceededLimit> for Failure {
    fn from(limit: ExceededLimit) -> Self {
        let mut failure = Self::permanent(ModelErrorKind::Malformed, limit.to_string());
        failure.error.exceeded = Some(limit);
        failure
    }
}

fn kind_of(status: u16, lowercase: &str) -> ModelErrorKind {
    let has = |words: &[&str]| words.iter().any(|word| lowercase.contains(word));
    let is_too_long = has(&[
        "context_length",
        "context length",
        "context_size",
        "context size",
        "context window",
        "maximum context",
        "prompt is too long",
        "input is too long",
        "input token count",
        "too many tokens",
    ]);
    match status {
        429 => ModelErrorKind::RateLimited,
        401 | 403 => ModelErrorKind::Authentication,
        400 | 413 | 422 | 500 if is_too_long => ModelErrorKind::ContextTooLong,
        400 if has(&["api key not valid", "api_key_invalid", "invalid api key"]) => {
            ModelErrorKind::Authentication
        }
        400 if has(&[
            "model_not_found",
            "no such model",
            "invalid model",
            "unknown model",
        ]) =>
        {
            ModelErrorKind::UnknownModel
        }
        404 => ModelErrorKind::UnknownModel,
        408 | 409 | 425 | 500..=599 => ModelErrorKind::Overloaded,
        _ => ModelErrorKind::Malformed,
    }
}

/// The provider's message: short, on one line, without the key.
fn quote(endpoint: &Endpoint, body: &str) -> String {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let message = [
        "/error/message",
        "/response/error/message",
        "/message",
        "/error",
        "/detail",
    ]
    .iter()
    .find_map(|pointer| json.pointer(pointer).and_then(Value::as_str));
    let words = match message {
        Some(message) => message,
        // An HTML page is of no use in a message.
        None if body.trim_start().starts_with('<') => "",
        None => body,
    };
    let words = endpoint.scrubber().text(words);
    let words: Vec<&str> = words.split_whitespace().collect();
    let words = words.join(" ");
    match words.chars().count() {
        0 => String::new(),
        1..=LONGEST_QUOTE => format!(": {words}"),
        _ => format!(
            ": {}...",
            words.chars().take(LONGEST_QUOTE).collect::<String>()
        ),
    }
}

/// The wait from the headers `retry-after-ms` or `retry-after` (in seconds).
pub(super) fn retry_after(header: impl Fn(&str) -> Option<String>) -> Option<Duration> {
    let number = |name: &str| header(name).and_then(|text| text.trim().parse::<f64>().ok());
    let seconds = number("retry-after-ms")
        .map(|ms| ms / 1000.0)
        .or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The wait in Google's format: in the body, as seconds with the suffix `s`.
fn retry_delay(body: &str) -> Option<Duration> {
    let json: Value = serde_json::from_str(body).ok()?;
    let details = json.pointer("/error/details")?.as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
