//! The list of all effective values for people, and their digest for records.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use windlass_spec::server::secret_arguments;

use crate::configuration::Configuration;
use crate::origin::Layer;
use crate::tree::{Content, Node, child_path, dotted};

/// A key with its value and the origin of the value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConfigEntry {
    /// The key with dots in it, such as `gate.undo_window_seconds`.
    pub key: String,
    /// The value. Values that look like secrets are hidden.
    pub value: Value,
    /// The layer that the value comes from.
    pub layer: Layer,
    /// The file and line, the variable, or the flag that the value comes from.
    pub origin: String,
}

impl Configuration {
    /// All effective values, including built-in ones, in the order of their keys.
    #[must_use]
    pub fn entries(&self) -> Vec<ConfigEntry> {
        let mut entries = Vec::new();
        collect_entries(&self.inner.tree, &[], &mut entries);
        entries
    }
}

fn collect_entries(node: &Node, path: &[&str], entries: &mut Vec<ConfigEntry>) {
    if let Content::Table(table) = &node.content {
        for (key, node) in table {
            collect_entries(node, &child_path(path, key), entries);
        }
        return;
    }
    entries.push(ConfigEntry {
        key: dotted(path),
        value: without_secrets(node, path),
        layer: node.origin.layer(),
        origin: node.origin.to_string(),
    });
}

/// The value of a key for people, with the keys below it. Values that look like secrets are hidden.
pub(crate) fn shown_value(node: &Node, path: &[&str]) -> Value {
    match &node.content {
        Content::Table(table) => {
            let shown = table.iter().map(|(key, node)| {
                let value = shown_value(node, &child_path(path, key));
                (key.clone(), value)
            });
            Value::Object(shown.collect())
        }
        _ => without_secrets(node, path),
    }
}

/// Words in the names of keys whose values are hidden. A configuration must not contain secrets, but some
/// do.
const SECRET_WORDS: [&str; 9] = [
    "secret",
    "passw",
    "pwd",
    "token",
    "api_key",
    "apikey",
    "credential",
    "auth",
    "private_key",
];

/// Whole names of such keys.
const SECRET_NAMES: [&str; 3] = ["pw", "pass", "key"];

const HIDDEN: &str = "[hidden]";

fn without_secrets(node: &Node, path: &[&str]) -> Value {
    // Only these tables have keys that users choose.
    let free = path
        .iter()
        .position(|key| matches!(*key, "global_config" | "parameters"));
    if let ["servers", _, rest @ ..] = path {
        return server_value(node, rest);
    }
    let own = path.len() > 1 && path.first() == Some(&"categories");
    match free {
        Some(start) if own => hide(
            node.value(),
            path.iter().skip(start + 1).any(|key| is_secret(key)),
        ),
        _ => without_query(node.value()),
    }
}

/// The value of a server's key. Only arguments can contain secrets; other keys refer to variables.
fn server_value(node: &Node, path: &[&str]) -> Value {
    if path != ["arguments"] {
        return without_query(node.value());
    }
    let text = |node: &Node| node.text().unwrap_or_default().to_owned();
    let arguments: Vec<String> = node.items(&[]).iter().map(text).collect();
    let secrets = secret_arguments(&arguments);
    let hidden = arguments.into_iter().zip(secrets).map(|(text, secret)| {
        let shown = match secret.and_then(|at| text.get(..at)) {
            Some(beginning) => format!("{beginning}{HIDDEN}"),
            None => text,
        };
        without_query(Value::String(shown))
    });
    hidden.collect()
}

/// Hides the query of a URL, which often contains a secret.
fn without_query(value: Value) -> Value {
    match value {
        Value::String(text) if text.contains("://") => match text.split_once('?') {
            Some((address, _)) => Value::from(format!("{address}?{HIDDEN}")),
            None => Value::String(text),
        },
        other => other,
    }
}

fn hide(value: Value, secret: bool) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(|item| hide(item, secret)).collect(),
        Value::Object(entries) => entries
            .into_iter()
            .map(|(key, value)| {
                let secret = secret || is_secret(&key);
                (key, hide(value, secret))
            })
            .collect(),
        Value::String(_) | Value::Number(_) if secret => Value::from(HIDDEN),
        other => other,
    }
}

/// Whether a key looks like that of a secret.
pub(crate) fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace('-', "_");
    SECRET_WORDS.iter().any(|word| key.contains(word)) || SECRET_NAMES.contains(&key.as_str())
}

/// The number of bytes of the hash that are kept.
const DIGEST_BYTES: usize = 8;

/// A digest of the values of a tree, independent of their origins. Tables are sorted, so the order of keys
/// in files does not matter.
pub(crate) fn digest(tree: &Node) -> String {
    let hash = Sha256::digest(tree.value().to_string().as_bytes());
    let mut digest = String::new();
    for byte in hash.iter().take(DIGEST_BYTES) {
        // Writing to a string cannot fail.
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}
