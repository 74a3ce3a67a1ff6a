//! Models behind an HTTP interface: hosted ones and local servers. Decides about dialects,
//! retries, time limits and cancellation; how providers are spoken to is below.

mod calls;
mod draft;
pub(crate) mod endpoint;
mod failure;
mod names;
mod patience;
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
use self::patience::Patience;
use self::wire::{Piece, Wire};
use crate::client::{ModelClient, ModelError, ModelEvent};
use crate::dialect::Dialect;

/// How a hosted model is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct HostedSettings {
    /// How it is asked for calls.
    pub dialect: Dialect,
    /// Where it is asked, if not at its provider's usual address.
    pub base_url: Option<String>,
    /// How freely it chooses its words; the provider's default if not given.
    pub temperature: Option<f64>,
    /// How many tokens it may write in one answer; the provider's default if not given.
    pub max_output_tokens: Option<u32>,
    /// How long an answer may take in all, retries included.
    pub time_limit: Duration,
    /// How long it may take until the first sign of an answer.
    pub first_byte_limit: Duration,
    /// How long an answer may pause.
    pub idle_limit: Duration,
    /// How many bytes an answer may have.
    pub longest_answer: usize,
    /// How often it is asked before giving up.
    pub tries: usize,
    /// How long to wait before the second try; doubled for each further one.
    pub first_wait: Duration,
    /// The longest wait, also when the provider asks for more: then there is no further try.
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
            // A local model may read a long prompt for minutes.
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
    /// Native calls did not work with this model.
    needs_structure: AtomicBool,
}

/// The form a request is sent in, once the dialect is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Native,
    Structured,
}

/// Where events go; shared by the tries of one request.
type Sink<'a> = Mutex<&'a mut (dyn FnMut(ModelEvent) + Send)>;

impl HostedModel {
    /// The model, with keys and addresses from the environment.
    ///
    /// # Errors
    /// If there is no key for a provider that wants one, or no usable address.
    pub fn new(model: &Model, settings: HostedSettings) -> Result<Self, ModelError> {
        Self::with_variables(model, settings, &|name| std::env::var(name).ok())
    }

    /// The model, with keys and addresses from what `variable` gives for the names of environment
    /// variables.
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
            needs_structure: AtomicBool::new(false),
        })
    }

    async fn in_fitting_form(
        &self,
        request: &ModelRequest,
        sink: &Sink<'_>,
    ) -> Result<ModelAnswer, ModelError> {
        let is_auto = self.settings.dialect == Dialect::Auto;
        let form = match self.settings.dialect {
            Dialect::Structured => Form::Structured,
            Dialect::Auto if self.needs_structure.load(Ordering::Relaxed) => Form::Structured,
            Dialect::Native | Dialect::Auto => Form::Native,
        };
        let outcome = self.with_retries(request, form, sink).await;
        let outcome = match outcome {
            Err(failure) if failure.lacks_tools && is_auto && form == Form::Native => {
                self.needs_structure.store(true, Ordering::Relaxed);
                self.with_retries(request, Form::Structured, sink).await
            }
            other => other,
        };
        let Finished {
            answer,
            wrote_calls_as_text,
        } = outcome.map_err(|failure| failure.error)?;
        // Only this protocol can hold a model to a schema; elsewhere there is nothing to gain.
        let is_silent = answer.calls.is_empty() && answer.text.trim().is_empty();
        if is_auto
            && self.endpoint.protocol == Protocol::OpenAi
            && (wrote_calls_as_text || is_silent)
        {
            self.needs_structure.store(true, Ordering::Relaxed);
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
        (|| self.once(request, form, sink))
            .retry(waits)
            .when(|failure| failure.is_passing)
            .adjust(|failure, wait| {
                let wanted = failure.error.retry_after.or(wait)?;
                // To ask again sooner than it wants would only be refused again.
                wait.filter(|_| wanted <= longest_wait).map(|_| wanted)
            })
            .await
    }

    async fn once(
        &self,
        request: &ModelRequest,
        form: Form,
        sink: &Sink<'_>,
    ) -> Result<Finished, Failure> {
        let mut tell = |event| {
            let mut events = sink.lock().unwrap_or_else(PoisonError::into_inner);
            events(event);
        };
        let mut draft = Draft::new(form, self.settings.longest_answer);
        let mut pieces = self.wire.ask(request, form, &self.settings).await?;
        let HostedSettings {
            first_byte_limit,
            idle_limit,
            ..
        } = self.settings;
        let mut patience = Patience::new(first_byte_limit, idle_limit);
        let mut has_begun = false;
        loop {
            let Some(piece) = patience.wait(pieces.next()).await else {
                let limit = if has_begun {
                    idle_limit
                } else {
                    first_byte_limit
                };
                return Err(self.too_slow(has_begun, limit));
            };
            let piece = match piece {
                Some(Ok(piece)) => piece,
                // What was told cannot be taken back, so from then on there is no second try.
                Some(Err(failure)) => {
                    return Err(Failure {
                        is_passing: failure.is_passing && !has_begun,
                        ..failure
                    });
                }
                None => return Err(pieces.cut()),
            };
            has_begun = true;
            patience.renew(idle_limit);
            match piece {
                Piece::Alive => {}
                Piece::Text(text) => draft.text(&text, &mut tell)?,
                Piece::Thought(text) => draft.thought(text, &mut tell)?,
                Piece::Call {
                    position,
                    tool,
                    length,
                } => draft.call(position, tool, length, &mut tell)?,
                Piece::End {
                    calls,
                    usage,
                    is_cut_off,
                } => {
                    if is_cut_off && calls.is_empty() {
                        draft.refuse_fragment(request)?;
                    }
                    return Ok(draft.finish(request, calls, usage, &mut tell));
                }
            }
        }
    }

    fn too_slow(&self, has_begun: bool, limit: Duration) -> Failure {
        let what = if has_begun {
            "paused its answer for"
        } else {
            "did not begin to answer within"
        };
        let message = format!(
            "{} {what} {} seconds.",
            self.endpoint.provider,
            limit.as_secs_f64()
        );
        Failure::lasting(ModelErrorKind::Timeout, message)
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
            let work = timeout(limit, self.in_fitting_form(request, &sink));
            // Whichever comes first drops the other, and with it the connection.
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(ModelError::cancelled()),
                outcome = work => outcome.unwrap_or_else(|_| {
                    let provider = &self.endpoint.provider;
                    let message = format!("{provider} did not finish within {} seconds.", limit.as_secs_f64());
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
