//! From a text to a user intent.

use serde_json::json;
use windlass_learn::intent::{IntentDefinitions, understand, unmet_context};
use windlass_reflex::{ToolIndex, ToolView};
use windlass_spec::{NonEmptyText, Signature, ToolName, ToolSpecification, UserIntent};

fn tool(name: &str, description: &str, signature: &str) -> ToolSpecification {
    ToolSpecification::new(
        ToolName::new(name).unwrap(),
        NonEmptyText::new(description).unwrap(),
        Signature::parse(signature).unwrap(),
    )
}

fn tools() -> Vec<ToolSpecification> {
    vec![
        tool(
            "http_get",
            "Fetch a page from the web by its URL",
            "(url: Text) --> Text",
        ),
        tool(
            "read_file",
            "Read the contents of a file",
            "(path: Text, limit: Int?) --> Text",
        ),
        tool(
            "get_weather",
            "Get the current weather of a city",
            "(city: Text, metric: Bool) --> Text",
        ),
        tool(
            "send_email",
            "Send an email to a recipient",
            "(recipient: Text, body: Text) --> Text",
        ),
    ]
}

fn understand_with(text: &str, tools: &[ToolSpecification]) -> Option<UserIntent> {
    let definitions = IntentDefinitions::shipped().unwrap();
    let classifier = definitions.train().unwrap();
    let index = ToolIndex::build(tools.iter().map(ToolView::from));
    understand(text, &classifier, &definitions, tools, &index)
}

fn understand_text(text: &str) -> UserIntent {
    understand_with(text, &tools()).unwrap_or_else(|| panic!("{text} was not understood"))
}

fn names(intent: &UserIntent) -> Vec<&str> {
    intent
        .suggested_tools()
        .iter()
        .map(ToolName::as_str)
        .collect()
}

#[test]
fn type_confidence_context_and_fallbacks_come_from_the_class() {
    let intent = understand_text("fetch the page at https://example.org/news");
    assert_eq!(intent.intent_type(), "fetch");
    assert!(intent.confidence().get() > 0.7, "{intent:?}");
    let definitions = IntentDefinitions::shipped().unwrap();
    let fetch = definitions.get("fetch").unwrap();
    assert_eq!(intent.context_requirements(), fetch.context);
    assert_eq!(intent.fallback_options(), fetch.fallbacks);
}

#[test]
fn only_existing_tools_of_the_class_are_suggested() {
    let intent = understand_text("fetch the page at https://example.org/news");
    let names = names(&intent);
    assert_eq!(names[0], "http_get");
    assert!(names.contains(&"read_file"), "{names:?}");
    // Declared for the class, but it does not exist.
    assert!(!names.contains(&"web_search"));
}

#[test]
fn tool_that_fits_the_text_is_suggested_before_the_tools_of_the_class() {
    let intent = understand_text("get the current weather in the city of Oslo");
    assert_eq!(names(&intent)[0], "get_weather", "{intent:?}");
}

#[test]
fn parameters_are_only_values_that_are_in_the_text() {
    let intent = understand_text("fetch the page at https://example.org/news");
    assert_eq!(
        json!(intent.parameters()),
        json!({ "url": "https://example.org/news" })
    );
    let intent = understand_text("get the current weather in the city of Oslo");
    // The text does not mention units.
    assert_eq!(json!(intent.parameters()), json!({ "city": "Oslo" }));
}

#[test]
fn missing_required_parameter_becomes_a_context_requirement() {
    let intent = understand_text("get the current weather in the city of Oslo");
    let last = intent.context_requirements().last().unwrap();
    assert_eq!(last.as_str(), "`metric` for the tool `get_weather`");
}

#[test]
fn out_of_scope_text_has_no_intent() {
    assert_eq!(understand_with("my cat likes tuna", &tools()), None);
    assert_eq!(understand_with("", &tools()), None);
}

#[test]
fn intent_is_found_without_tools() {
    let intent = understand_with("summarize this document for me", &[]).unwrap();
    assert_eq!(intent.intent_type(), "summarize");
    assert!(intent.suggested_tools().is_empty() && intent.parameters().is_empty());
}

#[test]
fn context_that_the_text_states_is_not_asked_for() {
    let definitions = IntentDefinitions::shipped().unwrap();
    let unmet = |text: &str| -> Vec<String> {
        let intent = understand_text(text);
        let unmet = unmet_context(&intent, &definitions);
        unmet.iter().map(ToString::to_string).collect()
    };
    let stated = "Download the page at https://example.org/report";
    assert!(unmet(stated).is_empty(), "{:?}", unmet(stated));
    // Neither the address nor what it belongs to is stated: both are to be asked for.
    let vague = unmet("Download the latest report");
    assert!(
        vague
            .iter()
            .any(|need| need.starts_with("what is to be fetched")),
        "{vague:?}"
    );
    assert!(
        vague.iter().any(|need| need.contains("for the tool `")),
        "{vague:?}"
    );
}
