//! A call as the policies see it: who, which tool with which arguments, and what is known of the
//! run. The same form is recorded, so that changed policies can be held against past calls.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_spec::{Confidence, RiskLevel};

/// One call about which a decision is wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request<'a> {
    /// Who the run acts for.
    pub principal: Cow<'a, str>,
    /// The tenant they belong to.
    pub tenant: Cow<'a, str>,
    /// The agent that asks.
    pub agent: Cow<'a, str>,
    /// The tool it asks for.
    pub tool: Cow<'a, str>,
    /// With which arguments.
    pub input: Cow<'a, Map<String, Value>>,
    /// How reversible this very call is.
    pub risk: RiskLevel,
    /// How sure the model says it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Where the run takes place, such as `production`.
    pub environment: Cow<'a, str>,
    /// Whether what others wrote may have led to this call.
    pub tainted: bool,
    /// What the run did before.
    #[serde(default)]
    pub session: Session,
}

impl Request<'_> {
    /// The same request with everything in it its own.
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
    /// Those of the same tool.
    pub tool_calls: u32,
    /// Those that could not be undone.
    pub irreversible_calls: u32,
    /// Calls that were refused.
    pub denied_calls: u32,
    /// Whether a tool that is declared sensitive has answered.
    pub sensitive_read: bool,
}
