//! What tools of servers are called here, and which of them could be taken for one another.
//!
//! A tool is called by the operator's name for its server, `__`, and the server's own name for it, in
//! the characters that the interfaces of models take. A name that fits is kept as it is. One that does
//! not is changed, and then always carries a digest of what it was: so what a tool is called depends on
//! nothing but its server and its own name, no other tool that comes or goes can take a name over that
//! an operator's rules speak of, and names fall together only if somebody sees to it. Those that do are
//! refused, all of them, because nobody could say which is meant.

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

/// The longest name that the interfaces of all models take.
pub const MAX_TOOL_NAME: usize = 64;

/// The longest name a server can give a tool, in characters. The protocol asks for 128 at most.
pub const MAX_OWN_NAME: usize = 256;

/// How many hexadecimal digits of the digest a changed name carries.
const DIGITS: usize = 8;

/// Why a tool gets no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamingProblem {
    /// The server gave it none.
    #[error("the tool has no name")]
    Empty,
    /// Nobody could read it.
    #[error("the name `{0}...` has more than {MAX_OWN_NAME} characters")]
    TooLong(String),
    /// It holds what is not seen.
    #[error("the name `{0}` holds characters that are not seen")]
    Unseen(String),
    /// It can be mistaken for another.
    #[error("the name `{shown}` is written in letters that look like those of `{like}`")]
    LookAlike {
        /// The name.
        shown: String,
        /// What it looks like.
        like: String,
    },
    /// Another tool of the server would be called the same.
    #[error("the tools {0} of one server would all be called the same here")]
    FallTogether(String),
}

/// Whether a tool can get a name at all.
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
        return Err(NamingProblem::Unseen(shown));
    }
    match look_alike(own) {
        Some(like) => Err(NamingProblem::LookAlike {
            shown: own.to_owned(),
            like,
        }),
        None => Ok(()),
    }
}

/// What a tool of a server is called here.
///
/// # Errors
/// If the server's name for it is none, or looks like another.
pub fn tool_name(server: &ServerName, own: &str) -> Result<ToolName, NamingProblem> {
    check_name(own)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let room = MAX_TOOL_NAME.saturating_sub(server.as_str().len() + SEPARATOR.len());
    let name = if own.chars().all(fits) && own.len() <= room {
        own.to_owned()
    } else {
        let kept = room.saturating_sub(DIGITS + 1);
        let changed = own.chars().map(|c| if fits(c) { c } else { '_' });
        let changed: String = changed.take(kept).collect();
        format!("{changed}-{}", digest(own))
    };
    ToolName::new(format!("{server}{SEPARATOR}{name}")).map_err(|_| NamingProblem::Empty)
}

/// What the tools of a server are called here, in their order. Those that would be called the same
/// get no name; the same name twice is one tool.
#[must_use]
pub fn tool_names(server: &ServerName, owns: &[&str]) -> Vec<Result<ToolName, NamingProblem>> {
    let names: Vec<_> = owns.iter().map(|own| tool_name(server, own)).collect();
    let mut called: HashMap<&ToolName, Vec<&str>> = HashMap::new();
    for (own, name) in owns.iter().zip(&names) {
        if let Ok(name) = name {
            let owns = called.entry(name).or_default();
            if !owns.contains(own) {
                owns.push(own);
            }
        }
    }
    let together = |name: &ToolName| match called.get(name).map(Vec::as_slice) {
        None | Some([] | [_]) => None,
        Some(owns) => {
            let owns: Vec<String> = owns.iter().map(|own| format!("`{own}`")).collect();
            Some(NamingProblem::FallTogether(owns.join(", ")))
        }
    };
    let found: Vec<_> = names
        .iter()
        .map(|name| name.as_ref().ok().and_then(together))
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
        // Writing to a text cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// What a name looks like that is written in letters of several scripts, or in letters of another
/// script that all look like Latin ones. Names in one script of their own are nobody's look-alike, and
/// neither are Latin letters beside Chinese, Japanese or Korean ones.
#[must_use]
pub fn look_alike(name: &str) -> Option<String> {
    let name = clipped(name, MAX_OWN_NAME);
    windlass_spec::text::look_alike(name).map(|like| visible(&like).into_owned())
}
