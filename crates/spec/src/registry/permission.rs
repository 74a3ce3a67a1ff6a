//! Permissions that a tool requires and a principal has, such as `files:read`. Only permissions of
//! the vocabulary exist, so that a misspelt one is found instead of never being granted.

use std::collections::BTreeSet;

use super::slack::SLACK_SCOPES;
use super::word::word;
use crate::nearest::nearest;

/// The longest permission, in bytes.
const MAX_PERMISSION: usize = 100;

word! {
    /// A permission, written as a noun and a verb: `files:read`. [`Vocabulary`] checks that it is a
    /// known one.
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

/// The permissions that the built-in tools require. `files:read` and `files:write` are Slack scopes
/// as well, and cover files in both places.
pub const OWN_PERMISSIONS: [&str; 7] = [
    "files:read",
    "files:write",
    "files:delete",
    "web:read",
    "web:search",
    "memory:read",
    "memory:write",
];

/// The known permissions: Slack's scopes, the built-in ones, and the declared ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary(BTreeSet<Permission>);

/// A permission that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no permission `{name}`")]
pub struct UnknownPermission {
    /// The unknown name.
    pub name: String,
    /// The most similar known permission.
    pub nearest: Option<String>,
}

impl Default for Vocabulary {
    fn default() -> Self {
        let words = SLACK_SCOPES.iter().chain(&OWN_PERMISSIONS);
        // A test checks that each of them has the form of a permission.
        Self(words.map(|&word| Permission(word.into())).collect())
    }
}

impl Vocabulary {
    /// Declares a permission; declaring one twice changes nothing.
    pub fn declare(&mut self, permission: Permission) {
        self.0.insert(permission);
    }

    /// Whether there is such a permission.
    #[must_use]
    pub fn contains(&self, permission: &Permission) -> bool {
        self.0.contains(permission)
    }

    /// All permissions, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &Permission> {
        self.0.iter()
    }

    /// Checks that there is a permission of that name.
    ///
    /// # Errors
    /// If there is none, with the most similar one.
    pub fn require(&self, name: &str) -> Result<&Permission, UnknownPermission> {
        self.0.get(name).ok_or_else(|| UnknownPermission {
            name: name.chars().take(60).collect(),
            nearest: nearest(name, self.iter().map(Permission::as_str)).map(str::to_owned),
        })
    }
}
