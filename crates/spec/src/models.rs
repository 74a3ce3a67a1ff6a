//! The JSON Schemas of all public models, with examples.

use serde_json::{Value, json};

use crate::envelope::{
    InterventionType, SecurityLevel, ToolStatus, stream_frame_schema, tool_response_schema,
};
use crate::records::record_schemas;
use crate::registry::registry_schemas;
use crate::risk::RiskLevel;
use crate::tool::{EnvelopeUse, TimeoutSeconds};

/// The version of JSON Schema.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The JSON Schema of every public model, by name.
#[must_use]
pub fn model_schemas() -> Vec<(&'static str, Value)> {
    let mut schemas = record_schemas();
    schemas.extend(registry_schemas());
    schemas.push(("ToolResponse", tool_response_schema()));
    schemas.push(("StreamFrame", stream_frame_schema()));
    schemas.push(("Agent", with_examples("Agent", agent_schema())));
    let tool = with_examples("ToolSpecification", tool_schema());
    schemas.push(("ToolSpecification", tool));
    schemas.extend(word_schemas());
    schemas.sort_by_key(|(name, _)| *name);
    schemas
}

/// The schemas of the closed sets of words.
fn word_schemas() -> Vec<(&'static str, Value)> {
    let of = |name: &'static str, description: &str, words: &[&str]| {
        let schema = json!({
            "$schema": DIALECT, "title": name, "description": description, "type": "string", "enum": words,
        });
        (name, schema)
    };
    vec![
        of(
            "InterventionType",
            "What a person has to do by hand.",
            &InterventionType::ALL.map(InterventionType::as_str),
        ),
        of(
            "RiskLevel",
            "How reversible a call is.",
            &RiskLevel::ALL.map(RiskLevel::as_str),
        ),
        of(
            "SecurityLevel",
            "How an approval of a call is confirmed.",
            &SecurityLevel::ALL.map(SecurityLevel::as_str),
        ),
        of(
            "ToolStatus",
            "How a call ended.",
            &ToolStatus::ALL.map(ToolStatus::as_str),
        ),
    ]
}

/// The schema of an agent in JSON.
fn agent_schema() -> Value {
    let text = json!({ "type": "string", "pattern": "\\S" });
    json!({
        "$schema": DIALECT,
        "title": "Agent",
        "description": "An agent, as `windlass agent show --json` writes it.",
        "type": "object",
        "properties": {
            "name": { "type": "string", "pattern": "\\S" },
            "description": text,
            "model": { "description": "The provider and the id of the model, such as `OpenAI/gpt-4o-mini`.",
                "type": "string", "pattern": "\\S" },
            "instruction": text,
            "tools": { "type": "array", "items": { "$ref": "#/$defs/ToolSpecification" } },
            "agents": { "description": "The names of its sub-agents.", "type": "array", "items": text },
            "flow": {
                "description": "The order of its work.",
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": { "from": text, "to": text },
                    "required": ["from", "to"],
                },
            },
        },
        "required": ["name", "model", "instruction"],
        "additionalProperties": false,
        "$defs": { "ToolSpecification": tool_object() },
    })
}

/// The schema of a declared tool in JSON.
fn tool_schema() -> Value {
    let mut schema = json!({
        "$schema": DIALECT,
        "title": "ToolSpecification",
        "description": "A declared tool, as `windlass agent show --json` writes it.",
    });
    if let (Some(fields), Value::Object(object)) = (schema.as_object_mut(), tool_object()) {
        fields.extend(object);
    }
    schema
}

fn tool_object() -> Value {
    let text = json!({ "type": "string", "pattern": "\\S" });
    let flag = json!({ "type": "boolean" });
    json!({
        "type": "object",
        "properties": {
            "name": text,
            "description": text,
            "typeSignature": { "description": "What it takes and returns, such as `(city: Text) --> IO Text`.",
                "type": "string", "pattern": "\\S" },
            "risk": { "type": "string", "enum": RiskLevel::ALL.map(RiskLevel::as_str) },
            "category": text,
            "timeout_seconds": { "type": "integer", "minimum": 1, "maximum": TimeoutSeconds::MAX },
            "idempotent": flag,
            "cacheable": flag,
            "open_world": flag,
            "sensitive": flag,
            "undo_window_seconds": { "type": "integer", "minimum": 0 },
            "deferred": flag,
            "dry_run_argument": { "type": "string" },
            "envelope": { "type": "string", "enum": EnvelopeUse::ALL.map(EnvelopeUse::as_str) },
            "deprecated": text,
            "metadata": { "type": "object" },
            "schema": { "description": "The JSON Schema of `typeSignature`. It can be omitted.", "type": "object" },
        },
        "required": ["name", "description", "typeSignature"],
        "additionalProperties": false,
    })
}

/// Adds the examples of a model to its schema.
pub(crate) fn with_examples(name: &str, mut schema: Value) -> Value {
    let examples = examples(name);
    if let (false, Some(fields)) = (examples.is_empty(), schema.as_object_mut()) {
        fields.insert("examples".to_owned(), examples.into());
    }
    schema
}

fn examples(name: &str) -> Vec<Value> {
    match name {
        "Agent" => vec![json!({
            "name": "weather_agent", "description": "Answers questions about the weather",
            "model": "OpenAI/gpt-4o-mini", "instruction": "Answer with the forecast.",
            "tools": [get_weather()],
        })],
        "ToolSpecification" => vec![get_weather()],
        "AgentResponse" => vec![json!({
            "answer": "Paris",
            "reasoning": "Used web_search to find 'capital of France'. Top result from Wikipedia confirmed Paris.",
            "tool_calls": [{
                "tool_name": "web_search",
                "parameters": {"query": "capital of France", "max_results": 5},
                "result": [{"title": "Paris - Wikipedia", "url": "...", "snippet": "..."}],
                "duration_ms": 1234,
                "status": "success",
            }],
            "confidence": 0.95,
        })],
        "ToolCallRecord" => vec![json!({
            "tool_name": "web_search",
            "parameters": {"query": "capital of France", "max_results": 5},
            "result": [{
                "title": "Paris - Wikipedia", "url": "https://...",
                "snippet": "Paris is the capital...",
            }],
            "duration_ms": 1234,
            "status": "success",
        })],
        "ToolGapReport" => vec![json!({
            "missing_tools": ["financial_data_api", "account_access"],
            "attempted_task": "Retrieve my stock portfolio performance for Q3 2024",
            "existing_tools_checked": ["web_search", "read_file", "get_current_time", "memory_search"],
        })],
        "ReasoningStep" => vec![json!({
            "iteration": 1,
            "thought": "I need to find recent sales data for Q3",
            "action": "call_tool",
            "tool_name": "search_database",
            "tool_args": {"table": "sales", "filters": {"quarter": "Q3"}},
            "observation": "Found 1,250 sales records",
            "timestamp": 1_729_123_456.789,
            "duration_ms": 45.2,
        })],
        "ToolCallingStrategy" => vec![json!({
            "content": "For database queries about recent data, apply temporal filter first, then search vector DB, then rank results",
            "section": "Strategies",
            "helpful_count": 15,
            "harmful_count": 2,
            "tags": ["rag", "database", "temporal"],
            "tool_sequence": ["temporal_filter", "search_vector_db", "rank_results"],
            "tool_success_rate": 0.88,
            "avg_iterations": 3,
            "example_task": "Find Q3 sales data for enterprise customers",
            "created_at": "2025-10-16T10:30:00Z",
            "last_updated": "2025-10-16T15:45:00Z",
        })],
        "StreamFrame" => vec![
            json!({"type": "progress", "content": "Processing...", "step": 1, "total": 5}),
            json!({"type": "content", "content": "Result data..."}),
            json!({"type": "done"}),
        ],
        "ToolResponse" => tool_responses(),
        _ => Vec::new(),
    }
}

fn get_weather() -> Value {
    json!({
        "name": "get_weather", "description": "Gets the weather of a city",
        "typeSignature": "(city: Text) --> IO Text", "risk": "reversible", "timeout_seconds": 10,
    })
}

/// One answer of each kind.
fn tool_responses() -> Vec<Value> {
    const AT: &str = "2025-10-18T09:30:00Z";
    vec![
        json!({
            "status": "success", "action": "web_search",
            "data": {"total": 10, "results": [{"title": "Paris - Wikipedia"}]}, "timestamp": AT,
        }),
        json!({
            "status": "error", "action": "web_search", "data": {}, "error": "Error message",
            "category": "tool_failure", "retryable": false, "effect": "none", "timestamp": AT,
        }),
        json!({
            "status": "human_input_requested", "action": "ask_human", "hil_required": true,
            "message": "Which account?",
            "data": {
                "question": "Which account?", "context": "Two accounts match.", "user_id": "ada",
                "instruction": "Answer with a number.",
            },
            "timestamp": AT,
        }),
        json!({
            "status": "authorization_requested", "action": "request_authorization",
            "hil_required": true, "message": "It is no longer needed.",
            "data": {
                "request_id": "req-1", "tool_name": "delete_file",
                "tool_args": {"path": "/data/important.txt"}, "reason": "It is no longer needed.",
                "security_level": "HIGH", "user_id": "ada", "expires_at": "2025-10-19T09:30:00Z",
                "instruction": "Check the path.",
            },
            "timestamp": AT,
        }),
        json!({
            "hil_required": true, "status": "authorization_required",
            "action": "request_authorization",
            "message": "Found stored credentials for Google. Authorize usage?",
            "data": {
                "auth_type": "social", "provider": "google", "url": "https://accounts.google.com",
                "credential_preview": {
                    "provider": "google", "vault_id": "vault_xxx", "stored_at": "2025-01-15",
                },
            },
            "timestamp": AT,
        }),
        json!({
            "hil_required": true, "status": "human_required", "action": "ask_human",
            "message": "CAPTCHA detected. Please solve manually.",
            "data": {
                "intervention_type": "captcha", "provider": "example.org",
                "url": "https://example.org/",
            },
            "timestamp": AT,
        }),
        json!({
            "status": "in_progress", "action": "create_execution_plan",
            "data": {
                "plan_id": "plan-1", "tasks": [{"id": "a"}, {"id": "b"}],
                "execution_mode": "sequential", "dependencies": {"b": ["a"]},
            },
            "timestamp": AT,
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::model_schemas;
    use crate::{
        Agent, AgentResponse, ReasoningStep, StreamFrame, ToolCallRecord, ToolCallingStrategy,
        ToolGapReport, ToolResponse, ToolSpecification,
    };

    #[test]
    fn every_example_is_valid_by_its_schema_and_can_be_read() {
        let mut count = 0;
        for (name, schema) in model_schemas() {
            let validator = jsonschema::validator_for(&schema).unwrap();
            let examples = schema["examples"].as_array().cloned().unwrap_or_default();
            for example in examples {
                let errors: Vec<String> = validator
                    .iter_errors(&example)
                    .map(|error| error.to_string())
                    .collect();
                assert!(errors.is_empty(), "{name}: {errors:?}");
                let read = match name {
                    "Agent" => serde_json::from_value::<Agent>(example).map(drop),
                    "ToolSpecification" => {
                        serde_json::from_value::<ToolSpecification>(example).map(drop)
                    }
                    "AgentResponse" => serde_json::from_value::<AgentResponse>(example).map(drop),
                    "ToolCallRecord" => serde_json::from_value::<ToolCallRecord>(example).map(drop),
                    "ToolGapReport" => serde_json::from_value::<ToolGapReport>(example).map(drop),
                    "ReasoningStep" => serde_json::from_value::<ReasoningStep>(example).map(drop),
                    "ToolCallingStrategy" => {
                        serde_json::from_value::<ToolCallingStrategy>(example).map(drop)
                    }
                    "StreamFrame" => serde_json::from_value::<StreamFrame>(example).map(drop),
                    "ToolResponse" => serde_json::from_value::<ToolResponse>(example).map(drop),
                    other => panic!("no reader for the example of {other}"),
                };
                read.unwrap();
                count += 1;
            }
        }
        assert_eq!(count, 17);
    }

    #[test]
    fn an_agent_in_json_is_valid_by_its_schema() {
        let text = "[a:Agent {description: \"Does it\", instruction: \"Do it.\", model: \"OpenAI/m\"} |
            [b:Agent {description: \"Helps\", instruction: \"Help.\", model: \"OpenAI/m\"}],
            [t:Tool {description: \"Reads a file\", risk: irreversible, timeout_seconds: 5, idempotent: true,
                envelope: never, category: \"files\"} | (path::Text)==>(::Text)]]";
        let file = crate::read(text).file.unwrap();
        let schemas = model_schemas();
        let (_, schema) = schemas.iter().find(|(name, _)| *name == "Agent").unwrap();
        let validator = jsonschema::validator_for(schema).unwrap();
        for agent in file.agents() {
            let json = serde_json::to_value(agent).unwrap();
            let errors: Vec<String> = validator
                .iter_errors(&json)
                .map(|e| e.to_string())
                .collect();
            assert!(errors.is_empty(), "{errors:?}: {json}");
        }
        for name in [
            "RiskLevel",
            "SecurityLevel",
            "ToolStatus",
            "InterventionType",
        ] {
            assert!(schemas.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}
