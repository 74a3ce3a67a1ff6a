//! Whether what is switched on can be on: a tool of a category that is off stays off, whatever is
//! said about the tool.

use crate::mistake::Mistake;
use crate::tree::{Node, dotted};

pub(super) fn check(tree: &Node, mistakes: &mut Vec<Mistake>) {
    for (name, category) in tree.entries(&["categories"]) {
        for (tool, node) in category.entries(&["tools"]) {
            let path = ["categories", name, "tools", tool];
            if let (Some(on), Some(off)) = (switched(node, true), off_everywhere(category)) {
                let message = format!("has no effect: `{name}` is switched off at {}", off.origin);
                let key = dotted(&[&path[..], &["enabled"]].concat());
                mistakes.push(Mistake::warning(&on.origin, key, message));
            }
            for (environment, node) in node.entries(&["environment_overrides"]) {
                let Some(on) = switched(node, true) else {
                    continue;
                };
                if let Some(off) = off_in(category, environment) {
                    let rest = ["environment_overrides", environment, "enabled"];
                    let key = dotted(&[&path[..], &rest].concat());
                    let message = format!(
                        "the tool cannot be switched on in {environment}: its category `{name}` is switched off there, at {}",
                        off.origin
                    );
                    let help = format!(
                        "switch the category on: [categories.{name}.environment_overrides.{environment}] enabled = true"
                    );
                    mistakes.push(Mistake::error(&on.origin, key, message).help(help));
                }
            }
        }
    }
}

/// The `enabled` of a node, if it is there and so.
fn switched(node: &Node, on: bool) -> Option<&Node> {
    node.get("enabled")
        .filter(|node| node.boolean() == Some(on))
}

/// What switches a category off in an environment.
fn off_in<'n>(category: &'n Node, environment: &str) -> Option<&'n Node> {
    let there = category.at(&["environment_overrides", environment]);
    match there.filter(|there| there.get("enabled").is_some()) {
        Some(there) => switched(there, false),
        None => switched(category, false),
    }
}

/// What switches a category off, if it is on nowhere.
fn off_everywhere(category: &Node) -> Option<&Node> {
    let mut elsewhere = category.entries(&["environment_overrides"]);
    let on_somewhere = elsewhere.any(|(_, node)| switched(node, true).is_some());
    switched(category, false).filter(|_| !on_somewhere)
}
