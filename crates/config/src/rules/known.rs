//! The environments, permissions and categories that a configuration knows.

use windlass_spec::registry::{Categories, CategoryName, Environments, Vocabulary};

use crate::form;
use crate::tree::Node;

pub(crate) fn environments(tree: &Node) -> Environments {
    let mut known = Environments::default();
    for name in tree.items(&["environments"]).iter().filter_map(Node::text) {
        if let Ok(environment) = name.parse() {
            known.declare(environment);
        }
    }
    known
}

pub(crate) fn known_permissions(tree: &Node) -> Vocabulary {
    let mut known = Vocabulary::default();
    for name in tree.items(&["permissions"]).iter().filter_map(Node::text) {
        if let Ok(permission) = name.parse() {
            known.declare(permission);
        }
    }
    known
}

pub(crate) fn categories(tree: &Node) -> Categories {
    let mut known = Categories::default();
    for (name, node) in tree.entries(&["categories"]) {
        let Ok(name) = name.parse::<CategoryName>() else {
            continue;
        };
        let schema = node.get("schema").and_then(Node::text);
        if let Some(Ok(fields)) = schema.map(form::record)
            && !CategoryName::PREDEFINED.contains(&name)
        {
            known.declare(name, fields);
        }
    }
    known
}
