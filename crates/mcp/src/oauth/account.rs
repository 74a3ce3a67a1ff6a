//! Obtains access tokens from the authorization server of a server: by a login (authorization code
//! grant), by refreshing a stored login, or with the client credentials grant.

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
use windlass_http::{client_builder, initialize_tls};
use windlass_spec::server::{ServerName, ServerSettings, Transport};

use super::LONGEST_LOGIN;
use super::address;
use super::callback::{AuthorizationResponse, Callback};
use super::error::{OAuthError, shown};
use super::login_files::{LoginFiles, StoredLogin, now};
use super::token_response::{TokenResponse, refusal, refused, without_repeats};
use crate::{Lookup, Secret};

/// The client name under which this program registers.
const CLIENT_NAME: &str = "Windlass";

/// How long a server may take to answer the request for its challenge.
const LONGEST_PROBE: Duration = Duration::from_secs(30);

/// The scope that requests a refresh token.
const OFFLINE_ACCESS: &str = "offline_access";

/// A server that requires authorization, and this program's client identity at its authorization server.
pub(super) struct Account {
    pub(super) server: ServerName,
    /// The URL as the operator wrote it: the resource that a token is for.
    address: String,
    pub(super) url: Url,
    client_id: Option<String>,
    client_secret: Option<Secret>,
    /// The only scopes that are requested, if the operator names any.
    pub(super) scopes: Vec<String>,
    pub(super) files: LoginFiles,
}

/// The authorization server of a server.
struct AuthorizationServer {
    manager: AuthorizationManager,
    metadata: AuthorizationMetadata,
    issuer: String,
}

/// A token from the client credentials grant.
#[derive(Debug, Clone)]
pub(super) struct ClientCredentialsToken {
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
            files: LoginFiles::new(directory, server.clone(), http.url.clone()),
            server,
            address: http.url.clone(),
            url,
            client_id: oauth.client_id,
            client_secret,
            scopes: oauth.scopes,
        })
    }

    /// The stored login that these settings can still use.
    pub(super) fn stored_login(&self) -> Result<Option<StoredLogin>, OAuthError> {
        Ok(self.files.newest()?.filter(|stored| self.is_client(stored)))
    }

    /// Whether a login was made with the client id that the settings name now.
    fn is_client(&self, stored: &StoredLogin) -> bool {
        self.preregistered_id()
            .is_none_or(|client_id| client_id == stored.client_id)
    }

    /// The client id that was preregistered_id in advance. A client id that is a URL names a client ID metadata
    /// document instead, and is used with authorization servers that support these.
    fn preregistered_id(&self) -> Option<&str> {
        self.client_id
            .as_deref()
            .filter(|id| !is_metadata_document(id))
    }

    /// Lets the user log in. `more` are scopes to request in addition to the usual ones.
    pub(super) async fn log_in(
        &self,
        challenge: Option<&str>,
        more: &[String],
        show_url: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<StoredLogin, OAuthError> {
        let probed;
        let challenge = match challenge {
            Some(challenge) => Some(challenge),
            None => {
                probed = self.probe().await;
                probed.as_deref()
            }
        };
        let mut auth_server = self.discover(challenge).await?;
        let scopes = self.scopes_to_request(&auth_server, more).await;
        let callback = Callback::open().await?;
        let client = self
            .register(&mut auth_server, callback.redirect(), &scopes)
            .await?;
        let asked: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let page = auth_server
            .manager
            .get_authorization_url(&asked)
            .await
            .map_err(|error| refused(&auth_server.issuer, &error))?;
        // `rmcp` added the parameters. The rest came from the authorization server.
        let page = address::endpoint(&self.url, "login page", &page)?;
        let state = page
            .query_pairs()
            .find_map(|(key, value)| (key == "state").then(|| value.into_owned()))
            .unwrap_or_default();
        show_url(page.as_str());
        let AuthorizationResponse { code, issuer } = callback.wait(&state, LONGEST_LOGIN).await?;
        let from = issuer.as_deref();
        if from.is_some_and(|from| from != auth_server.issuer) {
            let reason = "the authorization response came from another issuer";
            return Err(refusal(&auth_server.issuer, reason));
        }
        let code = code.map_err(|reason| refusal(&auth_server.issuer, &reason))?;
        let token = auth_server
            .manager
            .exchange_code_for_token_with_issuer(&code, &state, from)
            .await
            .map_err(|error| refused(&auth_server.issuer, &error))?;
        let login = self.to_login(&auth_server, &client, &token, None).await?;
        self.files.save(&login)?;
        Ok(login)
    }

    /// Refreshes a stored login. `challenge` is the server's challenge when it refused the token.
    pub(super) async fn refresh(
        &self,
        stored: &StoredLogin,
        challenge: Option<&str>,
    ) -> Result<StoredLogin, OAuthError> {
        // A refresh token may be valid for one use, so only one process at a time uses it.
        let _lock = self.files.lock_refresh().await?;
        let stored = match self.files.with_issuer(&stored.issuer)? {
            Some(newer) if newer.access_token != stored.access_token && newer.is_fresh() => {
                return Ok(newer);
            }
            Some(newer) => newer,
            None => return Err(self.login_needed("the login was deleted")),
        };
        let Some(refresh_token) = &stored.refresh_token else {
            return Err(self.login_needed("the login has expired"));
        };
        let mut auth_server = self.discover(challenge).await?;
        if auth_server.issuer != stored.issuer {
            return Err(self.login_needed("the server has another authorization server now"));
        }
        let client = self.client_of(&stored);
        auth_server
            .manager
            .configure_client(client.clone())
            .map_err(|error| refused(&auth_server.issuer, &error))?;
        let before = json!({
            "access_token": stored.access_token.reveal(),
            "token_type": "bearer",
            "refresh_token": refresh_token.reveal(),
        });
        let Ok(before) = serde_json::from_value::<OAuthTokenResponse>(before) else {
            return Err(self.login_needed("the login cannot be used"));
        };
        let store = InMemoryCredentialStore::new();
        let credentials = StoredCredentials::new(
            stored.client_id.clone(),
            Some(before),
            stored.scopes.clone(),
            Some(stored.given_at),
        )
        .with_issuer(Some(stored.issuer.clone()));
        store
            .save(credentials)
            .await
            .map_err(|error| refused(&auth_server.issuer, &error))?;
        auth_server.manager.set_credential_store(store);
        let token = match auth_server.manager.refresh_token().await {
            Ok(token) => token,
            Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => {
                // The refresh token would be refused again, and repeated attempts look like an attack.
                let expired = StoredLogin {
                    refresh_token: None,
                    ends_at: Some(0),
                    ..stored
                };
                self.files.save(&expired)?;
                return Err(self.login_needed("the login has expired"));
            }
            Err(error) => return Err(refused(&auth_server.issuer, &error)),
        };
        let refreshed = self
            .to_login(&auth_server, &client, &token, Some(&stored))
            .await?;
        self.files.save(&refreshed)?;
        Ok(refreshed)
    }

    /// Obtains a token with the client credentials grant, if there is a client secret and the
    /// authorization server supports the grant. `assume_supported` is whether to try if its metadata
    /// does not list the supported grants.
    pub(super) async fn client_credentials(
        &self,
        challenge: Option<&str>,
        more: &[String],
        assume_supported: bool,
    ) -> Result<Option<ClientCredentialsToken>, OAuthError> {
        let (Some(client_id), Some(secret)) = (self.preregistered_id(), &self.client_secret) else {
            return Ok(None);
        };
        let mut auth_server = self.discover(challenge).await?;
        let grants = auth_server
            .metadata
            .additional_fields
            .get("grant_types_supported");
        let is_supported = match grants.and_then(Value::as_array) {
            Some(grants) => grants.iter().any(|grant| grant == "client_credentials"),
            None => assume_supported,
        };
        if !is_supported {
            return Ok(None);
        }
        let mut scopes = self.scopes_to_request(&auth_server, more).await;
        scopes.retain(|scope| scope != OFFLINE_ACCESS);
        let config = ClientCredentialsConfig::ClientSecret {
            client_id: client_id.to_owned(),
            client_secret: secret.reveal().to_owned(),
            scopes: scopes.clone(),
            resource: Some(self.address.clone()),
        };
        let token = async {
            auth_server
                .manager
                .validate_client_credentials_metadata(&config)?;
            auth_server.manager.configure_client_credentials(&config)?;
            auth_server
                .manager
                .exchange_client_credentials(&config)
                .await
        };
        let token = token
            .await
            .map_err(|error| refused(&auth_server.issuer, &error))?;
        let response = TokenResponse::read(&auth_server.issuer, &token)?;
        Ok(Some(ClientCredentialsToken {
            access_token: response.access_token,
            ends_at: response.ends_at,
            scopes: response.scopes.unwrap_or(scopes),
        }))
    }

    pub(super) fn login_needed(&self, reason: &str) -> OAuthError {
        OAuthError::LoginNeeded {
            server: self.server.clone(),
            reason: format!("`{}` needs a login: {reason}", self.server),
        }
    }

    /// Sends a request without a token and returns the server's challenge.
    async fn probe(&self) -> Option<String> {
        let client = client_builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(LONGEST_PROBE)
            .build()
            .ok()?;
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
        let answer = client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(request.to_string())
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

    /// Discovers the authorization server.
    async fn discover(&self, challenge: Option<&str>) -> Result<AuthorizationServer, OAuthError> {
        let failed = |error: &AuthError| OAuthError::Discovery {
            server: self.server.clone(),
            reason: shown(&error.to_string()),
        };
        // It builds clients of its own.
        initialize_tls();
        let mut manager = AuthorizationManager::new(self.address.as_str())
            .await
            .map_err(|error| failed(&error))?;
        let resolution = manager
            .resolve_metadata_from_challenge(challenge)
            .await
            .map_err(|error| failed(&error))?;
        // Endpoints that `rmcp` guessed because none were published are not used.
        if !resolution.source.is_discovered() {
            return Err(OAuthError::NoAuthorizationServer(self.server.clone()));
        }
        let metadata = resolution.metadata;
        let check = |what, text: &str| address::endpoint(&self.url, what, text).map(drop);
        check("login page", &metadata.authorization_endpoint)?;
        check("token endpoint", &metadata.token_endpoint)?;
        if let Some(registration) = &metadata.registration_endpoint {
            check("registration endpoint", registration)?;
        }
        let issuer = metadata.issuer.clone().unwrap_or_default();
        manager.set_metadata(metadata.clone());
        Ok(AuthorizationServer {
            manager,
            metadata,
            issuer,
        })
    }

    /// The scopes to request: those of the settings, or else those of the server's metadata and `more`.
    async fn scopes_to_request(
        &self,
        auth_server: &AuthorizationServer,
        more: &[String],
    ) -> Vec<String> {
        if !self.scopes.is_empty() {
            return self.scopes.clone();
        }
        let mut scopes = more.to_vec();
        scopes.extend(auth_server.manager.select_initial_scopes(&[]).await);
        let supported = auth_server.metadata.scopes_supported.as_deref();
        let offers_offline = supported
            .unwrap_or_default()
            .iter()
            .any(|s| s == OFFLINE_ACCESS);
        if offers_offline && !scopes.is_empty() {
            scopes.push(OFFLINE_ACCESS.to_owned());
        }
        without_repeats(scopes)
    }

    /// Identifies this client to the authorization server: with the configured client id, with a client
    /// ID metadata document, or by dynamic client registration.
    async fn register(
        &self,
        auth_server: &mut AuthorizationServer,
        redirect: &str,
        scopes: &[String],
    ) -> Result<OAuthClientConfig, OAuthError> {
        let supports_metadata_documents = auth_server
            .metadata
            .additional_fields
            .get("client_id_metadata_document_supported")
            == Some(&Value::Bool(true));
        let client = match &self.client_id {
            Some(id) if !is_metadata_document(id) || supports_metadata_documents => {
                let client = OAuthClientConfig::new(id, redirect).with_scopes(scopes.to_vec());
                match &self.client_secret {
                    Some(secret) if !is_metadata_document(id) => {
                        client.with_client_secret(secret.reveal())
                    }
                    _ => client,
                }
            }
            _ => {
                let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
                return auth_server
                    .manager
                    .register_client(CLIENT_NAME, redirect, &scopes)
                    .await
                    .map_err(|error| OAuthError::Registration {
                        issuer: shown(&auth_server.issuer),
                        reason: shown(&error.to_string()),
                    });
            }
        };
        auth_server
            .manager
            .configure_client(client.clone())
            .map_err(|error| refused(&auth_server.issuer, &error))?;
        Ok(client)
    }

    /// The client that a login was made with.
    fn client_of(&self, stored: &StoredLogin) -> OAuthClientConfig {
        let client = OAuthClientConfig::new(&stored.client_id, &stored.redirect);
        let secret = match self.preregistered_id() {
            Some(_) => self.client_secret.as_ref(),
            None => stored.client_secret.as_ref(),
        };
        match secret {
            Some(secret) => client.with_client_secret(secret.reveal()),
            None => client,
        }
    }

    /// The login to store for a token response.
    async fn to_login(
        &self,
        auth_server: &AuthorizationServer,
        client: &OAuthClientConfig,
        token: &OAuthTokenResponse,
        before: Option<&StoredLogin>,
    ) -> Result<StoredLogin, OAuthError> {
        let response = TokenResponse::read(&auth_server.issuer, token)?;
        let is_preregistered = self.preregistered_id().is_some();
        let secret = client.client_secret.as_ref().filter(|_| !is_preregistered);
        Ok(StoredLogin {
            url: self.address.clone(),
            issuer: auth_server.issuer.clone(),
            client_id: client.client_id.clone(),
            client_secret: secret.map(Secret::new),
            redirect: client.redirect_uri.clone(),
            access_token: response.access_token,
            refresh_token: response.refresh_token,
            ends_at: response.ends_at,
            given_at: now(),
            scopes: auth_server.manager.get_current_scopes().await,
            wanted: before
                .map(|stored| stored.wanted.clone())
                .unwrap_or_default(),
        })
    }
}

/// Whether a client id is the URL of a client ID metadata document.
fn is_metadata_document(client_id: &str) -> bool {
    let url = Url::parse(client_id).ok();
    url.is_some_and(|url| url.scheme() == "https" && url.path() != "/")
}
