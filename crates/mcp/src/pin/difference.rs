//! The differences between an accepted and an offered definition, for review: one per location, with
//! hidden text made visible.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};
use windlass_core::approval::Digest;

use super::{Pin, PinState};
use crate::definition::Definition;
use crate::text::{below, clipped, visible, visible_json};

/// The longest value that is shown, in characters.
const MAX_SHOWN: usize = 2_000;

/// How many characters are shown before the first difference of two long texts.
const CONTEXT: usize = 60;

/// A difference at one location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The JSON pointer into the definition.
    pub pointer: String,
    /// The accepted value as JSON, with hidden text made visible. `None` if there was none.
    pub before: Option<String>,
    /// The offered value.
    pub after: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pointer)?;
        if let Some(before) = &self.before {
            write!(f, "\n  - {before}")?;
        }
        if let Some(after) = &self.after {
            write!(f, "\n  + {after}")?;
        }
        Ok(())
    }
}

/// The differences between the accepted and the offered definition, in the order of the keys. Everything
/// is different if one of the two is missing.
#[must_use]
pub fn diff(pin: &Pin) -> Vec<Change> {
    let empty = Map::new();
    let map = |definition: &Option<Definition>| {
        let map = definition.as_ref().map(Definition::as_map);
        map.unwrap_or(&empty).clone()
    };
    let (before, after) = (map(&pin.accepted), map(&pin.offered));
    let mut changes = Vec::new();
    let mut rest = Vec::new();
    push_entries(&mut rest, "", &before, &after);
    // A stack of values to compare, instead of recursion.
    while let Some((pointer, before, after)) = rest.pop() {
        match (before, after) {
            (Some(before), Some(after)) if is_same(before, after) => {}
            (Some(Value::Object(before)), Some(Value::Object(after))) => {
                push_entries(&mut rest, &pointer, before, after);
            }
            (Some(Value::Array(before)), Some(Value::Array(after)))
                if !before.iter().chain(after).all(is_scalar) =>
            {
                for index in (0..before.len().max(after.len())).rev() {
                    let pointer = format!("{pointer}/{index}");
                    rest.push((pointer, before.get(index), after.get(index)));
                }
            }
            (Some(Value::String(before)), Some(Value::String(after))) => {
                let (before, after) = texts(before, after);
                changes.push(Change {
                    pointer,
                    before: Some(before),
                    after: Some(after),
                });
            }
            (before, after) => changes.push(Change {
                pointer,
                before: before.map(shown),
                after: after.map(shown),
            }),
        }
    }
    changes
}

type Compared<'v> = (String, Option<&'v Value>, Option<&'v Value>);

fn push_entries<'v>(
    rest: &mut Vec<Compared<'v>>,
    pointer: &str,
    before: &'v Map<String, Value>,
    after: &'v Map<String, Value>,
) {
    let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys.into_iter().rev() {
        rest.push((below(pointer, key), before.get(key), after.get(key)));
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

/// Numbers are compared by value, as digests do.
fn is_same(before: &Value, after: &Value) -> bool {
    before == after
        || (before.is_number() || after.is_number())
            && Digest::of_json(before) == Digest::of_json(after)
}

fn shown(value: &Value) -> String {
    let (value, _) = visible_json(value.clone());
    cut(&value.to_string())
}

fn cut(text: &str) -> String {
    let beginning = clipped(text, MAX_SHOWN);
    match text.get(beginning.len()..).map(|rest| rest.chars().count()) {
        None | Some(0) => text.to_owned(),
        Some(more) => format!("{beginning}... ({more} more characters)"),
    }
}

/// Two texts. If they first differ far from their beginning, they are shown from shortly before that.
fn texts(before: &str, after: &str) -> (String, String) {
    let quoted = |text: &str| Value::from(visible(text)).to_string();
    let (before, after) = (quoted(before), quoted(after));
    let pairs = before.chars().zip(after.chars());
    let same = pairs.take_while(|(one, other)| one == other).count();
    if same <= MAX_SHOWN / 2 {
        return (cut(&before), cut(&after));
    }
    let from = |text: &str| {
        let rest: String = text.chars().skip(same - CONTEXT).collect();
        format!("...{}", cut(&rest))
    };
    (from(&before), from(&after))
}

/// A tool that seems to have been renamed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rename {
    /// The old name.
    pub from: String,
    /// The new name.
    pub to: String,
}

/// Tools that are gone while a new tool differs from them only in its name.
#[must_use]
pub fn renames(pins: &[Pin]) -> Vec<Rename> {
    let mut gone: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pin in pins.iter().filter(|pin| pin.state() == PinState::Gone) {
        if let Some(accepted) = &pin.accepted {
            let same = gone.entry(nameless_digest(accepted)).or_default();
            same.push(&pin.tool);
        }
    }
    let mut renames = Vec::new();
    let is_new = |pin: &&Pin| pin.accepted.is_none();
    for pin in pins.iter().filter(is_new) {
        let Some(offered) = &pin.offered else {
            continue;
        };
        for from in gone.get(&nameless_digest(offered)).into_iter().flatten() {
            renames.push(Rename {
                from: visible(from).into_owned(),
                to: visible(&pin.tool).into_owned(),
            });
        }
    }
    renames
}

/// The digest of a definition without its name and title.
fn nameless_digest(definition: &Definition) -> String {
    let mut map = definition.as_map().clone();
    map.remove("name");
    map.remove("title");
    Digest::of_json(&Value::Object(map)).to_string()
}
