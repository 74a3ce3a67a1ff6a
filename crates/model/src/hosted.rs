//! Models behind an HTTP API: hosted ones and local servers. Handles dialects, retries, time limits and
//! cancellation; the submodules talk to providers.

mod body;
mod calls;
mod draft;
pub(crate) mod endpoint;
mod events;
mod failure;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod idle_timer;
mod json;
mod limits;
mod names;
mod protocol;
pub(crate) mod wire;

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use windlass_core::model::{ModelAnswer, ModelErrorKind, ModelRequest};
use windlass_spec::Model;

use self::body::{BodyBuilder, PreparedRequest};
use self::draft::{Draft, Finished};
use self::endpoint::Endpoint;
use self::events::EventReader;
use self::failure::Failure;
use self::idle_timer::IdleTimer;
pub use self::limits::{AnswerLimits, ExceededLimit};
use self::protocol::Progress;
use self::wire::{Wire, end_stream};
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
    /// The other limits of what a server may send.
    pub limits: AnswerLimits,
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
            limits: AnswerLimits::default(),
            tries: 3,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
        }
    }
}

/// A model of a provider or of a server that speaks the OpenAI protocol.
pub struct HostedModel {
    wire: Wire,
    bodies: BodyBuilder,
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
            bodies: BodyBuilder::new(Arc::clone(&endpoint)),
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
        let is_empty = answer.calls.is_empty() && answer.text.trim().is_empty();
        if is_auto && self.endpoint.protocol.takes_schema() && (wrote_calls_as_text || is_empty) {
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
        let prepared = self.bodies.build(request, form, &self.settings);
        let prepared = prepared.map_err(|error| {
            let message = format!("The request could not be written: {error}.");
            Failure::permanent(ModelErrorKind::Malformed, message)
        })?;
        let mut own_wait = first_wait;
        let mut left = tries;
        loop {
            left = left.saturating_sub(1);
            let failure = match self.attempt(request, &prepared, form, sink).await {
                Ok(finished) => return Ok(finished),
                Err(failure) => failure,
            };
            // A request before the time that the provider asks for would be refused again.
            let wait = match failure.error.retry_after {
                Some(wanted) => wanted,
                None => with_jitter(own_wait).min(longest_wait),
            };
            if left == 0 || !failure.is_transient || wait > longest_wait {
                return Err(failure);
            }
            sleep(wait).await;
            own_wait = own_wait.saturating_mul(2);
        }
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        prepared: &PreparedRequest,
        form: Form,
        sink: &Sink<'_>,
    ) -> Result<Finished, Failure> {
        let mut emit = |event| {
            let mut events = sink.lock().unwrap_or_else(PoisonError::into_inner);
            events(event);
        };
        let HostedSettings {
            first_byte_limit,
            idle_limit,
            limits,
            ..
        } = self.settings;
        let mut idle_timer = IdleTimer::new(first_byte_limit, idle_limit);
        let response = idle_timer.wait(self.wire.send(prepared.body.clone())).await;
        let mut response = response.unwrap_or_else(|| Err(self.too_slow(false)))?;
        if !response.status().is_success() {
            return Err(self.wire.refusal(response, &self.settings).await);
        }
        let format = self.endpoint.protocol.format();
        let mut draft = Draft::new(form, &self.settings, &prepared.tools.names, &mut emit);
        let mut reader = EventReader::new(limits);
        loop {
            let mut progress = Progress::None;
            let mut handle = |data: &[u8]| {
                let event = format.read_event(data, &mut draft);
                let event = event.map_err(|error| self.wire.event_failure(error, data))?;
                progress = progress.max(event);
                Ok(event != Progress::End)
            };
            let piece = match idle_timer.is_over() {
                true => None,
                false => idle_timer.wait(response.chunk()).await,
            };
            let read = match piece {
                None => Err(self.too_slow(draft.has_begun())),
                Some(Ok(Some(bytes))) => reader.read(&bytes, &mut handle),
                Some(Ok(None)) => reader.end(&mut handle).and_then(|()| match progress {
                    Progress::End => Ok(()),
                    // Some servers omit the sign of the end.
                    Progress::None | Progress::Some if draft.stop.is_some() => {
                        progress = Progress::End;
                        Ok(())
                    }
                    Progress::None | Progress::Some => Err(match reader.has_events() {
                        true => self.wire.connection_lost(),
                        false => self.wire.unexpected(),
                    }),
                }),
                Some(Err(error)) => Err(self.wire.transport(&error)),
            };
            // Emitted events cannot be revoked, so there is no further attempt after the first one.
            read.map_err(|failure| Failure {
                is_transient: failure.is_transient && !draft.has_begun(),
                ..failure
            })?;
            match progress {
                Progress::None => {}
                Progress::Some => idle_timer.renew(idle_limit),
                Progress::End => {
                    let finished = draft.finish(request);
                    end_stream(response).await;
                    return finished;
                }
            }
        }
    }

    fn too_slow(&self, has_begun: bool) -> Failure {
        let (what, limit) = match has_begun {
            true => ("paused its answer for", self.settings.idle_limit),
            false => (
                "did not start to answer within",
                self.settings.first_byte_limit,
            ),
        };
        let message = format!(
            "{} {what} {} seconds.",
            self.endpoint.provider,
            limit.as_secs_f64()
        );
        Failure::permanent(ModelErrorKind::Timeout, message)
    }
}

/// Up to twice the wait, so that runs that failed together do not all try again at once.
fn with_jitter(wait: Duration) -> Duration {
    let random = RandomState::new().hash_one(()) >> 32;
    let part = wait.as_nanos().saturating_mul(u128::from(random)) >> 32;
    wait.saturating_add(Duration::from_nanos(
        u64::try_from(part).unwrap_or(u64::MAX),
    ))
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

    fn priced_name(&self) -> Option<&str> {
        Some(&self.endpoint.priced_name)
    }

    fn is_free(&self) -> bool {
        self.endpoint.is_free()
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
