//! Without the feature `learn`, there are no playbooks.

use std::path::Path;

/// The port to the stored playbooks of a tenant. It has no operations.
pub trait PlaybookPort: Send + Sync {}

/// The playbooks in a directory. They are not used.
#[derive(Debug)]
pub struct Playbooks;

impl Playbooks {
    /// The playbooks of a tenant.
    #[must_use]
    pub fn of(_: &Path, _: &str) -> Self {
        Self
    }
}

impl PlaybookPort for Playbooks {}
