//! Permissions: what a tool demands and a principal holds, such as `files:read`. Only permissions of
//! the vocabulary exist, so that a misspelt one is found instead of never being granted.

use std::collections::BTreeSet;

use super::slack::SLACK_SCOPES;
use super::word::word;
use crate::nearest::nearest;

/// The longest permission, in bytes.
const MAX_PERMISSION: usize = 100;

word! {
    /// A permission, written as a noun and what may be done to it: `files:read`. That it is a known
    /// one is for [`Vocabulary`] to say.
    Permission is
    "a permission",
    "it is a noun and a verb such as `files:read`, in lower-case letters, digits, `.`, `_` and `-`",
    "^[a-z][a-z0-9._-]*(:[a-z0-9._-]+)*$",
    is_permission
}

fn is_permission(text: &str) -> bool {
    let word_of = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'))
    };
    text.len() <= MAX_PERMISSION
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.split(':').all(word_of)
}

/// The permissions that the tools which come with the program demand. Two of them are Slack's as
/// well; whoever may read files may read them wherever they are.
pub const OWN_PERMISSIONS: [&str; 7] = [
    "files:read",
    "files:write",
    "files:delete",
    "web:read",
    "web:search",
    "memory:read",
    "memory:write",
];

/// The permissions that exist: Slack's scopes, our own, and those declared beside them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary(BTreeSet<Permission>);

/// A permission that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no permission `{name}`")]
pub struct UnknownPermission {
    /// What it was called.
    pub name: String,
    /// What may have been meant.
    pub nearest: Option<String>,
}

impl Default for Vocabulary {
    fn default() -> Self {
        let words = SLACK_SCOPES.iter().chain(&OWN_PERMISSIONS);
        // Each of them has the form of a permission; a test makes sure.
        Self(words.map(|&word| Permission(word.into())).collect())
    }
}

impl Vocabulary {
    /// Declares one more; declaring one twice changes nothing.
    pub fn declare(&mut self, permission: Permission) {
        self.0.insert(permission);
    }

    /// Whether there is such a permission.
    #[must_use]
    pub fn contains(&self, permission: &Permission) -> bool {
        self.0.contains(permission)
    }

    /// All of them, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &Permission> {
        self.0.iter()
    }

    /// Checks that there is a permission of that name.
    ///
    /// # Errors
    /// If there is none, with the one that may have been meant.
    pub fn require(&self, name: &str) -> Result<&Permission, UnknownPermission> {
        self.0.get(name).ok_or_else(|| UnknownPermission {
            name: name.chars().take(60).collect(),
            nearest: nearest(name, self.iter().map(Permission::as_str)).map(str::to_owned),
        })
    }
}
