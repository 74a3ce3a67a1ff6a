//! Questions to people about calls of the runs that `support` makes.

use serde_json::{Map, Value, json};
use windlass_core::approval::{
    Approval, Authorize, Digest, PersonDecision, Principal, Question, Request, TenantPrincipal,
};
use windlass_core::run::Event;
use windlass_spec::{CallId, NonEmptyText, RiskLevel, SecurityLevel, Timestamp, ToolName};
use windlass_store::{Error, RedactedEvent, RunJournal, Store};

use super::support::{at, time_passed};

pub(crate) const DAY: i64 = 24 * 60 * 60;

pub(crate) fn text(content: &str) -> NonEmptyText {
    NonEmptyText::new(content).unwrap()
}

/// An identity of the tenant whose runs `support` starts.
pub(crate) fn identity(principal: &str) -> TenantPrincipal {
    TenantPrincipal::new(text("acme"), Principal::new(principal).unwrap())
}

pub(crate) fn other_tenant() -> TenantPrincipal {
    TenantPrincipal::new(text("other"), Principal::new("bea").unwrap())
}

pub(crate) fn call(run: &str, index: u32) -> CallId {
    format!("{run}:1:{index}").parse().unwrap()
}

pub(crate) fn tool() -> ToolName {
    ToolName::new("pay").unwrap()
}

pub(crate) fn arguments(amount: i64) -> Map<String, Value> {
    let Value::Object(arguments) = json!({"to": "bob", "amount": amount}) else {
        unreachable!()
    };
    arguments
}

pub(crate) fn digest(amount: i64) -> Digest {
    Digest::of_call(&tool(), &arguments(amount))
}

pub(crate) fn authorize(security_level: SecurityLevel) -> Question {
    Question::Authorize(Authorize {
        tool_name: tool(),
        tool_args: arguments(10),
        reason: text("The invoice is due."),
        risk: RiskLevel::Irreversible,
        security_level,
        rule: None,
        credentials: None,
    })
}

pub(crate) fn request(call: CallId) -> Request {
    Request::new(call, identity("ada"), authorize(SecurityLevel::High), at(0))
}

pub(crate) fn approval(call: CallId) -> Approval {
    Approval::ask(request(call)).unwrap()
}

pub(crate) fn event(journal: &RunJournal, second: i64) -> RedactedEvent {
    journal.redacted(time_passed(second)).unwrap()
}

/// The question without secrets, as it is in the event that asks it.
pub(crate) fn redacted(journal: &RunJournal, approval: &Approval) -> Approval {
    let (approval, at) = (Box::new(approval.clone()), at(1));
    let event = journal.redacted(Event::Asked { approval, at }).unwrap();
    match event.into_event() {
        Event::Asked { approval, .. } => *approval,
        other => panic!("{other:?}"),
    }
}

/// Asks the question, as the owner of its run does.
pub(crate) fn ask_question(journal: &RunJournal, approval: &Approval) {
    let approval = redacted(journal, approval);
    journal
        .append_asking(&event(journal, 1), &approval)
        .unwrap();
}

pub(crate) fn reject() -> PersonDecision {
    PersonDecision::Reject {
        message: Some(text("Too much.")),
    }
}

pub(crate) fn edited(amount: i64) -> PersonDecision {
    PersonDecision::ApproveEdited {
        arguments: arguments(amount),
    }
}

pub(crate) fn now() -> Timestamp {
    at(60)
}

/// Approves the first call of the run `r1` as Bea.
pub(crate) fn approve(
    store: &Store,
    digest: Option<&Digest>,
    at: Timestamp,
) -> Result<Approval, Error> {
    let (bea, decision) = (identity("bea"), PersonDecision::Approve);
    store.decide(&call("r1", 0), digest, &bea, decision, at)
}
