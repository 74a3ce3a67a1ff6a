//! The content of an envelope as one type: every kind of answer of a tool, each with exactly the
//! fields it needs.

use super::Object;
use super::action::Action;
use super::forms::SuccessData;
use super::human::{AskHuman, AuthorizationRequest, CredentialAuthorization, Intervention};
use super::plan::{PlanReport, WorkData};
use super::words::{HilAction, ToolStatus, WorkStatus};
use crate::failure::Failure;

/// The content of an envelope.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The call succeeded.
    Success {
        /// The tool.
        action: Action,
        /// The result.
        data: SuccessData,
    },
    /// The call failed.
    Error {
        /// The tool.
        action: Action,
        /// The failure.
        failure: Failure,
        /// Additional data; usually empty.
        data: Object,
    },
    /// A question to a person.
    AskHuman(AskHuman),
    /// A request to authorize one exact call.
    Authorization(AuthorizationRequest),
    /// A request to authorize the use of stored credentials.
    Credential(CredentialAuthorization),
    /// A request for manual work by a person.
    Intervention(Intervention),
    /// A plan that has not ended.
    Plan {
        /// The tool.
        action: Action,
        /// Its progress.
        status: WorkStatus,
        /// The plan.
        plan: PlanReport,
    },
    /// Other accepted work that has not ended.
    Work {
        /// The tool.
        action: Action,
        /// Its progress.
        status: WorkStatus,
        /// Its data.
        data: WorkData,
    },
}

impl Answer {
    /// The status of this kind of answer.
    #[must_use]
    pub fn status(&self) -> ToolStatus {
        match self {
            Self::Success { .. } => ToolStatus::Success,
            Self::Error { .. } => ToolStatus::Error,
            Self::AskHuman(_) => ToolStatus::HumanInputRequested,
            Self::Authorization(_) => ToolStatus::AuthorizationRequested,
            Self::Credential(_) => ToolStatus::AuthorizationRequired,
            Self::Intervention(intervention) => intervention.status.into(),
            Self::Plan { status, .. } | Self::Work { status, .. } => (*status).into(),
        }
    }

    /// The name of the tool, or the kind of request to a person.
    #[must_use]
    pub fn action(&self) -> &str {
        match self {
            Self::Success { action, .. }
            | Self::Error { action, .. }
            | Self::Plan { action, .. }
            | Self::Work { action, .. } => action.as_str(),
            Self::AskHuman(_) | Self::Intervention(_) => HilAction::AskHuman.as_str(),
            Self::Authorization(_) | Self::Credential(_) => {
                HilAction::RequestAuthorization.as_str()
            }
        }
    }

    /// The message to the person, if the answer waits for one.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        let message = match self {
            Self::AskHuman(ask) => ask.message.as_ref().unwrap_or(&ask.question),
            Self::Authorization(request) => request.message.as_ref().unwrap_or(&request.reason),
            Self::Credential(request) => &request.message,
            Self::Intervention(intervention) => &intervention.message,
            Self::Success { .. } | Self::Error { .. } | Self::Plan { .. } | Self::Work { .. } => {
                return None;
            }
        };
        Some(message.as_str())
    }

    /// The same answer in canonical form, and the unknown fields of its `data`.
    pub(super) fn into_canonical(mut self) -> (Self, Object) {
        match &mut self {
            Self::Success { .. } => return self.recognised(),
            Self::Error { failure, .. } => fill_messages(failure),
            Self::AskHuman(ask) => {
                let question = &ask.question;
                ask.message.take_if(|message| message == question);
            }
            Self::Authorization(request) => {
                let reason = &request.reason;
                request.message.take_if(|message| message == reason);
            }
            Self::Credential(request) => {
                request.details.take_if(|details| details.is_null());
            }
            Self::Intervention(intervention) => {
                intervention.details.take_if(|details| details.is_null());
            }
            Self::Plan { .. } | Self::Work { .. } => {}
        }
        (self, Object::new())
    }

    fn recognised(self) -> (Self, Object) {
        let Self::Success { action, data } = self else {
            return (self, Object::new());
        };
        let (data, extra) = data.recognised();
        (Self::Success { action, data }, extra)
    }

    /// The same answer without the parts that a model must not or need not see.
    pub(super) fn for_model(&self) -> Self {
        let mut answer = self.clone();
        match &mut answer {
            Self::Error { failure, data, .. } => {
                // If the message is withheld, the data is withheld too, because it often repeats the message.
                if failure.model_message != failure.operator_message {
                    data.clear();
                }
                failure.operator_message.clone_from(&failure.model_message);
            }
            Self::Credential(request) => {
                request.credential_preview = None;
                request.screenshot = None;
            }
            Self::Intervention(intervention) => {
                intervention.screenshot = None;
                intervention.oauth_url = None;
            }
            Self::Success { .. }
            | Self::AskHuman(_)
            | Self::Authorization(_)
            | Self::Plan { .. }
            | Self::Work { .. } => {}
        }
        answer
    }
}

/// Gives a failure without messages the default message of its category.
fn fill_messages(failure: &mut Failure) {
    let default = Failure::foreign(failure.category, failure.effect, String::new()).model_message;
    if failure.operator_message.trim().is_empty() {
        failure.operator_message.clone_from(&default);
    }
    if failure.model_message.trim().is_empty() {
        failure.model_message = default;
    }
}
