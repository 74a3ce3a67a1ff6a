//! Cassettes: exchanges with a model as JSON Lines, one request with its outcome per line. They are
//! recorded without secrets and replayed in order, with all events, only for the same requests. What was learned
//! since the recording makes no difference.

mod difference;

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_core::model::{ModelAnswer, ModelErrorKind, ModelRequest};
use windlass_core::run::without_learned;

use self::difference::first_difference;
use crate::client::{ModelClient, ModelError, ModelEvent};
use crate::scrub::Scrubber;

/// One line of a cassette.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Exchange {
    request: Value,
    events: Vec<ModelEvent>,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Answer(ModelAnswer),
    Error(RecordedError),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RecordedError {
    kind: ModelErrorKind,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_milliseconds: Option<u64>,
}

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// The file could not be read or written.
    #[error("cannot use the cassette {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A line is not an exchange.
    #[error("line {line} of the cassette is not a recorded exchange: {error}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// Why not.
        error: serde_json::Error,
    },
}

/// Asks a model and writes each exchange to a cassette. A write error fails the request, because a
/// cassette with a gap would not replay correctly.
pub struct RecordingModel<M> {
    model: M,
    scrubber: Scrubber,
    cassette: Mutex<Box<dyn Write + Send>>,
}

impl<M: ModelClient> RecordingModel<M> {
    /// Records to a new file, without the secrets of the environment.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(model: M, path: &Path) -> Result<Self, CassetteError> {
        let file = windlass_files::create(path).map_err(|error| CassetteError::File {
            path: path.to_owned(),
            error,
        })?;
        Ok(Self::to_writer(
            model,
            Box::new(file),
            Scrubber::from_environment(),
        ))
    }

    /// Records to `cassette`. `scrubber` removes secrets.
    pub fn to_writer(model: M, cassette: Box<dyn Write + Send>, scrubber: Scrubber) -> Self {
        Self {
            model,
            scrubber,
            cassette: Mutex::new(cassette),
        }
    }

    fn write(&self, exchange: &Exchange) -> io::Result<()> {
        let exchange = self.scrubber.json(serde_json::to_value(exchange)?);
        let mut cassette = self.cassette.lock().unwrap_or_else(PoisonError::into_inner);
        // One write per line, so that a full disk does not leave a partial line that looks complete.
        cassette.write_all(format!("{exchange}\n").as_bytes())?;
        cassette.flush()
    }
}

impl<M: ModelClient> ModelClient for RecordingModel<M> {
    fn name(&self) -> Option<&str> {
        self.model.name()
    }

    fn priced_name(&self) -> Option<&str> {
        self.model.priced_name()
    }

    fn is_free(&self) -> bool {
        self.model.is_free()
    }

    fn answer<'a>(
        &'a self,
        request: &'a ModelRequest,
        cancel: &'a CancellationToken,
        events: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        Box::pin(async move {
            let mut emitted = Vec::new();
            let mut emit = |event: ModelEvent| {
                emitted.push(event.clone());
                events(event);
            };
            let outcome = self.model.answer(request, cancel, &mut emit).await;
            let exchange = Exchange {
                request: to_json(request),
                events: emitted,
                outcome: match &outcome {
                    Ok(answer) => Outcome::Answer(answer.clone()),
                    Err(error) => Outcome::Error(RecordedError::from(error)),
                },
            };
            if let Err(error) = self.write(&exchange) {
                let message = format!("The model's answer could not be recorded: {error}.");
                return Err(ModelError::new(ModelErrorKind::Malformed, message));
            }
            outcome
        })
    }
}

impl<M> fmt::Debug for RecordingModel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordingModel")
    }
}

/// Answers from a cassette in order. Refuses a request that differs from the recorded one.
#[derive(Debug)]
pub struct ReplayModel {
    scrubber: Scrubber,
    state: Mutex<Replay>,
}

#[derive(Debug)]
struct Replay {
    exchanges: VecDeque<Exchange>,
    asked: usize,
}

impl ReplayModel {
    /// Reads a cassette from a file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a cassette.
    pub fn open(path: &Path) -> Result<Self, CassetteError> {
        let text = fs::read_to_string(path).map_err(|error| CassetteError::File {
            path: path.to_owned(),
            error,
        })?;
        Self::from_text(&text, Scrubber::from_environment())
    }

    /// Reads a cassette. `scrubber` removes secrets from requests before they are compared, as in the
    /// recording.
    ///
    /// # Errors
    /// If it is not a cassette.
    pub fn from_text(text: &str, scrubber: Scrubber) -> Result<Self, CassetteError> {
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        let exchanges: Result<_, _> = lines
            .map(|(index, line)| {
                serde_json::from_str(line).map_err(|error| CassetteError::Line {
                    line: index + 1,
                    error,
                })
            })
            .collect();
        Ok(Self {
            scrubber,
            state: Mutex::new(Replay {
                exchanges: exchanges?,
                asked: 0,
            }),
        })
    }

    /// The number of exchanges that were not replayed yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .exchanges
            .len()
    }

    fn next(&self, request: &ModelRequest) -> Result<Exchange, ModelError> {
        let asked = comparable(self.scrubber.json(to_json(request)));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.asked += 1;
        let number = state.asked;
        let mut difference = None;
        let next = state.exchanges.pop_front_if(|recorded| {
            let recorded = comparable(recorded.request.clone());
            difference = first_difference(&recorded, &asked);
            difference.is_none()
        });
        next.ok_or_else(|| {
            let message = match difference {
                Some(difference) => {
                    format!("Request {number} differs from the cassette: {difference}.")
                }
                None => {
                    format!("Request {number} is not in the cassette: it has no more exchanges.")
                }
            };
            ModelError::new(ModelErrorKind::Malformed, message)
        })
    }
}

impl ModelClient for ReplayModel {
    fn name(&self) -> Option<&str> {
        Some("replay")
    }

    fn is_free(&self) -> bool {
        true
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
            let exchange = self.next(request)?;
            exchange.events.into_iter().for_each(events);
            match exchange.outcome {
                Outcome::Answer(answer) => Ok(answer),
                Outcome::Error(error) => Err(error.into()),
            }
        })
    }
}

/// A request without what was learned from earlier runs.
fn comparable(mut request: Value) -> Value {
    let messages = request.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten() {
        if message["role"] == "system"
            && let Some(content) = message["content"].as_str()
        {
            message["content"] = without_learned(content).into();
        }
    }
    request
}

/// A request as it is stored in a cassette.
fn to_json(request: &ModelRequest) -> Value {
    let tools = request.tools.iter().map(|tool| {
        json!({"name": tool.name().as_str(), "description": tool.description(), "schema": tool.schema()})
    });
    json!({"messages": request.messages, "tools": tools.collect::<Vec<_>>()})
}

impl From<&ModelError> for RecordedError {
    fn from(error: &ModelError) -> Self {
        let milliseconds = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        Self {
            kind: error.kind,
            message: error.message.clone(),
            retry_after_milliseconds: error.retry_after.map(milliseconds),
        }
    }
}

impl From<RecordedError> for ModelError {
    fn from(error: RecordedError) -> Self {
        Self {
            kind: error.kind,
            message: error.message,
            retry_after: error.retry_after_milliseconds.map(Duration::from_millis),
            exceeded: None,
        }
    }
}
