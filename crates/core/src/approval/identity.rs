//! Principals and identities.

use std::fmt;

use serde::{Deserialize, Serialize};
use windlass_spec::text::{TextUse, is_clean};
use windlass_spec::{NonEmptyText, checked_text};

checked_text! {
    /// The name of a person or program: visible characters without surrounding blanks, so that one principal
    /// cannot pass as two.
    Principal(String), NotAPrincipal, check_principal
}

/// A text that is not a valid principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a principal is 1 to {} visible characters without blanks around them",
    Principal::MAX
)]
pub struct NotAPrincipal;

fn check_principal(name: &str) -> Result<(), NotAPrincipal> {
    let is_valid = !name.is_empty()
        && name.trim() == name
        && name.chars().count() <= Principal::MAX
        && is_clean(name, TextUse::Name);
    match is_valid {
        true => Ok(()),
        false => Err(NotAPrincipal),
    }
}

impl Principal {
    /// The maximum number of characters.
    pub const MAX: usize = 256;

    /// Whether both may be the same person. Many systems ignore case in names, so names that differ only
    /// in case count as one where two approvers are needed.
    #[must_use]
    pub fn is_same_person(&self, other: &Self) -> bool {
        self.0.to_lowercase() == other.0.to_lowercase()
    }
}

/// A principal of a tenant. A principal cannot decide about calls of another tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TenantPrincipal {
    /// The organisation.
    pub tenant: NonEmptyText,
    /// The person or program.
    pub principal: Principal,
}

impl TenantPrincipal {
    /// A principal of a tenant.
    #[must_use]
    pub const fn new(tenant: NonEmptyText, principal: Principal) -> Self {
        Self { tenant, principal }
    }
}

impl fmt::Display for TenantPrincipal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.principal, self.tenant)
    }
}
