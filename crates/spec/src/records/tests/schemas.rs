//! The committed JSON Schemas are up to date and agree with serialization and deserialization.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{denied, examples, made, pending, with, without};
use crate::records::*;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schemas")
}

/// `agent-response.json` for `AgentResponse`.
fn file_name(name: &str) -> String {
    let mut file = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !file.is_empty() {
            file.push('-');
        }
        file.push(letter.to_ascii_lowercase());
    }
    file + ".json"
}

/// Set `UPDATE_SCHEMAS=1` to regenerate them.
#[test]
fn committed_schemas_are_up_to_date() {
    assert_up_to_date(record_schemas());
}

/// Asserts that the files of these schemas are up to date.
pub(crate) fn assert_up_to_date(schemas: Vec<(&str, Value)>) {
    for (name, schema) in schemas {
        let path = folder().join(file_name(name));
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        if std::env::var_os("UPDATE_SCHEMAS").is_some_and(|value| value == "1") {
            fs::create_dir_all(folder()).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(committed, text, "{name}: run with UPDATE_SCHEMAS=1");
    }
}

fn validator(name: &str) -> jsonschema::Validator {
    let schemas = record_schemas();
    let (_, schema) = schemas.iter().find(|(known, _)| *known == name).unwrap();
    jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .unwrap()
}

fn assert_valid(name: &str, value: &Value) {
    let errors: Vec<_> = validator(name)
        .iter_errors(value)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{name}: {value}: {errors:?}");
}

fn assert_invalid(name: &str, value: &Value) {
    assert!(!validator(name).is_valid(value), "{name}: {value}");
}

#[test]
fn every_schema_is_valid() {
    for (name, schema) in record_schemas() {
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
    }
}

#[test]
fn documented_examples_validate() {
    assert_valid("ToolCallRecord", &examples::tool_call_record());
    assert_valid("AgentResponse", &examples::agent_response());
    assert_valid("AgentResponse", &examples::agent_response_without_calls());
    assert_invalid("AgentResponse", &examples::invalid_agent_response());
    assert_valid("ToolGapReport", &examples::tool_gap_report());
    assert_valid("ReasoningStep", &examples::reasoning_step());
    assert_valid("ToolInvocation", &examples::say_hello_invocation());
}

#[test]
fn written_records_are_valid_by_their_schemas() {
    let mut calls = vec![pending("r:1:0"), denied("r:1:1")];
    let states = CallState::ALL.into_iter().enumerate().skip(1);
    calls.extend(states.map(|(index, state)| made(&format!("r:1:{}", index + 1), state)));
    for call in &calls {
        assert_valid("CallRecord", &json!(call));
        let views = [
            ("ToolCallRecord", json!(ToolCallRecord::of(call))),
            ("ToolCall", json!(ToolCall::of(call))),
            ("ToolExecutionResult", json!(ToolExecutionResult::of(call))),
            ("ToolInvocation", json!(ToolInvocation::of(call))),
        ];
        for (name, view) in views {
            if !view.is_null() {
                assert_valid(name, &view);
            }
        }
    }
    let (text, confidence) = (super::text, Confidence::HALF);
    let response = AgentResponse::new(text("Paris"), text("I looked"), &calls, confidence);
    assert_valid("AgentResponse", &json!(response));
    assert_valid("AgentReply", &json!(AgentReply::of(&response, &calls)));
    let time = (super::at(0), std::time::Duration::ZERO);
    let step = ReasoningStep::call_tool(Turn::FIRST, text("hm"), &calls, time.0, time.1).unwrap();
    assert_valid("ReasoningStep", &json!(step));
    let end = ReasoningStep::finish(Turn::FIRST.next(), text("hm"), text("ok"), time.0, time.1);
    assert_valid("ReasoningStep", &json!(end));
    let limit = TaskOutput::at_limit(text("t"), String::new(), confidence, vec![step.clone()]);
    assert_valid("TaskOutput", &json!(limit.unwrap()));
    let output = TaskOutput::finished(text("t"), text("ok"), confidence, vec![step, end]);
    assert_valid("TaskOutput", &json!(output.unwrap()));
    assert_valid("TaskInput", &json!(TaskInput::new(text("t"), text("why?"))));
    assert_valid("ToolCounters", &json!(ToolCounters::default()));
    let mut conversation = Conversation::about(Message::user("hello"));
    conversation.push(Message::function(super::tool("sayHello"), "Hello"));
    assert_valid("Conversation", &json!(conversation));
}

#[test]
fn records_that_the_schemas_reject_are_rejected() {
    let step = examples::reasoning_step();
    let finish = with(step.clone(), "action", json!("finish"));
    let call = json!(made("r:1:0", CallState::Success));
    let record = examples::tool_call_record();
    let execution = json!(ToolExecutionResult::of(&made("r:1:0", CallState::Success)));
    let tool_call = json!(ToolCall::of(&made("r:1:0", CallState::Success)));
    let task = json!({ "task_id": "t", "description": "why?" });
    let output = json!({
        "task_id": "t", "answer": "", "reasoning_trace": "", "confidence": 0,
    });
    for (name, value) in [
        ("ReasoningStep", without(step.clone(), "tool_name")),
        (
            "ReasoningStep",
            with(step.clone(), "tool_args", json!(null)),
        ),
        ("ReasoningStep", with(step.clone(), "thought", json!(" "))),
        ("ReasoningStep", with(step.clone(), "iteration", json!(0))),
        ("ReasoningStep", with(step, "duration_ms", json!(-1))),
        ("ReasoningStep", finish),
        ("CallRecord", with(call.clone(), "permitted", json!(false))),
        ("CallRecord", with(call.clone(), "attempts", json!(0))),
        ("CallRecord", with(call.clone(), "call_id", json!("r:0:0"))),
        ("CallRecord", with(call.clone(), "state", json!("error"))),
        ("CallRecord", with(call.clone(), "state", json!("pending"))),
        ("CallRecord", without(call, "result")),
        (
            "ToolCallRecord",
            with(record.clone(), "status", json!("FAILED")),
        ),
        (
            "ToolCallRecord",
            with(record.clone(), "status", json!("error")),
        ),
        (
            "ToolCallRecord",
            with(record.clone(), "tool_name", json!("")),
        ),
        ("ToolCallRecord", with(record, "duration_ms", json!(-1))),
        (
            "ToolExecutionResult",
            with(execution.clone(), "status", json!("error")),
        ),
        (
            "ToolExecutionResult",
            with(execution.clone(), "status", json!("running")),
        ),
        (
            "ToolExecutionResult",
            with(execution, "result_data", json!(null)),
        ),
        ("ToolCall", with(tool_call, "success", json!(false))),
        ("TaskInput", with(task.clone(), "surprise", json!(1))),
        ("TaskInput", with(task.clone(), "max_iterations", json!(0))),
        ("TaskInput", with(task, "description", json!(""))),
        ("TaskOutput", output),
        ("Message", json!({ "role": "function", "content": "Hello" })),
        (
            "Message",
            json!({ "role": "user", "content": "Hello", "name": "ada" }),
        ),
        (
            "ToolGapReport",
            with(examples::tool_gap_report(), "missing_tools", json!([])),
        ),
    ] {
        assert_invalid(name, &value);
        assert!(!is_read(name, value.clone()), "{name}: {value}");
    }
}

fn is_read(name: &str, value: Value) -> bool {
    match name {
        "ReasoningStep" => serde_json::from_value::<ReasoningStep>(value).is_ok(),
        "CallRecord" => serde_json::from_value::<CallRecord>(value).is_ok(),
        "ToolCallRecord" => serde_json::from_value::<ToolCallRecord>(value).is_ok(),
        "ToolExecutionResult" => serde_json::from_value::<ToolExecutionResult>(value).is_ok(),
        "ToolCall" => serde_json::from_value::<ToolCall>(value).is_ok(),
        "TaskInput" => serde_json::from_value::<TaskInput>(value).is_ok(),
        "TaskOutput" => serde_json::from_value::<TaskOutput>(value).is_ok(),
        "Message" => serde_json::from_value::<Message>(value).is_ok(),
        "ToolGapReport" => serde_json::from_value::<ToolGapReport>(value).is_ok(),
        other => panic!("{other} is not covered"),
    }
}
