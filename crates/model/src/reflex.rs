//! The embedded default model as a client. It needs no key, server or download.

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use windlass_core::model::{ModelAnswer, ModelRequest};
use windlass_core::run::{ASK_HUMAN, REQUEST_AUTHORIZATION};
use windlass_reflex::{Reflex, Settings};

use crate::client::{ModelClient, ModelError, ModelEvent, emit_events};

/// The embedded tool-caller. It is not a language model.
#[derive(Debug)]
pub struct ReflexModel {
    reflex: Reflex,
}

impl ReflexModel {
    /// The name by which it is selected.
    pub const NAME: &'static str = "reflex";

    /// The model with its default settings.
    #[must_use]
    pub fn new() -> Self {
        Self {
            reflex: Reflex::new(Settings::default()),
        }
    }
}

/// The request without the tools that ask the user. Reflex puts what it lacks into its answer instead.
fn without_user_tools(request: &ModelRequest) -> ModelRequest {
    let mut request = request.clone();
    request
        .tools
        .retain(|tool| ![ASK_HUMAN, REQUEST_AUTHORIZATION].contains(&tool.name().as_str()));
    request
}

impl Default for ReflexModel {
    fn default() -> Self {
        Self::new()
    }
}

impl ModelClient for ReflexModel {
    fn name(&self) -> Option<&str> {
        Some("reflex")
    }

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
            let answer = self.reflex.answer(&without_user_tools(request));
            emit_events(&answer, events);
            Ok(answer)
        })
    }
}
