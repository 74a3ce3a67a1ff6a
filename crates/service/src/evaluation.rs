//! Evaluation: asks a model for one call, as a run would, for data whose right answers are known.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_core::model::{ChatMessage, FINISH, ModelRequest, RequestedArguments};
use windlass_core::run::repair_json;
use windlass_model::{ModelClient, ReflexModel};
use windlass_reflex::evaluate::MadeCall;
use windlass_reflex::{Reflex, Settings, ToolView};
use windlass_spec::{
    NonEmptyText, Signature, ToolName, ToolSpecification, Type, parameters_from_schema,
};

use crate::assembly::named_model;
use crate::error::{ServiceError, with_sources};
use crate::identity::{Identity, Scope};
use crate::options::RunOptions;
use crate::service::Service;

const INSTRUCTION: &str = "Do what is asked with one call of the tool that fits best.";

/// A model that is evaluated.
pub struct EvaluatedModel(Evaluated);

enum Evaluated {
    /// The embedded model, which takes any schema as it is.
    Reflex(Reflex),
    /// Any other model, asked as in a run.
    Client(Arc<dyn ModelClient>),
}

impl std::fmt::Debug for EvaluatedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EvaluatedModel").finish_non_exhaustive()
    }
}

impl Service {
    /// The model of that name, to be evaluated.
    ///
    /// # Errors
    /// If the identity may not run agents, or there is no such model.
    pub fn evaluated_model(
        &self,
        identity: &Identity,
        name: &str,
        options: &RunOptions,
    ) -> Result<EvaluatedModel, ServiceError> {
        identity.require(Scope::Run)?;
        Ok(EvaluatedModel(match name == ReflexModel::NAME {
            true => Evaluated::Reflex(Reflex::new(Settings::default())),
            false => Evaluated::Client(named_model(name, options)?),
        }))
    }
}

impl EvaluatedModel {
    /// The first call the model makes for a task, if it makes one.
    ///
    /// # Errors
    /// If a tool cannot be declared to the model, or the model fails.
    pub async fn call(
        &self,
        task: &str,
        tools: &[ToolView<'_>],
    ) -> Result<Option<MadeCall>, ServiceError> {
        match &self.0 {
            Evaluated::Reflex(reflex) => Ok(reflex.choose(task, tools).map(|choice| MadeCall {
                name: tools[choice.index].name.to_owned(),
                arguments: choice.arguments,
                confidence: Some(choice.confidence),
            })),
            Evaluated::Client(model) => {
                let request = request(task, tools)?;
                let cancel = CancellationToken::new();
                let answer = model.answer(&request, &cancel, &mut |_| {}).await?;
                let mut calls = answer.calls.into_iter();
                let call = calls.find(|call| call.tool != FINISH);
                Ok(call.map(|call| MadeCall {
                    name: call.tool,
                    arguments: arguments(call.arguments),
                    confidence: call.confidence,
                }))
            }
        }
    }
}

fn arguments(given: RequestedArguments) -> Value {
    match given {
        RequestedArguments::Json(value) => value,
        RequestedArguments::Text(text) => {
            repair_json(&text).map_or(Value::Null, |(value, _)| value)
        }
    }
}

fn request(task: &str, tools: &[ToolView<'_>]) -> Result<ModelRequest, ServiceError> {
    let tools = tools.iter().map(|tool| specification(tool).map(Arc::new));
    Ok(ModelRequest {
        messages: vec![
            ChatMessage::System {
                content: INSTRUCTION.to_owned(),
            },
            ChatMessage::User {
                content: task.to_owned(),
            },
        ],
        tools: tools.collect::<Result<_, ServiceError>>()?,
    })
}

fn specification(tool: &ToolView<'_>) -> Result<ToolSpecification, ServiceError> {
    let failed = |reason: String| {
        let name = tool.name;
        ServiceError::failed(format!("the tool `{name}` cannot be declared: {reason}"))
    };
    let parameters = parameters_from_schema(tool.input_schema).map_err(|errors| {
        let reasons: Vec<String> = errors.iter().map(ToString::to_string).collect();
        failed(reasons.join("; "))
    })?;
    let signature =
        Signature::new(parameters, Type::Text).map_err(|error| failed(with_sources(&error)))?;
    let name = ToolName::new(tool.name).map_err(|error| failed(with_sources(&error)))?;
    let description = NonEmptyText::or(tool.description, tool.name);
    Ok(ToolSpecification::new(name, description, signature))
}
