//! Permits: the right to run one tool once.

use std::fmt;

use serde_json::{Map, Value};
use windlass_spec::{CallId, CallRecord, CallState, ToolName, ToolSpecification};

use super::{Decision, Verdict};
use crate::approval::Digest;

/// The right to run one tool once with these arguments.
///
/// Only the gate makes one, from a call whose decision and start are in the journal. A tool consumes it
/// by value: without a permit nothing can run, and a permit allows only its own call, once. Therefore it
/// has no public constructor and can be neither copied nor deserialized. A permit that outlived its call
/// would allow a second call without a decision.
#[derive(Debug)]
#[must_use = "a call that was allowed and not run leaves its decision without an outcome"]
pub struct Permit {
    tool: ToolName,
    /// The digest of the call that was decided and, where needed, approved.
    digest: Digest,
    requested: Map<String, Value>,
    arguments: Value,
}

/// Why there is no permit for a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PermitError {
    /// There is no such call.
    #[error("there is no call {0}")]
    UnknownCall(CallId),
    /// The gate did not allow the call.
    #[error("the gate did not allow the call {0}")]
    NotAllowed(CallId),
    /// Its start is not in the journal, or its end is.
    #[error("the call {call} is {state}; only a call that is about to run gets a permit")]
    NotRunning {
        /// The call.
        call: CallId,
        /// Its state.
        state: CallState,
    },
    /// Its permit was already issued.
    #[error("the permit of the call {0} was already issued")]
    AlreadyIssued(CallId),
    /// The call is not the one that was decided and approved.
    #[error(transparent)]
    OtherCall(#[from] OtherCall),
}

/// A call that is not the one that was decided and approved: the journal was changed since.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct OtherCall {
    /// The call.
    pub call: CallId,
    /// The digest that was decided and approved, if one is recorded.
    pub authorized: Option<Digest>,
    /// The digest of what would run.
    pub found: Digest,
}

impl fmt::Display for OtherCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            call,
            authorized,
            found,
        } = self;
        write!(f, "the call {call} is not the one that was authorized: ")?;
        match authorized {
            Some(authorized) => write!(f, "authorized is {authorized}, the journal has {found}"),
            None => write!(
                f,
                "no authorized digest is recorded, the journal has {found}"
            ),
        }
    }
}

impl OtherCall {
    /// Compares the digest that was authorized with that of the call as it would run.
    pub(crate) fn check(record: &CallRecord, authorized: Option<Digest>) -> Result<Digest, Self> {
        let found = Digest::of_call(record.tool_name(), record.arguments());
        match authorized == Some(found) {
            true => Ok(found),
            false => Err(Self {
                call: record.id().clone(),
                authorized,
                found,
            }),
        }
    }
}

/// Issues the permit of a call that the gate allowed and whose start is recorded, if it is the call of
/// the digest that was decided and approved. The run makes sure that each call gets only one.
pub(crate) fn permit(
    record: &CallRecord,
    decision: Option<&Decision>,
    authorized: Option<Digest>,
    specification: &ToolSpecification,
) -> Result<Permit, PermitError> {
    let call = record.id();
    if record.state() != CallState::Running {
        return Err(PermitError::NotRunning {
            call: call.clone(),
            state: record.state(),
        });
    }
    if decision.is_none_or(|decision| decision.verdict() == Verdict::Deny) {
        return Err(PermitError::NotAllowed(call.clone()));
    }
    let digest = OtherCall::check(record, authorized)?;
    let requested = record.arguments().clone();
    let arguments = specification
        .signature()
        .with_defaults(&Value::Object(requested.clone()));
    Ok(Permit {
        tool: record.tool_name().clone(),
        digest,
        requested,
        arguments,
    })
}

impl Permit {
    /// The tool that may run.
    #[must_use]
    pub fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// The arguments it may run with.
    #[must_use]
    pub fn arguments(&self) -> &Value {
        &self.arguments
    }

    /// Whether the permit allows to run this tool with its arguments: the tool is the one of the
    /// authorized digest, and nothing but the tool's defaults was added to the authorized arguments.
    #[must_use]
    pub fn is_for(&self, specification: &ToolSpecification) -> bool {
        let signature = specification.signature();
        let expected = signature.with_defaults(&Value::Object(self.requested.clone()));
        Digest::of_call(specification.name(), &self.requested) == self.digest
            && expected == self.arguments
    }

    /// The arguments, in exchange for the permit.
    #[must_use]
    pub fn into_arguments(self) -> Value {
        self.arguments
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_spec::{CallChange, NonEmptyText, Signature, Timestamp, Type};

    use super::*;

    #[test]
    fn permit_is_made_only_of_a_decision_that_allows_the_call() {
        let at = Timestamp::from_microseconds(0);
        let name = ToolName::new("note").unwrap();
        let signature = Signature::new(Vec::new(), Type::Text).unwrap();
        let description = NonEmptyText::new("Writes a note").unwrap();
        let specification = ToolSpecification::new(name.clone(), description, signature);
        let call: CallId = "r1:1:0".parse().unwrap();
        let mut record = CallRecord::requested(call.clone(), name, Map::new(), at);
        let decision = |verdict: &str| -> Decision {
            let digest = Digest::of_call(&ToolName::new("note").unwrap(), &Map::new());
            let decision = json!({"verdict": verdict, "stage": "policy", "digest": digest});
            serde_json::from_value(decision).unwrap()
        };
        let allow = decision("allow");
        let issue = |record: &CallRecord, decision: Option<&Decision>| {
            let digest = decision.and_then(Decision::digest);
            permit(record, decision, digest, &specification)
        };
        assert!(matches!(
            issue(&record, Some(&allow)),
            Err(PermitError::NotRunning { .. })
        ));
        record.advance(CallChange::Start, at).unwrap();
        let refused = PermitError::NotAllowed(call);
        assert_eq!(issue(&record, None).unwrap_err(), refused);
        let deny = decision("deny");
        assert_eq!(issue(&record, Some(&deny)).unwrap_err(), refused);
        let permit = issue(&record, Some(&allow)).unwrap();
        assert_eq!(permit.into_arguments(), json!({}));
    }
}
