//! Strategies: valid and invalid lines of a playbook.

use serde_json::{Value, json};

use crate::ToolName;
use crate::records::{
    StrategyError, StrategyId, StrategySection, StrategyWarning, ToolCallingStrategy,
    read_strategies,
};

fn full() -> Value {
    json!({
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
    })
}

fn with(field: &str, value: Value) -> Result<ToolCallingStrategy, String> {
    let mut line = full();
    line[field] = value;
    serde_json::from_value(line).map_err(|error| error.to_string())
}

#[test]
fn a_strategy_reads_back_as_it_was_written() {
    let strategy: ToolCallingStrategy = serde_json::from_value(full()).unwrap();
    assert_eq!(strategy.section, StrategySection::Strategies);
    assert_eq!(strategy.tool_sequence().len(), 3);
    assert_eq!(strategy.tool_success_rate(), Some(0.88));
    assert_eq!(strategy.avg_iterations(), Some(3.0));
    assert_eq!(json!(strategy), full());
}

#[test]
fn a_strategy_without_tools_is_written_unchanged() {
    let line = json!({
        "content": "Ask for the region first.", "section": "Observations",
        "helpful_count": 1, "harmful_count": 0, "tags": [],
    });
    let strategy: ToolCallingStrategy = serde_json::from_value(line.clone()).unwrap();
    assert!(strategy.tool_sequence().is_empty());
    assert_eq!(json!(strategy), line);
}

#[test]
fn tool_sequence_has_at_least_one_tool() {
    let error = with("tool_sequence", json!([])).unwrap_err();
    assert!(error.contains("at least one tool"), "{error}");
    assert!(with("tool_sequence", json!([""])).is_err());
}

#[test]
fn tool_success_rate_is_between_0_and_1() {
    for rate in [1.2, -0.1] {
        let error = with("tool_success_rate", json!(rate)).unwrap_err();
        assert!(error.contains("between 0.0 and 1.0"), "{error}");
    }
    assert!(with("tool_success_rate", json!(1.0)).is_ok());
}

#[test]
fn a_helpful_strategy_that_rarely_succeeds_gets_a_warning() {
    let strategy = with("tool_success_rate", json!(0.5)).unwrap();
    let warning = StrategyWarning::RarelySucceeds {
        helpful: 15,
        rate: 0.5,
    };
    assert_eq!(strategy.warning(), Some(warning));
    let strategy = with("tool_success_rate", json!(0.51)).unwrap();
    assert_eq!(strategy.warning(), None);
}

#[test]
fn all_tools_of_a_sequence_must_exist() {
    let strategy: ToolCallingStrategy = serde_json::from_value(full()).unwrap();
    let there = ["temporal_filter", "search_vector_db", "rank_result"];
    let missing = strategy.check_tools(there).unwrap_err();
    assert_eq!(
        missing[0].to_string(),
        "there is no tool `rank_results`; did you mean `rank_result`?"
    );
    let all = strategy.tool_sequence().iter().map(ToolName::as_str);
    assert!(strategy.check_tools(all).is_ok());
}

#[test]
fn a_section_is_one_of_three_in_any_case() {
    assert!(with("section", json!("pitfalls")).is_ok());
    let error = with("section", json!("Wisdom")).unwrap_err();
    assert!(
        error.contains("Strategies, Pitfalls, Observations"),
        "{error}"
    );
}

#[test]
fn content_is_not_empty() {
    let error = with("content", json!("  ")).unwrap_err();
    assert!(error.contains("content"), "{error}");
}

#[test]
fn avg_iterations_is_written_rounded() {
    let strategy = with("avg_iterations", json!(3.4)).unwrap();
    assert_eq!(strategy.avg_iterations(), Some(3.4));
    assert_eq!(json!(strategy)["avg_iterations"], json!(3));
    assert!(with("avg_iterations", json!(-1)).is_err());
    assert!(with("avg_iterations", json!("many")).is_err());
}

#[test]
fn a_newer_minor_version_is_read_and_its_fields_are_kept() {
    let mut line = full();
    line["data_model_version"] = json!("1.4.0");
    line["mood"] = json!({"good": true});
    let strategy: ToolCallingStrategy = serde_json::from_value(line.clone()).unwrap();
    assert_eq!(json!(strategy), line);
}

#[test]
fn a_newer_major_version_is_rejected() {
    let error = with("data_model_version", json!("2.0.0")).unwrap_err();
    assert!(
        error.contains("2.0.0") && error.contains("newer"),
        "{error}"
    );
    assert!(with("data_model_version", json!("soon")).is_err());
}

#[test]
fn a_strategy_id_is_short_and_plain() {
    assert!(StrategyId::new("s-0a1b").is_ok());
    for bad in ["", "a b", "../x", &"x".repeat(65)] {
        assert!(matches!(StrategyId::new(bad), Err(StrategyError::Id(_))));
    }
}

#[test]
fn invalid_lines_are_reported_and_the_others_are_used() {
    let mut wrong = full();
    wrong["tool_success_rate"] = json!(1.2);
    wrong["id"] = json!("s-1");
    let text = format!("{}\nnot json\n\n{wrong}\n[1]\n{{\"content\": \"cut", full());
    let read = read_strategies(&text);
    assert_eq!(read.strategies.len(), 1);
    let messages: Vec<String> = read.errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        read.errors
            .iter()
            .map(|error| error.line)
            .collect::<Vec<_>>(),
        [2, 4, 5, 6]
    );
    assert!(messages[1].contains("between 0.0 and 1.0"), "{messages:?}");
    assert_eq!(read.errors[1].id, StrategyId::new("s-1").ok());
    assert_eq!(
        read.errors
            .iter()
            .map(|error| error.is_torn)
            .collect::<Vec<_>>(),
        [false, false, false, true]
    );
}

#[test]
fn the_id_of_an_invalid_line_is_found() {
    let id = |line: &str| {
        let read = read_strategies(line);
        let id = read.errors[0].id.as_ref();
        id.map(|id| id.as_str().to_owned())
    };
    assert_eq!(
        id(r#"{"content":"x","id":"s-1","section":"Strat"#),
        Some("s-1".to_owned())
    );
    assert_eq!(id(r#"{content:"x", "id" : "s-1"}"#), Some("s-1".to_owned()));
    assert_eq!(
        id(r#"{"content":"say \"id\": \"no\"","id":"s-1""#),
        Some("s-1".to_owned())
    );
    assert_eq!(id(r#"{"content":"x","id":"s-"#), None);
    assert_eq!(id("no json"), None);
}
