//! The OpenAPI document, made from the routes and the schemas of the types that they take and return.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::problem::{OpenAiError, Problem};
use crate::route::{Access, ErrorForm, Route};
use crate::routes::routes;

/// The OpenAPI 3.1 document of the API.
#[must_use]
pub fn document() -> Value {
    describe(&routes())
}

pub(crate) fn describe(routes: &[Route]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = SchemaGenerator::new(settings);
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let operation = operation(route, &mut generator);
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method.as_str().to_lowercase()] = operation;
    }
    let problem = generator.subschema_for::<Problem>();
    let openai_error = generator.subschema_for::<OpenAiError>();
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Windlass",
            "description": "Start runs of agents, follow them, and decide what they ask for. Every error is a problem \
                            document (RFC 9457) with a stable `code`.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http", "scheme": "bearer",
                    "description": "A token of `windlass token create`.",
                },
            },
            "responses": {
                "Problem": {
                    "description": "The request was refused or failed.",
                    "content": {"application/problem+json": {"schema": problem}},
                },
                "OpenAiError": {
                    "description": "The request was refused or failed. Refused for its `Host` or `Origin`, it is a \
                                    problem document.",
                    "content": {
                        "application/json": {"schema": openai_error},
                        "application/problem+json": {"schema": problem},
                    },
                },
            },
            "schemas": schemas,
        },
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.summary,
        "tags": [tag(route.path)],
    });
    match route.access {
        Access::Public => operation["security"] = json!([]),
        Access::Token(scope) => {
            operation["description"] = json!(format!("Needs a token with the scope `{scope}`."));
        }
    }
    let mut parameters = path_parameters(route.path);
    if let Some(query) = route.query {
        parameters.extend(query_parameters(query(generator), generator));
    }
    if route.starts_run {
        parameters.extend(start_parameters());
    }
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = route.body {
        let schema = body(generator);
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    let mut responses = Map::new();
    for answer in &route.answers {
        let mut response = json!({"description": answer.description});
        let status = answer.status.as_u16().to_string();
        if let Some((kind, schema)) = answer.content {
            // One status can have several kinds of content.
            let before = responses.get(&status).map(|before| &before["content"]);
            let mut content = before.cloned().unwrap_or_else(|| json!({}));
            content[kind] = json!({"schema": schema(generator)});
            response["content"] = content;
        }
        responses.insert(status, response);
    }
    let errors = match route.errors {
        ErrorForm::Problem => "Problem",
        ErrorForm::OpenAi => "OpenAiError",
    };
    responses.insert(
        "default".to_owned(),
        json!({"$ref": format!("#/components/responses/{errors}")}),
    );
    operation["responses"] = Value::Object(responses);
    operation
}

/// The first part of a path that says what it is about.
fn tag(path: &str) -> &str {
    let mut parts = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != "v1");
    parts.next().unwrap_or("server")
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names
        .map(|name| {
            json!({
                "name": name, "in": "path", "required": true,
                "schema": {"type": "string", "minLength": 1},
            })
        })
        .collect()
}

/// The properties of a query as parameters.
fn query_parameters(schema: Schema, generator: &mut SchemaGenerator) -> Vec<Value> {
    let reference = schema.as_value()["$ref"].as_str().map(str::to_owned);
    let name = reference
        .as_deref()
        .and_then(|reference| reference.rsplit('/').next());
    // Only its properties are used, so the query itself is no part of the document.
    let schema = match name {
        Some(name) => generator.definitions_mut().remove(name).unwrap_or_default(),
        None => schema.to_value(),
    };
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let parameter = |(name, mut schema): (String, Value)| {
        let description = schema
            .as_object_mut()
            .and_then(|schema| schema.remove("description"));
        // A parameter is absent, never null.
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|kind| kind != "null");
            if let [kind] = types.as_slice() {
                schema["type"] = kind.clone();
            }
        }
        if let Some(Value::Array(any)) = schema.get_mut("anyOf") {
            any.retain(|one| one["type"] != "null");
            if let [only] = any.as_slice() {
                schema = only.clone();
            }
        }
        json!({
            "name": name, "in": "query", "required": required.iter().any(|one| *one == name),
            "description": description, "schema": schema,
        })
    };
    properties.into_iter().map(parameter).collect()
}

fn start_parameters() -> [Value; 2] {
    [
        json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "A new text for each request. A request that is repeated with its key starts no second run.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]*$"},
        }),
        json!({
            "name": "Prefer", "in": "header", "required": false,
            "description": "`wait=SECONDS` waits until the run has ended or needs a person.",
            "schema": {"type": "string", "examples": ["wait=30"]},
        }),
    ]
}
