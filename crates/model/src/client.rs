//! What every model can be asked, what it tells while it answers, and how it fails. Providers'
//! own words end here.

use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use windlass_core::model::{ModelAnswer, ModelErrorKind, ModelRequest, Usage};

/// Something that answers the run machine's requests.
pub trait ModelClient: Send + Sync {
    /// The model's whole answer to `request`. `events` hears of its parts while they arrive; an
    /// answer is complete without them. When `cancel` is cancelled, work stops at once.
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
}

/// A part of an answer, told while the answer is being made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ModelEvent {
    /// More of what it says.
    Text {
        /// The new characters.
        text: String,
    },
    /// More of what it thinks.
    Thought {
        /// The new characters.
        text: String,
    },
    /// It asks for a call; its arguments may still be on the way.
    Call {
        /// The name it used.
        tool: String,
    },
    /// What the answer cost.
    Usage {
        /// The counts.
        usage: Usage,
    },
}

/// Why there is no answer. Safe to show: holds no key and not the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of problem it is.
    pub kind: ModelErrorKind,
    /// What happened and what to do about it.
    pub message: String,
    /// When the provider wants to be asked again.
    pub retry_after: Option<Duration>,
}

impl ModelError {
    /// An error of this kind.
    #[must_use]
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
        }
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(
            ModelErrorKind::Cancelled,
            "The model was stopped before it had answered.",
        )
    }
}

/// Tells a finished answer as events, for models that have it all at once.
pub(crate) fn tell(answer: &ModelAnswer, events: &mut (dyn FnMut(ModelEvent) + Send)) {
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
