//! The embedded default behind the ordinary client: decides at once, without key, server or download.

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use windlass_core::model::{ModelAnswer, ModelRequest};
use windlass_core::run::{ASK_HUMAN, REQUEST_AUTHORIZATION};
use windlass_reflex::{Reflex, Settings};

use crate::client::{ModelClient, ModelError, ModelEvent, tell};

/// A tool-caller that ships with the program; no language model.
#[derive(Debug)]
pub struct ReflexModel {
    reflex: Reflex,
}

impl ReflexModel {
    /// The name by which it is asked for.
    pub const NAME: &'static str = "reflex";

    /// With the settings it ships with.
    #[must_use]
    pub fn new() -> Self {
        Self {
            reflex: Reflex::new(Settings::default()),
        }
    }
}

/// The request without what is asked of people: this caller asks nobody, it says so in its answer.
fn without_people(request: &ModelRequest) -> ModelRequest {
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
            let answer = self.reflex.answer(&without_people(request));
            tell(&answer, events);
            Ok(answer)
        })
    }
}
