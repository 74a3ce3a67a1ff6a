//! Gives a connection its access token: that of a stored login, refreshed when it expires, or one from
//! the client credentials grant.

use std::path::Path;
use std::sync::Arc;

use reqwest::Url;
use rmcp::transport::auth::WWWAuthenticateParams;
use tokio::sync::Mutex;
use windlass_spec::server::ServerSettings;

use super::ShowLoginUrl;
use super::account::{Account, ClientCredentialsToken};
use super::error::{OAuthError, shown};
use super::login_files::{StoredLogin, now};
use super::token_response::{split_scopes, without_repeats};
use crate::{Authorizer, BoxFuture, Lookup, Refusal, Secret};

/// How often a server may require more scopes than before.
const MAX_STEP_UPS: usize = 3;

/// The access tokens for one server: its [`Authorizer`].
pub struct OAuthTokens {
    account: Arc<Account>,
    show_url: Option<ShowLoginUrl>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    token: Option<Token>,
    /// The scopes that were requested because the server answered `insufficient_scope`.
    step_ups: Vec<Vec<String>>,
}

#[derive(Clone)]
enum Token {
    Login(StoredLogin),
    ClientCredentials(ClientCredentialsToken),
}

impl OAuthTokens {
    /// The tokens for a server, from the logins stored in `directory`. `lookup` returns the values of
    /// environment variables. Sends no request yet.
    ///
    /// # Errors
    /// If the server is not an HTTP server, a token must not be sent to its URL, or the client secret is
    /// named but not set.
    pub fn new(
        settings: &ServerSettings,
        directory: &Path,
        lookup: &Lookup,
    ) -> Result<Self, OAuthError> {
        Ok(Self {
            account: Arc::new(Account::new(settings, directory, lookup)?),
            show_url: None,
            held: Mutex::default(),
        })
    }

    /// Lets the user log in when that is needed, instead of failing. `show_url` shows the URL of the
    /// login page.
    #[must_use]
    pub fn with_login(mut self, show_url: ShowLoginUrl) -> Self {
        self.show_url = Some(show_url);
        self
    }

    /// The token to send, if there is one. Refreshes it if it has expired.
    ///
    /// # Errors
    /// If it has expired and cannot be refreshed.
    pub async fn current(&self) -> Result<Option<Secret>, OAuthError> {
        let mut held = self.held.lock().await;
        if held.token.is_none() {
            held.token = self.account.stored_login()?.map(Token::Login);
        }
        let token = match &held.token {
            None => return Ok(None),
            Some(token) if token.is_fresh() => token.clone(),
            // The request is sent without a token. The server's challenge says how to get the next one.
            Some(Token::ClientCredentials(_)) => return Ok(None),
            Some(Token::Login(stored)) => match self.refresh(stored, None).await {
                Ok(refreshed) => Token::Login(refreshed),
                Err(OAuthError::LoginNeeded { .. }) if self.show_url.is_some() => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        let secret = token.secret().clone();
        held.token = Some(token);
        Ok(Some(secret))
    }

    /// The token to send after the server answered a request with `challenge` (the value of its
    /// `WWW-Authenticate` header). `refused` is the token it refused, if one was sent.
    ///
    /// # Errors
    /// If no token can be obtained. The message says what to do.
    pub async fn after(
        &self,
        challenge: &str,
        refused: Option<&Secret>,
    ) -> Result<Secret, OAuthError> {
        let mut held = self.held.lock().await;
        // A concurrent request was refused too and has obtained a new token.
        if let Some(token) = &held.token
            && refused.is_some_and(|refused| refused != token.secret())
            && token.is_fresh()
        {
            return Ok(token.secret().clone());
        }
        let parameters = Challenge::read(challenge, &self.account.url);
        let token = match parameters.is_insufficient {
            true if refused.is_some() => self.step_up(&mut held, challenge, &parameters).await?,
            _ => self.replace(&held, challenge, refused).await?,
        };
        let secret = token.secret().clone();
        held.token = Some(token);
        Ok(secret)
    }

    /// A token after the server refused the one it was sent, or was sent none.
    async fn replace(
        &self,
        held: &Held,
        challenge: &str,
        refused: Option<&Secret>,
    ) -> Result<Token, OAuthError> {
        let stored = match (&held.token, refused) {
            (Some(Token::Login(stored)), _) => Some(stored.clone()),
            (Some(Token::ClientCredentials(_)), _) => None,
            (None, _) => self.account.stored_login()?,
        };
        if let Some(stored) = &stored {
            // Another process may have logged in meanwhile.
            let newer = self.account.stored_login()?.filter(StoredLogin::is_fresh);
            if let Some(newer) = newer
                && refused.is_some_and(|refused| *refused != newer.access_token)
            {
                return Ok(Token::Login(newer));
            }
            match self.refresh(stored, Some(challenge)).await {
                Ok(refreshed) => return Ok(Token::Login(refreshed)),
                Err(OAuthError::LoginNeeded { .. }) if self.show_url.is_some() => {}
                Err(error) => return Err(error),
            }
        } else {
            let assume_supported = self.show_url.is_none();
            let token = self
                .account
                .client_credentials(Some(challenge), &[], assume_supported);
            if let Some(token) = token.await? {
                return Ok(Token::ClientCredentials(token));
            }
        }
        self.log_in(challenge, &[], "there is no login").await
    }

    /// A token with more scopes, after the server answered `insufficient_scope`.
    async fn step_up(
        &self,
        held: &mut Held,
        challenge: &str,
        parameters: &Challenge,
    ) -> Result<Token, OAuthError> {
        let wanted = &parameters.scopes;
        let scope = shown(&wanted.join(" "));
        let server = self.account.server.clone();
        let granted: &[String] = held.token.as_ref().map_or(&[], Token::scopes);
        let is_granted = wanted.iter().all(|scope| granted.contains(scope));
        if is_granted || held.step_ups.contains(wanted) || held.step_ups.len() >= MAX_STEP_UPS {
            return Err(OAuthError::ScopeStillRefused { server, scope });
        }
        let allowed = &self.account.scopes;
        if !allowed.is_empty() && !wanted.iter().all(|scope| allowed.contains(scope)) {
            return Err(OAuthError::ScopeNotAllowed { server, scope });
        }
        let more: Vec<String> = granted.iter().chain(wanted).cloned().collect();
        let more = without_repeats(more);
        held.step_ups.push(wanted.clone());
        match &held.token {
            Some(Token::ClientCredentials(_)) => {
                let token = self
                    .account
                    .client_credentials(Some(challenge), &more, true)
                    .await?;
                match token {
                    Some(token) => Ok(Token::ClientCredentials(token)),
                    None => Err(OAuthError::ScopeStillRefused { server, scope }),
                }
            }
            Some(Token::Login(stored)) if self.show_url.is_none() => {
                let wanted = without_repeats(stored.wanted.iter().chain(wanted).cloned().collect());
                let stored = StoredLogin {
                    wanted,
                    ..stored.clone()
                };
                self.account.files.save(&stored)?;
                let reason = format!("it requires the scope `{scope}`, which was not granted");
                Err(self.account.login_needed(&reason))
            }
            _ => {
                self.log_in(challenge, &more, "it requires more scopes")
                    .await
            }
        }
    }

    /// Refreshes a stored login. Completes even if the caller is dropped: the refresh token may be used
    /// up by then, so its successor must be stored.
    async fn refresh(
        &self,
        stored: &StoredLogin,
        challenge: Option<&str>,
    ) -> Result<StoredLogin, OAuthError> {
        let (account, stored) = (Arc::clone(&self.account), stored.clone());
        let challenge = challenge.map(str::to_owned);
        let refresh =
            tokio::spawn(async move { account.refresh(&stored, challenge.as_deref()).await });
        let failed = |_| {
            Err(self
                .account
                .login_needed("the login could not be refreshed"))
        };
        refresh.await.unwrap_or_else(failed)
    }

    async fn log_in(
        &self,
        challenge: &str,
        more: &[String],
        reason: &str,
    ) -> Result<Token, OAuthError> {
        match &self.show_url {
            Some(show_url) => {
                let login = self.account.log_in(Some(challenge), more, &**show_url);
                login.await.map(Token::Login)
            }
            None => Err(self.account.login_needed(reason)),
        }
    }
}

impl Authorizer for OAuthTokens {
    fn token<'a>(
        &'a self,
        refusal: Option<Refusal<'a>>,
    ) -> BoxFuture<'a, Result<Option<Secret>, String>> {
        Box::pin(async move {
            let token = match refusal {
                None => self.current().await,
                Some(refusal) => {
                    let token = self.after(refusal.challenge, refusal.token);
                    token.await.map(Some)
                }
            };
            token.map_err(|error| error.to_string())
        })
    }
}

/// The `WWW-Authenticate` challenge of a refused request.
struct Challenge {
    /// Whether the token is valid but lacks a scope (`insufficient_scope`).
    is_insufficient: bool,
    /// The required scopes.
    scopes: Vec<String>,
}

impl Challenge {
    fn read(header: &str, url: &Url) -> Self {
        let parameters = WWWAuthenticateParams::parse(header, url);
        Self {
            is_insufficient: parameters.is_insufficient_scope(),
            scopes: split_scopes(parameters.scope.as_deref().unwrap_or_default()).collect(),
        }
    }
}

impl Token {
    fn secret(&self) -> &Secret {
        match self {
            Self::Login(stored) => &stored.access_token,
            Self::ClientCredentials(token) => &token.access_token,
        }
    }

    fn scopes(&self) -> &[String] {
        match self {
            Self::Login(stored) => &stored.scopes,
            Self::ClientCredentials(token) => &token.scopes,
        }
    }

    fn is_fresh(&self) -> bool {
        match self {
            Self::Login(stored) => stored.is_fresh(),
            Self::ClientCredentials(token) => token.ends_at.is_none_or(|end| now() < end),
        }
    }
}
