//! Warns about values above a ceiling. Such a value is lowered to the ceiling.

use crate::mistake::ConfigMistake;
use crate::tree::{Node, dotted};

pub(super) fn check(tree: &Node, mistakes: &mut Vec<ConfigMistake>) {
    let mut ceilings = Ceilings { tree, mistakes };
    for (name, principal) in tree.entries(&["principals"]) {
        ceilings.rate_limits(principal, &["principals", name]);
    }
    for (name, category) in tree.entries(&["categories"]) {
        ceilings.rate_limits(category, &["categories", name]);
        for (tool, node) in category.entries(&["tools"]) {
            let path = ["categories", name, "tools", tool];
            ceilings.tool(node, &path);
            for (environment, node) in node.entries(&["environment_overrides"]) {
                let path = [&path[..], &["environment_overrides", environment]].concat();
                ceilings.tool(node, &path);
            }
        }
    }
}

struct Ceilings<'a> {
    tree: &'a Node,
    mistakes: &'a mut Vec<ConfigMistake>,
}

impl Ceilings<'_> {
    fn tool(&mut self, node: &Node, path: &[&str]) {
        self.rate_limits(node, path);
        if let Some(timeout) = node.get("timeout_seconds") {
            self.warn_if_above_ceiling(timeout, &["timeout_seconds"], path);
        }
    }

    fn rate_limits(&mut self, node: &Node, path: &[&str]) {
        for (window, limit) in node.entries(&["rate_limits"]) {
            self.warn_if_above_ceiling(limit, &["rate_limits", window], path);
        }
    }

    /// Compares a value with the ceiling of the same key.
    fn warn_if_above_ceiling(&mut self, node: &Node, keys: &[&str], path: &[&str]) {
        let ceiling = self.tree.at(&[&["ceilings"], keys].concat());
        let (Some(ceiling), Some(value)) = (ceiling, node.integer()) else {
            return;
        };
        if let Some(most) = ceiling.integer().filter(|most| value > *most) {
            let key = dotted(&[path, keys].concat());
            let message = format!(
                "{value} is above the ceiling at {}; using {most}",
                ceiling.origin
            );
            self.mistakes
                .push(ConfigMistake::warning(&node.origin, key, message));
        }
    }
}
