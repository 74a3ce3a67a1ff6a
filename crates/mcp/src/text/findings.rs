//! What is suspicious about a tool as a server describes it: every text in it, keys included.

use std::fmt;

use serde_json::{Map, Value};

use super::{Hidden, clipped, pieces, visible};
use crate::definition::Definition;
use crate::naming;

/// More about one tool says nothing new.
const MAX_FINDINGS: usize = 20;

/// Blanks or empty lines in a row that push what follows out of sight.
const MAX_BLANKS: usize = 200;

/// Something suspicious about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where, as a JSON pointer into the definition.
    pub pointer: String,
    /// What.
    pub suspicion: Suspicion,
}

/// What is suspicious.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suspicion {
    /// Text that a person would not see.
    Hidden(Hidden),
    /// The name of a key holds such text.
    HiddenInKey(Hidden),
    /// So many blanks in a row that what comes after them is out of sight.
    Padding(usize),
    /// The name is written in letters that look like others.
    HasLookAlike {
        /// What it looks like.
        like: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |f: &mut fmt::Formatter<'_>, hidden: &Hidden| {
            write!(
                f,
                "{} at byte {}: {}",
                hidden.kind, hidden.place, hidden.what
            )
        };
        write!(f, "{}: ", self.pointer)?;
        match &self.suspicion {
            Suspicion::Hidden(hidden) => told(f, hidden),
            Suspicion::HiddenInKey(hidden) => {
                f.write_str("in the name of the key, ")?;
                told(f, hidden)
            }
            Suspicion::Padding(blanks) => {
                write!(
                    f,
                    "{blanks} blanks in a row, which push what follows out of sight"
                )
            }
            Suspicion::HasLookAlike { like } => {
                write!(
                    f,
                    "the name is written in letters that look like those of `{like}`"
                )
            }
        }
    }
}

/// Everything suspicious about a tool, the first of it if there is much.
#[must_use]
pub fn findings(definition: &Definition) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(like) = naming::look_alike(definition.name()) {
        found.push(Finding {
            pointer: "/name".to_owned(),
            suspicion: Suspicion::HasLookAlike { like },
        });
    }
    // A list of what is still to be looked at in place of recursion.
    let mut rest: Vec<(String, &Value)> = Vec::new();
    let whole = definition.as_map();
    look_at_keys("", whole, &mut found);
    rest.extend(
        whole
            .iter()
            .rev()
            .map(|(key, value)| (below("", key), value)),
    );
    while let Some((pointer, value)) = rest.pop() {
        if found.len() >= MAX_FINDINGS {
            break;
        }
        match value {
            Value::String(text) => {
                let hidden = pieces(text).take(MAX_FINDINGS.saturating_sub(found.len()));
                found.extend(hidden.map(|hidden| Finding {
                    pointer: pointer.clone(),
                    suspicion: Suspicion::Hidden(hidden),
                }));
                let blanks = longest_blank(text);
                if blanks > MAX_BLANKS {
                    found.push(Finding {
                        pointer,
                        suspicion: Suspicion::Padding(blanks),
                    });
                }
            }
            Value::Array(items) => {
                let items = items.iter().enumerate().rev();
                rest.extend(items.map(|(index, item)| (format!("{pointer}/{index}"), item)));
            }
            Value::Object(entries) => {
                look_at_keys(&pointer, entries, &mut found);
                let entries = entries.iter().rev();
                rest.extend(entries.map(|(key, value)| (below(&pointer, key), value)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found.truncate(MAX_FINDINGS);
    found
}

fn look_at_keys(pointer: &str, entries: &Map<String, Value>, found: &mut Vec<Finding>) {
    for key in entries.keys() {
        let hidden = pieces(key).take(MAX_FINDINGS.saturating_sub(found.len()));
        let at = below(pointer, key);
        found.extend(hidden.map(|hidden| Finding {
            pointer: at.clone(),
            suspicion: Suspicion::HiddenInKey(hidden),
        }));
    }
}

/// The pointer to what stands under a key, fit to be shown.
pub(crate) fn below(pointer: &str, key: &str) -> String {
    let key = key.replace('~', "~0").replace('/', "~1");
    format!("{pointer}/{}", visible(clipped(&key, 100)))
}

/// How many blanks stand in a row before something else, at most.
fn longest_blank(text: &str) -> usize {
    let (mut longest, mut current) = (0, 0);
    for c in text.chars() {
        if c.is_whitespace() {
            current += 1;
        } else {
            longest = longest.max(current);
            current = 0;
        }
    }
    longest
}
