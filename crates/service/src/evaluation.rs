//! Evaluation on labelled data: of models, of the risk assessment, of intents and of the gap detection.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_core::model::{ChatMessage, FINISH, ModelRequest, RequestedArguments};
use windlass_core::risk::EvaluationReport as RiskReport;
use windlass_core::run::repair_json;
use windlass_learn::gap::{GapCaseError, GapReport};
use windlass_learn::intent::{IntentReport, LabelledTexts};
use windlass_model::{ModelClient, ReflexModel};
use windlass_reflex::evaluate::{Evaluation, MadeCall, evaluate, read_cases};
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

/// How a model did on labelled calls.
#[derive(Debug)]
pub struct ModelEvaluation {
    /// The scores.
    pub evaluation: Evaluation,
    /// The median time of a call in milliseconds.
    pub p50_ms: f64,
    /// The errors of cases on which the model failed.
    pub problems: Vec<String>,
}

/// How the intent classifier did on labelled texts.
#[derive(Debug)]
pub struct IntentEvaluation {
    /// The scores.
    pub report: IntentReport,
    /// The training time in seconds.
    pub train_seconds: f64,
    /// The median time of a text in milliseconds.
    pub p50_ms: f64,
}

impl Service {
    /// Evaluates the model of that name on labelled calls, at most `limit` of them. `done` is called with the
    /// number of evaluated cases and of all cases. Blocks; must not be called on a thread of an async runtime.
    ///
    /// # Errors
    /// If the identity may not run agents, there is no such model, or the text holds no cases.
    pub fn evaluate_model(
        &self,
        identity: &Identity,
        name: &str,
        options: &RunOptions,
        text: &str,
        limit: Option<usize>,
        mut done: impl FnMut(usize, usize),
    ) -> Result<ModelEvaluation, ServiceError> {
        identity.require(Scope::Run)?;
        self.require_for_options(
            identity,
            &RunOptions {
                model: Some(name.to_owned()),
                ..options.clone()
            },
        )?;
        let mut cases = read_cases(text).map_err(|error| invalid(&error))?;
        cases.truncate(limit.unwrap_or(usize::MAX));
        if cases.is_empty() {
            return Err(ServiceError::invalid("invalid", "there are no cases"));
        }
        let model = match name == ReflexModel::NAME {
            true => EvaluatedModel::Reflex(Reflex::new(Settings::default())),
            false => EvaluatedModel::Client(named_model(name, options)?),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (mut times, mut problems) = (Vec::new(), Vec::new());
        let evaluation = evaluate(&cases, |task, tools| {
            let started = Instant::now();
            let call = runtime.block_on(model.call(task, tools));
            times.push(milliseconds(started));
            done(times.len(), cases.len());
            call.unwrap_or_else(|error| {
                problems.push(error.to_string());
                None
            })
        });
        Ok(ModelEvaluation {
            evaluation,
            p50_ms: median(times),
            problems,
        })
    }

    /// Evaluates the risk assessment on labelled tools.
    ///
    /// # Errors
    /// If the identity may not read, or the text holds no labelled tools.
    pub fn evaluate_risk(
        &self,
        identity: &Identity,
        text: &str,
    ) -> Result<RiskReport, ServiceError> {
        identity.require(Scope::Read)?;
        let rows = windlass_core::risk::read_rows(text).map_err(|error| invalid(&error))?;
        match rows.is_empty() {
            true => Err(ServiceError::invalid("invalid", "there are no tools")),
            false => Ok(windlass_core::risk::evaluate(&rows)),
        }
    }

    /// Trains the intent classifier on labelled texts and evaluates it on the others.
    ///
    /// # Errors
    /// If the identity may not read, or the text holds no labelled texts.
    pub fn evaluate_intents(
        &self,
        identity: &Identity,
        text: &str,
    ) -> Result<IntentEvaluation, ServiceError> {
        identity.require(Scope::Read)?;
        // The error contains its cause.
        let texts = LabelledTexts::read(text)
            .map_err(|error| ServiceError::invalid("invalid", error.to_string()))?;
        let started = Instant::now();
        let classifier = texts.train().map_err(|error| invalid(&error))?;
        let train_seconds = started.elapsed().as_secs_f64();
        let mut times = Vec::with_capacity(texts.scored.len());
        let report = texts.evaluate(|text| {
            let started = Instant::now();
            let found = classifier.classify(text);
            times.push(milliseconds(started));
            found
        });
        Ok(IntentEvaluation {
            report,
            train_seconds,
            p50_ms: median(times),
        })
    }

    /// Evaluates the gap detection on labelled tasks.
    ///
    /// # Errors
    /// If the identity may not read, or the text holds no labelled tasks.
    pub fn evaluate_gaps(
        &self,
        identity: &Identity,
        text: &str,
    ) -> Result<GapReport, ServiceError> {
        identity.require(Scope::Read)?;
        // The errors contain their causes.
        let wrong = |error: GapCaseError| ServiceError::invalid("invalid", error.to_string());
        let cases = windlass_learn::gap::read_cases(text).map_err(wrong)?;
        windlass_learn::gap::evaluate(&cases).map_err(wrong)
    }
}

fn invalid(error: &dyn std::error::Error) -> ServiceError {
    ServiceError::invalid("invalid", with_sources(error))
}

fn milliseconds(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e3
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// A model that is evaluated.
enum EvaluatedModel {
    /// The embedded model, which takes any schema as it is.
    Reflex(Reflex),
    /// Any other model, asked as in a run.
    Client(Arc<dyn ModelClient>),
}

impl EvaluatedModel {
    /// The first call the model makes for a task, if it makes one.
    async fn call(
        &self,
        task: &str,
        tools: &[ToolView<'_>],
    ) -> Result<Option<MadeCall>, ServiceError> {
        match self {
            Self::Reflex(reflex) => Ok(reflex.choose(task, tools).map(|choice| MadeCall {
                name: tools[choice.index].name.to_owned(),
                arguments: choice.arguments,
                confidence: Some(choice.confidence),
            })),
            Self::Client(model) => {
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
            Arc::new(ChatMessage::System {
                content: INSTRUCTION.to_owned(),
            }),
            Arc::new(ChatMessage::User {
                content: task.to_owned(),
            }),
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
