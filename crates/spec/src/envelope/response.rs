//! [`ToolResponse`]: the envelope itself, how it is built, and its two faces.

use serde_json::Value;

use super::Object;
use super::action::Action;
use super::answer::Answer;
use super::error::EnvelopeError;
use super::forms::{Batch, Page, SuccessData};
use super::human::{AskHuman, AuthorizationRequest, CredentialAuthorization, Intervention};
use super::plan::{Plan, WorkData};
use super::raw;
use super::words::{ToolStatus, WorkStatus};
use crate::failure::Failure;
use crate::time::Timestamp;

/// The answer of a tool.
///
/// Reading it from JSON accepts the canonical shape only (words in any case) and names the field
/// that is wrong; [`normalise`](super::normalise()) accepts everything else.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResponse {
    answer: Answer,
    /// Fields of `data` beside those the answer knows. Only reading fills it, so it never holds a
    /// name that the answer writes itself.
    extra: Object,
    timestamp: Timestamp,
}

impl ToolResponse {
    /// An answer given at `timestamp`.
    #[must_use]
    pub fn new(answer: Answer, timestamp: Timestamp) -> Self {
        let (answer, extra) = answer.settled();
        Self {
            answer,
            extra,
            timestamp,
        }
    }

    /// It worked: with any JSON, or with a [`Page`], a [`Nested`](super::Nested) or a [`Batch`].
    #[must_use]
    pub fn success(
        action: impl Into<Action>,
        data: impl Into<SuccessData>,
        timestamp: Timestamp,
    ) -> Self {
        let (action, data) = (action.into(), data.into());
        Self::new(Answer::Success { action, data }, timestamp)
    }

    /// It did not work.
    #[must_use]
    pub fn error(action: impl Into<Action>, failure: Failure, timestamp: Timestamp) -> Self {
        let answer = Answer::Error {
            action: action.into(),
            failure,
            data: Object::new(),
        };
        Self::new(answer, timestamp)
    }

    /// A person is asked a question.
    #[must_use]
    pub fn ask_human(ask: AskHuman, timestamp: Timestamp) -> Self {
        Self::new(Answer::AskHuman(ask), timestamp)
    }

    /// A person is asked to allow one exact call.
    #[must_use]
    pub fn authorization(request: AuthorizationRequest, timestamp: Timestamp) -> Self {
        Self::new(Answer::Authorization(request), timestamp)
    }

    /// A person is asked to allow the use of stored credentials.
    #[must_use]
    pub fn credential(request: CredentialAuthorization, timestamp: Timestamp) -> Self {
        Self::new(Answer::Credential(request), timestamp)
    }

    /// A person has to do something by hand.
    #[must_use]
    pub fn intervention(intervention: Intervention, timestamp: Timestamp) -> Self {
        Self::new(Answer::Intervention(intervention), timestamp)
    }

    /// A plan exists and has not ended.
    #[must_use]
    pub fn plan(
        action: impl Into<Action>,
        status: WorkStatus,
        plan: Plan,
        timestamp: Timestamp,
    ) -> Self {
        let action = action.into();
        let answer = Answer::Plan {
            action,
            status,
            plan,
        };
        Self::new(answer, timestamp)
    }

    /// Some other work was accepted and has not ended.
    #[must_use]
    pub fn work(
        action: impl Into<Action>,
        status: WorkStatus,
        data: WorkData,
        timestamp: Timestamp,
    ) -> Self {
        let action = action.into();
        let answer = Answer::Work {
            action,
            status,
            data,
        };
        Self::new(answer, timestamp)
    }

    /// A batch was processed.
    #[must_use]
    pub fn batch(action: impl Into<Action>, batch: Batch, timestamp: Timestamp) -> Self {
        Self::success(action, batch, timestamp)
    }

    /// Several results were found.
    #[must_use]
    pub fn page(action: impl Into<Action>, page: Page, timestamp: Timestamp) -> Self {
        Self::success(action, page, timestamp)
    }

    /// The envelope that `json` is, if it is a canonical one.
    ///
    /// # Errors
    /// Names the first field that is wrong.
    pub fn from_value(json: Value) -> Result<Self, EnvelopeError> {
        raw::read(json)
    }

    /// What it says.
    #[must_use]
    pub const fn answer(&self) -> &Answer {
        &self.answer
    }

    /// What it says, to keep.
    #[must_use]
    pub fn into_answer(self) -> Answer {
        self.answer
    }

    /// Fields of `data` beside those the answer knows.
    #[must_use]
    pub const fn extra(&self) -> &Object {
        &self.extra
    }

    /// How the call went.
    #[must_use]
    pub fn status(&self) -> ToolStatus {
        self.answer.status()
    }

    /// The tool that answers, or what is asked of a person.
    #[must_use]
    pub fn action(&self) -> &str {
        self.answer.action()
    }

    /// When it was given.
    #[must_use]
    pub const fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// What a person reads first, if one is asked.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.answer.message()
    }

    /// Why it failed, if it did.
    #[must_use]
    pub const fn failure(&self) -> Option<&Failure> {
        match &self.answer {
            Answer::Error { failure, .. } => Some(failure),
            _ => None,
        }
    }

    /// What whoever is in front of it can do about a failure, if it is one.
    #[must_use]
    pub fn guidance(&self) -> Option<&'static str> {
        self.failure().map(|failure| failure.category.guidance())
    }

    /// The whole envelope, for whoever runs the tool: its canonical JSON.
    #[must_use]
    pub fn for_operator(&self) -> Value {
        // Every part is made of texts, numbers and objects with text keys; writing them cannot fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The envelope as a model sees it: of a failure only what was written for a model, and of a
    /// request to a person neither credentials nor pictures nor fields nobody knows.
    #[must_use]
    pub fn for_model(&self) -> Value {
        let extra = if self.status().is_hil() {
            Object::new()
        } else {
            self.extra.clone()
        };
        let redacted = Self {
            answer: self.answer.for_model(),
            extra,
            timestamp: self.timestamp,
        };
        let mut json = redacted.for_operator();
        if let Some(object) = json.as_object_mut() {
            object.shift_remove("model_message");
        }
        json
    }

    /// An answer that was read, with what stood in `data` beside its fields.
    pub(super) fn read(answer: Answer, extra: Object, timestamp: Timestamp) -> Self {
        let (answer, more) = answer.settled();
        let extra = if extra.is_empty() { more } else { extra };
        Self {
            answer,
            extra,
            timestamp,
        }
    }
}
