//! Intents: what a text asks for, as a run under the configuration would understand it.

use std::sync::Arc;

use windlass_runtime::{Intents, UnderstoodTask};
use windlass_spec::registry::ToolExecutionContext;
use windlass_spec::{Confidence, ToolSpecification};

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

/// What a text asks for.
#[derive(Debug, Clone)]
pub struct IntentReading {
    /// The intent, if it is clear enough for a run to use it.
    pub understood: Option<UnderstoodTask>,
    /// The most likely intent, clear or not.
    pub closest: Option<String>,
    /// The confidence in it.
    pub confidence: Confidence,
    /// The least confidence of an intent that a run uses.
    pub threshold: Confidence,
}

impl Service {
    /// What a text asks for, given the tools that could do it.
    ///
    /// # Errors
    /// If the identity may not read, the text is blank, or the configuration cannot be used.
    pub fn read_intent(
        &self,
        identity: &Identity,
        text: &str,
        tools: &[Arc<ToolSpecification>],
    ) -> Result<IntentReading, ServiceError> {
        identity.require(Scope::Read)?;
        let project = self.project()?;
        let configuration = project.configuration();
        let environment = configuration.environment().clone();
        let context = ToolExecutionContext::for_request(text, environment)
            .map_err(|error| ServiceError::invalid("empty_text", error.to_string()))?
            .with_tools(tools.iter().map(|tool| tool.name().clone()));
        let intents = Intents::of(configuration)
            .ok_or_else(|| ServiceError::failed("the intents cannot be used"))?;
        let classified = intents.classify(context.user_request());
        let closest = classified.as_ref().and_then(|found| found.ranking.first());
        let confidence = classified
            .as_ref()
            .map_or(Confidence::NONE, |found| found.confidence);
        let tools: Vec<&Arc<ToolSpecification>> = tools.iter().collect();
        Ok(IntentReading {
            understood: intents.understand(&context, &tools),
            closest: closest.map(|class| class.name.to_owned()),
            confidence,
            threshold: intents.threshold(),
        })
    }
}
