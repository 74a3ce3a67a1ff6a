//! A model that answers what it was told to: from a list or from a function of the request.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use windlass_core::model::{ModelAnswer, ModelErrorKind, ModelRequest};

use crate::client::{ModelClient, ModelError, ModelEvent, tell};

type Script = Box<dyn FnMut(&ModelRequest) -> Result<ModelAnswer, ModelError> + Send>;

/// A model for tests and examples; keeps the requests it was asked.
pub struct ScriptedModel {
    state: Mutex<State>,
}

struct State {
    script: Script,
    asked: Vec<ModelRequest>,
}

/// Why there is no script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place} cannot be read: {problem}")]
pub struct ScriptError {
    place: String,
    problem: String,
}

impl ScriptedModel {
    /// Gives these answers in order, and an error once they are used up.
    pub fn answers(answers: impl IntoIterator<Item = ModelAnswer>) -> Self {
        Self::outcomes(answers.into_iter().map(Ok))
    }

    /// Gives the answers of a file in order: one [`ModelAnswer`] as JSON a line.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is no answer.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        Self::from_file_after(path, 0)
    }

    /// The same without the first answers, which were given before.
    ///
    /// # Errors
    /// As [`ScriptedModel::from_file`].
    pub fn from_file_after(path: impl AsRef<Path>, given: usize) -> Result<Self, ScriptError> {
        let name = path.as_ref().display().to_string();
        let text = std::fs::read_to_string(path.as_ref()).map_err(|error| ScriptError {
            place: format!("the answers in `{name}`"),
            problem: error.to_string(),
        })?;
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let answers = lines.map(|(index, line)| {
            serde_json::from_str(line).map_err(|error| ScriptError {
                place: format!("the answer in line {} of `{name}`", index + 1),
                problem: error.to_string(),
            })
        });
        let mut answers = answers.collect::<Result<Vec<_>, _>>()?;
        answers.drain(..given.min(answers.len()));
        Ok(Self::answers(answers))
    }

    /// Gives these answers and errors in order, and an error once they are used up.
    pub fn outcomes(outcomes: impl IntoIterator<Item = Result<ModelAnswer, ModelError>>) -> Self {
        let mut outcomes: VecDeque<_> = outcomes.into_iter().collect();
        let count = outcomes.len();
        Self::function(move |_| {
            outcomes.pop_front().unwrap_or_else(|| {
                let message = format!("The script has no more than its {count} answers.");
                Err(ModelError::new(ModelErrorKind::Malformed, message))
            })
        })
    }

    /// Gives what `script` makes of each request.
    pub fn function(
        script: impl FnMut(&ModelRequest) -> Result<ModelAnswer, ModelError> + Send + 'static,
    ) -> Self {
        Self {
            state: Mutex::new(State {
                script: Box::new(script),
                asked: Vec::new(),
            }),
        }
    }

    /// The requests it was asked so far, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .asked
            .clone()
    }
}

impl ModelClient for ScriptedModel {
    fn name(&self) -> Option<&str> {
        Some("scripted")
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
            let answer = {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.asked.push(request.clone());
                (state.script)(request)?
            };
            tell(&answer, events);
            Ok(answer)
        })
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScriptedModel")
    }
}
