//! What a model is shown of a tool. Nothing is hidden in it: a description that was written to be read by a
//! model and not by people shows its hidden characters as escapes.

use std::borrow::Cow;

use serde_json::Value;
use windlass_spec::ToolSpecification;
use windlass_spec::text::{TextUse, escape};

/// The keys of a JSON Schema whose texts a model only reads. The others are values that it has to repeat.
const PROSE: [&str; 3] = ["description", "title", "$comment"];

/// The description of a tool.
pub(crate) fn shown_description(tool: &ToolSpecification) -> Cow<'_, str> {
    escape(tool.description(), TextUse::Model)
}

/// The schema of a tool's arguments.
pub(crate) fn shown_schema(tool: &ToolSpecification) -> Value {
    let mut schema = tool.schema().clone();
    escape_prose(&mut schema);
    schema
}

fn escape_prose(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(escape_prose),
        Value::Object(entries) => {
            for (key, value) in entries {
                match value {
                    Value::String(text) if PROSE.contains(&key.as_str()) => {
                        if let Cow::Owned(shown) = escape(text, TextUse::Model) {
                            *text = shown;
                        }
                    }
                    other => escape_prose(other),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prose_shows_what_is_hidden_and_values_stay() {
        let hidden = "a\u{202e}b\u{e0041}";
        let mut schema = json!({
            "description": hidden,
            "properties": {"x": {"description": hidden, "enum": [hidden]}},
        });
        escape_prose(&mut schema);
        let shown = "a\\u{202e}b\\u{e0041}";
        assert_eq!(
            schema,
            json!({
                "description": shown,
                "properties": {"x": {"description": shown, "enum": [hidden]}},
            })
        );
    }
}
