//! A model with prepared answers: from a list or from a function of the request.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use windlass_core::model::{ModelAnswer, ModelErrorKind, ModelRequest};
use windlass_spec::number::read_json;

use crate::client::{ImmediateModel, ModelError};

type Script = Box<dyn FnMut(&ModelRequest) -> Result<ModelAnswer, ModelError> + Send>;

/// A model for tests and examples. It records its requests.
pub struct ScriptedModel {
    state: Mutex<State>,
}

struct State {
    script: Script,
    requests: Vec<ModelRequest>,
}

/// Why a script cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {place}: {problem}")]
pub struct ScriptError {
    place: String,
    problem: String,
}

impl ScriptedModel {
    /// Gives these answers in order, then errors.
    pub fn answers(answers: impl IntoIterator<Item = ModelAnswer>) -> Self {
        Self::outcomes(answers.into_iter().map(Ok))
    }

    /// Gives the answers of a file in order: one [`ModelAnswer`] as JSON per line.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is not an answer.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        Self::from_file_after(path, 0)
    }

    /// Like [`ScriptedModel::from_file`], without the first `given` answers.
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
            read_json(line).map_err(|error| ScriptError {
                place: format!("the answer in line {} of `{name}`", index + 1),
                problem: error.to_string(),
            })
        });
        let mut answers = answers.collect::<Result<Vec<_>, _>>()?;
        answers.drain(..given.min(answers.len()));
        Ok(Self::answers(answers))
    }

    /// Gives these answers and errors in order, then errors.
    pub fn outcomes(outcomes: impl IntoIterator<Item = Result<ModelAnswer, ModelError>>) -> Self {
        let mut outcomes: VecDeque<_> = outcomes.into_iter().collect();
        let count = outcomes.len();
        Self::function(move |_| {
            outcomes.pop_front().unwrap_or_else(|| {
                let message = format!("The script has only {count} answers.");
                Err(ModelError::new(ModelErrorKind::Malformed, message))
            })
        })
    }

    /// Gives the result of `script` for each request.
    pub fn function(
        script: impl FnMut(&ModelRequest) -> Result<ModelAnswer, ModelError> + Send + 'static,
    ) -> Self {
        Self {
            state: Mutex::new(State {
                script: Box::new(script),
                requests: Vec::new(),
            }),
        }
    }

    /// The requests so far, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .requests
            .clone()
    }
}

impl ImmediateModel for ScriptedModel {
    fn compute_answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.requests.push(request.clone());
        (state.script)(request)
    }

    fn model_name(&self) -> Option<&str> {
        Some("scripted")
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScriptedModel")
    }
}
