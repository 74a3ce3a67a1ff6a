//! The interface of all models: requests, events and errors. Nothing here is specific to a provider.

use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use windlass_core::model::{ModelAnswer, ModelErrorKind, ModelRequest, Usage};

use crate::hosted::ExceededLimit;

/// Something that answers the run machine's requests.
pub trait ModelClient: Send + Sync {
    /// Returns the model's whole answer to `request`. `events` receives its parts while they arrive;
    /// the answer is complete without them. When `cancel` is cancelled, work stops at once.
    fn answer<'a>(
        &'a self,
        request: &'a ModelRequest,
        cancel: &'a CancellationToken,
        events: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>>;

    /// The name of the model, for traces.
    fn name(&self) -> Option<&str> {
        None
    }

    /// The name by which its price is found, as `Provider/id`.
    fn priced_name(&self) -> Option<&str> {
        self.name()
    }

    /// Whether its answers cost no money: they are computed on this machine, or were given before. A price that the
    /// user sets for its name comes first.
    fn is_free(&self) -> bool {
        false
    }
}

/// A model that computes its answer without waiting for anything.
pub trait ImmediateModel: Send + Sync {
    /// Returns the answer to `request`.
    ///
    /// # Errors
    /// If there is none.
    fn compute_answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError>;

    /// The name of the model, for traces.
    fn model_name(&self) -> Option<&str> {
        None
    }
}

impl<M: ImmediateModel> ModelClient for M {
    fn answer<'a>(
        &'a self,
        request: &'a ModelRequest,
        cancel: &'a CancellationToken,
        events: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        Box::pin(async move {
            if cancel.is_cancelled() {
                return Err(ModelError::cancelled());
            }
            let answer = self.compute_answer(request)?;
            emit_events(&answer, events);
            Ok(answer)
        })
    }

    fn name(&self) -> Option<&str> {
        self.model_name()
    }

    fn is_free(&self) -> bool {
        true
    }
}

/// A part of an answer, emitted while the answer arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ModelEvent {
    /// More of its text.
    Text {
        /// The new characters.
        text: String,
    },
    /// More of its reasoning.
    Thought {
        /// The new characters.
        text: String,
    },
    /// It requests a call. The arguments may not be complete yet.
    Call {
        /// The name of the tool.
        tool: String,
    },
    /// The usage of the answer.
    Usage {
        /// The counts.
        usage: Usage,
    },
}

/// Why there is no answer. Safe to show: contains neither a key nor the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The kind of error.
    pub kind: ModelErrorKind,
    /// What happened and what to do about it.
    pub message: String,
    /// How long the provider asks to wait before the next request.
    pub retry_after: Option<Duration>,
    /// The limit that the provider's answer exceeded.
    pub exceeded: Option<ExceededLimit>,
}

impl ModelError {
    /// An error of this kind.
    #[must_use]
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
            exceeded: None,
        }
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(
            ModelErrorKind::Cancelled,
            "The request to the model was cancelled.",
        )
    }
}

/// Emits the events of a finished answer, for models that do not stream.
fn emit_events(answer: &ModelAnswer, events: &mut (dyn FnMut(ModelEvent) + Send)) {
    if let Some(thought) = &answer.thought {
        events(ModelEvent::Thought {
            text: thought.clone(),
        });
    }
    if !answer.text.is_empty() {
        events(ModelEvent::Text {
            text: answer.text.clone(),
        });
    }
    for call in &answer.calls {
        events(ModelEvent::Call {
            tool: call.tool.clone(),
        });
    }
    events(ModelEvent::Usage {
        usage: answer.usage,
    });
}
