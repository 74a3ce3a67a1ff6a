//! A call as the policies see it: the principal, the tool with its arguments, and the history of the
//! run. The same form is recorded, so that changed policies can be compared on past calls.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_spec::{Confidence, RiskLevel};

/// A call to decide about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request<'a> {
    /// The principal that the run acts for.
    pub principal: Cow<'a, str>,
    /// The tenant they belong to.
    pub tenant: Cow<'a, str>,
    /// The agent that makes the call.
    pub agent: Cow<'a, str>,
    /// The tool.
    pub tool: Cow<'a, str>,
    /// The arguments.
    pub input: Cow<'a, Map<String, Value>>,
    /// How reversible this exact call is.
    pub risk: RiskLevel,
    /// The confidence that the model stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// The environment of the run, such as `production`.
    pub environment: Cow<'a, str>,
    /// Whether untrusted content may have led to this call.
    pub tainted: bool,
    /// What the run did before.
    #[serde(default)]
    pub session: Session,
}

impl Request<'_> {
    /// The same request with owned data.
    #[must_use]
    pub fn into_owned(self) -> Request<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Request {
            principal: owned(self.principal),
            tenant: owned(self.tenant),
            agent: owned(self.agent),
            tool: owned(self.tool),
            input: Cow::Owned(self.input.into_owned()),
            risk: self.risk,
            confidence: self.confidence,
            environment: owned(self.environment),
            tainted: self.tainted,
            session: self.session,
        }
    }
}

/// What a run did before the call in question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// Calls that were allowed to run.
    pub calls: u32,
    /// Calls of the same tool.
    pub tool_calls: u32,
    /// Irreversible calls.
    pub irreversible_calls: u32,
    /// Calls that were refused.
    pub denied_calls: u32,
    /// Whether a tool that is declared sensitive has returned a result.
    pub sensitive_read: bool,
}
