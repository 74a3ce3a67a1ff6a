//! Unusual texts, schemas and requests.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_core::model::{ChatMessage, FINISH, ModelRequest};
use windlass_reflex::{Choice, Reflex, Settings, ToolView};

fn choose(task: &str, schema: &Value) -> Option<Choice> {
    let tool = ToolView {
        name: "get_weather",
        description: "Get the weather of a city",
        input_schema: schema,
    };
    Reflex::new(Settings::default()).choose(task, &[tool])
}

fn city() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string", "description": "The city"}}, "required": ["city"]})
}

#[test]
fn unusual_texts_get_a_decision_without_a_panic() {
    let long = "lorem ipsum 12, ".repeat(330_000);
    let brackets = "[({'\"".repeat(100_000);
    let digits = "9".repeat(1_000_000);
    let commas = "1, ".repeat(300_000);
    for text in [
        "",
        " ",
        "\n",
        "🦀🎉🥑👩‍👩‍👧‍👦",
        "東京の天気は？",
        "ما هو الطقس في القاهرة؟",
        "Какая погода в Москве?",
        "ß ſ İ ŉ ǰ",
        "\u{202e}\u{0}\u{feff}",
        "-",
        "1e999999",
        "$-%",
        "''",
        "e.g.",
        "of of of of",
        &long,
        &brackets,
        &digits,
        &commas,
    ] {
        let started = Instant::now();
        let choice = choose(text, &city()).expect("there is a tool");
        assert!((0.0..=1.0).contains(&choice.confidence));
        println!("{} bytes {:?}", text.len(), started.elapsed());
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{} bytes took {:?}",
            text.len(),
            started.elapsed()
        );
    }
}

#[test]
fn unusual_schemas_get_a_decision_without_a_panic() {
    let mut many = serde_json::Map::new();
    for index in 0..300 {
        many.insert(
            format!("field_{index}"),
            json!({"type": "string", "description": "A field of the form"}),
        );
    }
    let recursive = json!({"$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}, "v": {"type": "integer"}}, "required": ["n", "v"]}},
        "type": "object", "properties": {"root": {"$ref": "#/$defs/n"}}, "required": ["root"]});
    for schema in [
        json!({}),
        json!(null),
        json!(true),
        json!([]),
        json!("x"),
        json!({"type": "object"}),
        json!({"properties": 3, "required": "city"}),
        json!({"properties": {"": {}, "a": null, "b": {"type": 7}, "c": {"enum": []}, "d": {"enum": [null, 1, {"x": []}]}}, "required": ["a", "zz"]}),
        json!({"properties": {"city": {"anyOf": [{"type": "null"}, {"type": "string"}]}}, "required": ["city"]}),
        json!({"properties": {"self": {"$ref": "#"}}, "required": ["self"]}),
        json!({"properties": {"tags": {"type": "array"}, "grid": {"type": "array", "items": {"type": "array", "items": {"type": "array"}}}}}),
        recursive,
        json!({"type": "object", "properties": many}),
    ] {
        let started = Instant::now();
        let choice = choose(
            "What is the weather in Paris on 5 May 2024 at 3pm for 20 people?",
            &schema,
        );
        assert!(choice.is_some());
        assert!(started.elapsed() < Duration::from_secs(2), "{schema}");
    }
}

#[test]
fn a_nullable_parameter_is_filled_like_its_type() {
    let schema = json!({"properties": {"city": {"anyOf": [{"type": "null"}, {"type": "string", "description": "The city"}]}}, "required": ["city"]});
    let choice = choose("What is the weather in Paris?", &schema).unwrap();
    assert_eq!(choice.arguments, json!({"city": "Paris"}));
}

#[test]
fn the_right_tool_is_found_among_five_thousand() {
    let mut names: Vec<(String, String)> = (0..5_000)
        .map(|index| {
            let mut description = String::new();
            let _ = write!(
                description,
                "Manage record {index} of the archive and its entries"
            );
            (format!("archive_record_{index}"), description)
        })
        .collect();
    names[4_321] = (
        "get_weather".to_owned(),
        "Get the weather of a city".to_owned(),
    );
    let schema = city();
    let tools: Vec<ToolView<'_>> = names
        .iter()
        .map(|(name, description)| ToolView {
            name,
            description,
            input_schema: &schema,
        })
        .collect();
    let started = Instant::now();
    let choice = Reflex::new(Settings::default())
        .choose("What is the weather in Paris?", &tools)
        .unwrap();
    assert_eq!(choice.index, 4_321);
    assert_eq!(choice.arguments, json!({"city": "Paris"}));
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn empty_requests_are_finished() {
    let reflex = Reflex::new(Settings::default());
    for messages in [
        vec![],
        vec![ChatMessage::User {
            content: String::new(),
        }],
        vec![ChatMessage::System {
            content: "🦀".to_owned(),
        }],
    ] {
        let answer = reflex.answer(&ModelRequest {
            messages: messages.into_iter().map(Arc::new).collect(),
            tools: vec![],
        });
        assert_eq!(answer.calls.len(), 1);
        assert_eq!(answer.calls[0].tool, FINISH);
    }
}
