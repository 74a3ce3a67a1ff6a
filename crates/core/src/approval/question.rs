//! Questions to people: authorization of one exact call, a question, or manual work.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_spec::envelope::{CredentialAuthorization, InterventionStatus, InterventionType};
use windlass_spec::{
    Field, Misfit, NonEmptyText, RiskLevel, SecurityLevel, Signature, ToolName, Type,
};

use super::ApprovalError;
use super::decision::PersonDecision;
use super::digest::Digest;

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Question {
    /// Whether a call may run.
    Authorize(Authorize),
    /// A question in natural language.
    Ask(Ask),
    /// A request for manual work.
    Intervene(Intervene),
}

/// The call to authorize.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Authorize {
    /// The tool of the call.
    pub tool_name: ToolName,
    /// The arguments of the call.
    pub tool_args: Map<String, Value>,
    /// The reason for the call or for the question.
    pub reason: NonEmptyText,
    /// How reversible the call is.
    pub risk: RiskLevel,
    /// The security level that the decision needs.
    pub security_level: SecurityLevel,
    /// The policy rule that requires the approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The stored credentials that the call would use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<CredentialUse>,
}

/// A call as a tool names it in a request of its own. It may be another call than the one that asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedCall {
    /// The name of the tool.
    pub tool_name: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub tool_args: Map<String, Value>,
}

/// Stored credentials that a call would use, without their secrets. Shown to the approver; the decision
/// is about the call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CredentialUse {
    /// How they log in, such as `social`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_type: Option<String>,
    /// The provider they belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Where they would be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A preview of the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_preview: Option<Value>,
    /// A screenshot of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screenshot: Option<String>,
    /// Other details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// A question in natural language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// The question.
    pub question: NonEmptyText,
    /// Context for the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The answers to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<NonEmptyText>,
    /// Whether the person may answer with free text.
    #[serde(default = "default_free_text")]
    pub free_text: bool,
    /// The form to fill in, if the answer is structured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Box<FormRequest>>,
}

/// A form that a server asks for while a call of one of its tools is running. The filled-in data goes
/// only to the server, and the call continues with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FormRequest {
    /// The operator's name for the server.
    pub server: NonEmptyText,
    /// The JSON Schema of the form, which is an object.
    pub schema: Value,
    /// The page to use instead, if the form cannot be filled in here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl FormRequest {
    /// The fields of the form.
    #[must_use]
    pub fn fields(&self) -> Vec<Field> {
        let read = Signature::from_schemas_approximately(&self.schema, None);
        read.map_or_else(|_| Vec::new(), |read| read.into_parts().0)
    }

    /// The errors in a filled-in form.
    #[must_use]
    pub fn misfits(&self, filled: &Value) -> Vec<Misfit> {
        Type::Record(self.fields()).misfits(filled)
    }
}

const fn default_free_text() -> bool {
    true
}

/// Manual work for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intervene {
    /// Whether credentials or manual work are needed.
    pub status: InterventionStatus,
    /// What has to be done.
    pub intervention_type: InterventionType,
    /// The provider of the page or service.
    pub provider: NonEmptyText,
    /// The message for the person.
    pub message: NonEmptyText,
    /// The address to do it at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A screenshot of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screenshot: Option<String>,
    /// Where the person can log in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth_url: Option<String>,
    /// Other details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// The lowest security level for a call of that risk. Policy may only raise it.
#[must_use]
pub const fn least_security_level(risk: RiskLevel) -> SecurityLevel {
    match risk {
        RiskLevel::Reversible => SecurityLevel::Low,
        RiskLevel::ReversibleWithDelay => SecurityLevel::Medium,
        RiskLevel::Irreversible => SecurityLevel::High,
    }
}

impl Question {
    /// The name of the kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Authorize(_) => "authorize",
            Self::Ask(_) => "ask",
            Self::Intervene(_) => "intervene",
        }
    }

    /// The form to fill in, if there is one.
    #[must_use]
    pub fn form(&self) -> Option<&FormRequest> {
        match self {
            Self::Ask(ask) => ask.form.as_deref(),
            Self::Authorize(_) | Self::Intervene(_) => None,
        }
    }

    /// The call to authorize, if there is one.
    #[must_use]
    pub const fn authorize(&self) -> Option<&Authorize> {
        match self {
            Self::Authorize(call) => Some(call),
            Self::Ask(_) | Self::Intervene(_) => None,
        }
    }

    /// The default headline for the person.
    #[must_use]
    pub const fn headline(&self) -> &NonEmptyText {
        match self {
            Self::Authorize(call) => &call.reason,
            Self::Ask(ask) => &ask.question,
            Self::Intervene(work) => &work.message,
        }
    }

    /// The digest of this question. For a call it depends only on the tool and its arguments.
    #[must_use]
    pub fn digest(&self) -> Digest {
        match self {
            Self::Authorize(call) => Digest::of_call(&call.tool_name, &call.tool_args),
            // The fields are texts and JSON, so serialization cannot fail.
            Self::Ask(_) | Self::Intervene(_) => {
                Digest::of_json(&serde_json::to_value(self).unwrap_or(Value::Null))
            }
        }
    }

    /// How many different approvers are needed.
    #[must_use]
    pub fn needed(&self) -> usize {
        match self.authorize() {
            Some(call) if call.security_level == SecurityLevel::Critical => 2,
            _ => 1,
        }
    }

    pub(super) fn check(&self) -> Result<(), ApprovalError> {
        match self {
            Self::Authorize(call) => {
                let least = least_security_level(call.risk);
                if call.security_level < least {
                    return Err(ApprovalError::SecurityLevelTooLow {
                        risk: call.risk,
                        least,
                    });
                }
            }
            Self::Ask(ask) => {
                if ask.options.is_empty() && !ask.free_text {
                    return Err(ApprovalError::NoAnswerPossible);
                }
                let mut seen = ask.options.clone();
                seen.sort_unstable();
                if seen.windows(2).any(|pair| pair[0] == pair[1]) {
                    return Err(ApprovalError::OptionTwice);
                }
            }
            Self::Intervene(_) => {}
        }
        Ok(())
    }

    /// Whether the decision fits this question.
    pub(super) fn fits(&self, decision: &PersonDecision) -> bool {
        match (self, decision) {
            (_, PersonDecision::Reject { .. })
            | (
                Self::Authorize(_),
                PersonDecision::Approve
                | PersonDecision::ApproveEdited { .. }
                | PersonDecision::Respond { .. },
            )
            | (Self::Intervene(_), PersonDecision::Done { .. }) => true,
            (Self::Ask(ask), PersonDecision::Answer { text }) => {
                ask.form.is_none() && (ask.free_text || ask.options.contains(text))
            }
            (Self::Ask(ask), PersonDecision::Respond { value }) => {
                let form = ask.form.as_ref();
                form.is_some_and(|form| form.misfits(value).is_empty())
            }
            (Self::Authorize(_) | Self::Ask(_) | Self::Intervene(_), _) => false,
        }
    }
}

impl From<CredentialAuthorization> for CredentialUse {
    fn from(request: CredentialAuthorization) -> Self {
        let preview = request.credential_preview.as_ref();
        Self {
            credential_preview: preview.and_then(|preview| serde_json::to_value(preview).ok()),
            auth_type: request.auth_type,
            provider: request.provider,
            url: request.url,
            screenshot: request.screenshot,
            details: request.details,
        }
    }
}
