//! Tools of different servers that can be confused, and definitions that mention tools of other servers.
//! Both are warnings for the operator: they prove no attack.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use serde_json::Value;
use windlass_spec::server::{SEPARATOR, ServerName};
use windlass_spec::text::skeleton;

use super::MAX_OWN_NAME;
use crate::definition::Definition;
use crate::text::clipped;

/// The most warnings that are reported.
const MAX_WARNINGS: usize = 200;

/// The shortest name that is compared with one edit. Shorter names are often different words.
const MIN_LENGTH: usize = 5;

/// How two names are similar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Likeness {
    /// They are equal.
    Same,
    /// They differ only in look-alike letters, case or separators.
    LooksAlike,
    /// They differ in one character.
    OneEdit,
}

/// Two tools of different servers with similar names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LookAlike {
    /// The first tool: its server and the server's name for it.
    pub first: (ServerName, String),
    /// The second tool.
    pub second: (ServerName, String),
    /// How the names are similar.
    pub likeness: Likeness,
}

impl fmt::Display for LookAlike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((server, tool), (other_server, other)) = (&self.first, &self.second);
        match self.likeness {
            Likeness::Same => write!(
                f,
                "the servers `{server}` and `{other_server}` both have a tool `{tool}`"
            ),
            Likeness::LooksAlike => write!(
                f,
                "`{tool}` of the server `{server}` looks like `{other}` of `{other_server}`"
            ),
            Likeness::OneEdit => write!(
                f,
                "`{tool}` of the server `{server}` is one character away from `{other}` of `{other_server}`"
            ),
        }
    }
}

/// Tools of different servers whose own names are equal, look alike, or are one edit apart. Names are
/// grouped by their forms with one character removed, so that the cost is linear in the number of names.
#[must_use]
pub fn look_alikes(tools: &[(ServerName, String)]) -> Vec<LookAlike> {
    let folded: Vec<String> = tools.iter().map(|(_, own)| fold(own)).collect();
    let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, name) in folded.iter().enumerate() {
        let shortened = (name.chars().count() >= MIN_LENGTH).then(|| without_one_character(name));
        let keys = shortened.into_iter().flatten().chain([name.clone()]);
        for key in keys.collect::<BTreeSet<_>>() {
            groups.entry(key).or_default().push(index);
        }
    }
    let mut seen = BTreeSet::new();
    let mut found = BTreeSet::new();
    let mut groups: Vec<_> = groups
        .into_iter()
        .filter(|(_, all)| all.len() > 1)
        .collect();
    groups.sort();
    for (_, group) in groups {
        for (position, &one) in group.iter().enumerate() {
            for &other in group.iter().skip(position + 1) {
                if found.len() >= MAX_WARNINGS {
                    return found.into_iter().collect();
                }
                if tools[one].0 == tools[other].0 || !seen.insert((one, other)) {
                    continue;
                }
                let likeness = match () {
                    () if tools[one].1 == tools[other].1 => Likeness::Same,
                    () if folded[one] == folded[other] => Likeness::LooksAlike,
                    () if is_one_edit(&folded[one], &folded[other]) => Likeness::OneEdit,
                    () => continue,
                };
                let (first, second) = if tools[one] <= tools[other] {
                    (&tools[one], &tools[other])
                } else {
                    (&tools[other], &tools[one])
                };
                found.insert(LookAlike {
                    first: first.clone(),
                    second: second.clone(),
                    likeness,
                });
            }
        }
    }
    found.into_iter().collect()
}

/// A name with case, separators and look-alike letters normalized.
fn fold(name: &str) -> String {
    skeleton(clipped(name, MAX_OWN_NAME))
        .chars()
        .filter(|c| !matches!(c, '_' | '-' | '.' | '/' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

fn without_one_character(name: &str) -> impl Iterator<Item = String> {
    name.char_indices().map(|(at, c)| {
        let (before, after) = (name.get(..at), name.get(at + c.len_utf8()..));
        format!(
            "{}{}",
            before.unwrap_or_default(),
            after.unwrap_or_default()
        )
    })
}

fn is_one_edit(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let same_start = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same_start..], &other[same_start..]);
    let same_end = one
        .iter()
        .rev()
        .zip(other.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let longest = one.len().max(other.len());
    longest.saturating_sub(same_end) == 1
}

/// A tool whose definition mentions a tool of another server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mention {
    /// The tool: its server and the server's name for it.
    pub tool: (ServerName, String),
    /// The mentioned tool.
    pub of: (ServerName, String),
}

impl fmt::Display for Mention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((server, tool), (other_server, other)) = (&self.tool, &self.of);
        write!(
            f,
            "the definition of the tool `{tool}` of the server `{server}` mentions `{other}`, a tool of \
             the server `{other_server}`"
        )
    }
}

/// Tools whose definitions mention tools of other servers: by their full names, or by their own names if
/// those are not ordinary words, or are quoted, or are next to the word "tool".
#[must_use]
pub fn mentions(tools: &[(ServerName, Definition)]) -> Vec<Mention> {
    let mut named: HashMap<String, BTreeSet<&ServerName>> = HashMap::new();
    let mut own: BTreeMap<&ServerName, BTreeSet<&str>> = BTreeMap::new();
    for (server, definition) in tools {
        let name = definition.name();
        if name.is_empty() || name.len() > MAX_OWN_NAME {
            continue;
        }
        named.entry(name.to_owned()).or_default().insert(server);
        let full = format!("{server}{SEPARATOR}{name}");
        named.entry(full).or_default().insert(server);
        own.entry(server).or_default().insert(name);
    }
    let mut found = BTreeSet::new();
    for (server, definition) in tools {
        let mentioned = |word: &str| {
            let others = named.get(word)?;
            let is_own = own.get(server).is_some_and(|own| own.contains(word));
            let other = others.iter().find(|other| **other != server)?;
            let name = word
                .strip_prefix(&format!("{other}{SEPARATOR}"))
                .unwrap_or(word);
            (!is_own).then(|| ((*other).clone(), name.to_owned()))
        };
        for text in texts(definition) {
            for word in words(text) {
                if found.len() >= MAX_WARNINGS {
                    return found.into_iter().collect();
                }
                if let Some(of) = mentioned(word) {
                    found.insert(Mention {
                        tool: (server.clone(), definition.name().to_owned()),
                        of,
                    });
                }
            }
        }
    }
    found.into_iter().collect()
}

/// The texts of a definition except its name.
fn texts(definition: &Definition) -> Vec<&str> {
    let entries = definition.as_map().iter().filter(|(key, _)| *key != "name");
    let mut rest: Vec<&Value> = entries.map(|(_, value)| value).collect();
    let mut texts = Vec::new();
    while let Some(value) = rest.pop() {
        match value {
            Value::String(text) => texts.push(text.as_str()),
            Value::Array(items) => rest.extend(items),
            Value::Object(entries) => rest.extend(entries.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    texts
}

/// The words of a text that can be names of tools.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            let start = at + rest.find(is_part)?;
            let rest = text.get(start..)?;
            let end = start + rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
            at = end;
            // The full stop at the end of a sentence is not part of a name.
            let word = text.get(start..end)?.trim_matches(['.', '/', '-']);
            if is_tool_name(word, text.get(..start)?, text.get(end..)?) {
                return Some(word);
            }
        }
    })
}

fn is_tool_name(word: &str, before: &str, after: &str) -> bool {
    let inner = word.get(1..).unwrap_or_default();
    let is_identifier = word.contains(['_', '-', '.', '/'])
        || inner.contains(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit());
    let quote = |c: char| matches!(c, '`' | '"' | '\'');
    let is_quoted = before.ends_with(quote) && after.starts_with(quote);
    let is_near_tool = after
        .trim_start()
        .get(..4)
        .is_some_and(|next| next.eq_ignore_ascii_case("tool"))
        || before.trim_end().ends_with("tool");
    is_identifier || is_quoted || is_near_tool
}
