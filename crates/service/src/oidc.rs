//! Tokens of an OpenID Connect issuer, as `[oidc]` of the configuration names it. Tenant, principal and scopes of their
//! holder follow from their claims.
//!
//! `jwt.rs` checks tokens and knows no network, `issuer.rs` gets the keys of the issuer.

mod issuer;
mod jwt;

use windlass_config::{OidcSettings, OidcTenant};
use windlass_core::approval::Principal;
use windlass_runtime::local_identity;
use windlass_spec::{NonEmptyText, Timestamp};

use crate::error::{ErrorKind, ServiceError};
use crate::identity::{Identity, Scope};
use crate::service::{Service, blocking};
use crate::tokens::{AuthenticatedCaller, CallerKind, PREFIX, refused};
use jwt::{Claims, SignedToken};

pub(crate) use issuer::{IssuerKeys, fetch_keys};

impl Service {
    /// The caller that a token identifies: one of this installation, or one of the configured issuer.
    ///
    /// # Errors
    /// If the token is not valid, has expired or was revoked, or if it cannot be checked because its issuer does not
    /// answer.
    pub async fn authenticate_bearer(
        &self,
        token: &str,
    ) -> Result<AuthenticatedCaller, ServiceError> {
        let (service, own) = (self.clone(), token.to_owned());
        if token.starts_with(PREFIX) {
            return blocking(move || service.authenticate(&own)).await;
        }
        let project = blocking(move || service.project()).await?;
        let Some(settings) = project.configuration().oidc() else {
            return Err(refused("token_unknown", "the token is not valid"));
        };
        let invalid = |reason: String| refused("token_invalid", reason);
        let signed = SignedToken::read(token).map_err(invalid)?;
        let keys = self.issuer().keys(settings, &signed).await;
        let keys = keys.map_err(|reason| {
            let message = format!("the issuer `{}` does not answer: {reason}", settings.issuer);
            ServiceError::new(ErrorKind::Unavailable, "issuer_unavailable", message)
                .with_hint("`windlass doctor` checks the issuer")
        })?;
        let claims = signed.verify(&keys).map_err(invalid)?;
        self.caller_of(settings, &claims)
    }

    fn caller_of(
        &self,
        settings: &OidcSettings,
        claims: &Claims,
    ) -> Result<AuthenticatedCaller, ServiceError> {
        let invalid = |reason: String| refused("token_invalid", reason);
        let now = self.now();
        let expiry = claims
            .check(&settings.issuer, &settings.audience, now)
            .map_err(invalid)?;
        if claims.has_expired(expiry, now) {
            return Err(refused("token_expired", "the token has expired"));
        }
        let principal = claims.principal(&settings.principal_claim);
        let principal = Principal::new(principal.map_err(invalid)?).map_err(|error| {
            invalid(format!("the principal of the token is not valid: {error}"))
        })?;
        let tenant = match &settings.tenant {
            OidcTenant::OfServer => local_identity()?.tenant,
            OidcTenant::Fixed(tenant) => NonEmptyText::new(tenant.clone())
                .map_err(|error| ServiceError::failed(error.to_string()))?,
            OidcTenant::Claim(claim) => NonEmptyText::new(claims.text(claim).map_err(invalid)?)
                .map_err(|error| {
                    invalid(format!("the tenant of the token is not valid: {error}"))
                })?,
        };
        let roles = claims.words(&settings.roles_claim);
        let scopes = roles
            .iter()
            .filter_map(|role| settings.roles.get(role))
            .flatten()
            .filter_map(|scope| scope.parse::<Scope>().ok());
        let identity = Identity::new(tenant, principal, scopes);
        Ok(AuthenticatedCaller {
            token: format!("oidc:{}/{}", identity.tenant(), identity.principal()),
            identity,
            kind: CallerKind::Oidc,
            expires_at: Some(Timestamp::from_microseconds(
                expiry.saturating_mul(1_000_000),
            )),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_knows_the_scopes_of_callers() {
        for scope in Scope::ALL {
            let text = format!(
                "[oidc]\nissuer = \"https://a.example\"\naudience = \"w\"\nroles = {{ r = [\"{scope}\"] }}\n"
            );
            let source = windlass_config::ConfigSource {
                layer: windlass_config::Layer::User,
                name: "windlass.toml".to_owned(),
                directory: "/".into(),
                text,
            };
            let loaded = windlass_config::load(&[source], Vec::new(), &[]).unwrap();
            let settings = loaded.configuration.oidc().unwrap().clone();
            assert_eq!(settings.roles["r"], [scope.to_string()]);
        }
    }
}
