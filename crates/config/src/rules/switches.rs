//! Checks that a tool is not enabled in a disabled category. Such a tool stays disabled, regardless of
//! its own settings.

use crate::mistake::ConfigMistake;
use crate::tree::{Node, dotted};

pub(super) fn check(tree: &Node, mistakes: &mut Vec<ConfigMistake>) {
    for (name, category) in tree.entries(&["categories"]) {
        for (tool, node) in category.entries(&["tools"]) {
            let path = ["categories", name, "tools", tool];
            if let (Some(on), Some(off)) =
                (enabled_key(node, true), disabling_key_everywhere(category))
            {
                let message = format!("has no effect: `{name}` is switched off at {}", off.origin);
                let key = dotted(&[&path[..], &["enabled"]].concat());
                mistakes.push(ConfigMistake::warning(&on.origin, key, message));
            }
            for (environment, node) in node.entries(&["environment_overrides"]) {
                let Some(on) = enabled_key(node, true) else {
                    continue;
                };
                if let Some(off) = disabling_key(category, environment) {
                    let rest = ["environment_overrides", environment, "enabled"];
                    let key = dotted(&[&path[..], &rest].concat());
                    let message = format!(
                        "the tool cannot be switched on in {environment}: its category `{name}` is switched off there, at {}",
                        off.origin
                    );
                    let help = format!(
                        "switch the category on: [categories.{name}.environment_overrides.{environment}] enabled = true"
                    );
                    mistakes.push(ConfigMistake::error(&on.origin, key, message).help(help));
                }
            }
        }
    }
}

/// The `enabled` key of a node, if it is set to this value.
fn enabled_key(node: &Node, on: bool) -> Option<&Node> {
    node.get("enabled")
        .filter(|node| node.boolean() == Some(on))
}

/// The key that disables a category in an environment.
fn disabling_key<'n>(category: &'n Node, environment: &str) -> Option<&'n Node> {
    let there = category.at(&["environment_overrides", environment]);
    match there.filter(|there| there.get("enabled").is_some()) {
        Some(there) => enabled_key(there, false),
        None => enabled_key(category, false),
    }
}

/// The key that disables a category, if no environment enables it.
fn disabling_key_everywhere(category: &Node) -> Option<&Node> {
    let mut elsewhere = category.entries(&["environment_overrides"]);
    let on_somewhere = elsewhere.any(|(_, node)| enabled_key(node, true).is_some());
    enabled_key(category, false).filter(|_| !on_somewhere)
}
