//! Views of a call: their keys, their words, and the calls that have them.

use serde_json::{Value, json};

use super::{denied, made, pending, read_error, tool, with, without};
use crate::ToolResponse;
use crate::records::{
    CallRecord, CallState, ExecutionStatus, ToolCall, ToolCallRecord, ToolCallStatus, ToolCounters,
    ToolExecutionResult, ToolInvocation, tools_used,
};

fn written<T: serde::Serialize>(view: Option<T>) -> Value {
    serde_json::to_value(view.unwrap()).unwrap()
}

fn ended() -> impl Iterator<Item = CallState> {
    CallState::ALL.into_iter().filter(|state| state.is_final())
}

#[test]
fn a_call_that_was_never_permitted_has_no_view() {
    for call in [pending("r:1:0"), denied("r:1:0")] {
        assert_eq!(ToolCallRecord::of(&call), None);
        assert_eq!(ToolCall::of(&call), None);
        assert_eq!(ToolExecutionResult::of(&call), None);
        assert_eq!(ToolInvocation::of(&call), None);
    }
}

#[test]
fn a_running_call_has_only_the_execution_view() {
    let call = made("r:1:0", CallState::Running);
    assert_eq!(ToolCallRecord::of(&call), None);
    assert_eq!(ToolCall::of(&call), None);
    assert_eq!(ToolInvocation::of(&call), None);
    assert_eq!(
        written(ToolExecutionResult::of(&call)),
        json!({
            "execution_id": "r:1:0",
            "tool_name": "web_search",
            "status": "running",
            "result_data": null,
            "error_message": null,
            "error_category": null,
            "start_time": "2024-10-17T00:04:16.001Z",
            "end_time": null,
            "duration_ms": null
        })
    );
}

#[test]
fn a_tool_call_record_has_the_documented_keys() {
    let call = made("r:1:0", CallState::Success);
    assert_eq!(
        written(ToolCallRecord::of(&call)),
        json!({
            "tool_name": "web_search",
            "parameters": { "query": "capital of France", "max_results": 5 },
            "result": "Paris",
            "duration_ms": 1234,
            "status": "success"
        })
    );
}

#[test]
fn every_end_has_one_of_three_statuses() {
    for state in ended() {
        let view = ToolCallRecord::of(&made("r:1:0", state)).unwrap();
        let status = match state {
            CallState::Success => ToolCallStatus::Success,
            CallState::Timeout => ToolCallStatus::Timeout,
            _ => ToolCallStatus::Failed,
        };
        assert_eq!(view.status(), status, "{state}");
        assert_eq!(view.result().is_some(), state == CallState::Success);
    }
}

#[test]
fn a_tool_call_record_is_validated() {
    let record = written(ToolCallRecord::of(&made("r:1:0", CallState::Success)));
    assert_eq!(
        read_error::<ToolCallRecord>(with(record.clone(), "status", json!("FAILED"))),
        "a call that is failed must have no result"
    );
    for (key, value) in [
        ("tool_name", json!("")),
        ("duration_ms", json!(-1)),
        ("duration_ms", json!(1.5)),
        ("status", json!("error")),
        ("parameters", json!("query")),
    ] {
        read_error::<ToolCallRecord>(with(record.clone(), key, value));
    }
    let failed = with(without(record, "result"), "status", json!("TIMEOUT"));
    let failed: ToolCallRecord = serde_json::from_value(failed).unwrap();
    assert_eq!(failed.status(), ToolCallStatus::Timeout);
}

#[test]
fn a_tool_call_has_the_documented_keys() {
    assert_eq!(
        written(ToolCall::of(&made("r:1:0", CallState::Success))),
        json!({
            "tool_name": "web_search",
            "arguments": { "query": "capital of France", "max_results": 5 },
            "result": "Paris",
            "success": true,
            "error_message": null,
            "duration_ms": 1234.5
        })
    );
}

#[test]
fn a_failed_tool_call_has_the_message_for_the_model() {
    for state in ended().filter(|state| *state != CallState::Success) {
        let call = written(ToolCall::of(&made("r:1:0", state)));
        assert_eq!(call["success"], json!(false), "{state}");
        assert_eq!(call["result"], Value::Null);
        let message = call["error_message"].as_str().unwrap();
        assert!(message.starts_with("the tool failed"), "{message}");
        assert!(!message.contains("10.0.0.7"), "{message}");
    }
}

#[test]
fn a_tool_call_is_validated() {
    let call = written(ToolCall::of(&made("r:1:0", CallState::Success)));
    let failed = with(call.clone(), "success", json!(false));
    assert_eq!(
        read_error::<ToolCall>(failed.clone()),
        "a failed call must have an error_message"
    );
    assert_eq!(
        read_error::<ToolCall>(with(failed.clone(), "error_message", json!("it broke"))),
        "a failed call must have no result"
    );
    read_error::<ToolCall>(with(failed, "error_message", json!(" ")));
    read_error::<ToolCall>(with(call.clone(), "error_message", json!("it broke")));
    assert_eq!(
        read_error::<ToolCall>(with(call, "duration_ms", json!(-0.5))),
        "duration_ms: a duration must be zero milliseconds or more"
    );
}

#[test]
fn an_execution_result_has_the_documented_keys_and_words() {
    let success = written(ToolExecutionResult::of(&made("r:1:0", CallState::Success)));
    assert_eq!(
        success,
        json!({
            "execution_id": "r:1:0",
            "tool_name": "web_search",
            "status": "success",
            "result_data": "Paris",
            "error_message": null,
            "error_category": null,
            "start_time": "2024-10-17T00:04:16.001Z",
            "end_time": "2024-10-17T00:04:17.2355Z",
            "duration_ms": 1234
        })
    );
    let word = |state| {
        let view = ToolExecutionResult::of(&made("r:1:0", state)).unwrap();
        let category = view.error_category().map(crate::ErrorCategory::as_str);
        (view.status().as_str(), category)
    };
    assert_eq!(word(CallState::Error), ("error", Some("unavailable")));
    assert_eq!(word(CallState::Timeout), ("timeout", Some("timeout")));
    assert_eq!(word(CallState::Cancelled), ("cancelled", Some("cancelled")));
    assert_eq!(word(CallState::Unknown), ("error", Some("internal")));
}

#[test]
fn an_execution_result_is_a_text_or_json() {
    let mut call = made("r:1:0", CallState::Running);
    let result = json!([{ "title": "Paris" }]);
    call.advance(crate::CallChange::Succeed(result), super::at(9_000))
        .unwrap();
    let view = ToolExecutionResult::of(&call).unwrap();
    assert_eq!(view.result_data(), Some(r#"[{"title":"Paris"}]"#));
}

#[test]
fn an_execution_has_the_error_message_for_the_operator() {
    let view = ToolExecutionResult::of(&made("r:1:0", CallState::Error)).unwrap();
    assert_eq!(view.error_message(), Some("no route to 10.0.0.7"));
}

#[test]
fn an_execution_has_either_a_result_or_an_error() {
    let success = written(ToolExecutionResult::of(&made("r:1:0", CallState::Success)));
    let error = written(ToolExecutionResult::of(&made("r:1:0", CallState::Error)));
    let running = written(ToolExecutionResult::of(&made("r:1:0", CallState::Running)));
    for broken in [
        with(success.clone(), "error_message", json!("it broke")),
        with(success.clone(), "error_category", json!("internal")),
        with(success.clone(), "result_data", json!(null)),
        with(success.clone(), "end_time", json!(null)),
        with(success.clone(), "status", json!("error")),
        with(success, "status", json!("unknown")),
        with(error.clone(), "result_data", json!("Paris")),
        with(error.clone(), "error_message", json!(null)),
        with(error, "error_category", json!("mysterious")),
        with(running.clone(), "result_data", json!("Paris")),
        with(running.clone(), "duration_ms", json!(1)),
        with(running, "status", json!("pending")),
    ] {
        read_error::<ToolExecutionResult>(broken);
    }
}

#[test]
fn the_duration_of_an_execution_is_calculated_from_its_times() {
    let success = written(ToolExecutionResult::of(&made("r:1:0", CallState::Success)));
    assert_eq!(
        read_error::<ToolExecutionResult>(with(success.clone(), "duration_ms", json!(99))),
        "duration_ms is 99, but start_time and end_time are 1234 ms apart"
    );
    read_error::<ToolExecutionResult>(with(
        success.clone(),
        "end_time",
        json!("2001-01-01T00:00:00"),
    ));
    for other in [with(success.clone(), "duration_ms", json!(1235)), {
        without(success.clone(), "duration_ms")
    }] {
        let read: ToolExecutionResult = serde_json::from_value(other).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), success);
    }
}

#[test]
fn there_are_five_execution_statuses() {
    let words = ExecutionStatus::ALL.map(ExecutionStatus::as_str);
    assert_eq!(
        words,
        ["running", "success", "error", "timeout", "cancelled"]
    );
}

#[test]
fn an_invocation_is_right_with_a_result_and_left_with_a_message() {
    assert_eq!(
        written(ToolInvocation::of(&made("r:1:0", CallState::Success))),
        json!({
            "invocationToolName": "web_search",
            "invocationArgs": { "query": "capital of France", "max_results": 5 },
            "invocationResult": { "Right": "Paris" }
        })
    );
    for state in ended().filter(|state| *state != CallState::Success) {
        let invocation = written(ToolInvocation::of(&made("r:1:0", state)));
        let message = invocation["invocationResult"]["Left"].as_str().unwrap();
        assert!(message.starts_with("the tool failed"), "{message}");
    }
}

#[test]
fn a_failure_without_a_message_gets_that_of_its_category() {
    let mut call = made("r:1:0", CallState::Running);
    let failure = crate::Failure::new(crate::ErrorCategory::NotFound, crate::Effect::None, " ");
    call.advance(crate::CallChange::Fail(failure), super::at(9_000))
        .unwrap();
    let message = "not_found: check that what you asked for exists";
    let view = ToolExecutionResult::of(&call).unwrap();
    assert_eq!(view.error_message(), Some(message));
    assert_eq!(
        ToolInvocation::of(&call).unwrap().result,
        Err(message.into())
    );
}

#[test]
fn every_view_reads_back() {
    fn check<T>(view: Option<T>)
    where
        T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        let view = view.unwrap();
        let read: T = serde_json::from_value(serde_json::to_value(&view).unwrap()).unwrap();
        assert_eq!(read, view);
    }
    for state in ended() {
        let call = made("r:1:0", state);
        check(ToolCallRecord::of(&call));
        check(ToolCall::of(&call));
        check(ToolExecutionResult::of(&call));
        check(ToolInvocation::of(&call));
    }
}

#[test]
fn tools_used_are_unique_permitted_and_in_order_of_first_use() {
    let named = |name: &str, call: CallRecord| {
        let stored = with(
            serde_json::to_value(call).unwrap(),
            "tool_name",
            json!(name),
        );
        serde_json::from_value::<CallRecord>(stored).unwrap()
    };
    let calls = [
        named("delete_file", denied("r:1:0")),
        named("read_file", made("r:1:1", CallState::Error)),
        named("web_search", made("r:2:0", CallState::Success)),
        named("read_file", made("r:3:0", CallState::Success)),
    ];
    assert_eq!(tools_used(&calls), [tool("read_file"), tool("web_search")]);

    let counters = ToolCounters::of_tools(&calls);
    let counted: Vec<_> = counters
        .iter()
        .map(|(tool, counters)| {
            (
                tool.as_str(),
                counters.success_count,
                counters.failure_count,
            )
        })
        .collect();
    assert_eq!(counted, [("read_file", 1, 1), ("web_search", 1, 0)]);
}

#[test]
fn counters_count_only_permitted_calls_that_ended() {
    let mut counters = ToolCounters::default();
    for call in [
        pending("r:1:0"),
        denied("r:1:0"),
        made("r:1:0", CallState::Running),
    ] {
        counters.count(&call);
    }
    assert_eq!(counters, ToolCounters::default());
    for state in ended() {
        counters.count(&made("r:1:0", state));
    }
    assert_eq!((counters.success_count, counters.failure_count), (1, 4));
}

/// The result of a plan tool.
fn plan_result(status: &str) -> Value {
    json!({
        "plan_id": "r:1:0",
        "status": status,
        "execution_mode": "parallel",
        "tasks": [{"id": "a", "status": "success"}, {"id": "b", "status": "pending"}],
        "dependencies": {"b": ["a"]},
    })
}

#[test]
fn pattern_7_a_call_of_a_plan_tool_is_answered_with_a_plan() {
    let at = crate::Timestamp::from_microseconds(0);
    let answer = |tool: &str, result: &Value| {
        let tool = crate::ToolName::new(tool).unwrap();
        let response = ToolResponse::of_result(&tool, result, at);
        serde_json::to_value(&response).unwrap()
    };
    let (create, update, get) = (
        "create_execution_plan",
        "update_task_status",
        "get_execution_status",
    );
    assert_eq!(
        answer(create, &plan_result("pending")),
        json!({
            "status": "created",
            "action": create,
            "data": {
                "plan_id": "r:1:0",
                "tasks": [{"id": "a", "status": "success"}, {"id": "b", "status": "pending"}],
                "execution_mode": "parallel",
                "dependencies": {"b": ["a"]},
            },
            "timestamp": "1970-01-01T00:00:00Z",
        })
    );
    for (tool, of_plan, answered) in [
        (create, "in_progress", "in_progress"),
        (create, "success", "created"),
        (create, "error", "created"),
        (update, "in_progress", "in_progress"),
        (get, "pending", "pending"),
        // A plan that has ended is answered with a success.
        (update, "success", "success"),
        (get, "error", "success"),
    ] {
        let answer = answer(tool, &plan_result(of_plan));
        assert_eq!(answer["status"], answered, "{tool}, {of_plan}");
        assert_eq!(answer["action"], tool);
    }
    // A tool with the same name but another result is answered like any other.
    let other = answer(create, &json!({"made": true}));
    assert_eq!(other["status"], "success");
}

#[test]
fn every_call_that_ended_has_an_answer() {
    for state in ended() {
        let call = made("r:1:0", state);
        let answer = serde_json::to_value(ToolResponse::of(&call).unwrap()).unwrap();
        assert_eq!(answer["action"], "web_search");
        let is_success = state == CallState::Success;
        assert_eq!(answer["status"] == "success", is_success, "{state:?}");
    }
    assert_eq!(ToolResponse::of(&pending("r:1:0")), None);
    assert!(ToolResponse::of(&denied("r:1:0")).is_some());
}
