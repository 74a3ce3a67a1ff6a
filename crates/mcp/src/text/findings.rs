//! Suspicious content in the definition of a tool. All strings and keys are checked.

use std::fmt;

use serde_json::{Map, Value};

use super::{Hidden, clipped, pieces, visible};
use crate::definition::Definition;
use crate::naming;

/// The most findings about one tool.
const MAX_FINDINGS: usize = 20;

/// The most consecutive whitespace characters. More could push the following text out of view.
const MAX_BLANKS: usize = 200;

/// A suspicious content in a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The JSON pointer into the definition.
    pub pointer: String,
    /// What is suspicious.
    pub suspicion: Suspicion,
}

/// What is suspicious.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suspicion {
    /// Hidden text.
    Hidden(Hidden),
    /// Hidden text in a key.
    HiddenInKey(Hidden),
    /// So many consecutive whitespace characters that the following text is out of view.
    Padding(usize),
    /// The name contains look-alike letters.
    HasLookAlike {
        /// The name that it looks like.
        like: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let write_hidden = |f: &mut fmt::Formatter<'_>, hidden: &Hidden| {
            write!(
                f,
                "{} at byte {}: {}",
                hidden.kind, hidden.place, hidden.what
            )
        };
        write!(f, "{}: ", self.pointer)?;
        match &self.suspicion {
            Suspicion::Hidden(hidden) => write_hidden(f, hidden),
            Suspicion::HiddenInKey(hidden) => {
                f.write_str("in the key, ")?;
                write_hidden(f, hidden)
            }
            Suspicion::Padding(blanks) => {
                write!(
                    f,
                    "{blanks} whitespace characters in a row, which push the following text out of view"
                )
            }
            Suspicion::HasLookAlike { like } => {
                write!(f, "the name uses letters that look like those of `{like}`")
            }
        }
    }
}

/// The suspicious contents of a definition, at most the first 20.
#[must_use]
pub fn findings(definition: &Definition) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(like) = naming::look_alike(definition.name()) {
        found.push(Finding {
            pointer: "/name".to_owned(),
            suspicion: Suspicion::HasLookAlike { like },
        });
    }
    // A stack of values to check, instead of recursion.
    let mut rest: Vec<(String, &Value)> = Vec::new();
    let whole = definition.as_map();
    check_keys("", whole, &mut found);
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
                check_keys(&pointer, entries, &mut found);
                let entries = entries.iter().rev();
                rest.extend(entries.map(|(key, value)| (below(&pointer, key), value)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found.truncate(MAX_FINDINGS);
    found
}

fn check_keys(pointer: &str, entries: &Map<String, Value>, found: &mut Vec<Finding>) {
    for key in entries.keys() {
        let hidden = pieces(key).take(MAX_FINDINGS.saturating_sub(found.len()));
        let at = below(pointer, key);
        found.extend(hidden.map(|hidden| Finding {
            pointer: at.clone(),
            suspicion: Suspicion::HiddenInKey(hidden),
        }));
    }
}

/// The JSON pointer to the value of a key, with hidden text made visible.
pub(crate) fn below(pointer: &str, key: &str) -> String {
    let key = key.replace('~', "~0").replace('/', "~1");
    format!("{pointer}/{}", visible(clipped(&key, 100)))
}

/// The length of the longest run of whitespace that is followed by other text.
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
