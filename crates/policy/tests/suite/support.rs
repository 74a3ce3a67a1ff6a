//! Tools and calls that the tests share.

use std::borrow::Cow;

use serde_json::{Value, json};
use windlass_policy::{Decision, Policies, PolicyError, Request, Session};
use windlass_spec::{
    Confidence, NonEmptyText, RiskLevel, Signature, ToolAttributes, ToolName, ToolSpecification,
};

/// A tool with this signature and these declared attributes.
pub(crate) fn tool(name: &str, signature: &str, attributes: ToolAttributes) -> ToolSpecification {
    ToolSpecification::new(
        ToolName::new(name).unwrap(),
        NonEmptyText::new("a tool").unwrap(),
        Signature::parse(signature).unwrap(),
    )
    .with_attributes(attributes)
    .unwrap()
}

pub(crate) fn category(category: &str) -> ToolAttributes {
    ToolAttributes {
        category: Some(NonEmptyText::new(category).unwrap()),
        ..ToolAttributes::default()
    }
}

/// The tools that the tests use.
pub(crate) fn test_tools() -> Vec<ToolSpecification> {
    vec![
        tool(
            "send_email",
            "(to: Text, subject: Text, copies: [Text]?) --> IO Text",
            ToolAttributes {
                risk: Some(RiskLevel::ReversibleWithDelay),
                open_world: Some(true),
                ..category("mail")
            },
        ),
        tool(
            "pay",
            "(amount: Number, cents: Int, account: {iban: Text, holder: Text?}) --> IO Text",
            ToolAttributes {
                risk: Some(RiskLevel::Irreversible),
                ..category("money")
            },
        ),
        tool(
            "export",
            "(format: \"pdf\" | \"csv\", rows: Int = 100, filter: Object?) --> IO Text",
            ToolAttributes {
                risk: Some(RiskLevel::Reversible),
                ..ToolAttributes::default()
            },
        ),
    ]
}

pub(crate) fn load(text: &str) -> Policies {
    Policies::load(text, &test_tools())
        .unwrap_or_else(|errors| panic!("{}", format_errors(&errors)))
}

/// The errors of a policy text.
pub(crate) fn errors(text: &str) -> Vec<PolicyError> {
    match Policies::load(text, &test_tools()) {
        Ok(_) => panic!("the text has no errors"),
        Err(errors) => errors,
    }
}

pub(crate) fn format_errors(errors: &[PolicyError]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// An ordinary call of a tool.
pub(crate) fn call(tool: &str, input: Value) -> Request<'static> {
    let Value::Object(input) = input else {
        panic!("arguments are an object")
    };
    Request {
        principal: Cow::Borrowed("ann"),
        tenant: Cow::Borrowed("acme"),
        agent: Cow::Borrowed("clerk"),
        tool: Cow::Owned(tool.to_owned()),
        input: Cow::Owned(input),
        risk: RiskLevel::Reversible,
        confidence: None,
        environment: Cow::Borrowed("production"),
        tainted: false,
        session: Session::default(),
    }
}

pub(crate) fn email() -> Request<'static> {
    call(
        "send_email",
        json!({"to": "bob@example.org", "subject": "Hello"}),
    )
}

pub(crate) fn payment(amount: Value) -> Request<'static> {
    call(
        "pay",
        json!({"amount": amount, "cents": 0, "account": {"iban": "DE1"}}),
    )
}

pub(crate) fn confidence(number: f64) -> Confidence {
    Confidence::try_from(number).unwrap()
}

/// The verdict and its rules in brief.
pub(crate) fn brief(decision: &Decision) -> String {
    format!("{} by {}", decision.verdict, decision.rules.join(", "))
}
