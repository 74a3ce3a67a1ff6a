//! Single values from environment variables and flags: `WINDLASS_CONFIG__gate__undo_window_seconds=5`
//! and `gate.undo_window_seconds=5`.

use serde_json::Value;

use crate::keys::{ROOT, Shape};
use crate::mistake::ConfigMistake;
use crate::origin::{Layer, Origin};
use crate::source::read_value;
use crate::tree::{Content, Node, Table, dotted};

/// Variables with a short name, and the key that each sets.
const SHORT_NAMES: [(&str, &str); 5] = [
    ("WINDLASS_ENVIRONMENT", "environment"),
    ("WINDLASS_MODEL", "model"),
    ("WINDLASS_BASE_URL", "base_url"),
    ("WINDLASS_POLICIES", "policies"),
    ("WINDLASS_DATA", "data_directory"),
];

/// The prefix of variables that can set any key.
const PREFIX: &str = "WINDLASS_CONFIG__";

/// The most keys that a path can have.
const MAX_KEYS: usize = 32;

/// Whether an environment variable of this name sets a configuration value.
#[must_use]
pub fn is_setting_variable(name: &str) -> bool {
    name.starts_with(PREFIX) || SHORT_NAMES.iter().any(|(short, _)| *short == name)
}

/// The tree that a variable sets. `None` if it is not about the configuration, or empty, which counts as
/// unset.
pub(crate) fn variable(
    name: &str,
    value: &str,
    number: usize,
    mistakes: &mut Vec<ConfigMistake>,
) -> Option<Node> {
    let short = SHORT_NAMES.iter().find(|(short, _)| *short == name);
    let keys: Vec<String> = match (short, name.strip_prefix(PREFIX)) {
        (Some((_, key)), _) => vec![(*key).to_owned()],
        (None, Some(rest)) => rest.split("__").map(str::to_owned).collect(),
        (None, None) => return None,
    };
    if value.is_empty() {
        return None;
    }
    let origin = Origin::new(Layer::Variable, name, number);
    tree_with_value(&keys, value, &origin, mistakes)
}

/// The tree that a flag sets.
pub(crate) fn flag(text: &str, number: usize, mistakes: &mut Vec<ConfigMistake>) -> Option<Node> {
    let Some((keys, value)) = split_flag(text) else {
        let shown: String = text.chars().take(80).collect();
        let origin = Origin::new(Layer::Flag, format!("`--set {shown}`"), number);
        let mistake = ConfigMistake::error(&origin, "", "this is not in the form KEY=VALUE");
        let help = "for example: gate.undo_window_seconds=5";
        mistakes.push(mistake.help(help.to_owned()));
        return None;
    };
    // Only the key is shown, because the value may be a secret.
    let path: Vec<&str> = keys.iter().map(String::as_str).collect();
    let name = format!("`--set {}`", dotted(&path));
    let origin = Origin::new(Layer::Flag, name, number);
    tree_with_value(&keys, value, &origin, mistakes)
}

/// Splits `a.b."c.d"=value` into its keys and its value.
fn split_flag(text: &str) -> Option<(Vec<String>, &str)> {
    let mut keys = vec![String::new()];
    let mut quote = None;
    for (offset, character) in text.char_indices() {
        let key = keys.last_mut()?;
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => key.push(c),
            (None, '"' | '\'') => quote = Some(character),
            (None, '.') => keys.push(String::new()),
            (None, '=') => {
                let value = text.get(offset + 1..)?.trim();
                let keys: Vec<String> = keys.iter().map(|key| key.trim().to_owned()).collect();
                return keys
                    .iter()
                    .all(|key| !key.is_empty())
                    .then_some((keys, value));
            }
            (None, c) => key.push(c),
        }
    }
    None
}

/// A tree with one value at a path of keys.
fn tree_with_value(
    keys: &[String],
    value: &str,
    origin: &Origin,
    mistakes: &mut Vec<ConfigMistake>,
) -> Option<Node> {
    if keys.len() > MAX_KEYS {
        mistakes.push(ConfigMistake::error(origin, "", "there is no such key"));
        return None;
    }
    let mut shape = Some(ROOT);
    let mut path = Vec::new();
    for key in keys {
        let (key, found) = match shape.and_then(|shape| shape.child(key)) {
            Some((key, found)) => (key, Some(found)),
            None => (key.clone(), None),
        };
        path.push(key);
        shape = found;
    }
    let path_shown: Vec<&str> = path.iter().map(String::as_str).collect();
    let leaf = match shape {
        Some(Shape::Text(_) | Shape::Words(_)) => text_node(value, origin),
        Some(Shape::Texts(_)) => list_node(value, origin),
        Some(Shape::Table(_) | Shape::Map(_)) if !value.starts_with('{') => {
            let key = dotted(&path_shown);
            let mistake = ConfigMistake::error(origin, &key, "this is a table, not a single value");
            mistakes.push(mistake.help(format!("set one of its keys: {key}.KEY=VALUE")));
            return None;
        }
        _ => read_value(value, origin).unwrap_or_else(|| text_node(value, origin)),
    };
    let tree = path.into_iter().rev().fold(leaf, |node, key| {
        let table = Table::from([(key, node)]);
        Node::new(Content::Table(table), origin.clone())
    });
    Some(tree)
}

fn text_node(text: &str, origin: &Origin) -> Node {
    // Quotes that the shell has left are removed.
    let unquoted = match read_value(text, origin).as_ref().and_then(Node::text) {
        Some(inner) if text.starts_with(['"', '\'']) => inner.to_owned(),
        _ => text.to_owned(),
    };
    Node::new(Content::Scalar(Value::from(unquoted)), origin.clone())
}

/// Reads a list in brackets, or strings separated by commas.
fn list_node(text: &str, origin: &Origin) -> Node {
    if text.starts_with('[')
        && let Some(node) = read_value(text, origin)
    {
        return node;
    }
    let words = text
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    let items = words.map(|word| text_node(word, origin)).collect();
    Node::new(Content::List(items), origin.clone())
}
