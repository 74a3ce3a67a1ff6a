//! The tool `check_security_status`. It reports the configured names and limits of the built-in tools,
//! without secrets and paths of the machine.

use reqwest::Url;
use serde_json::{Map, Value, json};

use super::declared;
use super::settings::{BuiltinSettings, FileRoot, FileSettings};
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
    let roots: Vec<&str> = roots.map(FileRoot::name).collect();
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
    let mut add = |name: &str, value: Value| status.insert(name.to_owned(), value);
    let environment = settings.environment.as_deref();
    add("environment", environment.unwrap_or("not stated").into());
    add("tools", tools.into());
    add("file_roots", roots.into());
    if let Some(files) = &settings.files {
        add("max_file_bytes", files.max_bytes().into());
    }
    add("http_hosts", hosts.into());
    add("private_addresses", private.into());
    add("max_http_bytes", http.max_bytes().into());
    add("http_timeout_seconds", http.timeout().as_secs().into());
    if let Some(search) = &settings.search {
        add("search_server", origin(search.url()).into());
    }
    if let Some(automation) = &settings.automation {
        add("automation_server", origin(automation.url()).into());
    }
    add("facts", facts.into());
    Value::Object(status)
}

/// The origin of a URL, without path and query, which may contain a key.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}
