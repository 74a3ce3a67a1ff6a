//! What governs the built-in tools, told to whoever asks: names and limits as they were configured,
//! neither secrets nor where on the machine things are.

use reqwest::Url;
use serde_json::{Map, Value, json};

use super::declared;
use super::settings::{BuiltinSettings, FileSettings, Root};
use crate::builder::ToolBuildError;
use crate::tool::Tool;

pub(super) fn check_security_status(settings: &BuiltinSettings) -> Result<Tool, ToolBuildError> {
    let status = status(settings);
    declared::CHECK_SECURITY_STATUS
        .builder()
        .handler(move |_: Value| std::future::ready(Ok(status.clone())))
        .build()
}

fn status(settings: &BuiltinSettings) -> Value {
    let missing = settings.not_configured();
    let tools: Vec<Value> = declared::ALL
        .iter()
        .map(|tool| {
            let status = match missing.iter().find(|missing| missing.tool == tool.name) {
                Some(missing) => format!("not configured: set `{}`", missing.key),
                None => "configured".to_owned(),
            };
            json!({"name": tool.name, "risk": tool.risk.to_string(), "status": status})
        })
        .collect();
    let roots = settings.files.iter().flat_map(FileSettings::roots);
    let roots: Vec<&str> = roots.map(Root::name).collect();
    let http = &settings.http;
    let hosts: Vec<String> = http.hosts().iter().map(ToString::to_string).collect();
    let private = if http.allows_private() {
        "allowed where listed by address"
    } else {
        "refused"
    };
    let facts: Vec<Value> = settings
        .facts
        .iter()
        .map(|fact| json!({"name": fact.name, "value": fact.value}))
        .collect();
    let mut status = Map::new();
    let mut tell = |name: &str, value: Value| status.insert(name.to_owned(), value);
    let environment = settings.environment.as_deref();
    tell("environment", environment.unwrap_or("not stated").into());
    tell("tools", tools.into());
    tell("file_roots", roots.into());
    if let Some(files) = &settings.files {
        tell("max_file_bytes", files.max_bytes().into());
    }
    tell("http_hosts", hosts.into());
    tell("private_addresses", private.into());
    tell("max_http_bytes", http.max_bytes().into());
    tell("http_timeout_seconds", http.timeout().as_secs().into());
    if let Some(search) = &settings.search {
        tell("search_server", origin(search.url()).into());
    }
    if let Some(automation) = &settings.automation {
        tell("automation_server", origin(automation.url()).into());
    }
    tell("facts", facts.into());
    Value::Object(status)
}

/// Which server a URL is of. Its path and query may hold a key.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}
