//! Principals and identities.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use windlass_spec::NonEmptyText;
use windlass_spec::text::{TextUse, is_clean};

/// The name of a person or program: visible characters without surrounding blanks, so that one principal
/// cannot pass as two.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Principal(String);

/// A text that is not a valid principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a principal is 1 to {} visible characters without blanks around them",
    Principal::MAX
)]
pub struct NotAPrincipal;

impl Principal {
    /// The maximum number of characters.
    pub const MAX: usize = 256;

    /// Makes a principal from a checked name.
    ///
    /// # Errors
    /// If it is empty, too long, or contains invisible characters.
    pub fn new(name: impl Into<String>) -> Result<Self, NotAPrincipal> {
        let name = name.into();
        let is_valid = !name.is_empty()
            && name.trim() == name
            && name.chars().count() <= Self::MAX
            && is_clean(&name, TextUse::Name);
        is_valid.then_some(Self(name)).ok_or(NotAPrincipal)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether both may be the same person. Many systems ignore case in names, so names that differ only
    /// in case count as one where two approvers are needed.
    #[must_use]
    pub fn is_same_person(&self, other: &Self) -> bool {
        self.0.to_lowercase() == other.0.to_lowercase()
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Principal {
    type Err = NotAPrincipal;

    fn from_str(name: &str) -> Result<Self, NotAPrincipal> {
        Self::new(name)
    }
}

impl TryFrom<String> for Principal {
    type Error = NotAPrincipal;

    fn try_from(name: String) -> Result<Self, NotAPrincipal> {
        Self::new(name)
    }
}

impl From<Principal> for String {
    fn from(principal: Principal) -> Self {
        principal.0
    }
}

/// A principal of a tenant. A principal cannot decide about calls of another tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The organisation.
    pub tenant: NonEmptyText,
    /// The person or program.
    pub principal: Principal,
}

impl Identity {
    /// A principal of a tenant.
    #[must_use]
    pub const fn new(tenant: NonEmptyText, principal: Principal) -> Self {
        Self { tenant, principal }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.principal, self.tenant)
    }
}
