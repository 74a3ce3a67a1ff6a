//! Models behind an HTTP API: hosted ones and local servers. Handles dialects, retries, time limits and
//! cancellation; the submodules talk to providers.

mod calls;
mod draft;
pub(crate) mod endpoint;
mod failure;
mod idle_timer;
mod names;
mod wire;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use futures::future::BoxFuture;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use windlass_core::model::{ModelAnswer, ModelErrorKind, ModelRequest};
use windlass_spec::Model;

use self::draft::{Draft, Finished};
use self::endpoint::{Endpoint, Protocol};
use self::failure::Failure;
use self::idle_timer::IdleTimer;
use self::wire::{Piece, Wire};
use crate::client::{ModelClient, ModelError, ModelEvent};
use crate::dialect::Dialect;

/// The settings of a hosted model.
#[derive(Debug, Clone, PartialEq)]
pub struct HostedSettings {
    /// How it is asked for calls: the dialect.
    pub dialect: Dialect,
    /// The base URL, if not the provider's default.
    pub base_url: Option<String>,
    /// The sampling temperature; the provider's default if `None`.
    pub temperature: Option<f64>,
    /// The most output tokens of one answer; the provider's default if `None`.
    pub max_output_tokens: Option<u32>,
    /// The time limit of an answer, including retries.
    pub time_limit: Duration,
    /// The time limit until the first byte of an answer.
    pub first_byte_limit: Duration,
    /// The longest pause within an answer.
    pub idle_limit: Duration,
    /// The most bytes of an answer.
    pub longest_answer: usize,
    /// The most attempts.
    pub tries: usize,
    /// The wait before the second attempt; doubled for each further one.
    pub first_wait: Duration,
    /// The longest wait. If the provider asks for a longer one, there is no further attempt.
    pub longest_wait: Duration,
}

impl Default for HostedSettings {
    fn default() -> Self {
        Self {
            dialect: Dialect::Auto,
            base_url: None,
            temperature: None,
            max_output_tokens: None,
            time_limit: Duration::from_secs(300),
            // A local model may take minutes to process a long prompt.
            first_byte_limit: Duration::from_secs(120),
            idle_limit: Duration::from_secs(60),
            longest_answer: 512 * 1024,
            tries: 3,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
        }
    }
}

/// A model of a provider or of a server that speaks the OpenAI protocol.
pub struct HostedModel {
    wire: Wire,
    endpoint: Arc<Endpoint>,
    settings: HostedSettings,
    /// Whether native calls failed with this model.
    needs_structured: AtomicBool,
}

/// The form in which a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Native,
    Structured,
}

/// The receiver of events, shared by the attempts of one request.
type Sink<'a> = Mutex<&'a mut (dyn FnMut(ModelEvent) + Send)>;

impl HostedModel {
    /// The model, with keys and addresses from the environment.
    ///
    /// # Errors
    /// If the key of a provider is missing, or the base URL is missing or not valid.
    pub fn new(model: &Model, settings: HostedSettings) -> Result<Self, ModelError> {
        Self::with_variables(model, settings, &|name| std::env::var(name).ok())
    }

    /// The model, with keys and addresses from `variable`, which looks up environment variables.
    ///
    /// # Errors
    /// As [`HostedModel::new`].
    pub fn with_variables(
        model: &Model,
        settings: HostedSettings,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelError> {
        let endpoint = Arc::new(Endpoint::resolve(
            model,
            settings.base_url.as_deref(),
            variable,
        )?);
        let wire = Wire::new(Arc::clone(&endpoint))?;
        Ok(Self {
            wire,
            endpoint,
            settings,
            needs_structured: AtomicBool::new(false),
        })
    }

    async fn answer_in_dialect(
        &self,
        request: &ModelRequest,
        sink: &Sink<'_>,
    ) -> Result<ModelAnswer, ModelError> {
        let is_auto = self.settings.dialect == Dialect::Auto;
        let form = match self.settings.dialect {
            Dialect::Structured => Form::Structured,
            Dialect::Auto if self.needs_structured.load(Ordering::Relaxed) => Form::Structured,
            Dialect::Native | Dialect::Auto => Form::Native,
        };
        let outcome = self.with_retries(request, form, sink).await;
        let outcome = match outcome {
            Err(failure) if failure.lacks_tools && is_auto && form == Form::Native => {
                self.needs_structured.store(true, Ordering::Relaxed);
                self.with_retries(request, Form::Structured, sink).await
            }
            other => other,
        };
        let Finished {
            answer,
            wrote_calls_as_text,
        } = outcome.map_err(|failure| failure.error)?;
        // Only the OpenAI protocol can constrain an answer to a schema.
        let is_empty = answer.calls.is_empty() && answer.text.trim().is_empty();
        if is_auto
            && self.endpoint.protocol == Protocol::OpenAi
            && (wrote_calls_as_text || is_empty)
        {
            self.needs_structured.store(true, Ordering::Relaxed);
        }
        Ok(answer)
    }

    async fn with_retries(
        &self,
        request: &ModelRequest,
        form: Form,
        sink: &Sink<'_>,
    ) -> Result<Finished, Failure> {
        let HostedSettings {
            tries,
            first_wait,
            longest_wait,
            ..
        } = self.settings;
        let waits = ExponentialBuilder::default()
            .with_min_delay(first_wait)
            .with_max_delay(longest_wait)
            .with_max_times(tries.saturating_sub(1))
            .with_jitter();
        (|| self.attempt(request, form, sink))
            .retry(waits)
            .when(|failure| failure.is_transient)
            .adjust(|failure, wait| {
                let wanted = failure.error.retry_after.or(wait)?;
                // An earlier attempt would be refused again.
                wait.filter(|_| wanted <= longest_wait).map(|_| wanted)
            })
            .await
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        form: Form,
        sink: &Sink<'_>,
    ) -> Result<Finished, Failure> {
        let mut emit = |event| {
            let mut events = sink.lock().unwrap_or_else(PoisonError::into_inner);
            events(event);
        };
        let mut draft = Draft::new(form, self.settings.longest_answer);
        let mut pieces = self.wire.send(request, form, &self.settings).await?;
        let HostedSettings {
            first_byte_limit,
            idle_limit,
            ..
        } = self.settings;
        let mut idle_timer = IdleTimer::new(first_byte_limit, idle_limit);
        let mut has_begun = false;
        loop {
            let Some(piece) = idle_timer.wait(pieces.next()).await else {
                let limit = if has_begun {
                    idle_limit
                } else {
                    first_byte_limit
                };
                return Err(self.too_slow(has_begun, limit));
            };
            let piece = match piece {
                Some(Ok(piece)) => piece,
                // Emitted events cannot be revoked, so there is no further attempt after the first one.
                Some(Err(failure)) => {
                    return Err(Failure {
                        is_transient: failure.is_transient && !has_begun,
                        ..failure
                    });
                }
                None => return Err(pieces.truncated()),
            };
            has_begun = true;
            idle_timer.renew(idle_limit);
            match piece {
                Piece::KeepAlive => {}
                Piece::Text(text) => draft.text(&text, &mut emit)?,
                Piece::Thought(text) => draft.thought(text, &mut emit)?,
                Piece::Call {
                    position,
                    tool,
                    length,
                } => draft.call(position, tool, length, &mut emit)?,
                Piece::End {
                    calls,
                    usage,
                    is_cut_off,
                } => {
                    if is_cut_off && calls.is_empty() {
                        draft.refuse_fragment(request)?;
                    }
                    return Ok(draft.finish(request, calls, usage, &mut emit));
                }
            }
        }
    }

    fn too_slow(&self, has_begun: bool, limit: Duration) -> Failure {
        let what = if has_begun {
            "paused its answer for"
        } else {
            "did not start to answer within"
        };
        let message = format!(
            "{} {what} {} seconds.",
            self.endpoint.provider,
            limit.as_secs_f64()
        );
        Failure::permanent(ModelErrorKind::Timeout, message)
    }
}

impl ModelClient for HostedModel {
    fn answer<'a>(
        &'a self,
        request: &'a ModelRequest,
        cancel: &'a CancellationToken,
        events: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        Box::pin(async move {
            let limit = self.settings.time_limit;
            let sink = Mutex::new(events);
            let work = timeout(limit, self.answer_in_dialect(request, &sink));
            // The first branch to complete drops the other, and with it the connection.
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(ModelError::cancelled()),
                outcome = work => outcome.unwrap_or_else(|_| {
                    let provider = &self.endpoint.provider;
                    let message = format!("{provider} did not finish its answer within {} seconds.", limit.as_secs_f64());
                    Err(ModelError::new(ModelErrorKind::Timeout, message))
                }),
            }
        })
    }

    fn name(&self) -> Option<&str> {
        Some(&self.endpoint.model)
    }
}

impl fmt::Debug for HostedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostedModel")
            .field("endpoint", &self.endpoint)
            .field("settings", &self.settings)
            .finish()
    }
}
