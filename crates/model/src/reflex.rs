//! The embedded default model as a client. It needs no key, server or download.

use windlass_core::model::{ModelAnswer, ModelRequest};
use windlass_core::run::{ASK_HUMAN, REQUEST_AUTHORIZATION};
use windlass_reflex::{Reflex, Settings};

use crate::client::{ImmediateModel, ModelError};

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

impl ImmediateModel for ReflexModel {
    fn compute_answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        Ok(self.reflex.answer(&without_user_tools(request)))
    }

    fn model_name(&self) -> Option<&str> {
        Some(Self::NAME)
    }
}
