//! Permits: the right to run one tool once.

use serde_json::Value;
use windlass_spec::{CallId, CallRecord, CallState, ToolName, ToolSpecification};

use super::{Decision, Verdict};

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
}

/// Issues the permit of a call that the gate allowed and whose start is recorded. The run makes sure
/// that each call gets only one.
pub(crate) fn permit(
    record: &CallRecord,
    decision: Option<&Decision>,
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
    let arguments = Value::Object(record.arguments().clone());
    Ok(Permit {
        tool: record.tool_name().clone(),
        arguments: specification.signature().with_defaults(&arguments),
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

    /// The arguments, in exchange for the permit.
    #[must_use]
    pub fn into_arguments(self) -> Value {
        self.arguments
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
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
            serde_json::from_value(json!({"verdict": verdict, "stage": "policy"})).unwrap()
        };
        let allow = decision("allow");
        let issue = |record: &CallRecord, decision: Option<&Decision>| {
            permit(record, decision, &specification)
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
