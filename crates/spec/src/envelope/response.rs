//! [`ToolResponse`]: the envelope itself, its constructors, and its views for operators and models.

use serde_json::Value;

use super::Object;
use super::action::Action;
use super::answer::Answer;
use super::error::EnvelopeError;
use super::forms::{Batch, Page, SuccessData};
use super::human::{AskHuman, AuthorizationRequest, CredentialAuthorization, Intervention};
use super::plan::{PlanReport, WorkData};
use super::raw;
use super::words::{ToolStatus, WorkStatus};
use crate::failure::Failure;
use crate::money::Money;
use crate::time::Timestamp;

/// The answer of a tool.
///
/// Reading it from JSON accepts only the canonical shape (words in any case) and otherwise names the
/// invalid field; [`normalise`](super::normalise()) accepts everything else.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResponse {
    answer: Answer,
    /// The unknown fields of `data`. Only reading fills it, so it never has a name that the answer
    /// writes itself.
    extra: Object,
    cost: Option<Money>,
    timestamp: Timestamp,
}

impl ToolResponse {
    /// An answer given at `timestamp`.
    #[must_use]
    pub fn new(answer: Answer, timestamp: Timestamp) -> Self {
        let (answer, extra) = answer.into_canonical();
        Self {
            answer,
            extra,
            cost: None,
            timestamp,
        }
    }

    /// The same answer, which states what the call cost.
    #[must_use]
    pub const fn with_cost(mut self, cost: Money) -> Self {
        self.cost = Some(cost);
        self
    }

    /// A success with any JSON, or with a [`Page`], a [`Nested`](super::Nested) or a [`Batch`].
    #[must_use]
    pub fn success(
        action: impl Into<Action>,
        data: impl Into<SuccessData>,
        timestamp: Timestamp,
    ) -> Self {
        let (action, data) = (action.into(), data.into());
        Self::new(Answer::Success { action, data }, timestamp)
    }

    /// An error.
    #[must_use]
    pub fn error(action: impl Into<Action>, failure: Failure, timestamp: Timestamp) -> Self {
        let answer = Answer::Error {
            action: action.into(),
            failure,
            data: Object::new(),
        };
        Self::new(answer, timestamp)
    }

    /// A question to a person.
    #[must_use]
    pub fn ask_human(ask: AskHuman, timestamp: Timestamp) -> Self {
        Self::new(Answer::AskHuman(ask), timestamp)
    }

    /// A request to authorize one exact call.
    #[must_use]
    pub fn authorization(request: AuthorizationRequest, timestamp: Timestamp) -> Self {
        Self::new(Answer::Authorization(request), timestamp)
    }

    /// A request to authorize the use of stored credentials.
    #[must_use]
    pub fn credential(request: CredentialAuthorization, timestamp: Timestamp) -> Self {
        Self::new(Answer::Credential(request), timestamp)
    }

    /// A request for manual work by a person.
    #[must_use]
    pub fn intervention(intervention: Intervention, timestamp: Timestamp) -> Self {
        Self::new(Answer::Intervention(intervention), timestamp)
    }

    /// A plan that has not ended.
    #[must_use]
    pub fn plan(
        action: impl Into<Action>,
        status: WorkStatus,
        plan: PlanReport,
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

    /// Other accepted work that has not ended.
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

    /// A processed batch.
    #[must_use]
    pub fn batch(action: impl Into<Action>, batch: Batch, timestamp: Timestamp) -> Self {
        Self::success(action, batch, timestamp)
    }

    /// A page of results.
    #[must_use]
    pub fn page(action: impl Into<Action>, page: Page, timestamp: Timestamp) -> Self {
        Self::success(action, page, timestamp)
    }

    /// Reads a canonical envelope.
    ///
    /// # Errors
    /// If the envelope is not canonical, with the first invalid field.
    pub fn from_value(json: Value) -> Result<Self, EnvelopeError> {
        raw::read(json)
    }

    /// Its content.
    #[must_use]
    pub const fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Its content, by value.
    #[must_use]
    pub fn into_answer(self) -> Answer {
        self.answer
    }

    /// The unknown fields of `data`.
    #[must_use]
    pub const fn extra(&self) -> &Object {
        &self.extra
    }

    /// The outcome of the call.
    #[must_use]
    pub fn status(&self) -> ToolStatus {
        self.answer.status()
    }

    /// The name of the tool, or the kind of request to a person.
    #[must_use]
    pub fn action(&self) -> &str {
        self.answer.action()
    }

    /// What the call cost, if the tool states it.
    #[must_use]
    pub const fn cost(&self) -> Option<Money> {
        self.cost
    }

    /// When the tool answered.
    #[must_use]
    pub const fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// The message to the person, if the answer waits for one.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.answer.message()
    }

    /// The failure, if it is an error.
    #[must_use]
    pub const fn failure(&self) -> Option<&Failure> {
        match &self.answer {
            Answer::Error { failure, .. } => Some(failure),
            _ => None,
        }
    }

    /// What the user can do about the failure, if it is an error.
    #[must_use]
    pub fn guidance(&self) -> Option<&'static str> {
        self.failure().map(Failure::guidance)
    }

    /// The whole envelope for the operator: its canonical JSON.
    #[must_use]
    pub fn for_operator(&self) -> Value {
        // Every part consists of texts, numbers and objects with text keys, so writing cannot fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The envelope for a model: of a failure only the message for the model, and of a request to a
    /// person no credentials, no screenshots and no unknown fields.
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
            cost: None,
            timestamp: self.timestamp,
        };
        let mut json = redacted.for_operator();
        if let Some(object) = json.as_object_mut() {
            object.shift_remove("model_message");
        }
        json
    }

    /// The answer with more fields in its `data`. One whose name is taken there gets `reported_` before it. Nothing
    /// is added to `data` that is not an object.
    #[must_use]
    pub fn with_extra(mut self, fields: Object) -> Self {
        let written = self.for_operator();
        let Some(own) = written.get("data").and_then(Value::as_object) else {
            return self;
        };
        for (mut name, value) in fields {
            while own.contains_key(&name) || self.extra.contains_key(&name) {
                name.insert_str(0, "reported_");
            }
            self.extra.insert(name, value);
        }
        self
    }

    /// An answer that was read, with the unknown fields of its `data`.
    pub(super) fn read(answer: Answer, extra: Object, timestamp: Timestamp) -> Self {
        let (answer, more) = answer.into_canonical();
        let extra = if extra.is_empty() { more } else { extra };
        Self {
            answer,
            extra,
            cost: None,
            timestamp,
        }
    }
}
