//! The configuration file of a new project.

/// A `windlass.toml` for a new project. Important keys are set; other keys are in comments.
#[must_use]
pub fn starter() -> &'static str {
    include_str!("starter.toml")
}
