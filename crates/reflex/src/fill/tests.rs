//! Arguments from texts and schemas.

use serde_json::{Value, json};

use crate::{Reflex, Settings, ToolView};

fn filled(task: &str, properties: &Value, required: &[&str]) -> Value {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let tool = ToolView {
        name: "work",
        description: "Does the work",
        input_schema: &schema,
    };
    let choice = Reflex::new(Settings::default())
        .choose(task, &[tool])
        .unwrap();
    choice.arguments
}

#[test]
fn numbers_are_assigned_by_the_words_around_them() {
    let properties = json!({"base": {"type": "integer", "description": "The base"}, "height": {"type": "integer", "description": "The height"}});
    for task in [
        "a base of 10 units and a height of 5 units",
        "height 5, base 10",
        "the lengths of its base and height are 10 and 5",
        "base=10 height=5",
    ] {
        assert_eq!(
            filled(task, &properties, &["base", "height"]),
            json!({"base": 10, "height": 5}),
            "{task}"
        );
    }
}

#[test]
fn numbers_are_assigned_by_their_units() {
    let properties = json!({"weight": {"type": "number", "description": "Weight in kilograms"}, "height": {"type": "number", "description": "Height in meters"}});
    assert_eq!(
        filled(
            "she is 175 cm tall and weighs 70 kg",
            &properties,
            &["weight", "height"]
        ),
        json!({"weight": 70, "height": 1.75})
    );
}

#[test]
fn optional_arguments_are_omitted_unless_stated() {
    let properties = json!({
        "city": {"type": "string", "description": "The city"},
        "days": {"type": "integer", "description": "Number of days. Default is 7."},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "The unit"},
        "include_wind": {"type": "boolean", "description": "Whether to include wind"}});
    assert_eq!(
        filled("the forecast for Paris", &properties, &["city"]),
        json!({"city": "Paris"})
    );
    assert_eq!(
        filled(
            "the forecast for Paris for 3 days in celsius, include wind",
            &properties,
            &["city"]
        ),
        json!({"city": "Paris", "days": 3, "unit": "celsius", "include_wind": true})
    );
    assert_eq!(
        filled(
            "the forecast for Paris without wind",
            &properties,
            &["city"]
        ),
        json!({"city": "Paris", "include_wind": false})
    );
}

#[test]
fn origin_and_destination_are_distinguished() {
    let properties = json!({"destination": {"type": "string", "description": "End point"}, "origin": {"type": "string", "description": "Starting point"}});
    for task in [
        "go from Berlin to Rome",
        "the way to Rome from Berlin",
        "between Berlin and Rome",
    ] {
        assert_eq!(
            filled(task, &properties, &["origin", "destination"]),
            json!({"origin": "Berlin", "destination": "Rome"}),
            "{task}"
        );
    }
}

#[test]
fn lists_are_filled_from_rows_and_brackets() {
    let properties = json!({"numbers": {"type": "array", "items": {"type": "integer"}, "description": "The numbers"}});
    for task in ["the mean of 3, 4 and 5", "the mean of [3, 4, 5]"] {
        assert_eq!(
            filled(task, &properties, &["numbers"]),
            json!({"numbers": [3, 4, 5]}),
            "{task}"
        );
    }
    let properties = json!({"colours": {"type": "array", "items": {"type": "string", "enum": ["red", "green", "blue"]}}});
    assert_eq!(
        filled("mix blue with red", &properties, &["colours"]),
        json!({"colours": ["blue", "red"]})
    );
}

#[test]
fn records_are_filled_field_by_field() {
    let properties = json!({"area": {"type": "object", "properties": {"width": {"type": "integer"}, "depth": {"type": "integer"}}, "required": ["width", "depth"]}});
    assert_eq!(
        filled("a width of 20 and a depth of 12", &properties, &["area"]),
        json!({"area": {"width": 20, "depth": 12}})
    );
}

#[test]
fn values_with_a_known_format_are_assigned_by_it() {
    let properties = json!({"to": {"type": "string", "description": "E-mail address of the recipient"}, "file": {"type": "string", "description": "Path of the file"}, "when": {"type": "string", "description": "The date, DD/MM/YYYY"}, "page": {"type": "string", "description": "The URL of the page"}});
    assert_eq!(
        filled(
            "on March 4, 2024 mail /tmp/a.pdf and https://x.org/y to ann@site.org",
            &properties,
            &["to", "file", "when", "page"]
        ),
        json!({"to": "ann@site.org", "file": "/tmp/a.pdf", "when": "04/03/2024", "page": "https://x.org/y"})
    );
}
