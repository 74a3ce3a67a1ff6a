//! The rules for webhooks: one target each, and no secrets in the configuration.

use windlass_spec::server::{EnvTemplate, is_unencrypted};

use crate::mistake::ConfigMistake;
use crate::tree::{Node, dotted};

/// Keys that only a webhook with a `command` can have.
const COMMAND_KEYS: [&str; 1] = ["environment"];

/// Keys that only a webhook with a `url` can have.
const URL_KEYS: [&str; 2] = ["secret", "secret_file"];

pub(super) fn check(tree: &Node, mistakes: &mut Vec<ConfigMistake>) {
    let mut rules = Webhooks { mistakes };
    for (name, node) in tree.entries(&["webhooks"]) {
        if node.table().is_some() {
            rules.target(name, node);
            rules.secret(name, node);
            rules.address(name, node);
        }
    }
}

struct Webhooks<'m> {
    mistakes: &'m mut Vec<ConfigMistake>,
}

impl Webhooks<'_> {
    fn error(&mut self, node: &Node, path: &[&str], message: impl Into<String>, help: &str) {
        let mistake = ConfigMistake::error(&node.origin, dotted(path), message);
        self.mistakes.push(mistake.help(help.to_owned()));
    }

    fn target(&mut self, name: &str, node: &Node) {
        let path = |key| ["webhooks", name, key];
        let (wrong, message) = match (node.get("command"), node.get("url")) {
            (Some(command), Some(url)) => {
                let message = format!(
                    "a webhook cannot have both a `command` and a `url`; the command is at {}",
                    command.origin
                );
                let help = "remove one of the two, or make two webhooks";
                return self.error(url, &path("url"), message, help);
            }
            (None, None) => {
                let help = "write url = \"https://...\", or command = [\"program\", \"argument\"]";
                let message = "a webhook needs a `url` or a `command`";
                return self.error(node, &["webhooks", name], message, help);
            }
            (Some(command), None) => {
                let program = command.items(&[]).first().and_then(Node::text);
                if program.is_none_or(|program| program.trim().is_empty()) {
                    let help = "write the program and its arguments: command = [\"program\", \"argument\"]";
                    self.error(command, &path("command"), "the command is empty", help);
                }
                (&URL_KEYS[..], "is only for webhooks with a `url`")
            }
            (None, Some(_)) => (&COMMAND_KEYS[..], "is only for webhooks with a `command`"),
        };
        for &key in wrong {
            if let Some(node) = node.get(key) {
                self.error(node, &path(key), message, "remove it");
            }
        }
        if let Some(events) = node.get("events")
            && events.items(&[]).is_empty()
        {
            let help = "name the events, remove the key for all events, or write enabled = false";
            self.error(events, &path("events"), "no event is sent", help);
        }
    }

    fn secret(&mut self, name: &str, node: &Node) {
        let Some(url) = node.get("url") else {
            return;
        };
        let path = |key| ["webhooks", name, key];
        match (node.get("secret"), node.get("secret_file")) {
            (Some(secret), file) => {
                let given = secret.text().map(EnvTemplate::new);
                let is_variable = |text: &str| text.starts_with("env:");
                if let Some(Ok(_)) = given
                    && !secret.text().is_some_and(is_variable)
                {
                    let help = "put it into an environment variable and refer to that: secret = \"env:NAME\"";
                    let message = "a configuration must not contain secrets";
                    self.error(secret, &path("secret"), message, help);
                }
                if let Some(file) = file {
                    let message = "a webhook cannot have both a `secret` and a `secret_file`";
                    self.error(file, &path("secret_file"), message, "remove one of the two");
                }
            }
            (None, Some(_)) => {}
            (None, None) => {
                let help = "make one with `windlass webhooks secret`, and write secret = \"env:NAME\" or secret_file = \"...\"";
                let message = "a webhook with a `url` needs a secret, which signs what is sent";
                self.error(url, &["webhooks", name], message, help);
            }
        }
    }

    fn address(&mut self, name: &str, node: &Node) {
        let url = node.get("url").and_then(|node| Some((node, node.text()?)));
        if let Some((place, _)) = url.filter(|(_, url)| is_unencrypted(url)) {
            let message = "this sends events unencrypted to another machine";
            let key = dotted(&["webhooks", name, "url"]);
            let mistake = ConfigMistake::warning(&place.origin, key, message);
            self.mistakes
                .push(mistake.help("use https:// instead of http://".to_owned()));
        }
    }
}
