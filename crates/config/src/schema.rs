//! The JSON Schema of the file, for editors. It is derived from the table of keys.

use serde_json::{Map, Value, json};

use crate::form::Form;
use crate::keys::{Key, ROOT, Shape};

/// The JSON Schema (draft 2020-12) of `windlass.toml`.
#[must_use]
pub fn schema() -> Value {
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "windlass.toml",
        "description": "The configuration of Windlass.",
    });
    extend(&mut schema, shape_schema(ROOT));
    schema
}

fn shape_schema(shape: Shape) -> Value {
    match shape {
        Shape::Boolean => json!({ "type": "boolean" }),
        Shape::Integer(range) => {
            json!({ "type": "integer", "minimum": range.min, "maximum": range.max })
        }
        Shape::Fraction => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Shape::Dollars => json!({
            "type": ["number", "string"],
            "minimum": 0,
            "pattern": "^\\s*\\$?[0-9]{1,13}(\\.[0-9]{1,6}0*)?\\s*$",
        }),
        Shape::Text(form) => text_schema(form),
        Shape::Words(words) => json!({ "type": "string", "enum": words }),
        Shape::Texts(form) => json!({ "type": "array", "items": text_schema(form) }),
        Shape::Anything => json!({ "type": "object" }),
        Shape::Table(keys) => json!({
            "type": "object",
            "properties": properties(keys),
            "additionalProperties": false,
        }),
        Shape::Map(map) => {
            let mut schema = json!({ "type": "object" });
            if !map.fixed.is_empty() {
                schema["properties"] = properties(map.fixed);
            }
            schema["propertyNames"] = map.names.schema();
            schema["additionalProperties"] = shape_schema(map.each);
            schema
        }
    }
}

fn text_schema(form: Form) -> Value {
    let mut schema = json!({ "type": "string" });
    extend(&mut schema, form.schema());
    schema
}

fn properties(keys: &[Key]) -> Value {
    let mut properties = Map::new();
    for key in keys {
        let mut schema = json!({ "description": key.about });
        extend(&mut schema, shape_schema(key.shape));
        if let Some(default) = key.default.value() {
            schema["default"] = default;
        }
        properties.insert(key.name.to_owned(), schema);
    }
    Value::Object(properties)
}

fn extend(schema: &mut Value, more: Value) {
    if let (Value::Object(schema), Value::Object(more)) = (schema, more) {
        schema.extend(more);
    }
}
