//! What holds, key by key, for people to look at, and a digest of it for records.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use windlass_spec::server::secret_arguments;

use crate::configuration::Configuration;
use crate::origin::Layer;
use crate::tree::{Content, Node, below, dotted};

/// A key, its value, and where the value comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shown {
    /// The key with dots in it, such as `gate.undo_window_seconds`.
    pub key: String,
    /// Its value; what looks like a secret is hidden.
    pub value: Value,
    /// The layer it comes from.
    pub layer: Layer,
    /// The file and line, variable or flag it comes from.
    pub origin: String,
}

impl Configuration {
    /// Everything that holds, built-in values included, in the order of the keys.
    #[must_use]
    pub fn shown(&self) -> Vec<Shown> {
        let mut shown = Vec::new();
        show(&self.inner.tree, &[], &mut shown);
        shown
    }
}

fn show(node: &Node, path: &[&str], shown: &mut Vec<Shown>) {
    if let Content::Table(table) = &node.content {
        for (key, node) in table {
            show(node, &below(path, key), shown);
        }
        return;
    }
    shown.push(Shown {
        key: dotted(path),
        value: without_secrets(node, path),
        layer: node.origin.layer(),
        origin: node.origin.to_string(),
    });
}

/// Words in the names of keys whose values nobody should see. Secrets do not belong into a
/// configuration, but some will get there.
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
    // Only these tables have keys that are not ours.
    let free = path
        .iter()
        .position(|key| matches!(*key, "global_config" | "parameters"));
    if let ["servers", _, rest @ ..] = path {
        return of_server(node, rest);
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

/// Secrets of servers are named and not written, but for those among arguments.
fn of_server(node: &Node, path: &[&str]) -> Value {
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

/// An address without what stands behind its question mark: keys are often put there.
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

/// The first half of a digest is plenty to tell two configurations apart.
const DIGEST_BYTES: usize = 8;

/// A digest of the values of a tree, wherever they come from. Tables are sorted, so the order in
/// which anything was written does not matter.
pub(crate) fn digest(tree: &Node) -> String {
    let hash = Sha256::digest(tree.value().to_string().as_bytes());
    let mut digest = String::new();
    for byte in hash.iter().take(DIGEST_BYTES) {
        // Writing to a string cannot fail.
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}
