//! The proof of an approval that a tool asked for: a signed statement for one call.

use std::time::Duration;

use serde_json::json;
use windlass_core::run::{ApprovalProof, Run};
use windlass_spec::{CallId, Timestamp};
use windlass_tools::ApprovalStatement;

use crate::durable::Journal;

/// The `typ` of the statement.
const APPROVAL_STATEMENT: &str = "windlass-approval+jwt";

/// How long a tool may accept the statement. It is made when the call starts.
const VALID_FOR: Duration = Duration::from_secs(300);

/// The statement that proves to the tool of a call that its request was approved; `None` if it asked for none.
pub(super) fn approval_statement(
    run: &Run,
    call: &CallId,
    journal: &dyn Journal,
    now: Timestamp,
) -> Option<ApprovalStatement> {
    let proof = run.approval_proof(call)?;
    let (record, _) = run.call(call).ok()?;
    let id = statement_id(proof, now);
    let seconds = |at: Timestamp| at.as_microseconds().div_euclid(1_000_000);
    let claims = json!({
        "iss": "windlass",
        "sub": journal.who().principal,
        "jti": id,
        "iat": seconds(now),
        "exp": seconds(now).saturating_add(i64::try_from(VALID_FOR.as_secs()).unwrap_or(0)),
        "approval": proof.call,
        "tool": record.tool_name(),
        "call_digest": proof.digest,
        "approved_by": proof.approvers,
        "approved_at": proof.approved_at,
    });
    Some(ApprovalStatement {
        approval: proof.call.clone(),
        id,
        call_digest: proof.digest,
        signed: journal.statement(APPROVAL_STATEMENT, &claims),
    })
}

/// The id of the statement for one attempt of a call. A tool accepts each id once, so a further attempt has another.
fn statement_id(proof: &ApprovalProof, now: Timestamp) -> String {
    format!("{}@{}", proof.call, now.as_microseconds())
}
