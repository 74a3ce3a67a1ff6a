//! The answers that wait for a person: a question, leave for one exact call, leave to use stored
//! credentials, and work that only hands can do. Each is serialised as the `data` of its envelope;
//! `message` stands beside `data` and is written by the envelope. Who is asked, and how the answer
//! finds its way back, is decided elsewhere.

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
    /// What the person should know to answer it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Who is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// How to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// What the person reads first; the question unless something else is said.
    #[serde(skip)]
    pub message: Option<NonEmptyText>,
}

impl AskHuman {
    /// A question and nothing else.
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

/// The one call that leave is asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PendingCall {
    /// Which request this is.
    pub request_id: NonEmptyText,
    /// The tool that would be called.
    pub tool_name: ToolName,
    /// What it would be called with.
    pub tool_args: Object,
    /// How much care the decision needs.
    pub security_level: SecurityLevel,
    /// When the request lapses.
    pub expires_at: Timestamp,
}

/// A request to allow one exact call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuthorizationRequest {
    /// The call.
    #[serde(flatten)]
    pub call: PendingCall,
    /// Why it is wanted.
    pub reason: NonEmptyText,
    /// Who is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// How to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// What the person reads first; the reason unless something else is said.
    #[serde(skip)]
    pub message: Option<NonEmptyText>,
}

impl AuthorizationRequest {
    /// The fields a request cannot be without.
    pub(super) const REQUIRED: [&'static str; 6] = [
        "request_id",
        "tool_name",
        "tool_args",
        "reason",
        "security_level",
        "expires_at",
    ];

    /// A request for a call, and why.
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
    /// What the person reads first.
    #[serde(skip)]
    pub message: NonEmptyText,
    /// How the credentials log in, such as `social`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_type: Option<String>,
    /// Whose credentials these are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Where they would be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Which credentials, without what is secret in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_preview: Option<CredentialPreview>,
    /// What the page looks like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screenshot: Option<String>,
    /// Anything else worth knowing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// How to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
}

impl CredentialAuthorization {
    /// The fields that only this kind of request has.
    pub(super) const MARKS: [&'static str; 2] = ["auth_type", "credential_preview"];

    /// A request that says no more than its message.
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

    /// The request in full, as it is put to a person: everything about the call comes from the call
    /// itself and not from what the tool claims, the reason is the message.
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

/// What may be shown of stored credentials.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct CredentialPreview(Object);

impl CredentialPreview {
    /// Whose credentials these are, and where they are kept.
    #[must_use]
    pub fn new(provider: &NonEmptyText, vault_id: &NonEmptyText) -> Self {
        Self(Object::from_iter([
            ("provider".to_owned(), provider.as_str().into()),
            ("vault_id".to_owned(), vault_id.as_str().into()),
        ]))
    }

    /// The same preview with the date, or date and time, at which they were stored.
    #[must_use]
    pub fn stored_at(mut self, date: impl Into<String>) -> Self {
        self.0.insert("stored_at".to_owned(), date.into().into());
        self
    }

    /// What the field `name` says, such as `provider`, `vault_id` or `stored_at`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }
}

/// A request to do something by hand.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Intervention {
    /// Whether credentials or hands are needed.
    #[serde(skip)]
    pub status: InterventionStatus,
    /// What the person reads first.
    #[serde(skip)]
    pub message: NonEmptyText,
    /// What has to be done.
    pub intervention_type: InterventionType,
    /// Whose page or service it is.
    pub provider: NonEmptyText,
    /// Where it has to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What the page looks like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screenshot: Option<String>,
    /// Where the person can log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth_url: Option<String>,
    /// Anything else worth knowing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What to do, step by step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
}

impl Intervention {
    /// What has to be done, where, and how it is said. A login needs credentials, everything else
    /// needs hands.
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
