//! Strict reading of canonical JSON: the error names the invalid field.

use serde_json::{Value, json};

use super::{TIME, action, time};
use crate::envelope::{ToolResponse, WorkData, WorkStatus};

/// `json` with changes: pointers to fields and their new values; `null` removes a field.
fn changed(mut json: Value, changes: &[(&str, Value)]) -> Value {
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = json.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        if value.is_null() {
            parent.remove(name).unwrap();
        } else {
            parent.insert(name.to_owned(), value.clone());
        }
    }
    json
}

fn error_message(json: Value) -> String {
    let direct = ToolResponse::from_value(json.clone()).unwrap_err();
    let through_serde = serde_json::from_value::<ToolResponse>(json).unwrap_err();
    assert_eq!(through_serde.to_string(), direct.to_string());
    direct.to_string()
}

fn assert_rejected(json: &Value, changes: &[(&str, Value)], expected: &str) {
    ToolResponse::from_value(json.clone()).unwrap();
    assert_eq!(error_message(changed(json.clone(), changes)), expected);
}

fn success() -> Value {
    json!({"status": "success", "action": "a", "data": {}, "timestamp": TIME})
}

fn error() -> Value {
    json!({
        "status": "error", "action": "a", "data": {}, "error": "e", "category": "internal",
        "retryable": false, "effect": "none", "timestamp": TIME,
    })
}

fn question() -> Value {
    json!({
        "status": "human_input_requested", "action": "ask_human", "hil_required": true,
        "message": "m", "data": {"question": "q"}, "timestamp": TIME,
    })
}

fn authorization() -> Value {
    json!({
        "status": "authorization_requested", "action": "request_authorization",
        "hil_required": true, "message": "m", "timestamp": TIME,
        "data": {
            "request_id": "r", "tool_name": "t", "tool_args": {}, "reason": "why",
            "security_level": "LOW", "expires_at": TIME,
        },
    })
}

fn intervention() -> Value {
    json!({
        "status": "human_required", "action": "ask_human", "hil_required": true, "message": "m",
        "data": {"intervention_type": "captcha", "provider": "p"}, "timestamp": TIME,
    })
}

fn plan() -> Value {
    json!({
        "status": "created", "action": "create_execution_plan", "timestamp": TIME,
        "data": {"plan_id": "p", "tasks": [], "execution_mode": "parallel", "dependencies": {}},
    })
}

#[test]
fn an_answer_must_be_an_object() {
    assert_eq!(error_message(json!([])), "the answer must be an object");
}

#[test]
fn every_answer_has_status_action_data_and_timestamp() {
    for json in [
        success(),
        error(),
        question(),
        authorization(),
        intervention(),
        plan(),
    ] {
        for name in ["/status", "/action", "/data", "/timestamp"] {
            assert_rejected(
                &json,
                &[(name, Value::Null)],
                &format!("`{name}` is missing"),
            );
        }
    }
}

#[test]
fn status_timestamp_and_action_must_be_valid() {
    assert_rejected(
        &success(),
        &[("/status", json!("fine"))],
        "`/status` is `fine`, which is not a valid status; write one of success, error, pending, \
         in_progress, created, human_input_requested, authorization_requested, \
         authorization_required, credential_required, human_required",
    );
    assert_rejected(
        &success(),
        &[("/timestamp", json!("yesterday"))],
        "`/timestamp` is invalid: `yesterday` is not a timestamp; write it as \
         `2026-01-31T12:00:00Z`",
    );
    assert_rejected(
        &success(),
        &[("/action", json!(" "))],
        "`/action` is invalid: it is empty",
    );
}

#[test]
fn other_fields_next_to_data_are_rejected() {
    let expected = "is not allowed here; put the fields of a tool into `data`";
    for name in ["billing", "error", "message", "hil_required", "a/b"] {
        let mut json = success();
        json[name] = json!(true);
        let pointer = name.replace('/', "~1");
        assert_eq!(error_message(json), format!("`/{pointer}` {expected}"));
    }
}

#[test]
fn an_error_needs_its_text_category_retryable_and_effect() {
    for name in ["/error", "/category", "/retryable", "/effect"] {
        assert_rejected(
            &error(),
            &[(name, Value::Null)],
            &format!("`{name}` is missing"),
        );
    }
    assert_rejected(
        &error(),
        &[("/retryable", json!("no"))],
        "`/retryable` must be true or false",
    );
    assert_rejected(
        &error(),
        &[("/data", json!("x"))],
        "`/data` must be an object",
    );
    assert_rejected(
        &error(),
        &[("/effect", json!("some"))],
        "`/effect` is `some`, which is not a valid effect; write one of none, applied, unknown",
    );
}

#[test]
fn an_answer_that_waits_for_a_person_has_hil_required_and_a_message() {
    for json in [question(), authorization(), intervention()] {
        for name in ["/hil_required", "/message"] {
            assert_rejected(
                &json,
                &[(name, Value::Null)],
                &format!("`{name}` is missing"),
            );
        }
        assert_rejected(
            &json,
            &[("/hil_required", json!(false))],
            "`/hil_required` must be `true` in an answer of this status",
        );
        assert_rejected(
            &json,
            &[("/message", json!(""))],
            "`/message` is invalid: it is empty",
        );
    }
}

#[test]
fn the_action_of_an_answer_that_waits_for_a_person_is_fixed() {
    assert_rejected(
        &question(),
        &[("/action", json!("web_automation"))],
        "`/action` must be `ask_human` in an answer of this status",
    );
    assert_rejected(
        &authorization(),
        &[("/action", json!("ask_human"))],
        "`/action` must be `request_authorization` in an answer of this status",
    );
}

#[test]
fn a_question_needs_a_question() {
    let missing = "`/data/question` is missing";
    assert_rejected(&question(), &[("/data/question", Value::Null)], missing);
    assert_rejected(
        &question(),
        &[("/data/question", json!("  "))],
        "`/data/question` is invalid: it is empty",
    );
    assert_rejected(
        &question(),
        &[("/data/context", json!({}))],
        "`/data/context` must be a text",
    );
}

#[test]
fn an_authorization_request_needs_id_tool_arguments_reason_level_and_expiry() {
    for name in [
        "/data/request_id",
        "/data/tool_name",
        "/data/tool_args",
        "/data/reason",
        "/data/security_level",
        "/data/expires_at",
    ] {
        let expected = format!("`{name}` is missing");
        assert_rejected(&authorization(), &[(name, Value::Null)], &expected);
    }
    assert_rejected(
        &authorization(),
        &[("/data/tool_args", json!([]))],
        "`/data/tool_args` must be an object",
    );
    assert_rejected(
        &authorization(),
        &[("/data/security_level", json!("SEVERE"))],
        "`/data/security_level` is `SEVERE`, which is not a valid security level; write one of LOW, \
         MEDIUM, HIGH, CRITICAL",
    );
}

#[test]
fn an_intervention_needs_a_type_and_a_provider() {
    for name in ["/data/intervention_type", "/data/provider"] {
        let expected = format!("`{name}` is missing");
        assert_rejected(&intervention(), &[(name, Value::Null)], &expected);
    }
}

#[test]
fn a_plan_needs_tasks_a_mode_and_dependencies_between_names() {
    for name in ["/data/tasks", "/data/execution_mode", "/data/dependencies"] {
        assert_rejected(
            &plan(),
            &[(name, Value::Null)],
            &format!("`{name}` is missing"),
        );
    }
    assert_rejected(
        &plan(),
        &[("/data/dependencies", json!({"b": [1]}))],
        "`/data/dependencies/b` must be a list of task names",
    );
}

#[test]
fn data_with_a_plan_id_is_not_other_work() {
    let data = json!({"plan_id": "p"}).as_object().unwrap().clone();
    assert_eq!(WorkData::new(data).unwrap_err().pointer, "/data/plan_id");
    let work = ToolResponse::work(
        action("a"),
        WorkStatus::Created,
        WorkData::default(),
        time(),
    );
    assert_eq!(work.for_operator()["data"], json!({}));
}

#[test]
fn the_older_name_of_instruction_is_rejected() {
    for json in [question(), authorization(), intervention()] {
        assert_rejected(
            &json,
            &[("/data/instructions", json!("sign"))],
            "`/data/instructions` was renamed; write `instruction`",
        );
    }
}

#[test]
fn words_are_read_in_any_case() {
    let json = changed(
        authorization(),
        &[
            ("/status", json!("AUTHORIZATION_REQUESTED")),
            ("/data/security_level", json!("low")),
        ],
    );
    let response = ToolResponse::from_value(json).unwrap();
    assert_eq!(response.for_operator(), authorization());
}

#[test]
fn unknown_fields_are_kept_in_the_data_of_a_request() {
    for json in [question(), authorization(), intervention(), plan()] {
        let json = changed(json, &[("/data/thread", json!([1, null]))]);
        let response = ToolResponse::from_value(json.clone()).unwrap();
        assert_eq!(response.extra()["thread"], json!([1, null]));
        assert_eq!(response.for_operator(), json);
    }
}

#[test]
fn null_in_an_optional_field_means_absent() {
    let mut json = question();
    json["data"]["context"] = Value::Null;
    let response = ToolResponse::from_value(json).unwrap();
    assert_eq!(response.for_operator(), question());
}
