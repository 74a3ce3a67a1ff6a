//! A reference implementation: all rules of the text, a fixed schema, and a context read from JSON and
//! checked against it. Slow and simple, to compare the fast implementation with.

use std::sync::LazyLock;

use cedar_policy::{Authorizer, Context, Decision, Entities, EntityUid, PolicySet, Schema};
use serde_json::{Value, json};
use windlass_policy::{FloorSettings, Request, Verdict, floor};

const SCHEMA: &str = r#"
entity Tenant;
entity User in [Tenant] { name: String, tenant: String };
entity Agent { name: String };
type Session = { calls: Long, tool_calls: Long, irreversible_calls: Long, denied_calls: Long, sensitive_read: Bool };
type Facts = { category?: String, open_world?: Bool, sensitive?: Bool, idempotent?: Bool };
action "tools";
action "category:mail" in ["tools"];
action "category:money" in ["tools"];
action "send_email" in ["tools", "category:mail"] appliesTo {
  principal: User, resource: Agent, context: {
    input: { to: String, subject: String, copies?: Set<String> },
    risk: String, confidence?: decimal, environment: String, tainted: Bool, approved: Bool,
    session: Session, tool: Facts,
  }
};
action "pay" in ["tools", "category:money"] appliesTo {
  principal: User, resource: Agent, context: {
    input: { amount: decimal, cents: Long, account: { iban: String, holder?: String } },
    risk: String, confidence?: decimal, environment: String, tainted: Bool, approved: Bool,
    session: Session, tool: Facts,
  }
};
"#;

static PARSED: LazyLock<Schema> = LazyLock::new(|| Schema::from_cedarschema_str(SCHEMA).unwrap().0);

/// The verdict of the rules about a call. No number except the confidence may have more than four decimal
/// places.
pub(crate) fn verdict(text: &str, request: &Request<'_>) -> Verdict {
    let rules: PolicySet = text.parse().unwrap();
    let floor = floor(
        request.risk,
        request.confidence,
        request.tainted,
        &FloorSettings::default(),
    );
    match permitted(&PARSED, &rules, request, false) {
        None => Verdict::Deny,
        Some(true) if floor < Verdict::Ask => Verdict::Allow,
        Some(before) => match permitted(&PARSED, &rules, request, true) {
            None | Some(false) => Verdict::Deny,
            Some(true) if before => Verdict::Allow,
            Some(true) => Verdict::Ask,
        },
    }
}

/// Whether the rules permit a call; `None` if one of them cannot be evaluated.
fn permitted(
    schema: &Schema,
    rules: &PolicySet,
    request: &Request<'_>,
    approved: bool,
) -> Option<bool> {
    let action: EntityUid = format!("Action::\"{}\"", request.tool).parse().unwrap();
    let principal: EntityUid = format!("User::\"{}\"", request.principal).parse().unwrap();
    let resource: EntityUid = format!("Agent::\"{}\"", request.agent).parse().unwrap();
    let context = Context::from_json_value(context(request, approved), Some((schema, &action)));
    let entities = json!([
        {
            "uid": {"type": "User", "id": request.principal},
            "attrs": {"name": request.principal, "tenant": request.tenant},
            "parents": [{"type": "Tenant", "id": request.tenant}],
        },
        {
            "uid": {"type": "Agent", "id": request.agent},
            "attrs": {"name": request.agent},
            "parents": [],
        },
    ]);
    let entities = Entities::from_json_value(entities, Some(schema)).unwrap();
    let case =
        cedar_policy::Request::new(principal, action, resource, context.unwrap(), Some(schema));
    let response = Authorizer::new().is_authorized(&case.unwrap(), rules, &entities);
    let has_errors = response.diagnostics().errors().next().is_some();
    (!has_errors).then(|| response.decision() == Decision::Allow)
}

fn context(request: &Request<'_>, approved: bool) -> Value {
    let mut input = Value::Object(request.input.clone().into_owned());
    if let Some(amount) = input.get("amount").and_then(Value::as_f64) {
        input["amount"] = json!(format!("{amount:.4}"));
    }
    let mut facts = json!({"category": "money"});
    if request.tool == "send_email" {
        facts = json!({"category": "mail", "open_world": true});
    }
    let mut context = json!({
        "input": input, "risk": request.risk, "environment": request.environment,
        "tainted": request.tainted, "approved": approved, "session": request.session, "tool": facts,
    });
    if let Some(confidence) = request.confidence {
        let digits = confidence.get().to_string();
        let (whole, places) = digits.split_once('.').unwrap_or((&digits, "0"));
        let places: String = places.chars().take(4).collect();
        context["confidence"] = json!(format!("{whole}.{places}"));
    }
    context
}
