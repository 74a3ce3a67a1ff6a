//! Reading canonical JSON: what is wrong is refused, and the error names the field.

use serde_json::{Value, json};

use super::{TIME, action, time};
use crate::envelope::{ToolResponse, WorkData, WorkStatus};

/// `json` with changes: a pointer to a field and what to put there; `null` removes it.
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

fn refusal(json: Value) -> String {
    let direct = ToolResponse::from_value(json.clone()).unwrap_err();
    let through_serde = serde_json::from_value::<ToolResponse>(json).unwrap_err();
    assert_eq!(through_serde.to_string(), direct.to_string());
    direct.to_string()
}

fn assert_refused(json: &Value, changes: &[(&str, Value)], expected: &str) {
    ToolResponse::from_value(json.clone()).unwrap();
    assert_eq!(refusal(changed(json.clone(), changes)), expected);
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
fn an_answer_is_an_object() {
    assert_eq!(refusal(json!([])), "the answer must be an object");
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
            assert_refused(
                &json,
                &[(name, Value::Null)],
                &format!("`{name}` is missing"),
            );
        }
    }
}

#[test]
fn a_status_and_a_time_must_be_readable() {
    assert_refused(
        &success(),
        &[("/status", json!("fine"))],
        "`/status` holds `fine`, which is no status; write one of success, error, pending, \
         in_progress, created, human_input_requested, authorization_requested, \
         authorization_required, credential_required, human_required",
    );
    assert_refused(
        &success(),
        &[("/timestamp", json!("yesterday"))],
        "`/timestamp` is refused: `yesterday` is no point in time; write it as \
         2026-01-31T12:00:00Z",
    );
    assert_refused(
        &success(),
        &[("/action", json!(" "))],
        "`/action` is refused: it is empty",
    );
}

#[test]
fn nothing_else_stands_beside_data() {
    let expected = "does not belong here; what a tool has to say stands in `data`";
    for name in ["billing", "error", "message", "hil_required", "a/b"] {
        let mut json = success();
        json[name] = json!(true);
        let pointer = name.replace('/', "~1");
        assert_eq!(refusal(json), format!("`/{pointer}` {expected}"));
    }
}

#[test]
fn an_error_needs_its_text_category_retryable_and_effect() {
    for name in ["/error", "/category", "/retryable", "/effect"] {
        assert_refused(
            &error(),
            &[(name, Value::Null)],
            &format!("`{name}` is missing"),
        );
    }
    assert_refused(
        &error(),
        &[("/retryable", json!("no"))],
        "`/retryable` must be true or false",
    );
    assert_refused(
        &error(),
        &[("/data", json!("x"))],
        "`/data` must be an object",
    );
    assert_refused(
        &error(),
        &[("/effect", json!("some"))],
        "`/effect` holds `some`, which is no effect; write one of none, applied, unknown",
    );
}

#[test]
fn an_answer_that_waits_for_a_person_has_hil_required_and_a_message() {
    for json in [question(), authorization(), intervention()] {
        for name in ["/hil_required", "/message"] {
            assert_refused(
                &json,
                &[(name, Value::Null)],
                &format!("`{name}` is missing"),
            );
        }
        assert_refused(
            &json,
            &[("/hil_required", json!(false))],
            "`/hil_required` must be `true` in an answer of this status",
        );
        assert_refused(
            &json,
            &[("/message", json!(""))],
            "`/message` is refused: it is empty",
        );
    }
}

#[test]
fn the_action_of_an_answer_that_waits_for_a_person_is_fixed() {
    assert_refused(
        &question(),
        &[("/action", json!("web_automation"))],
        "`/action` must be `ask_human` in an answer of this status",
    );
    assert_refused(
        &authorization(),
        &[("/action", json!("ask_human"))],
        "`/action` must be `request_authorization` in an answer of this status",
    );
}

#[test]
fn a_question_needs_a_question() {
    let missing = "`/data/question` is missing";
    assert_refused(&question(), &[("/data/question", Value::Null)], missing);
    assert_refused(
        &question(),
        &[("/data/question", json!("  "))],
        "`/data/question` is refused: it is empty",
    );
    assert_refused(
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
        assert_refused(&authorization(), &[(name, Value::Null)], &expected);
    }
    assert_refused(
        &authorization(),
        &[("/data/tool_args", json!([]))],
        "`/data/tool_args` must be an object",
    );
    assert_refused(
        &authorization(),
        &[("/data/security_level", json!("SEVERE"))],
        "`/data/security_level` holds `SEVERE`, which is no security level; write one of LOW, \
         MEDIUM, HIGH, CRITICAL",
    );
}

#[test]
fn an_intervention_needs_a_type_and_a_provider() {
    for name in ["/data/intervention_type", "/data/provider"] {
        let expected = format!("`{name}` is missing");
        assert_refused(&intervention(), &[(name, Value::Null)], &expected);
    }
}

#[test]
fn a_plan_needs_tasks_a_mode_and_dependencies_between_names() {
    for name in ["/data/tasks", "/data/execution_mode", "/data/dependencies"] {
        assert_refused(
            &plan(),
            &[(name, Value::Null)],
            &format!("`{name}` is missing"),
        );
    }
    assert_refused(
        &plan(),
        &[("/data/dependencies", json!({"b": [1]}))],
        "`/data/dependencies/b` must be a list of task names",
    );
}

#[test]
fn what_has_a_plan_id_cannot_pass_for_other_work() {
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
fn an_instruction_has_one_name() {
    for json in [question(), authorization(), intervention()] {
        assert_refused(
            &json,
            &[("/data/instructions", json!("sign"))],
            "`/data/instructions` is called `instruction`",
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
fn fields_nobody_knows_stay_in_the_data_of_a_request() {
    for json in [question(), authorization(), intervention(), plan()] {
        let json = changed(json, &[("/data/thread", json!([1, null]))]);
        let response = ToolResponse::from_value(json.clone()).unwrap();
        assert_eq!(response.extra()["thread"], json!([1, null]));
        assert_eq!(response.for_operator(), json);
    }
}

#[test]
fn null_in_place_of_an_optional_field_is_nothing() {
    let mut json = question();
    json["data"]["context"] = Value::Null;
    let response = ToolResponse::from_value(json).unwrap();
    assert_eq!(response.for_operator(), question());
}
