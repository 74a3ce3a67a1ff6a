//! What a person is asked: leave for one exact call, a question, or work that only hands can do.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_spec::envelope::{CredentialAuthorization, InterventionStatus, InterventionType};
use windlass_spec::{
    Field, Misfit, NonEmptyText, RiskLevel, SecurityLevel, Signature, ToolName, Type,
};

use super::ApprovalError;
use super::decision::PersonDecision;
use super::digest::Digest;

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Question {
    /// May this call run?
    Authorize(Authorize),
    /// What do you say?
    Ask(Ask),
    /// Will you do this by hand?
    Intervene(Intervene),
}

/// The one call that leave is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Authorize {
    /// The tool that would be called.
    pub tool_name: ToolName,
    /// What it would be called with.
    pub tool_args: Map<String, Value>,
    /// Why it is wanted.
    pub reason: NonEmptyText,
    /// How reversible the call is.
    pub risk: RiskLevel,
    /// How much care the decision needs.
    pub security_level: SecurityLevel,
    /// The rule that wants a person asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The stored credentials the call would use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<CredentialUse>,
}

/// Stored credentials that a call would use, without what is secret in them. Shown to the person; the
/// decision is about the call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CredentialUse {
    /// How they log in, such as `social`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_type: Option<String>,
    /// Whose they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Where they would be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Which they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_preview: Option<Value>,
    /// What the page looks like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screenshot: Option<String>,
    /// Anything else worth knowing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// A question in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// The question.
    pub question: NonEmptyText,
    /// What the person should know to answer it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The answers to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<NonEmptyText>,
    /// Whether the person may answer in their own words.
    #[serde(default = "yes")]
    pub free_text: bool,
    /// What is to be filled in, if the answer is more than words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Box<FormRequest>>,
}

/// What a server wants filled in while a call of one of its tools is under way. What the person fills
/// in goes to the server and to nobody else; the call goes on with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FormRequest {
    /// Who asks: the operator's name for the server.
    pub server: NonEmptyText,
    /// The JSON Schema of what is to be filled in, which is an object.
    pub schema: Value,
    /// The page where it has to be done instead, if it is not to be filled in here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl FormRequest {
    /// What is to be filled in, field by field.
    #[must_use]
    pub fn fields(&self) -> Vec<Field> {
        let read = Signature::near_schemas(&self.schema, None);
        read.map_or_else(|_| Vec::new(), |read| read.into_parts().0)
    }

    /// What is wrong with what somebody filled in.
    #[must_use]
    pub fn misfits(&self, filled: &Value) -> Vec<Misfit> {
        Type::Record(self.fields()).misfits(filled)
    }
}

const fn yes() -> bool {
    true
}

/// Something a person has to do by hand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intervene {
    /// Whether credentials or hands are needed.
    pub status: InterventionStatus,
    /// What has to be done.
    pub intervention_type: InterventionType,
    /// Whose page or service it is.
    pub provider: NonEmptyText,
    /// How it is said to the person.
    pub message: NonEmptyText,
    /// Where it has to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What the page looks like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screenshot: Option<String>,
    /// Where the person can log in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth_url: Option<String>,
    /// Anything else worth knowing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// The least care a decision about a call of that risk needs. Policy may only raise it.
#[must_use]
pub const fn least_security_level(risk: RiskLevel) -> SecurityLevel {
    match risk {
        RiskLevel::Reversible => SecurityLevel::Low,
        RiskLevel::ReversibleWithDelay => SecurityLevel::Medium,
        RiskLevel::Irreversible => SecurityLevel::High,
    }
}

impl Question {
    /// The word for its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Authorize(_) => "authorize",
            Self::Ask(_) => "ask",
            Self::Intervene(_) => "intervene",
        }
    }

    /// What is to be filled in, if something is.
    #[must_use]
    pub fn form(&self) -> Option<&FormRequest> {
        match self {
            Self::Ask(ask) => ask.form.as_deref(),
            Self::Authorize(_) | Self::Intervene(_) => None,
        }
    }

    /// The call that leave is asked for, if it is.
    #[must_use]
    pub const fn authorize(&self) -> Option<&Authorize> {
        match self {
            Self::Authorize(call) => Some(call),
            Self::Ask(_) | Self::Intervene(_) => None,
        }
    }

    /// What the person reads first, unless something else is said.
    #[must_use]
    pub const fn headline(&self) -> &NonEmptyText {
        match self {
            Self::Authorize(call) => &call.reason,
            Self::Ask(ask) => &ask.question,
            Self::Intervene(work) => &work.message,
        }
    }

    /// The digest of exactly this question. That of a call depends on nothing but the tool and its
    /// arguments.
    #[must_use]
    pub fn digest(&self) -> Digest {
        match self {
            Self::Authorize(call) => Digest::of_call(&call.tool_name, &call.tool_args),
            // The fields are texts and JSON, which can always be written as JSON.
            Self::Ask(_) | Self::Intervene(_) => {
                Digest::of_json(&serde_json::to_value(self).unwrap_or(Value::Null))
            }
        }
    }

    /// How many different people have to say yes.
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
                    return Err(ApprovalError::TooLittleCare {
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

    /// Whether the decision is one this question can be answered with.
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
