//! Single values from environment variables and flags: `WINDLASS_CONFIG__gate__undo_window_seconds=5`
//! and `gate.undo_window_seconds=5`.

use serde_json::Value;

use crate::keys::{ROOT, Shape};
use crate::mistake::Mistake;
use crate::origin::{Layer, Origin};
use crate::source::read_value;
use crate::tree::{Content, Node, Table, dotted};

/// Variables with a name of their own, and the key each sets.
const SHORT: [(&str, &str); 5] = [
    ("WINDLASS_ENVIRONMENT", "environment"),
    ("WINDLASS_MODEL", "model"),
    ("WINDLASS_BASE_URL", "base_url"),
    ("WINDLASS_POLICIES", "policies"),
    ("WINDLASS_DATA", "data_directory"),
];

/// What the name of a variable for any key begins with.
const PREFIX: &str = "WINDLASS_CONFIG__";

/// How many keys a path can have. Deeper is nothing but a mistake.
const MAX_KEYS: usize = 32;

/// Whether an environment variable of this name sets something of the configuration.
#[must_use]
pub fn is_setting_variable(name: &str) -> bool {
    name.starts_with(PREFIX) || SHORT.iter().any(|(short, _)| *short == name)
}

/// What a variable sets; nothing if it has nothing to do with the configuration. One that is set to
/// nothing counts as not set.
pub(crate) fn variable(
    name: &str,
    value: &str,
    number: usize,
    mistakes: &mut Vec<Mistake>,
) -> Option<Node> {
    let short = SHORT.iter().find(|(short, _)| *short == name);
    let keys: Vec<String> = match (short, name.strip_prefix(PREFIX)) {
        (Some((_, key)), _) => vec![(*key).to_owned()],
        (None, Some(rest)) => rest.split("__").map(str::to_owned).collect(),
        (None, None) => return None,
    };
    if value.is_empty() {
        return None;
    }
    let origin = Origin::new(Layer::Variable, name, number);
    assigned(&keys, value, &origin, mistakes)
}

/// What a flag sets.
pub(crate) fn flag(text: &str, number: usize, mistakes: &mut Vec<Mistake>) -> Option<Node> {
    let Some((keys, value)) = split(text) else {
        let shown: String = text.chars().take(80).collect();
        let origin = Origin::new(Layer::Flag, format!("the flag `{shown}`"), number);
        let mistake = Mistake::error(&origin, "", "this is not a key and a value");
        let help = "write it as KEY=VALUE, such as gate.undo_window_seconds=5";
        mistakes.push(mistake.help(help.to_owned()));
        return None;
    };
    // It is called by its key alone: the value may be nobody's business.
    let path: Vec<&str> = keys.iter().map(String::as_str).collect();
    let name = format!("the flag `{}`", dotted(&path));
    let origin = Origin::new(Layer::Flag, name, number);
    assigned(&keys, value, &origin, mistakes)
}

/// The keys and the value of `a.b."c.d"=value`.
fn split(text: &str) -> Option<(Vec<String>, &str)> {
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

/// A tree with nothing but one value in it.
fn assigned(
    keys: &[String],
    value: &str,
    origin: &Origin,
    mistakes: &mut Vec<Mistake>,
) -> Option<Node> {
    if keys.len() > MAX_KEYS {
        mistakes.push(Mistake::error(origin, "", "there is no such key"));
        return None;
    }
    let mut shape = Some(ROOT);
    let mut path = Vec::new();
    for key in keys {
        let (key, found) = match shape.and_then(|shape| shape.below(key)) {
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
            let mistake = Mistake::error(origin, &key, "this is a table, not a single value");
            mistakes.push(mistake.help(format!("set a key of it: {key}.KEY=VALUE")));
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
    // Quotes that a shell left standing are not meant.
    let unquoted = match read_value(text, origin).as_ref().and_then(Node::text) {
        Some(inner) if text.starts_with(['"', '\'']) => inner.to_owned(),
        _ => text.to_owned(),
    };
    Node::new(Content::Scalar(Value::from(unquoted)), origin.clone())
}

/// A list in brackets, or words with commas between them.
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
