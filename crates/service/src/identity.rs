//! The identity of a caller and its scopes. A front end determines it by authenticating the caller; it never
//! comes from the body of a request.

use std::collections::BTreeSet;
use std::sync::Arc;

use windlass_core::approval::{DecisionMeans, Principal, TenantPrincipal};
use windlass_keys::ApproverKey;
use windlass_runtime::local_identity;
use windlass_spec::NonEmptyText;

use crate::error::ServiceError;

/// The caller of an operation: a tenant, a principal, and the granted scopes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    person: TenantPrincipal,
    scopes: BTreeSet<Scope>,
    credential: Credential,
}

/// How the caller is authenticated, which decides whose key signs its decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credential {
    /// The caller is the local user: the key of that name on this machine signs, if it needs no passphrase.
    LocalUser,
    /// The caller has this key.
    Key(Arc<ApproverKey>),
    /// A front end authenticated the caller by these means, and the key of the installation attests it.
    FrontEnd(DecisionMeans),
}

windlass_spec::word_set! {
    /// What an identity may do.
    Scope, "scope" {
        /// List and show what belongs to the tenant.
        Read = "read",
        /// Start, resume and cancel runs, and call tools.
        Run = "run",
        /// Decide approvals; undo and release held calls.
        Approve = "approve",
        /// Change what agents work with: memory, playbook, plans.
        Operate = "operate",
        /// Read everything and decide nothing.
        Audit = "audit",
        /// Everything, also what starts programs: servers and what was accepted of them.
        Admin = "admin",
    }
}

impl Identity {
    /// A caller that a front end authenticated with a token, with these scopes. The key of the installation attests
    /// their decisions.
    #[must_use]
    pub fn new(
        tenant: NonEmptyText,
        principal: Principal,
        scopes: impl IntoIterator<Item = Scope>,
    ) -> Self {
        Self {
            person: TenantPrincipal::new(tenant, principal),
            scopes: scopes.into_iter().collect(),
            credential: Credential::FrontEnd(DecisionMeans::Token),
        }
    }

    /// The same caller, authenticated by other means.
    #[must_use]
    pub fn authenticated_by(mut self, means: DecisionMeans) -> Self {
        self.credential = Credential::FrontEnd(means);
        self
    }

    /// The approver that a key belongs to, with the same tenant and scopes.
    ///
    /// # Errors
    /// If the name of the key is not one of a principal.
    pub fn with_key(mut self, key: Arc<ApproverKey>) -> Result<Self, ServiceError> {
        self.person.principal = Principal::new(key.name())?;
        self.credential = Credential::Key(key);
        Ok(self)
    }

    pub(crate) fn credential(&self) -> &Credential {
        &self.credential
    }

    /// The user of the operating system that this process runs as, with all scopes: they own the data
    /// directory and the process.
    ///
    /// # Errors
    /// If the user has no usable name.
    pub fn local() -> Result<Self, ServiceError> {
        Ok(Self {
            person: local_identity()?,
            scopes: BTreeSet::from([Scope::Admin]),
            credential: Credential::LocalUser,
        })
    }

    /// The tenant.
    #[must_use]
    pub fn tenant(&self) -> &NonEmptyText {
        &self.person.tenant
    }

    /// The principal.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.person.principal
    }

    /// Tenant and principal, as runs and decisions record them.
    #[must_use]
    pub fn person(&self) -> &TenantPrincipal {
        &self.person
    }

    /// The granted scopes.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> {
        self.scopes.iter().copied()
    }

    /// Whether the identity may do what a scope allows.
    #[must_use]
    pub fn has(&self, scope: Scope) -> bool {
        let is_granted = |granted: Scope| self.scopes.contains(&granted);
        is_granted(scope)
            || is_granted(Scope::Admin)
            // Every other scope includes reading.
            || (scope == Scope::Read && !self.scopes.is_empty())
    }

    /// Refuses an operation that needs another scope.
    ///
    /// # Errors
    /// If the identity does not have the scope.
    pub fn require(&self, scope: Scope) -> Result<(), ServiceError> {
        if self.has(scope) {
            return Ok(());
        }
        let message = format!("`{}` does not have the scope `{scope}`", self.principal());
        Err(
            ServiceError::denied("scope_missing", message).with_hint(format!(
                "ask the operator for a token with the scope `{scope}`"
            )),
        )
    }
}

/// The user of these names.
pub(crate) fn user(tenant: &str, principal: &str) -> Result<TenantPrincipal, ServiceError> {
    let invalid = |error: &dyn std::error::Error| ServiceError::failed(error.to_string());
    let tenant = NonEmptyText::new(tenant).map_err(|error| invalid(&error))?;
    let principal = Principal::new(principal).map_err(|error| invalid(&error))?;
    Ok(TenantPrincipal::new(tenant, principal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(scopes: &[Scope]) -> Identity {
        let tenant = NonEmptyText::new("local").unwrap();
        let principal = Principal::new("ada").unwrap();
        Identity::new(tenant, principal, scopes.iter().copied())
    }

    #[test]
    fn a_scope_allows_its_own_operations_and_reading() {
        for scope in Scope::ALL {
            let identity = with(&[scope]);
            assert!(identity.has(Scope::Read), "{scope}");
            for other in Scope::ALL {
                let is_allowed = other == scope || scope == Scope::Admin || other == Scope::Read;
                assert_eq!(identity.has(other), is_allowed, "{scope} for {other}");
            }
            assert_eq!(scope.as_str().parse(), Ok(scope));
        }
    }

    #[test]
    fn an_identity_without_scopes_may_do_nothing() {
        for scope in Scope::ALL {
            let error = with(&[]).require(scope).unwrap_err();
            assert_eq!(error.code(), "scope_missing");
        }
    }
}
