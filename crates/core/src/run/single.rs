//! Tasks that are one call: somebody has said exactly what to call and with what, so no model is asked.
//! The call passes the gate and is journaled like any other.

use serde_json::{Value, json};
use windlass_spec::{Effect, Failure, NonEmptyText};

use super::{Entry, Run};
use crate::model::{FINISH, ModelAnswer, RequestedArguments, RequestedCall};

impl Run {
    /// What is said in the place of a model's answer if the task is one call: that call, and then what
    /// came of it. `None` if a model is to be asked.
    #[must_use]
    pub fn own_answer(&self) -> Option<ModelAnswer> {
        let call = self.task.call.as_deref()?;
        if self.turns().is_empty() {
            return Some(ModelAnswer {
                thought: Some("The task is this call.".to_owned()),
                calls: vec![call.clone()],
                ..ModelAnswer::default()
            });
        }
        let came = match self.single_outcome() {
            Some(Ok(result)) => self.transcript.shown(result),
            Some(Err(failure)) => failure.model_message,
            None => String::new(),
        };
        let finish = json!({
            "answer": NonEmptyText::or(came.trim(), "The tool returned nothing."),
            "reasoning": "This is what came of the call.",
            "confidence": 1,
        });
        Some(ModelAnswer {
            calls: vec![RequestedCall {
                tool: FINISH.to_owned(),
                arguments: RequestedArguments::Json(finish),
                confidence: None,
            }],
            ..ModelAnswer::default()
        })
    }

    /// What came of the first call of the run, also if it was none that could be made.
    #[must_use]
    pub fn single_outcome(&self) -> Option<Result<&Value, Failure>> {
        match self.turns().first()?.entries.first()? {
            Entry::Call { record, .. } => Some(record.outcome()?.map_err(Clone::clone)),
            Entry::Mistake { mistake, .. } => Some(Err(Failure::new(
                mistake.category(),
                Effect::None,
                mistake.to_string(),
            ))),
            Entry::Finish => None,
        }
    }
}
