//! Builds the settings of webhooks from a checked tree.

use std::collections::BTreeSet;

use windlass_spec::server::EnvTemplate;

use super::{boolean, integer, parsed_all, path, seconds, text, texts};
use crate::settings::{WebhookEvent, WebhookSecretSource, WebhookSettings, WebhookTarget};
use crate::tree::Node;

/// The built-in values of the keys of an entry, which no layer has.
const EXPIRING: u64 = 900;
const TIMEOUT: u64 = 10;
const ATTEMPTS: u32 = 10;
const RETRY: u64 = 5;

pub(super) fn webhooks(tree: &Node) -> Vec<WebhookSettings> {
    let entries = tree.entries(&["webhooks"]);
    entries
        .filter_map(|(name, node)| webhook(name, node))
        .collect()
}

fn webhook(name: &str, node: &Node) -> Option<WebhookSettings> {
    let is_set = |key: &str| node.get(key).is_some();
    let seconds = |key: &str, usual: u64| match is_set(key) {
        true => seconds(node, &[key]),
        false => std::time::Duration::from_secs(usual),
    };
    let target = target(node)?;
    // Another file may have set another key of it.
    let declared = node.get("url").or_else(|| node.get("command"))?;
    Some(WebhookSettings {
        name: name.to_owned(),
        declared_in: declared.origin.name().to_owned(),
        target,
        events: match is_set("events") {
            true => parsed_all(node.items(&["events"])).into_iter().collect(),
            false => BTreeSet::from(WebhookEvent::ALL),
        },
        has_arguments: boolean(node, &["arguments"]).unwrap_or(false),
        server: text(node, &["server"]).map(|server| server.trim_end_matches('/').to_owned()),
        expiring: seconds("expiring_seconds", EXPIRING),
        timeout: seconds("timeout_seconds", TIMEOUT),
        attempts: match is_set("attempts") {
            true => integer(node, &["attempts"]),
            false => ATTEMPTS,
        },
        first_retry: seconds("retry_seconds", RETRY),
        is_enabled: boolean(node, &["enabled"]).unwrap_or(true),
    })
}

fn target(node: &Node) -> Option<WebhookTarget> {
    let Some(url) = text(node, &["url"]) else {
        let command = texts(node.items(&["command"]));
        let directory = node.get("command")?.origin.directory().to_owned();
        return (!command.is_empty()).then(|| WebhookTarget::Command {
            command,
            directory,
            environment: texts(node.items(&["environment"])),
        });
    };
    let variable = text(node, &["secret"]).and_then(|text| EnvTemplate::new(&text).ok());
    let secret = match variable {
        Some(variable) => WebhookSecretSource::Variable(variable),
        None => WebhookSecretSource::File(node.get("secret_file").and_then(path)?),
    };
    Some(WebhookTarget::Url { url, secret })
}
