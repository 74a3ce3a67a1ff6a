//! How a token is got from whoever guards a server: by a person who logs in, by renewing what a login
//! left, or with a secret of this program's own.

use std::path::Path;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, ClientCredentialsConfig,
    CredentialStore as _, InMemoryCredentialStore, OAuthClientConfig, OAuthTokenResponse,
    StoredCredentials,
};
use serde_json::{Value, json};
use tracing::{Instrument as _, debug_span};
use windlass_spec::server::{ServerName, ServerSettings, Transport};

use super::LONGEST_LOGIN;
use super::address;
use super::callback::{Brought, Callback};
use super::error::{OAuthError, shown};
use super::given::{Given, refusal, refused, without_repeats};
use super::kept::{Files, Kept, now};
use crate::{Lookup, Secret};

/// What this program calls itself where it is registered.
const CLIENT_NAME: &str = "Windlass";

/// How long a server may take to say that it is guarded.
const LONGEST_PROBE: Duration = Duration::from_secs(30);

/// The scope that asks for a token to renew others with.
const OFFLINE_ACCESS: &str = "offline_access";

/// A guarded server and who this program is to its guard.
pub(super) struct Account {
    pub(super) server: ServerName,
    /// The address as the operator wrote it, which is what a token is for.
    address: String,
    pub(super) url: Url,
    client_id: Option<String>,
    client_secret: Option<Secret>,
    /// The most that is ever asked for, if the operator says.
    pub(super) scopes: Vec<String>,
    pub(super) files: Files,
}

/// Who guards a server.
struct Guard {
    manager: AuthorizationManager,
    metadata: AuthorizationMetadata,
    issuer: String,
}

/// What a token with no person behind it is.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub(super) access_token: Secret,
    pub(super) ends_at: Option<u64>,
    pub(super) scopes: Vec<String>,
}

impl Account {
    pub(super) fn new(
        settings: &ServerSettings,
        directory: &Path,
        lookup: &Lookup,
    ) -> Result<Self, OAuthError> {
        let server = settings.name.clone();
        let Transport::Http(http) = &settings.transport else {
            return Err(OAuthError::NotHttp(server));
        };
        let url = address::server(&http.url)?;
        let oauth = http.oauth.clone().unwrap_or_default();
        let client_secret = match &oauth.client_secret {
            Some(given) => match given.value(|name| lookup(name)) {
                Ok(secret) => Some(Secret::new(secret)),
                Err(missing) => {
                    let reason = missing.to_string();
                    return Err(OAuthError::Secret { server, reason });
                }
            },
            None => None,
        };
        Ok(Self {
            files: Files::new(directory, server.clone(), http.url.clone()),
            server,
            address: http.url.clone(),
            url,
            client_id: oauth.client_id,
            client_secret,
            scopes: oauth.scopes,
        })
    }

    /// What a login left that these settings can still use.
    pub(super) fn kept(&self) -> Result<Option<Kept>, OAuthError> {
        Ok(self.files.newest()?.filter(|kept| self.is_client(kept)))
    }

    /// Whether a login was made as the client that the settings name now.
    fn is_client(&self, kept: &Kept) -> bool {
        self.registered()
            .is_none_or(|client_id| client_id == kept.client_id)
    }

    /// The name this program was registered under beforehand. One that is an address leads to a
    /// document about the client and is used with guards that read such documents.
    fn registered(&self) -> Option<&str> {
        self.client_id.as_deref().filter(|id| !is_document(id))
    }

    /// Lets a person log in. `more` is asked for besides what is asked for anyway.
    pub(super) async fn log_in(
        &self,
        challenge: Option<&str>,
        more: &[String],
        present: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Kept, OAuthError> {
        let probed;
        let challenge = match challenge {
            Some(challenge) => Some(challenge),
            None => {
                probed = self.probe().await;
                probed.as_deref()
            }
        };
        let mut guard = self.guard(challenge).await?;
        let scopes = self.scopes_to_ask(&guard, more).await;
        let callback = Callback::open().await?;
        let client = self
            .introduce(&mut guard, callback.redirect(), &scopes)
            .await?;
        let asked: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let page = guard
            .manager
            .get_authorization_url(&asked)
            .await
            .map_err(|error| refused(&guard.issuer, &error))?;
        // The parameters were added by us; the rest of it came from the guard.
        let page = address::endpoint(&self.url, "login page", &page)?;
        let state = page
            .query_pairs()
            .find_map(|(key, value)| (key == "state").then(|| value.into_owned()))
            .unwrap_or_default();
        present(page.as_str());
        let Brought { code, issuer } = callback.wait(&state, LONGEST_LOGIN).await?;
        let from = issuer.as_deref();
        if from.is_some_and(|from| from != guard.issuer) {
            let reason = "the answer came from somebody else";
            return Err(refusal(&guard.issuer, reason));
        }
        let code = code.map_err(|reason| refusal(&guard.issuer, &reason))?;
        let token = guard
            .manager
            .exchange_code_for_token_with_issuer(&code, &state, from)
            .await
            .map_err(|error| refused(&guard.issuer, &error))?;
        let kept = self.received(&guard, &client, &token, None).await?;
        self.files.keep(&kept)?;
        Ok(kept)
    }

    /// Renews what a login left. `challenge` is what the server said when it refused the token.
    pub(super) async fn renew(
        &self,
        kept: &Kept,
        challenge: Option<&str>,
    ) -> Result<Kept, OAuthError> {
        // A token to renew with may be good for one use: only one process at a time uses it.
        let _turn = self.files.turn().await?;
        let kept = match self.files.of(&kept.issuer)? {
            Some(newer) if newer.access_token != kept.access_token && newer.is_fresh() => {
                return Ok(newer);
            }
            Some(newer) => newer,
            None => return Err(self.login_needed("the login is gone")),
        };
        let Some(refresh_token) = &kept.refresh_token else {
            return Err(self.login_needed("the login is over"));
        };
        let mut guard = self.guard(challenge).await?;
        if guard.issuer != kept.issuer {
            return Err(self.login_needed("somebody else guards the server now"));
        }
        let client = self.client_of(&kept);
        guard
            .manager
            .configure_client(client.clone())
            .map_err(|error| refused(&guard.issuer, &error))?;
        let before = json!({
            "access_token": kept.access_token.reveal(),
            "token_type": "bearer",
            "refresh_token": refresh_token.reveal(),
        });
        let Ok(before) = serde_json::from_value::<OAuthTokenResponse>(before) else {
            return Err(self.login_needed("the login cannot be used"));
        };
        let store = InMemoryCredentialStore::new();
        let stored = StoredCredentials::new(
            kept.client_id.clone(),
            Some(before),
            kept.scopes.clone(),
            Some(kept.given_at),
        )
        .with_issuer(Some(kept.issuer.clone()));
        store
            .save(stored)
            .await
            .map_err(|error| refused(&guard.issuer, &error))?;
        guard.manager.set_credential_store(store);
        let token = match guard.manager.refresh_token().await {
            Ok(token) => token,
            Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => {
                // It would be refused again, and asking often looks like an attack.
                let over = Kept {
                    refresh_token: None,
                    ends_at: Some(0),
                    ..kept
                };
                self.files.keep(&over)?;
                return Err(self.login_needed("the login is over"));
            }
            Err(error) => return Err(refused(&guard.issuer, &error)),
        };
        let renewed = self.received(&guard, &client, &token, Some(&kept)).await?;
        self.files.keep(&renewed)?;
        Ok(renewed)
    }

    /// Gets a token as this program itself, if it has a secret and the guard gives such tokens.
    /// `is_sure` says whether a guard that does not tell is asked anyway.
    pub(super) async fn as_machine(
        &self,
        challenge: Option<&str>,
        more: &[String],
        is_sure: bool,
    ) -> Result<Option<Machine>, OAuthError> {
        let (Some(client_id), Some(secret)) = (self.registered(), &self.client_secret) else {
            return Ok(None);
        };
        let mut guard = self.guard(challenge).await?;
        let grants = guard
            .metadata
            .additional_fields
            .get("grant_types_supported");
        let gives = match grants.and_then(Value::as_array) {
            Some(grants) => grants.iter().any(|grant| grant == "client_credentials"),
            None => is_sure,
        };
        if !gives {
            return Ok(None);
        }
        let mut scopes = self.scopes_to_ask(&guard, more).await;
        scopes.retain(|scope| scope != OFFLINE_ACCESS);
        let config = ClientCredentialsConfig::ClientSecret {
            client_id: client_id.to_owned(),
            client_secret: secret.reveal().to_owned(),
            scopes: scopes.clone(),
            resource: Some(self.address.clone()),
        };
        let token = async {
            guard
                .manager
                .validate_client_credentials_metadata(&config)?;
            guard.manager.configure_client_credentials(&config)?;
            guard.manager.exchange_client_credentials(&config).await
        };
        let token = token
            .await
            .map_err(|error| refused(&guard.issuer, &error))?;
        let given = Given::of(&guard.issuer, &token)?;
        Ok(Some(Machine {
            access_token: given.access_token,
            ends_at: given.ends_at,
            scopes: given.scopes.unwrap_or(scopes),
        }))
    }

    pub(super) fn login_needed(&self, reason: &str) -> OAuthError {
        OAuthError::LoginNeeded {
            server: self.server.clone(),
            reason: format!("`{}` needs a login: {reason}", self.server),
        }
    }

    /// Asks the server without a token, for what it says about its guard.
    async fn probe(&self) -> Option<String> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(LONGEST_PROBE)
            .build()
            .ok()?;
        let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
        let answer = client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(ask.to_string())
            .send()
            .instrument(debug_span!(
                "http_request",
                http.request.method = "POST",
                server.address = self.url.host_str(),
            ))
            .await
            .ok()?;
        if answer.status() != reqwest::StatusCode::UNAUTHORIZED {
            return None;
        }
        let challenges = answer.headers().get_all(WWW_AUTHENTICATE);
        challenges
            .iter()
            .filter_map(|value| value.to_str().ok())
            .find(|value| value.to_ascii_lowercase().starts_with("bearer"))
            .map(str::to_owned)
    }

    /// Finds out who guards the server.
    async fn guard(&self, challenge: Option<&str>) -> Result<Guard, OAuthError> {
        let failed = |error: &AuthError| OAuthError::Discovery {
            server: self.server.clone(),
            reason: shown(&error.to_string()),
        };
        let mut manager = AuthorizationManager::new(self.address.as_str())
            .await
            .map_err(|error| failed(&error))?;
        let resolution = manager
            .resolve_metadata_from_challenge(challenge)
            .await
            .map_err(|error| failed(&error))?;
        // Addresses that were made up rather than published are not asked.
        if !resolution.source.is_discovered() {
            return Err(OAuthError::NoGuard(self.server.clone()));
        }
        let metadata = resolution.metadata;
        let check = |what, text: &str| address::endpoint(&self.url, what, text).map(drop);
        check("login page", &metadata.authorization_endpoint)?;
        check("address for tokens", &metadata.token_endpoint)?;
        if let Some(registration) = &metadata.registration_endpoint {
            check("address to register at", registration)?;
        }
        let issuer = metadata.issuer.clone().unwrap_or_default();
        manager.set_metadata(metadata.clone());
        Ok(Guard {
            manager,
            metadata,
            issuer,
        })
    }

    /// What to ask for: what the operator says or else what the server says, and what else is wanted.
    async fn scopes_to_ask(&self, guard: &Guard, more: &[String]) -> Vec<String> {
        if !self.scopes.is_empty() {
            return self.scopes.clone();
        }
        let mut scopes = more.to_vec();
        scopes.extend(guard.manager.select_initial_scopes(&[]).await);
        let supported = guard.metadata.scopes_supported.as_deref();
        let offers_offline = supported
            .unwrap_or_default()
            .iter()
            .any(|s| s == OFFLINE_ACCESS);
        if offers_offline && !scopes.is_empty() {
            scopes.push(OFFLINE_ACCESS.to_owned());
        }
        without_repeats(scopes)
    }

    /// Makes this program known to the guard: as what the operator says, by a document about it, or by
    /// registering it.
    async fn introduce(
        &self,
        guard: &mut Guard,
        redirect: &str,
        scopes: &[String],
    ) -> Result<OAuthClientConfig, OAuthError> {
        let reads_documents = guard
            .metadata
            .additional_fields
            .get("client_id_metadata_document_supported")
            == Some(&Value::Bool(true));
        let client = match &self.client_id {
            Some(id) if !is_document(id) || reads_documents => {
                let client = OAuthClientConfig::new(id, redirect).with_scopes(scopes.to_vec());
                match &self.client_secret {
                    Some(secret) if !is_document(id) => client.with_client_secret(secret.reveal()),
                    _ => client,
                }
            }
            _ => {
                let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
                return guard
                    .manager
                    .register_client(CLIENT_NAME, redirect, &scopes)
                    .await
                    .map_err(|error| OAuthError::Registration {
                        issuer: shown(&guard.issuer),
                        reason: shown(&error.to_string()),
                    });
            }
        };
        guard
            .manager
            .configure_client(client.clone())
            .map_err(|error| refused(&guard.issuer, &error))?;
        Ok(client)
    }

    /// The client that a login was made as.
    fn client_of(&self, kept: &Kept) -> OAuthClientConfig {
        let client = OAuthClientConfig::new(&kept.client_id, &kept.redirect);
        let secret = match self.registered() {
            Some(_) => self.client_secret.as_ref(),
            None => kept.client_secret.as_ref(),
        };
        match secret {
            Some(secret) => client.with_client_secret(secret.reveal()),
            None => client,
        }
    }

    /// What is kept of what a guard gave.
    async fn received(
        &self,
        guard: &Guard,
        client: &OAuthClientConfig,
        token: &OAuthTokenResponse,
        before: Option<&Kept>,
    ) -> Result<Kept, OAuthError> {
        let given = Given::of(&guard.issuer, token)?;
        let is_settings = self.registered().is_some();
        let secret = client.client_secret.as_ref().filter(|_| !is_settings);
        Ok(Kept {
            url: self.address.clone(),
            issuer: guard.issuer.clone(),
            client_id: client.client_id.clone(),
            client_secret: secret.map(Secret::new),
            redirect: client.redirect_uri.clone(),
            access_token: given.access_token,
            refresh_token: given.refresh_token,
            ends_at: given.ends_at,
            given_at: now(),
            scopes: guard.manager.get_current_scopes().await,
            wanted: before.map(|kept| kept.wanted.clone()).unwrap_or_default(),
        })
    }
}

/// Whether a client's name is the address of a document about it.
fn is_document(client_id: &str) -> bool {
    let url = Url::parse(client_id).ok();
    url.is_some_and(|url| url.scheme() == "https" && url.path() != "/")
}
