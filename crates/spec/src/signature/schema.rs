//! Signatures as JSON Schema (draft 2020-12), the form for models and other programs. The schemas are
//! self-contained: no references, no `$schema` key.

use serde_json::{Map, Value, json};

use super::{Field, Presence, Signature, Type};

impl Signature {
    /// The schema of the object of arguments.
    #[must_use]
    pub fn parameters_schema(&self) -> Value {
        Value::Object(closed_object(self.parameters()))
    }

    /// The schema of the returned value.
    #[must_use]
    pub fn returns_schema(&self) -> Value {
        self.returns().schema()
    }
}

impl Type {
    /// The schema of exactly the values of this type.
    #[must_use]
    pub fn schema(&self) -> Value {
        Value::Object(keywords(self))
    }
}

fn keywords(ty: &Type) -> Map<String, Value> {
    match ty {
        Type::Text => of_type("string"),
        Type::Integer => of_type("integer"),
        Type::Number => of_type("number"),
        Type::Boolean => of_type("boolean"),
        Type::Object => of_type("object"),
        Type::Array => of_type("array"),
        Type::Any => Map::new(),
        Type::List(item) => {
            let mut schema = of_type("array");
            schema.insert("items".to_owned(), item.schema());
            schema
        }
        Type::Record(fields) => closed_object(fields),
        Type::Enum(options) => {
            let mut schema = of_type("string");
            schema.insert("enum".to_owned(), json!(options));
            schema
        }
        Type::Nullable(inner) => {
            let mut schema = keywords(inner);
            if let Some(kind) = schema.get_mut("type") {
                *kind = json!([kind.take(), "null"]);
            }
            if let Some(Value::Array(options)) = schema.get_mut("enum") {
                options.push(Value::Null);
            }
            schema
        }
    }
}

fn of_type(kind: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), Value::from(kind))])
}

fn closed_object(fields: &[Field]) -> Map<String, Value> {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| (field.name.clone(), property(field)))
        .collect();
    let required: Vec<&str> = fields
        .iter()
        .filter(|field| field.is_required())
        .map(|field| field.name.as_str())
        .collect();
    let mut schema = of_type("object");
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("required".to_owned(), json!(required));
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    schema
}

fn property(field: &Field) -> Value {
    let mut schema = keywords(&field.ty);
    if let Some(description) = &field.description {
        schema.insert("description".to_owned(), Value::from(description.as_str()));
    }
    if let Presence::Default(value) = &field.presence {
        schema.insert("default".to_owned(), value.clone());
    }
    Value::Object(schema)
}
