//! The effective configuration.

use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_service::Scope;

use crate::call::{Call, Reply};
use crate::page::Page;
use crate::problem::{Problem, without_directories};
use crate::route::Route;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::new(
        (Method::GET, "/v1/configuration"),
        (
            "configuration",
            "Show the effective values with their origins; secrets are hidden",
        ),
        Scope::Read,
        values,
    )]
}

/// Which values are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConfigurationQuery {
    /// Only the value of this key and those below it.
    key: Option<String>,
}

/// A value of the configuration.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ConfigurationValue {
    /// The key, such as `gate.undo_window_seconds`.
    key: String,
    /// The value.
    value: Value,
    /// The layer that it comes from.
    layer: String,
    /// The file and line, the variable, or the flag that it comes from.
    origin: String,
}

async fn values(
    call: Call<ConfigurationQuery>,
) -> Result<Reply<Page<ConfigurationValue>>, Problem> {
    let key = call.query.key.clone();
    let values = call
        .operate(move |service, identity, _| service.configuration_values(identity, key.as_deref()))
        .await?;
    let shown = values.values.into_iter().map(|entry| ConfigurationValue {
        key: entry.key,
        value: hidden(entry.value),
        layer: entry.layer.to_string(),
        origin: without_directories(&entry.origin),
    });
    Ok(Reply::ok(Page::whole(shown.collect())))
}

/// A value without the directories of the server.
fn hidden(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(without_directories(&text)),
        Value::Array(values) => Value::Array(values.into_iter().map(hidden).collect()),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            Value::Object(fields.map(|(name, value)| (name, hidden(value))).collect())
        }
        other => other,
    }
}
