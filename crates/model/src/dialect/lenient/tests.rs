use proptest::prelude::*;
use serde_json::json;
use windlass_core::model::{FINISH, RequestedArguments};

use super::*;

fn offered(name: &str) -> bool {
    ["search", "add", FINISH].contains(&name)
}

fn read(text: &str) -> ParsedText {
    parse_calls(text, &offered)
}

fn call(tool: &str, arguments: Value) -> RequestedCall {
    RequestedCall {
        tool: tool.to_owned(),
        arguments: RequestedArguments::Json(arguments),
        confidence: None,
    }
}

fn search() -> RequestedCall {
    call("search", json!({"query": "rust"}))
}

#[test]
fn all_known_forms_of_a_call_are_parsed() {
    let forms = [
        r#"{"name": "search", "arguments": {"query": "rust"}}"#,
        r#"{"name": "search", "arguments": "{\"query\": \"rust\"}"}"#,
        r#"{"name": "search", "parameters": {"query": "rust"}}"#,
        r#"{"type": "function", "function": {"name": "search", "arguments": {"query": "rust"}}}"#,
        r#"{"function": "search", "args": {"query": "rust"}}"#,
        r#"{"tool": "search", "tool_input": {"query": "rust"}}"#,
        r#"{"action": "search", "action_input": {"query": "rust"}}"#,
        r#"{"action": "call_tool", "tool_name": "search", "tool_args": {"query": "rust"}}"#,
        r#"[{"name": "search", "arguments": {"query": "rust"}}]"#,
        r#"{"tool_calls": [{"function": {"name": "search", "arguments": {"query": "rust"}}}]}"#,
        "```json\n{\"name\": \"search\", \"arguments\": {\"query\": \"rust\"}}\n```",
        "```\n{\"name\": \"search\", \"arguments\": {\"query\": \"rust\",}}\n```",
        "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"rust\"}}\n</tool_call>",
        "<tool_call>{\"name\": \"search\", \"arguments\": {\"query\": \"rust\"}}",
        "<function_call>{\"name\": \"search\", \"arguments\": {\"query\": \"rust\"}}</function_call>",
        "[TOOL_CALLS][{\"name\": \"search\", \"arguments\": {\"query\": \"rust\"}}]",
    ];
    for form in forms {
        assert_eq!(read(form).calls, [search()], "{form}");
    }
}

#[test]
fn prose_around_a_call_is_kept_as_text() {
    let found = read(
        "I will look {that} up.\n```json\n{\"name\": \"search\", \"arguments\": {\"query\": \"rust\"}}\n```\nOne moment.",
    );
    assert_eq!(found.calls, [search()]);
    assert_eq!(found.text, "I will look {that} up.\nOne moment.");
}

#[test]
fn several_calls_are_parsed_in_order() {
    let add = call("add", json!({"a": 1}));
    for text in [
        "<tool_call>{\"name\":\"search\",\"arguments\":{\"query\":\"rust\"}}</tool_call>\n<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}}</tool_call>",
        "{\"name\":\"search\",\"arguments\":{\"query\":\"rust\"}}\n{\"name\":\"add\",\"arguments\":{\"a\":1}}",
        "First {\"name\":\"search\",\"arguments\":{\"query\":\"rust\"}}, then {\"name\":\"add\",\"arguments\":{\"a\":1}}",
    ] {
        assert_eq!(read(text).calls, [search(), add.clone()], "{text}");
    }
}

#[test]
fn a_structured_step_has_a_thought_and_a_confidence() {
    let found = read(
        r#"{"thought": "Look it up.", "action": "call_tool", "tool_name": "search", "tool_args": {"query": "rust"}, "confidence": 0.8}"#,
    );
    assert_eq!(found.thought.as_deref(), Some("Look it up."));
    assert_eq!(
        found.calls,
        [RequestedCall {
            confidence: Some(0.8),
            ..search()
        }]
    );

    let finish = call(
        FINISH,
        json!({"answer": "42", "reasoning": "Known.", "confidence": 1.5}),
    );
    for text in [
        r#"{"thought": "", "action": "finish", "answer": "42", "reasoning": "Known.", "confidence": 1.5}"#,
        r#"{"answer": "42", "reasoning": "Known.", "confidence": 1.5}"#,
        r#"{"action": "finish", "tool_name": "finish", "tool_args": {"answer": "42", "reasoning": "Known.", "confidence": 1.5}}"#,
        r#"{"action": "call_tool", "tool_name": "finish", "tool_args": {"answer": "42", "reasoning": "Known.", "confidence": 1.5}, "confidence": 1}"#,
    ] {
        assert_eq!(read(text).calls, std::slice::from_ref(&finish), "{text}");
    }
}

#[test]
fn an_unknown_tool_is_a_call_alone_but_not_in_prose() {
    let invented = call("teleport", json!({"to": "Mars"}));
    assert_eq!(
        read(r#"{"name": "teleport", "arguments": {"to": "Mars"}}"#).calls,
        [invented]
    );
    let prose = r#"A call looks like {"name": "teleport", "arguments": {"to": "Mars"}} in JSON."#;
    assert_eq!(
        read(prose),
        ParsedText {
            text: prose.to_owned(),
            ..ParsedText::default()
        }
    );
}

#[test]
fn a_text_without_a_call_is_unchanged() {
    for text in [
        "",
        "Rust is a language.",
        "  two spaces  ",
        r#"{"name": "Bob", "input": "x"}"#,
        r#"{"name": "Bob", "age": 3}"#,
        r#"{"answer": "42"}"#,
        "[1, 2, 3]",
        "{\"name\": \"search\", \"arguments\": {\"query\": \"ru",
        "<tool_call>{\"name\": \"search\", \"argum",
        "fn main() { let a = [1]; }",
    ] {
        assert_eq!(
            read(text),
            ParsedText {
                text: text.to_owned(),
                ..ParsedText::default()
            },
            "{text}"
        );
    }
}

#[test]
fn a_think_block_is_a_thought() {
    let found = read("<think>\nMaybe {\"name\": \"add\", \"arguments\": {}}\n</think>\n\nIt is 4.");
    assert_eq!(
        found.thought.as_deref(),
        Some("Maybe {\"name\": \"add\", \"arguments\": {}}")
    );
    assert_eq!((found.text.as_str(), found.calls.len()), ("It is 4.", 0));
}

#[test]
fn many_brackets_are_parsed_quickly() {
    for unit in ["{", "[", "{\"a\":", "[{", "<tool_call>", "{\"", "[1,"] {
        assert_eq!(read(&unit.repeat(200_000)).calls, []);
    }
}

proptest! {
    #[test]
    fn parsing_never_panics(text in r#"([{}\[\]",:`<>/a-z0-9 \n\\é]|"name"|"arguments"|<tool_call>|```json|search){0,60}"#) {
        let found = read(&text);
        prop_assert!(!found.calls.is_empty() || found.thought.is_some() || found.text == text);
    }

    #[test]
    fn a_call_in_prose_is_found_with_any_arguments(
        before in "[a-zA-Z .,é{]{0,30}", after in "[a-zA-Z .,é}]{0,30}", query in ".{0,40}",
    ) {
        let wanted = call("search", json!({"query": query}));
        let written = json!({"name": "search", "arguments": {"query": query}});
        let found = read(&format!("{before} {written} {after}"));
        prop_assert_eq!(found.calls, [wanted]);
    }
}
