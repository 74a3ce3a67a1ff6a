//! Merges one layer over another: tables are merged key by key, and other values are replaced. Of two
//! ceilings the lower one is kept.

use serde_json::Value;

use crate::mistake::ConfigMistake;
use crate::tree::{Content, Node, child_path, dotted};

/// The table in which the lower value is kept.
const LOWER_WINS: &str = "ceilings";

/// Merges `over` into `under`. Values of `over` win.
pub(crate) fn merge(under: &mut Node, over: Node, mistakes: &mut Vec<ConfigMistake>) {
    Merger { mistakes }.merge(under, over, &[]);
}

struct Merger<'m> {
    mistakes: &'m mut Vec<ConfigMistake>,
}

impl Merger<'_> {
    fn merge(&mut self, under: &mut Node, over: Node, path: &[&str]) {
        let Node { content, origin } = over;
        match (&mut under.content, content) {
            (Content::Table(old), Content::Table(new)) => {
                for (key, node) in new {
                    match old.get_mut(&key) {
                        Some(old) => self.merge(old, node, &child_path(path, &key)),
                        None => {
                            old.insert(key, node);
                        }
                    }
                }
                under.origin = origin;
            }
            (Content::Scalar(old), Content::Scalar(new)) if path.first() == Some(&LOWER_WINS) => {
                if is_higher(&new, old) {
                    let message = format!(
                        "{new} cannot raise the ceiling of {old} at {}",
                        under.origin
                    );
                    self.mistakes
                        .push(ConfigMistake::warning(&origin, dotted(path), message));
                } else if new != *old {
                    *under = Node::new(Content::Scalar(new), origin);
                }
            }
            (_, content) => *under = Node::new(content, origin),
        }
    }
}

fn is_higher(new: &Value, old: &Value) -> bool {
    matches!((new.as_i64(), old.as_i64()), (Some(new), Some(old)) if new > old)
}
