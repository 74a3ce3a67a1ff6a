//! The names of servers' tools, and the detection of names that can be confused.
//!
//! The full name of a tool is the operator's name for its server, `__`, and the server's name for the tool,
//! in the characters that the APIs of models accept. A name that fits is unchanged. Another name is
//! rewritten and gets a digest of the original as suffix. So the full name depends only on the server and
//! the tool's own name, and no other tool can take over a name that the operator's rules use. Names collide
//! only if a server forges them. Colliding tools are all refused, because the name would be ambiguous.

mod like;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use windlass_spec::ToolName;
use windlass_spec::server::{SEPARATOR, ServerName};

use crate::text::{clipped, visible};

pub use like::{Likeness, LookAlike, Mention, look_alikes, mentions};

/// The longest name that the APIs of all models accept.
pub const MAX_TOOL_NAME: usize = 64;

/// The longest name that a server can give a tool, in characters. The protocol recommends at most 128.
pub const MAX_OWN_NAME: usize = 256;

/// The number of hexadecimal digits of the digest in a rewritten name.
const DIGITS: usize = 8;

/// Why a tool gets no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamingProblem {
    /// The server gave it no name.
    #[error("the tool has no name")]
    Empty,
    /// The name is too long.
    #[error("the name `{0}...` has more than {MAX_OWN_NAME} characters")]
    TooLong(String),
    /// The name contains hidden characters.
    #[error("the name `{0}` contains hidden characters")]
    HiddenCharacters(String),
    /// The name can be confused with another.
    #[error("the name `{shown}` uses letters that look like those of `{like}`")]
    LookAlike {
        /// The name.
        shown: String,
        /// What it looks like.
        like: String,
    },
    /// Another tool of the server would get the same full name.
    #[error("the tools {0} of one server would get the same name")]
    Collision(String),
}

/// Checks whether a tool can get a full name.
///
/// # Errors
/// Why not.
pub fn check_name(own: &str) -> Result<(), NamingProblem> {
    if own.trim().is_empty() {
        return Err(NamingProblem::Empty);
    }
    let beginning = clipped(own, MAX_OWN_NAME);
    if beginning.len() < own.len() {
        let shown = visible(clipped(own, 40)).into_owned();
        return Err(NamingProblem::TooLong(shown));
    }
    if !crate::text::hidden(own).is_empty() || own.chars().any(|c| matches!(c, '\n' | '\t' | '\r'))
    {
        let shown = visible(own).replace(['\n', '\t', '\r'], " ");
        return Err(NamingProblem::HiddenCharacters(shown));
    }
    match look_alike(own) {
        Some(like) => Err(NamingProblem::LookAlike {
            shown: own.to_owned(),
            like,
        }),
        None => Ok(()),
    }
}

/// The full name of a tool of a server.
///
/// # Errors
/// If the server's name for it is not valid, or looks like another.
pub fn tool_name(server: &ServerName, own: &str) -> Result<ToolName, NamingProblem> {
    check_name(own)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let room = MAX_TOOL_NAME.saturating_sub(server.as_str().len() + SEPARATOR.len());
    let name = if own.chars().all(fits) && own.len() <= room {
        own.to_owned()
    } else {
        let length = room.saturating_sub(DIGITS + 1);
        let changed = own.chars().map(|c| if fits(c) { c } else { '_' });
        let changed: String = changed.take(length).collect();
        format!("{changed}-{}", digest(own))
    };
    ToolName::new(format!("{server}{SEPARATOR}{name}")).map_err(|_| NamingProblem::Empty)
}

/// The full names of the tools of a server, in their order. Tools whose full names collide get an error.
/// The same own name twice is one tool.
#[must_use]
pub fn tool_names(server: &ServerName, owns: &[&str]) -> Vec<Result<ToolName, NamingProblem>> {
    let names: Vec<_> = owns.iter().map(|own| tool_name(server, own)).collect();
    let mut by_name: HashMap<&ToolName, Vec<&str>> = HashMap::new();
    for (own, name) in owns.iter().zip(&names) {
        if let Ok(name) = name {
            let owns = by_name.entry(name).or_default();
            if !owns.contains(own) {
                owns.push(own);
            }
        }
    }
    let collision = |name: &ToolName| match by_name.get(name).map(Vec::as_slice) {
        None | Some([] | [_]) => None,
        Some(owns) => {
            let owns: Vec<String> = owns.iter().map(|own| format!("`{own}`")).collect();
            Some(NamingProblem::Collision(owns.join(", ")))
        }
    };
    let found: Vec<_> = names
        .iter()
        .map(|name| name.as_ref().ok().and_then(collision))
        .collect();
    names
        .into_iter()
        .zip(found)
        .map(|(name, problem)| match problem {
            Some(problem) => Err(problem),
            None => name,
        })
        .collect()
}

fn digest(own: &str) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(own.as_bytes()).iter().take(DIGITS / 2) {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The Latin text that a name looks like, if it mixes scripts or is in another script with only
/// Latin-looking letters. Names in one other script have no look-alike, and neither have Latin letters
/// combined with Chinese, Japanese or Korean ones.
#[must_use]
pub fn look_alike(name: &str) -> Option<String> {
    let name = clipped(name, MAX_OWN_NAME);
    windlass_spec::text::look_alike(name).map(|like| visible(&like).into_owned())
}
