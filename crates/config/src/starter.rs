//! The file that a new project starts with.

/// A `windlass.toml` for a new project: what matters is set, what else there is stands in comments.
#[must_use]
pub fn starter() -> &'static str {
    include_str!("starter.toml")
}
