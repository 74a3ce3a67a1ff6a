//! Tasks that consist of one given call, so that no model is asked. The call passes the gate and is
//! journaled like any other.

use serde_json::{Value, json};
use windlass_spec::{Effect, Failure, NonEmptyText};

use super::{Entry, Run};
use crate::model::{FINISH, ModelAnswer, RequestedArguments, RequestedCall};

impl Run {
    /// The answer used in place of a model's if the task is one call: first that call, then its result.
    /// `None` if a model has to be asked.
    #[must_use]
    pub fn direct_answer(&self) -> Option<ModelAnswer> {
        let call = self.task.call.as_deref()?;
        if self.turns().is_empty() {
            return Some(ModelAnswer {
                thought: Some("The task is this call.".to_owned()),
                calls: vec![call.clone()],
                ..ModelAnswer::default()
            });
        }
        let (result_text, reasoning, confidence) = match self.single_outcome() {
            Some(Ok(result)) => {
                let shown = self.transcript.shown(result);
                (shown, "This is the result of the call.", 1)
            }
            Some(Err(failure)) => (failure.model_message, "The call failed.", 0),
            None => (String::new(), "The call has no result.", 0),
        };
        let finish = json!({
            "answer": NonEmptyText::or(result_text.trim(), "The tool returned nothing."),
            "reasoning": reasoning,
            "confidence": confidence,
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

    /// The outcome of the first call of the run, including a call that was a mistake.
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
