//! The documented examples, word for word.

use serde_json::{Value, json};

pub(super) fn tool_call_record() -> Value {
    json!({
        "tool_name": "web_search",
        "parameters": { "query": "capital of France", "max_results": 5 },
        "result": [{
            "title": "Paris - Wikipedia",
            "url": "https://...",
            "snippet": "Paris is the capital..."
        }],
        "duration_ms": 1234,
        "status": "SUCCESS"
    })
}

pub(super) fn agent_response() -> Value {
    json!({
        "answer": "Paris",
        "reasoning": "Used web_search to find 'capital of France'. Top result from Wikipedia confirmed Paris.",
        "tool_calls": [{
            "tool_name": "web_search",
            "parameters": { "query": "capital of France", "max_results": 5 },
            "result": [{ "title": "Paris - Wikipedia", "url": "...", "snippet": "..." }],
            "duration_ms": 1234,
            "status": "SUCCESS"
        }],
        "confidence": 0.95
    })
}

pub(super) fn agent_response_without_calls() -> Value {
    json!({
        "answer": "Paris",
        "reasoning": "Found via web search",
        "tool_calls": [],
        "confidence": 0.95
    })
}

/// The documented example of an invalid response.
pub(super) fn invalid_agent_response() -> Value {
    json!({ "answer": "Paris", "reasoning": "", "tool_calls": [], "confidence": 1.5 })
}

pub(super) fn tool_gap_report() -> Value {
    json!({
        "missing_tools": ["financial_data_api", "account_access"],
        "attempted_task": "Retrieve my stock portfolio performance for Q3 2024",
        "existing_tools_checked": ["web_search", "read_file", "get_current_time", "memory_search"]
    })
}

pub(super) fn reasoning_step() -> Value {
    json!({
        "iteration": 1,
        "thought": "I need to find recent sales data for Q3",
        "action": "call_tool",
        "tool_name": "search_database",
        "tool_args": { "table": "sales", "filters": { "quarter": "Q3" } },
        "observation": "Found 1,250 sales records",
        "timestamp": 1_729_123_456.789,
        "duration_ms": 45.2
    })
}

pub(super) fn say_hello_invocation() -> Value {
    json!({
        "invocationToolName": "sayHello",
        "invocationArgs": { "name": "Ada" },
        "invocationResult": { "Right": "Hello, Ada! Nice to meet you." }
    })
}

#[test]
fn the_documented_examples_are_read() {
    use crate::records::{AgentResponse, ToolCallRecord, ToolInvocation};

    let record: ToolCallRecord = serde_json::from_value(tool_call_record()).unwrap();
    let written = serde_json::to_value(record).unwrap();
    let lower_case = super::with(tool_call_record(), "status", json!("success"));
    assert_eq!(written, lower_case);

    let response: AgentResponse = serde_json::from_value(agent_response()).unwrap();
    assert_eq!(response.tool_calls().len(), 1);
    assert!(serde_json::from_value::<AgentResponse>(agent_response_without_calls()).is_ok());
    super::read_error::<AgentResponse>(invalid_agent_response());

    let invocation: ToolInvocation = serde_json::from_value(say_hello_invocation()).unwrap();
    assert_eq!(
        serde_json::to_value(invocation).unwrap(),
        say_hello_invocation()
    );
}
