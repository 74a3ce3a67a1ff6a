//! What an envelope says, as one type: every kind of answer a tool can give, each with exactly the
//! fields it needs.

use super::Object;
use super::action::Action;
use super::forms::SuccessData;
use super::human::{AskHuman, AuthorizationRequest, CredentialAuthorization, Intervention};
use super::plan::{Plan, WorkData};
use super::words::{HilAction, ToolStatus, WorkStatus};
use crate::failure::Failure;

/// What an envelope says.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It worked.
    Success {
        /// The tool.
        action: Action,
        /// What came of it.
        data: SuccessData,
    },
    /// It did not work.
    Error {
        /// The tool.
        action: Action,
        /// Why, and what is left of it.
        failure: Failure,
        /// What else there is to know; usually nothing.
        data: Object,
    },
    /// A person is asked a question.
    AskHuman(AskHuman),
    /// A person is asked to allow one exact call.
    Authorization(AuthorizationRequest),
    /// A person is asked to allow the use of stored credentials.
    Credential(CredentialAuthorization),
    /// A person has to do something by hand.
    Intervention(Intervention),
    /// A plan exists and has not ended.
    Plan {
        /// The tool.
        action: Action,
        /// How far it is.
        status: WorkStatus,
        /// The plan.
        plan: Plan,
    },
    /// Some other work was accepted and has not ended.
    Work {
        /// The tool.
        action: Action,
        /// How far it is.
        status: WorkStatus,
        /// What is known of it.
        data: WorkData,
    },
}

impl Answer {
    /// The status that tells this kind of answer from the others.
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

    /// The tool that answers, or what is asked of a person.
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

    /// What a person reads first, if one is asked.
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

    /// The same answer in the one form it is read back in, and what stands in `data` beside its own
    /// fields.
    pub(super) fn settled(mut self) -> (Self, Object) {
        match &mut self {
            Self::Success { .. } => return self.recognised(),
            Self::Error { failure, .. } => speak_up(failure),
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

    /// The same answer without what a model must not or need not see.
    pub(super) fn for_model(&self) -> Self {
        let mut answer = self.clone();
        match &mut answer {
            Self::Error { failure, data, .. } => {
                // Where the words are withheld, so is the data, which often repeats them.
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

/// Nobody is told nothing: a failure without words gets those of its category.
fn speak_up(failure: &mut Failure) {
    let default = Failure::foreign(failure.category, failure.effect, String::new()).model_message;
    if failure.operator_message.trim().is_empty() {
        failure.operator_message.clone_from(&default);
    }
    if failure.model_message.trim().is_empty() {
        failure.model_message = default;
    }
}
