//! What a provider's refusal means: which kind of error it is, whether asking again can help, and
//! what a person is told. Providers agree on little but the status.

use std::time::Duration;

use serde_json::Value;
use windlass_core::model::ModelErrorKind;

use super::endpoint::Endpoint;
use crate::client::ModelError;

/// How much of a provider's own words is shown. Some repeat the request in them.
const LONGEST_QUOTE: usize = 300;

/// Why an attempt gave no answer.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) error: ModelError,
    /// Asking again may help.
    pub(super) is_passing: bool,
    /// The model cannot be given tools natively.
    pub(super) lacks_tools: bool,
}

impl Failure {
    pub(super) fn lasting(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            error: ModelError::new(kind, message),
            is_passing: false,
            lacks_tools: false,
        }
    }

    pub(super) fn passing(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            is_passing: true,
            ..Self::lasting(kind, message)
        }
    }

    /// From an HTTP status that is no success.
    pub(super) fn from_status(
        endpoint: &Endpoint,
        status: u16,
        body: &str,
        retry_after: Option<Duration>,
    ) -> Self {
        let quoted = quote(endpoint, body);
        let said = body.to_ascii_lowercase();
        let mut failure = Self::of(
            endpoint,
            kind_of(status, &said),
            &format!("{status}{quoted}"),
            &said,
        );
        failure.error.retry_after = retry_after.or_else(|| retry_delay(body));
        failure
    }

    /// From an error that arrived as an event, after a status that promised success.
    pub(super) fn from_event(endpoint: &Endpoint, body: &Value) -> Self {
        let body = body.to_string();
        let said = body.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
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
        let quoted = quote(endpoint, &body);
        Self::of(
            endpoint,
            kind_of(status, &said),
            &format!("in the stream{quoted}"),
            &said,
        )
    }

    fn of(endpoint: &Endpoint, kind: ModelErrorKind, details: &str, said: &str) -> Self {
        let Endpoint {
            provider,
            model,
            key_variable,
            ..
        } = endpoint;
        let url = endpoint.shown_url();
        let message = match kind {
            ModelErrorKind::RateLimited => {
                format!("{provider} limits how often it is asked ({details}).")
            }
            ModelErrorKind::Overloaded => {
                format!("{provider} cannot answer at the moment ({details}).")
            }
            ModelErrorKind::Authentication if endpoint.key.is_none() => {
                format!("{provider} wants a key ({details}). Set {key_variable} to one.")
            }
            ModelErrorKind::Authentication => {
                format!("{provider} refused the key in {key_variable} ({details}).")
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
        // A quota that is used up does not come back in a minute.
        let is_used_up = said.contains("insufficient_quota") || said.contains("billing");
        let is_passing = matches!(
            kind,
            ModelErrorKind::RateLimited | ModelErrorKind::Overloaded
        ) && !is_used_up;
        let lacks_tools = kind == ModelErrorKind::Malformed
            && said.contains("tool")
            && [
                "not support",
                "unsupported",
                "unknown",
                "unrecognized",
                "not permitted",
                "--jinja",
            ]
            .iter()
            .any(|words| said.contains(words));
        Self {
            error: ModelError::new(kind, message),
            is_passing,
            lacks_tools,
        }
    }
}

fn kind_of(status: u16, said: &str) -> ModelErrorKind {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
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

/// The provider's own words: short, on one line, without the key.
fn quote(endpoint: &Endpoint, body: &str) -> String {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let told = ["/error/message", "/message", "/error", "/detail"]
        .iter()
        .find_map(|pointer| json.pointer(pointer).and_then(Value::as_str));
    let words = match told {
        Some(told) => told,
        // A page for browsers says nothing that helps here.
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

/// How long to wait, from `retry-after-ms` or `retry-after` in seconds.
pub(super) fn retry_after(header: impl Fn(&str) -> Option<String>) -> Option<Duration> {
    let number = |name: &str| header(name).and_then(|text| text.trim().parse::<f64>().ok());
    let seconds = number("retry-after-ms")
        .map(|ms| ms / 1000.0)
        .or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The same as Google tells it: in the body, as seconds with an `s`.
fn retry_delay(body: &str) -> Option<Duration> {
    let json: Value = serde_json::from_str(body).ok()?;
    let details = json.pointer("/error/details")?.as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
