//! Tests of approvals, holds and standing approvals.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod agreeing;
mod deciding;
mod digests;
mod holding;
mod reading;
mod standing;
mod transitions;

use serde_json::{Map, Value, json};
use windlass_spec::envelope::{InterventionStatus, InterventionType};
use windlass_spec::{CallId, NonEmptyText, RiskLevel, SecurityLevel, Timestamp, ToolName};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_microseconds(1_760_000_000_000_000 + second * 1_000_000)
}

fn text(content: &str) -> NonEmptyText {
    NonEmptyText::new(content).unwrap()
}

fn identity(principal: &str) -> TenantPrincipal {
    TenantPrincipal::new(text("acme"), Principal::new(principal).unwrap())
}

fn call() -> CallId {
    "r1:2:0".parse().unwrap()
}

fn tool() -> ToolName {
    ToolName::new("pay").unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else {
        panic!("{value}")
    };
    fields
}

fn authorize(security_level: SecurityLevel) -> Question {
    Question::Authorize(Authorize {
        tool_name: tool(),
        tool_args: object(json!({"to": "bob", "amount": 10})),
        reason: text("The invoice is due."),
        risk: RiskLevel::Irreversible,
        security_level,
        rule: Some("floor".to_owned()),
        credentials: None,
    })
}

fn ask() -> Question {
    Question::Ask(Ask {
        question: text("Which branch?"),
        context: None,
        options: vec![text("main"), text("next")],
        free_text: false,
        form: None,
    })
}

fn intervene() -> Question {
    Question::Intervene(Intervene {
        status: InterventionStatus::HumanRequired,
        intervention_type: InterventionType::Captcha,
        provider: text("example.org"),
        message: text("CAPTCHA detected. Please solve manually."),
        url: Some("https://example.org/".to_owned()),
        screenshot: None,
        oauth_url: None,
        details: None,
    })
}

fn pending(question: Question) -> Approval {
    Approval::ask(Request::new(call(), identity("ada"), question, at(0))).unwrap()
}

fn high() -> Approval {
    pending(authorize(SecurityLevel::High))
}

fn critical() -> Approval {
    pending(authorize(SecurityLevel::Critical))
}

fn edited(amount: i64) -> PersonDecision {
    PersonDecision::ApproveEdited {
        arguments: object(json!({"to": "bob", "amount": amount})),
    }
}

fn reject() -> PersonDecision {
    PersonDecision::Reject {
        message: Some(text("Too much.")),
    }
}
