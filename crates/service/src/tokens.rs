//! Access tokens: what a program presents instead of a password. Tenant, principal and scopes of a caller follow from
//! its token.

use std::fmt;

use serde::Serialize;
use serde_json::json;
use windlass_core::approval::Principal;
use windlass_keys::{hex, random_bytes, sha256};
use windlass_spec::{NonEmptyText, Timestamp};
use windlass_store::StoredToken;

use crate::error::{ErrorKind, ServiceError};
use crate::identity::{Identity, Scope};
use crate::service::Service;

/// What every token begins with, so that a leaked one can be recognised.
pub(crate) const PREFIX: &str = "windlass_";

/// What every session of a browser begins with. It is no token: only a cookie can have it.
pub(crate) const SESSION_PREFIX: &str = "windlass_session_";

/// The length of a token's name, in characters.
const MAX_NAME: usize = 100;

/// A token to create.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// What it is called.
    pub name: String,
    /// What its holder may do; at least one scope.
    pub scopes: Vec<Scope>,
    /// When it expires; `None` if it does not.
    pub expires_at: Option<Timestamp>,
    /// The principal that its holder acts as; its name if there is none.
    pub principal: Option<String>,
    /// The tenant of its holder; that of the creator if there is none.
    pub tenant: Option<String>,
}

/// A token that was created.
#[derive(Debug, Clone)]
pub struct CreatedToken {
    /// The token. It is stored nowhere and cannot be shown again.
    pub secret: TokenSecret,
    /// What is known of it.
    pub token: AccessToken,
}

/// The secret text of a token. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret(String);

impl TokenSecret {
    /// The text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSecret(..)")
    }
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccessToken {
    /// Its id, by which it is revoked.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// The tenant of its holder.
    pub tenant: String,
    /// The principal that its holder acts as.
    pub principal: String,
    /// What its holder may do.
    pub scopes: Vec<String>,
    /// Whether it can be used.
    pub state: TokenState,
    /// Who created it.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
    /// When it expires; `None` if it does not.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Who revoked it.
    pub revoked_by: Option<String>,
}

/// Whether a token can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenState {
    /// It can.
    Valid,
    /// It has expired.
    Expired,
    /// It was revoked.
    Revoked,
}

impl TokenState {
    /// The state's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

/// A caller that was authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthenticatedCaller {
    /// Its identity.
    pub identity: Identity,
    /// The id of its token or session; for a token of the issuer, whose it is.
    pub token: String,
    /// How it was authenticated.
    pub kind: CallerKind,
    /// Until when; `None` if that has no end.
    pub expires_at: Option<Timestamp>,
}

/// How a caller was authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerKind {
    /// With a token of this installation.
    Token,
    /// With the session of a browser.
    Session,
    /// With a token of the configured issuer.
    Oidc,
}

impl AuthenticatedCaller {
    /// Whether what it reads is recorded: it is an auditor and no administrator.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.identity.has(Scope::Audit) && !self.identity.has(Scope::Admin)
    }
}

impl AccessToken {
    fn of(stored: StoredToken, now: Timestamp) -> Self {
        let is_expired = stored.expires_at.is_some_and(|at| at <= now);
        Self {
            state: match (stored.revoked_at, is_expired) {
                (Some(_), _) => TokenState::Revoked,
                (None, true) => TokenState::Expired,
                (None, false) => TokenState::Valid,
            },
            id: stored.id,
            name: stored.name,
            tenant: stored.tenant,
            principal: stored.principal,
            scopes: stored.scopes,
            created_by: stored.created_by,
            created_at: stored.created_at,
            expires_at: stored.expires_at,
            revoked_at: stored.revoked_at,
            revoked_by: stored.revoked_by,
        }
    }
}

impl Service {
    /// Creates a token. The result has its secret, which cannot be shown again.
    ///
    /// # Errors
    /// If the identity is no administrator, the token would have no name, principal or scope, or it would be expired
    /// already.
    pub fn create_token(
        &self,
        identity: &Identity,
        new: NewToken,
    ) -> Result<CreatedToken, ServiceError> {
        self.create_secret(identity, new, PREFIX)
    }

    pub(crate) fn create_secret(
        &self,
        identity: &Identity,
        new: NewToken,
        prefix: &str,
    ) -> Result<CreatedToken, ServiceError> {
        identity.require(Scope::Admin)?;
        let invalid = |message: String| ServiceError::invalid("invalid_token", message);
        let name = new.name.trim();
        if name.is_empty() || name.chars().count() > MAX_NAME {
            let message = format!("the name of a token has 1 to {MAX_NAME} characters");
            return Err(invalid(message));
        }
        let principal = Principal::new(new.principal.as_deref().unwrap_or(name));
        let principal = principal.map_err(|error| invalid(error.to_string()))?;
        let tenant = match new.tenant {
            Some(tenant) => NonEmptyText::new(tenant)
                .map_err(|error| invalid(format!("the tenant cannot be used: {error}")))?,
            None => identity.tenant().clone(),
        };
        if new.scopes.is_empty() {
            return Err(invalid("a token needs at least one scope".to_owned())
                .with_hint("scopes are read, run, approve, operate, audit and admin"));
        }
        let now = self.now();
        if new.expires_at.is_some_and(|at| at <= now) {
            return Err(invalid("the token would be expired already".to_owned()));
        }
        let mut scopes: Vec<Scope> = new.scopes;
        scopes.sort_unstable();
        scopes.dedup();
        let secret = TokenSecret(random_secret(prefix)?);
        let digest = sha256(secret.reveal().as_bytes());
        let stored = StoredToken {
            // Part of the digest: it names the token and tells nothing about it.
            id: format!("tok_{}", hex::encode(digest.get(..8).unwrap_or_default())),
            tenant: tenant.to_string(),
            principal: principal.to_string(),
            name: name.to_owned(),
            scopes: scopes.iter().map(ToString::to_string).collect(),
            created_by: identity.principal().to_string(),
            created_at: now,
            expires_at: new.expires_at,
            revoked_at: None,
            revoked_by: None,
        };
        let subject = json!({
            "token": stored.id, "name": stored.name, "tenant": stored.tenant, "principal": stored.principal,
            "scopes": stored.scopes, "expires_at": stored.expires_at,
        });
        self.record_admin_change(identity, "token_created", subject)?;
        self.store()?.add_token(&stored, digest)?;
        Ok(CreatedToken {
            secret,
            token: AccessToken::of(stored, now),
        })
    }

    /// All tokens, the oldest first, without their secrets.
    ///
    /// # Errors
    /// If the identity is no administrator.
    pub fn list_tokens(&self, identity: &Identity) -> Result<Vec<AccessToken>, ServiceError> {
        identity.require(Scope::Admin)?;
        let now = self.now();
        let tokens = self.store()?.tokens()?.into_iter();
        Ok(tokens.map(|token| AccessToken::of(token, now)).collect())
    }

    /// Revokes the token with that id, in all processes at once. One that was revoked before stays so.
    ///
    /// # Errors
    /// If the identity is no administrator, or there is no such token.
    pub fn revoke_token(&self, identity: &Identity, id: &str) -> Result<AccessToken, ServiceError> {
        identity.require(Scope::Admin)?;
        self.revoke_secret(identity, id)
    }

    /// Revokes a token or a session for somebody who may.
    pub(crate) fn revoke_secret(
        &self,
        identity: &Identity,
        id: &str,
    ) -> Result<AccessToken, ServiceError> {
        let now = self.now();
        let by = identity.principal().to_string();
        let revoked = self.store()?.revoke_token(id, &by, now)?;
        let Some(stored) = revoked else {
            let message = format!("there is no token `{id}`");
            return Err(ServiceError::not_found("no_such_token", message)
                .with_hint("`windlass token list` lists the tokens"));
        };
        let subject = json!({"token": stored.id, "name": stored.name});
        self.record_admin_change(identity, "token_revoked", subject)?;
        Ok(AccessToken::of(stored, now))
    }

    /// The caller that a token of this installation identifies.
    ///
    /// # Errors
    /// If there is no such token, it has expired, or it was revoked.
    pub fn authenticate(&self, secret: &str) -> Result<AuthenticatedCaller, ServiceError> {
        let is_token = secret.starts_with(PREFIX) && !secret.starts_with(SESSION_PREFIX);
        self.authenticate_secret(secret, is_token, CallerKind::Token)
    }

    /// The caller of a secret of this kind, if `has_form` is true.
    pub(crate) fn authenticate_secret(
        &self,
        secret: &str,
        has_form: bool,
        kind: CallerKind,
    ) -> Result<AuthenticatedCaller, ServiceError> {
        let found = match has_form {
            true => self.store()?.token_by_digest(&sha256(secret.as_bytes()))?,
            false => None,
        };
        let Some(stored) = found else {
            return Err(refused("token_unknown", "the token is not valid"));
        };
        let token = AccessToken::of(stored, self.now());
        match token.state {
            TokenState::Valid => {}
            TokenState::Expired => return Err(refused("token_expired", "the token has expired")),
            TokenState::Revoked => return Err(refused("token_revoked", "the token was revoked")),
        }
        let unusable = |reason: String| {
            let message = format!("the token `{}` cannot be used: {reason}", token.id);
            ServiceError::failed(message)
        };
        let tenant = NonEmptyText::new(token.tenant.clone());
        let tenant = tenant.map_err(|error| unusable(error.to_string()))?;
        let principal = Principal::new(token.principal.clone());
        let principal = principal.map_err(|error| unusable(error.to_string()))?;
        let scopes = token.scopes.iter().map(|scope| scope.parse());
        let scopes: Vec<Scope> = scopes
            .collect::<Result<_, _>>()
            .map_err(|error: windlass_spec::UnknownWord| unusable(error.to_string()))?;
        Ok(AuthenticatedCaller {
            identity: Identity::new(tenant, principal, scopes),
            token: token.id,
            kind,
            expires_at: token.expires_at,
        })
    }

    /// Records that an auditor read something: the operation, and what it was about. Callers without the scope `audit`,
    /// and administrators, are not recorded.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn record_audit_read(
        &self,
        caller: &AuthenticatedCaller,
        operation: &str,
    ) -> Result<(), ServiceError> {
        if !caller.is_recorded() {
            return Ok(());
        }
        let identity = &caller.identity;
        let subject = json!({"operation": operation, "token": caller.token});
        self.record_admin_change(identity, "audit_read", subject)
    }
}

/// A new secret text that begins with `prefix`.
pub(crate) fn random_secret(prefix: &str) -> Result<String, ServiceError> {
    let random = random_bytes().map_err(|error| ServiceError::failed(error.to_string()))?;
    Ok(format!("{prefix}{}", hex::encode(&random)))
}

/// A credential that identifies nobody.
pub(crate) fn refused(code: &'static str, message: impl Into<String>) -> ServiceError {
    ServiceError::new(ErrorKind::Unauthenticated, code, message)
        .with_hint("ask the operator for a token")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Overrides;

    fn service(data: &tempfile::TempDir) -> Service {
        let overrides = Overrides {
            data: Some(data.path().to_owned()),
            ..Overrides::default()
        };
        Service::open(None, overrides)
    }

    fn identity(scope: Scope) -> Identity {
        let tenant = NonEmptyText::new("acme").unwrap();
        Identity::new(tenant, Principal::new("ada").unwrap(), [scope])
    }

    fn new() -> NewToken {
        NewToken {
            name: "ci".to_owned(),
            scopes: vec![Scope::Run, Scope::Read, Scope::Run],
            expires_at: None,
            principal: Some("build".to_owned()),
            tenant: None,
        }
    }

    #[test]
    fn a_token_identifies_its_holder_until_it_is_revoked() {
        let data = tempfile::tempdir().unwrap();
        let service = service(&data);
        let admin = identity(Scope::Admin);
        let created = service.create_token(&admin, new()).unwrap();
        assert_eq!(created.token.scopes, ["read", "run"]);
        let secret = created.secret.reveal();
        let caller = service.authenticate(secret).unwrap();
        assert_eq!(caller.token, created.token.id);
        assert_eq!(caller.identity.principal().as_str(), "build");
        assert_eq!(caller.identity.tenant().as_str(), "acme");
        assert!(caller.identity.has(Scope::Run) && !caller.identity.has(Scope::Approve));

        let listed = service.list_tokens(&admin).unwrap();
        assert_eq!(listed, std::slice::from_ref(&created.token));
        let revoked = service.revoke_token(&admin, &created.token.id).unwrap();
        assert_eq!(revoked.state, TokenState::Revoked);
        assert_eq!(
            service.authenticate(secret).unwrap_err().code(),
            "token_revoked"
        );
        let again = service.revoke_token(&admin, &created.token.id).unwrap();
        assert_eq!(again, revoked);

        let changes = service.admin_changes(&admin).unwrap();
        let kinds: Vec<&str> = changes.iter().map(|one| one.change.kind.as_str()).collect();
        assert_eq!(kinds, ["token_created", "token_revoked", "token_revoked"]);
        let record = changes[0].change.subject.to_string();
        assert!(record.contains("build") && !record.contains(secret));
    }

    #[test]
    fn a_token_that_was_made_up_or_has_expired_identifies_nobody() {
        let data = tempfile::tempdir().unwrap();
        let service = service(&data);
        let admin = identity(Scope::Admin);
        for made_up in ["", "windlass_", "windlass_00", "Bearer x"] {
            let refused = service.authenticate(made_up).unwrap_err();
            assert_eq!(refused.code(), "token_unknown", "{made_up}");
        }
        let soon = service.now().as_microseconds() + 20_000;
        let expiring = NewToken {
            expires_at: Some(Timestamp::from_microseconds(soon)),
            ..new()
        };
        let created = service.create_token(&admin, expiring).unwrap();
        while service.now().as_microseconds() <= soon {
            std::thread::yield_now();
        }
        let refused = service.authenticate(created.secret.reveal()).unwrap_err();
        assert_eq!(refused.code(), "token_expired");
    }

    #[test]
    fn a_token_that_was_written_into_the_database_is_refused() {
        let data = tempfile::tempdir().unwrap();
        let service = service(&data);
        let admin = identity(Scope::Admin);
        let created = service.create_token(&admin, new()).unwrap();
        let database = data.path().join("windlass.db");
        let database = rusqlite::Connection::open(database).unwrap();
        let changed = database.execute("UPDATE tokens SET scopes = 'admin'", []);
        assert_eq!(changed.unwrap(), 1);
        let refused = service.authenticate(created.secret.reveal()).unwrap_err();
        assert_eq!(refused.code(), "journal_altered");
        let bytes = std::fs::read(data.path().join("windlass.db")).unwrap();
        let secret = created.secret.reveal().as_bytes();
        assert!(!bytes.windows(secret.len()).any(|part| part == secret));
    }

    #[test]
    fn only_an_administrator_creates_lists_and_revokes_tokens() {
        let data = tempfile::tempdir().unwrap();
        let service = service(&data);
        for scope in Scope::ALL
            .into_iter()
            .filter(|scope| *scope != Scope::Admin)
        {
            let caller = identity(scope);
            let codes = [
                service.create_token(&caller, new()).unwrap_err().code(),
                service.list_tokens(&caller).unwrap_err().code(),
                service.revoke_token(&caller, "tok_0").unwrap_err().code(),
            ];
            assert_eq!(codes, ["scope_missing"; 3], "{scope}");
        }
        let admin = identity(Scope::Admin);
        let missing = service.revoke_token(&admin, "tok_0").unwrap_err();
        assert_eq!(missing.code(), "no_such_token");
        for wrong in [
            NewToken {
                name: " ".to_owned(),
                ..new()
            },
            NewToken {
                scopes: Vec::new(),
                ..new()
            },
            NewToken {
                tenant: Some(String::new()),
                ..new()
            },
            NewToken {
                expires_at: Some(Timestamp::from_microseconds(1)),
                ..new()
            },
        ] {
            let refused = service.create_token(&admin, wrong).unwrap_err();
            assert_eq!(refused.code(), "invalid_token");
        }
    }
}
