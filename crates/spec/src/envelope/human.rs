//! The answers that wait for a person: a question, a request to authorize one exact call, a request to
//! use stored credentials, and a request for manual work. Each is serialised as the `data` of its
//! envelope; the envelope writes `message` next to `data`. Choosing the person and delivering the reply
//! is not done here.

use serde::Serialize;
use serde_json::Value;

use super::Object;
use super::error::EnvelopeError;
use super::fields::Fields;
use super::words::{InterventionStatus, InterventionType, SecurityLevel};
use crate::names::{NonEmptyText, ToolName};
use crate::time::Timestamp;

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AskHuman {
    /// The question.
    pub question: NonEmptyText,
    /// Background that the person needs to answer it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The person who is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// How to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// The message to the person; by default the question.
    #[serde(skip)]
    pub message: Option<NonEmptyText>,
}

impl AskHuman {
    /// A question without optional fields.
    #[must_use]
    pub const fn new(question: NonEmptyText) -> Self {
        Self {
            question,
            context: None,
            user_id: None,
            instruction: None,
            message: None,
        }
    }

    pub(super) fn read(data: &mut Fields, message: NonEmptyText) -> Result<Self, EnvelopeError> {
        Ok(Self {
            question: data.text("question")?,
            context: data.optional_text("context")?,
            user_id: data.optional_text("user_id")?,
            instruction: data.optional_text("instruction")?,
            message: Some(message),
        })
    }
}

/// The one call to be authorized.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PendingCall {
    /// The id of the request.
    pub request_id: NonEmptyText,
    /// The tool.
    pub tool_name: ToolName,
    /// Its arguments.
    pub tool_args: Object,
    /// The security level of the decision.
    pub security_level: SecurityLevel,
    /// When the request expires.
    pub expires_at: Timestamp,
}

/// A request to authorize one exact call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuthorizationRequest {
    /// The call.
    #[serde(flatten)]
    pub call: PendingCall,
    /// The reason for the call.
    pub reason: NonEmptyText,
    /// The person who is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// How to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// The message to the person; by default the reason.
    #[serde(skip)]
    pub message: Option<NonEmptyText>,
}

impl AuthorizationRequest {
    /// The required fields of a request.
    pub(super) const REQUIRED: [&'static str; 6] = [
        "request_id",
        "tool_name",
        "tool_args",
        "reason",
        "security_level",
        "expires_at",
    ];

    /// A request for a call, with a reason.
    #[must_use]
    pub const fn new(call: PendingCall, reason: NonEmptyText) -> Self {
        Self {
            call,
            reason,
            user_id: None,
            instruction: None,
            message: None,
        }
    }

    pub(super) fn read(data: &mut Fields, message: NonEmptyText) -> Result<Self, EnvelopeError> {
        Ok(Self {
            call: PendingCall {
                request_id: data.text("request_id")?,
                tool_name: data.parsed("tool_name", ToolName::new)?,
                tool_args: data.object("tool_args")?,
                security_level: data.word("security_level")?,
                expires_at: data.time("expires_at")?,
            },
            reason: data.text("reason")?,
            user_id: data.optional_text("user_id")?,
            instruction: data.optional_text("instruction")?,
            message: Some(message),
        })
    }
}

/// A request to use credentials that are stored already.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CredentialAuthorization {
    /// The message to the person.
    #[serde(skip)]
    pub message: NonEmptyText,
    /// The type of login, such as `social`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_type: Option<String>,
    /// The provider of the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The URL where they would be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The credentials, without their secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_preview: Option<CredentialPreview>,
    /// A screenshot of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screenshot: Option<String>,
    /// Further details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// How to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
}

impl CredentialAuthorization {
    /// The fields that identify this kind of request.
    pub(super) const MARKS: [&'static str; 2] = ["auth_type", "credential_preview"];

    /// A request with only a message.
    #[must_use]
    pub const fn new(message: NonEmptyText) -> Self {
        Self {
            message,
            auth_type: None,
            provider: None,
            url: None,
            credential_preview: None,
            screenshot: None,
            details: None,
            instruction: None,
        }
    }

    /// The complete request for the approver. Everything about the call comes from the call itself, not
    /// from the tool's claims. The reason is the message.
    #[must_use]
    pub fn into_request(self, call: PendingCall) -> AuthorizationRequest {
        AuthorizationRequest {
            instruction: self.instruction,
            ..AuthorizationRequest::new(call, self.message)
        }
    }

    pub(super) fn read(data: &mut Fields, message: NonEmptyText) -> Result<Self, EnvelopeError> {
        let credential_preview = if data.has("credential_preview") {
            Some(CredentialPreview(data.object("credential_preview")?))
        } else {
            data.optional("credential_preview");
            None
        };
        Ok(Self {
            message,
            auth_type: data.optional_text("auth_type")?,
            provider: data.optional_text("provider")?,
            url: data.optional_text("url")?,
            credential_preview,
            screenshot: data.optional_text("screenshot")?,
            details: data.optional("details"),
            instruction: data.optional_text("instruction")?,
        })
    }
}

/// The visible part of stored credentials.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct CredentialPreview(Object);

impl CredentialPreview {
    /// A preview with the provider and the vault of the credentials.
    #[must_use]
    pub fn new(provider: &NonEmptyText, vault_id: &NonEmptyText) -> Self {
        Self(Object::from_iter([
            ("provider".to_owned(), provider.as_str().into()),
            ("vault_id".to_owned(), vault_id.as_str().into()),
        ]))
    }

    /// The same preview with the date, or date and time, when they were stored.
    #[must_use]
    pub fn stored_at(mut self, date: impl Into<String>) -> Self {
        self.0.insert("stored_at".to_owned(), date.into().into());
        self
    }

    /// The value of the field `name`, such as `provider`, `vault_id` or `stored_at`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }
}

/// A request for manual work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Intervention {
    /// Whether it needs credentials or manual work.
    #[serde(skip)]
    pub status: InterventionStatus,
    /// The message to the person.
    #[serde(skip)]
    pub message: NonEmptyText,
    /// The kind of work.
    pub intervention_type: InterventionType,
    /// The provider of the page or service.
    pub provider: NonEmptyText,
    /// The URL of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A screenshot of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screenshot: Option<String>,
    /// The URL where the person can log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth_url: Option<String>,
    /// Further details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The steps to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
}

impl Intervention {
    /// A request with its kind of work, provider and message. A login needs credentials, everything else
    /// needs manual work.
    #[must_use]
    pub const fn new(
        intervention_type: InterventionType,
        provider: NonEmptyText,
        message: NonEmptyText,
    ) -> Self {
        Self {
            status: match intervention_type {
                InterventionType::Login => InterventionStatus::CredentialRequired,
                InterventionType::Captcha
                | InterventionType::Payment
                | InterventionType::Wallet
                | InterventionType::Verification => InterventionStatus::HumanRequired,
            },
            message,
            intervention_type,
            provider,
            url: None,
            screenshot: None,
            oauth_url: None,
            details: None,
            instruction: None,
        }
    }

    pub(super) fn read(
        data: &mut Fields,
        status: InterventionStatus,
        message: NonEmptyText,
    ) -> Result<Self, EnvelopeError> {
        Ok(Self {
            status,
            message,
            intervention_type: data.word("intervention_type")?,
            provider: data.text("provider")?,
            url: data.optional_text("url")?,
            screenshot: data.optional_text("screenshot")?,
            oauth_url: data.optional_text("oauth_url")?,
            details: data.optional("details"),
            instruction: data.optional_text("instruction")?,
        })
    }
}
