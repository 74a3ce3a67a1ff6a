//! Builds the settings of servers from a checked tree.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use windlass_spec::ProgramAccess;
use windlass_spec::server::{
    CommandTransport, DEFAULT_START_TIMEOUT, EnvTemplate, HttpTransport, OAuth, ServerName,
    ServerSettings, Transport,
};

use super::{boolean, path, text, texts};
use crate::tree::Node;

pub(super) fn servers(tree: &Node) -> Vec<ServerSettings> {
    tree.entries(&["servers"])
        .filter_map(|(name, node)| server(ServerName::new(name).ok()?, node))
        .collect()
}

fn server(name: ServerName, node: &Node) -> Option<ServerSettings> {
    let transport = match (node.get("command"), text(node, &["url"])) {
        (Some(command), _) => Transport::Command(command_transport(command, node)?),
        (None, Some(url)) => Transport::Http(http(url, node)),
        (None, None) => return None,
    };
    let timeout = node.get("start_timeout_seconds").and_then(Node::integer);
    let timeout = timeout.and_then(|seconds| u64::try_from(seconds).ok());
    Some(ServerSettings {
        is_enabled: boolean(node, &["enabled"]).unwrap_or(true),
        is_trusted: boolean(node, &["trusted"]).unwrap_or(false),
        has_envelopes: boolean(node, &["envelope"]).unwrap_or(false),
        may_sample: boolean(node, &["sampling"]).unwrap_or(false),
        start_timeout: timeout.map_or(DEFAULT_START_TIMEOUT, Duration::from_secs),
        ..ServerSettings::new(name, transport)
    })
}

fn command_transport(command: &Node, node: &Node) -> Option<CommandTransport> {
    let written = command.text()?;
    let program = match written.contains('/') {
        true => path(command)?.to_string_lossy().into_owned(),
        false => written.to_owned(),
    };
    Some(CommandTransport {
        program,
        arguments: texts(node.items(&["arguments"])),
        directory: node.get("directory").and_then(path),
        environment: given(node, "environment"),
        parts: paths(node, "parts"),
        access: ProgramAccess {
            files: node.get("files").map(|_| paths(node, "files")),
            writable_files: paths(node, "writable_files"),
            is_offline: boolean(node, &["offline"]).unwrap_or(false),
        },
    })
}

fn paths(node: &Node, key: &str) -> Vec<PathBuf> {
    node.items(&[key]).iter().filter_map(path).collect()
}

fn http(url: String, node: &Node) -> HttpTransport {
    HttpTransport {
        url,
        headers: given(node, "headers"),
        oauth: node.get("oauth").map(|node| OAuth {
            client_id: text(node, &["client_id"]),
            client_secret: node
                .get("client_secret")
                .and_then(|node| EnvTemplate::new(node.text()?).ok()),
            scopes: texts(node.items(&["scopes"])),
        }),
    }
}

fn given(node: &Node, key: &str) -> BTreeMap<String, EnvTemplate> {
    node.entries(&[key])
        .filter_map(|(name, node)| Some((name.to_owned(), EnvTemplate::new(node.text()?).ok()?)))
        .collect()
}
