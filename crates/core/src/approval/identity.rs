//! Who asks and who decides.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use windlass_spec::NonEmptyText;
use windlass_spec::text::{TextUse, is_clean};

/// The name of a person or program: something visible, without blanks around it, so that one of them
/// cannot pass for two.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Principal(String);

/// A text that names nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a principal is 1 to {} visible characters without blanks around them",
    Principal::MAX
)]
pub struct NotAPrincipal;

impl Principal {
    /// How many characters a name may have.
    pub const MAX: usize = 256;

    /// Checks and takes a name.
    ///
    /// # Errors
    /// If it is empty, too long, or holds what cannot be seen.
    pub fn new(name: impl Into<String>) -> Result<Self, NotAPrincipal> {
        let name = name.into();
        let is_sound = !name.is_empty()
            && name.trim() == name
            && name.chars().count() <= Self::MAX
            && is_clean(&name, TextUse::Name);
        is_sound.then_some(Self(name)).ok_or(NotAPrincipal)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether both may be one and the same. Many systems do not tell capitals apart in names, so
    /// where two people are needed, names that differ in nothing else are taken for one.
    #[must_use]
    pub fn may_be(&self, other: &Self) -> bool {
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

/// A principal of a tenant. Nobody has a say in what is another tenant's.
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
