use super::*;

fn round_trip(approval: &Approval) {
    let written = serde_json::to_string(approval).unwrap();
    let read: Approval = serde_json::from_str(&written).unwrap();
    assert_eq!(read, *approval);
    assert_eq!(serde_json::to_string(&read).unwrap(), written);
}

fn approved() -> Approval {
    let mut approval = critical();
    approval
        .decide(&identity("bea"), edited(7), None, at(1))
        .unwrap();
    let digest = approval.digest();
    approval
        .decide(
            &identity("cem"),
            PersonDecision::Approve,
            Some(&digest),
            at(2),
        )
        .unwrap();
    approval
}

/// An approval deserialized after one field of its JSON was changed.
fn forged(approval: &Approval, pointer: &str, value: Value) -> Result<Approval, String> {
    let mut written = serde_json::to_value(approval).unwrap();
    *written
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("{pointer}")) = value;
    serde_json::from_value(written).map_err(|error| error.to_string())
}

#[test]
fn the_form_of_an_approval_is_stable() {
    let mut request = Request::new(
        call(),
        identity("ada"),
        authorize(SecurityLevel::High),
        at(0),
    );
    request.parents = vec!["r0:1:0".parse().unwrap()];
    request.user_id = Some("U1".to_owned());
    request.instruction = Some("Type the amount.".to_owned());
    let mut approval = Approval::ask(request).unwrap();
    approval
        .decide(&identity("bea"), reject(), None, at(1))
        .unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&approval).unwrap());
    insta::assert_snapshot!(serde_json::to_string_pretty(&pending(ask())).unwrap());
    insta::assert_snapshot!(serde_json::to_string_pretty(&pending(intervene())).unwrap());
}

#[test]
fn every_approval_reads_back_as_it_was() {
    let mut cancelled = critical();
    cancelled
        .decide(&identity("bea"), PersonDecision::Approve, None, at(1))
        .unwrap();
    round_trip(&cancelled);
    cancelled.cancel(at(2));
    let mut expired = pending(ask());
    expired.expire(at(100_000));
    for approval in [high(), approved(), cancelled, expired, pending(intervene())] {
        round_trip(&approval);
    }
}

#[test]
fn forged_approval_is_refused() {
    let late = json!(at(1_000_000).to_string());
    let forgeries = [
        ("/status", json!("pending")),
        ("/status", json!("rejected")),
        ("/status", json!("granted")),
        ("/question/tool_args/amount", json!(10_000)),
        ("/question/tool_name", json!("repay")),
        ("/question/security_level", json!("MEDIUM")),
        ("/question/security_level", json!("HIGH")),
        ("/digest", json!(approved().digest())),
        ("/decisions/0/arguments/amount", json!(10_000)),
        ("/decisions/0/digest", json!(approved().asked_digest())),
        ("/decisions/1/by", json!("bea")),
        ("/decisions/1/by", json!(" ")),
        ("/decisions/1/at", late),
        ("/decisions/1/decision", json!("reject")),
        ("/decisions/1/decision", json!("done")),
        ("/settled_at", json!(at(9).to_string())),
        ("/settled_at", Value::Null),
        ("/expires_at", json!(at(0).to_string())),
        ("/run", json!("r2")),
        ("/call", json!("r2:2:0")),
    ];
    for (pointer, value) in forgeries {
        let read = forged(&approved(), pointer, value.clone());
        assert!(read.is_err(), "{pointer} as {value}: {read:?}");
    }
    let one = forged(&critical(), "/status", json!("approved"));
    assert!(one.unwrap_err().contains("make it pending, not approved"));
}

#[test]
fn pending_approval_becomes_a_response_envelope() {
    let response = high().response();
    assert_eq!(response.action(), "request_authorization");
    let written = serde_json::to_value(&response).unwrap();
    for (field, value) in [
        ("request_id", json!("r1:2:0")),
        ("tool_name", json!("pay")),
        ("tool_args", json!({"to": "bob", "amount": 10})),
        ("reason", json!("The invoice is due.")),
        ("security_level", json!("HIGH")),
        ("expires_at", json!(high().request().expires_at.to_string())),
    ] {
        assert_eq!(written["data"][field], value, "{field}");
    }
    let question = pending(ask()).response();
    assert_eq!(question.action(), "ask_human");
    assert!(
        serde_json::to_string(&question)
            .unwrap()
            .contains("main, next")
    );
    let work = pending(intervene()).response();
    assert_eq!(work.status(), windlass_spec::ToolStatus::HumanRequired);
}
