//! The rules for MCP servers: one transport each, no secrets in the configuration, and only declared
//! servers for agents.

use windlass_spec::nearest;
use windlass_spec::server::{EnvTemplate, is_unencrypted, looks_secret, secret_arguments};

use crate::mistake::{ConfigMistake, did_you_mean, quoted};
use crate::tree::{Node, dotted};

/// Keys that only a server with a `command` can have.
const COMMAND_KEYS: [&str; 7] = [
    "arguments",
    "directory",
    "environment",
    "parts",
    "files",
    "writable_files",
    "offline",
];

/// Keys that only a server with a `url` can have.
const URL_KEYS: [&str; 2] = ["headers", "oauth"];

pub(super) fn check(tree: &Node, mistakes: &mut Vec<ConfigMistake>) {
    let mut rules = Servers { mistakes };
    for (name, node) in tree.entries(&["servers"]) {
        if node.table().is_some() {
            rules.transport(name, node);
            rules.command(name, node);
            rules.secrets(name, node);
            rules.open_address(name, node);
        }
    }
    rules.agents(tree);
}

struct Servers<'m> {
    mistakes: &'m mut Vec<ConfigMistake>,
}

impl Servers<'_> {
    fn error(&mut self, node: &Node, path: &[&str], message: impl Into<String>, help: &str) {
        let mistake = ConfigMistake::error(&node.origin, dotted(path), message);
        self.mistakes.push(mistake.help(help.to_owned()));
    }

    fn warning(&mut self, node: &Node, path: &[&str], message: impl Into<String>, help: &str) {
        let mistake = ConfigMistake::warning(&node.origin, dotted(path), message);
        self.mistakes.push(mistake.help(help.to_owned()));
    }

    fn transport(&mut self, name: &str, node: &Node) {
        let path = |key| ["servers", name, key];
        let (wrong, message) = match (node.get("command"), node.get("url")) {
            (Some(command), Some(url)) => {
                let message = format!(
                    "a server cannot have both a `command` and a `url`; the command is at {}",
                    command.origin
                );
                self.error(url, &path("url"), message, "remove one of the two");
                return;
            }
            (None, None) => {
                let help = "write command = \"...\" if it is a program, or url = \"https://...\"";
                let message = "a server needs a `command` or a `url`";
                self.error(node, &["servers", name], message, help);
                return;
            }
            (Some(_), None) => (&URL_KEYS[..], "is only for servers with a `url`"),
            (None, Some(_)) => (&COMMAND_KEYS[..], "is only for servers with a `command`"),
        };
        for &key in wrong {
            if let Some(node) = node.get(key) {
                self.error(node, &path(key), message, "remove it");
            }
        }
    }

    fn command(&mut self, name: &str, node: &Node) {
        let Some((node, command)) = node
            .get("command")
            .and_then(|node| Some((node, node.text()?)))
        else {
            return;
        };
        let mut words = command.split_whitespace();
        let (first, rest) = (words.next().unwrap_or_default(), words);
        let rest: Vec<&str> = rest.collect();
        if rest.is_empty() {
            return;
        }
        let arguments: Vec<String> = rest.iter().map(|word| format!("\"{word}\"")).collect();
        let help = format!(
            "write arguments in their own key: command = \"{first}\" and arguments = [{}]",
            arguments.join(", ")
        );
        let path = ["servers", name, "command"];
        // A path may contain spaces; a name that is looked up in PATH does not.
        if !first.contains('/') {
            let message =
                "this is the name of one program, not a shell command, and must not contain spaces";
            self.error(node, &path, message, &help);
        } else if rest.iter().any(|word| word.starts_with('-')) {
            let message = "this is the path of one program, not a shell command";
            self.warning(node, &path, message, &help);
        }
    }

    fn secrets(&mut self, name: &str, node: &Node) {
        for (table, example) in [("environment", ""), ("headers", "Bearer ")] {
            for (key, node) in node.entries(&[table]) {
                let Some(text) = node.text().filter(|text| looks_secret(key, text)) else {
                    continue;
                };
                let example = match text.starts_with(example) {
                    true => example,
                    false => "",
                };
                let help = format!(
                    "put it into an environment variable and refer to that: {} = \"{example}env:NAME\"",
                    dotted(&[key])
                );
                let message = "this looks like a secret; a configuration must not contain secrets";
                self.error(node, &["servers", name, table, key], message, &help);
            }
        }
        let secret = node.at(&["oauth", "client_secret"]);
        if let Some(node) = secret.filter(|node| has_variable(node) == Some(false)) {
            let help = "put it into an environment variable and refer to that: client_secret = \"env:NAME\"";
            let message = "a configuration must not contain secrets";
            self.error(
                node,
                &["servers", name, "oauth", "client_secret"],
                message,
                help,
            );
        }
        self.arguments(name, node);
    }

    /// Warns about arguments that look like secrets. It is no error, because arguments cannot refer to variables.
    fn arguments(&mut self, name: &str, node: &Node) {
        let items = node.items(&["arguments"]);
        let text = |item: &Node| item.text().unwrap_or_default().to_owned();
        let texts: Vec<String> = items.iter().map(text).collect();
        for (index, (item, secret)) in items.iter().zip(secret_arguments(&texts)).enumerate() {
            if secret.is_some() {
                let key = format!("{}[{index}]", dotted(&["servers", name, "arguments"]));
                let message = "this looks like a secret, and every user of this machine can see the arguments of a program";
                let help = "most servers read secrets from environment variables: set it under `environment` as \"env:NAME\"";
                let mistake = ConfigMistake::warning(&item.origin, key, message);
                self.mistakes.push(mistake.help(help.to_owned()));
            }
        }
    }

    fn open_address(&mut self, name: &str, node: &Node) {
        let url = node.get("url").and_then(|node| Some((node, node.text()?)));
        let Some((place, _)) = url.filter(|(_, url)| is_unencrypted(url)) else {
            return;
        };
        let has_secret = node.get("oauth").is_some()
            || node
                .entries(&["headers"])
                .any(|(_, node)| has_variable(node) == Some(true));
        if has_secret {
            let message = "this sends a secret unencrypted to another machine";
            let help = "use https:// instead of http://";
            self.error(place, &["servers", name, "url"], message, help);
        }
    }

    fn agents(&mut self, tree: &Node) {
        let known: Vec<&str> = tree.entries(&["servers"]).map(|(name, _)| name).collect();
        for (agent, node) in tree.entries(&["agents"]) {
            for (index, item) in node.items(&["servers"]).iter().enumerate() {
                let Some(name) = item.text().filter(|name| !known.contains(name)) else {
                    continue;
                };
                let help = match (nearest(name, known.iter().copied()), known.is_empty()) {
                    (Some(meant), _) => did_you_mean(Some(meant)).unwrap_or_default(),
                    (None, true) => format!("declare it: [servers.{name}]"),
                    (None, false) => format!("known servers: {}", quoted(known.iter().copied())),
                };
                let key = format!("{}[{index}]", dotted(&["agents", agent, "servers"]));
                let message = format!("there is no server `{name}`");
                self.mistakes
                    .push(ConfigMistake::error(&item.origin, key, message).help(help));
            }
        }
    }
}

/// Whether a string refers to a variable. `None` if it is not a valid string.
fn has_variable(node: &Node) -> Option<bool> {
    let given = EnvTemplate::new(node.text()?).ok()?;
    Some(given.variable().is_some())
}
