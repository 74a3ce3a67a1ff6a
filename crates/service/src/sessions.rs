//! Sessions of browsers, which act as the operator. A session is stored like a token, so it is listed, revoked and
//! recorded like one; but only a cookie can have it, and no session is a token.

use std::fmt;
use std::time::Duration;

use windlass_core::approval::DecisionMeans;
use windlass_keys::sha256;
use windlass_spec::Timestamp;

use crate::error::ServiceError;
use crate::identity::Identity;
use crate::service::Service;
use crate::tokens::{
    AuthenticatedCaller, CallerKind, NewToken, SESSION_PREFIX, TokenSecret, random_secret,
};

/// How long a session lasts.
const LIFETIME: Duration = Duration::from_secs(12 * 3_600);

/// The name of sessions in lists of tokens.
const NAME: &str = "browser session";

/// A code that begins a session. Only its digest is kept.
#[derive(Clone)]
pub struct LoginCode([u8; 32]);

impl LoginCode {
    /// A new code, with its text.
    ///
    /// # Errors
    /// If there are no random numbers.
    pub fn create() -> Result<(Self, String), ServiceError> {
        let text = random_secret("")?;
        Ok((Self(sha256(text.as_bytes())), text))
    }

    /// Whether this is its text.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        self.0 == sha256(text.as_bytes())
    }
}

impl fmt::Debug for LoginCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoginCode(..)")
    }
}

/// The secret text of a session. `Debug` hides it.
#[derive(Debug, Clone)]
pub struct SessionSecret(TokenSecret);

impl SessionSecret {
    /// The text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.0.reveal()
    }

    /// How long it is valid.
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        LIFETIME
    }
}

impl Service {
    /// Begins the session of a browser that acts as an identity, with all its scopes.
    ///
    /// # Errors
    /// If the identity is no administrator, or the session cannot be stored.
    pub fn begin_session(&self, identity: &Identity) -> Result<SessionSecret, ServiceError> {
        let until = self.now().as_microseconds() + LIFETIME.as_micros() as i64;
        let new = NewToken {
            name: NAME.to_owned(),
            scopes: identity.scopes().collect(),
            expires_at: Some(Timestamp::from_microseconds(until)),
            principal: Some(identity.principal().to_string()),
            tenant: None,
        };
        let created = self.create_secret(identity, new, SESSION_PREFIX)?;
        Ok(SessionSecret(created.secret))
    }

    /// The caller that a session identifies. What it decides is decided on a page.
    ///
    /// # Errors
    /// If there is no such session, it has expired, or it was ended.
    pub fn authenticate_session(&self, secret: &str) -> Result<AuthenticatedCaller, ServiceError> {
        let is_session = secret.starts_with(SESSION_PREFIX);
        let caller = self.authenticate_secret(secret, is_session, CallerKind::Session)?;
        Ok(AuthenticatedCaller {
            identity: caller.identity.authenticated_by(DecisionMeans::Page),
            ..caller
        })
    }

    /// Ends the session of a caller. An administrator can also end it like a token ([`Service::revoke_token`]).
    ///
    /// # Errors
    /// If the caller was not authenticated with a session.
    pub fn end_session(&self, caller: &AuthenticatedCaller) -> Result<(), ServiceError> {
        if caller.kind != CallerKind::Session {
            let message = "the caller has a token and no session";
            return Err(ServiceError::conflict("no_session", message)
                .with_hint("`windlass token revoke` revokes a token"));
        }
        self.revoke_secret(&caller.identity, &caller.token)
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Overrides;

    #[test]
    fn a_session_is_no_token_and_lasts_until_it_is_ended() {
        let data = tempfile::tempdir().unwrap();
        let overrides = Overrides {
            data: Some(data.path().to_owned()),
            ..Overrides::default()
        };
        let service = Service::open(None, overrides);
        let operator = Identity::local().unwrap();
        let session = service.begin_session(&operator).unwrap();
        let secret = session.reveal();
        let caller = service.authenticate_session(secret).unwrap();
        assert_eq!(caller.identity.person(), operator.person());
        assert_eq!(caller.kind, CallerKind::Session);
        assert!(caller.identity.has(crate::Scope::Admin));
        // Neither can be used in place of the other.
        assert_eq!(
            service.authenticate(secret).unwrap_err().code(),
            "token_unknown"
        );
        let new = NewToken {
            name: "ci".to_owned(),
            scopes: vec![crate::Scope::Admin],
            expires_at: None,
            principal: None,
            tenant: None,
        };
        let token = service.create_token(&operator, new).unwrap();
        let refused = service.authenticate_session(token.secret.reveal());
        assert_eq!(refused.unwrap_err().code(), "token_unknown");
        let holder = service.authenticate(token.secret.reveal()).unwrap();
        let refused = service.end_session(&holder).unwrap_err();
        assert_eq!(refused.code(), "no_session");

        let listed = service.list_tokens(&operator).unwrap();
        assert!(listed.iter().any(|one| one.name == NAME));
        service.end_session(&caller).unwrap();
        let ended = service.authenticate_session(secret).unwrap_err();
        assert_eq!(ended.code(), "token_revoked");
    }

    #[test]
    fn only_an_administrator_begins_a_session() {
        let data = tempfile::tempdir().unwrap();
        let overrides = Overrides {
            data: Some(data.path().to_owned()),
            ..Overrides::default()
        };
        let service = Service::open(None, overrides);
        let local = Identity::local().unwrap();
        let (tenant, principal) = (local.tenant().clone(), local.principal().clone());
        let reader = Identity::new(tenant, principal, [crate::Scope::Read]);
        let refused = service.begin_session(&reader).unwrap_err();
        assert_eq!(refused.code(), "scope_missing");
    }
}
