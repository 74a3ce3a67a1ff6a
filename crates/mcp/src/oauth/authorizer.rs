//! Gives a connection its token: what a login left, renewed when it is over, or one of this program's
//! own.

use std::path::Path;
use std::sync::Arc;

use reqwest::Url;
use rmcp::transport::auth::WWWAuthenticateParams;
use tokio::sync::Mutex;
use windlass_spec::server::ServerSettings;

use super::Present;
use super::account::{Account, Machine};
use super::error::{OAuthError, shown};
use super::given::{without_repeats, words};
use super::kept::{Kept, now};
use crate::{Authorizer, BoxFuture, Lookup, Refusal, Secret};

/// How often a server may ask for more leave than it asked for before.
const MOST_STEPS: usize = 3;

/// Gives the tokens for one server: its [`Authorizer`].
pub struct Tokens {
    account: Arc<Account>,
    present: Option<Present>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    token: Option<Token>,
    /// What was asked for because the server said that a token was not enough.
    steps: Vec<Vec<String>>,
}

#[derive(Clone)]
enum Token {
    OfLogin(Kept),
    OfMachine(Machine),
}

impl Tokens {
    /// The tokens for a server, from the logins kept in `directory`. `lookup` gives the values of
    /// environment variables. Asks and fetches nothing yet.
    ///
    /// # Errors
    /// If the server is not reached over HTTP, its address is not one that a token may be sent to, or
    /// the client's secret is named but not set.
    pub fn new(
        settings: &ServerSettings,
        directory: &Path,
        lookup: &Lookup,
    ) -> Result<Self, OAuthError> {
        Ok(Self {
            account: Arc::new(Account::new(settings, directory, lookup)?),
            present: None,
            held: Mutex::default(),
        })
    }

    /// Lets a person log in whenever that is needed, instead of failing: `present` shows the address
    /// of the page.
    #[must_use]
    pub fn with_login(mut self, present: Present) -> Self {
        self.present = Some(present);
        self
    }

    /// The token to send, if there is one. It is renewed if it is over.
    ///
    /// # Errors
    /// If it is over and cannot be renewed.
    pub async fn current(&self) -> Result<Option<Secret>, OAuthError> {
        let mut held = self.held.lock().await;
        if held.token.is_none() {
            held.token = self.account.kept()?.map(Token::OfLogin);
        }
        let token = match &held.token {
            None => return Ok(None),
            Some(token) if token.is_fresh() => token.clone(),
            // The server is asked without one, and what it answers says how to get the next.
            Some(Token::OfMachine(_)) => return Ok(None),
            Some(Token::OfLogin(kept)) => match self.renew(kept, None).await {
                Ok(renewed) => Token::OfLogin(renewed),
                Err(OAuthError::LoginNeeded { .. }) if self.present.is_some() => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        let secret = token.secret().clone();
        held.token = Some(token);
        Ok(Some(secret))
    }

    /// The token to send after the server answered a request with `challenge` (the value of its
    /// `WWW-Authenticate`). `refused` is the token it refused, if one was sent.
    ///
    /// # Errors
    /// If there is none to be had. The message says what to do.
    pub async fn after(
        &self,
        challenge: &str,
        refused: Option<&Secret>,
    ) -> Result<Secret, OAuthError> {
        let mut held = self.held.lock().await;
        // Somebody else's request was refused too, and has a new token by now.
        if let Some(token) = &held.token
            && refused.is_some_and(|refused| refused != token.secret())
            && token.is_fresh()
        {
            return Ok(token.secret().clone());
        }
        let parameters = Challenge::read(challenge, &self.account.url);
        let token = match parameters.is_insufficient {
            true if refused.is_some() => self.step_up(&mut held, challenge, &parameters).await?,
            _ => self.again(&held, challenge, refused).await?,
        };
        let secret = token.secret().clone();
        held.token = Some(token);
        Ok(secret)
    }

    /// A token after the server did not take the one it was sent, or was sent none.
    async fn again(
        &self,
        held: &Held,
        challenge: &str,
        refused: Option<&Secret>,
    ) -> Result<Token, OAuthError> {
        let kept = match (&held.token, refused) {
            (Some(Token::OfLogin(kept)), _) => Some(kept.clone()),
            (Some(Token::OfMachine(_)), _) => None,
            (None, _) => self.account.kept()?,
        };
        if let Some(kept) = &kept {
            // A login made elsewhere in the meantime.
            let newer = self.account.kept()?.filter(Kept::is_fresh);
            if let Some(newer) = newer
                && refused.is_some_and(|refused| *refused != newer.access_token)
            {
                return Ok(Token::OfLogin(newer));
            }
            match self.renew(kept, Some(challenge)).await {
                Ok(renewed) => return Ok(Token::OfLogin(renewed)),
                Err(OAuthError::LoginNeeded { .. }) if self.present.is_some() => {}
                Err(error) => return Err(error),
            }
        } else {
            let is_sure = self.present.is_none();
            let machine = self.account.as_machine(Some(challenge), &[], is_sure);
            if let Some(machine) = machine.await? {
                return Ok(Token::OfMachine(machine));
            }
        }
        self.log_in(challenge, &[], "nobody has logged in").await
    }

    /// A token for more than the one that was not enough.
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
        if is_granted || held.steps.contains(wanted) || held.steps.len() >= MOST_STEPS {
            return Err(OAuthError::StillRefused { server, scope });
        }
        let allowed = &self.account.scopes;
        if !allowed.is_empty() && !wanted.iter().all(|scope| allowed.contains(scope)) {
            return Err(OAuthError::BeyondScopes { server, scope });
        }
        let more: Vec<String> = granted.iter().chain(wanted).cloned().collect();
        let more = without_repeats(more);
        held.steps.push(wanted.clone());
        match &held.token {
            Some(Token::OfMachine(_)) => {
                let machine = self
                    .account
                    .as_machine(Some(challenge), &more, true)
                    .await?;
                match machine {
                    Some(machine) => Ok(Token::OfMachine(machine)),
                    None => Err(OAuthError::StillRefused { server, scope }),
                }
            }
            Some(Token::OfLogin(kept)) if self.present.is_none() => {
                let wanted = without_repeats(kept.wanted.iter().chain(wanted).cloned().collect());
                let kept = Kept {
                    wanted,
                    ..kept.clone()
                };
                self.account.files.keep(&kept)?;
                let reason = format!("it wants leave for `{scope}`, which was not given");
                Err(self.account.login_needed(&reason))
            }
            _ => self.log_in(challenge, &more, "it wants more leave").await,
        }
    }

    /// Renews what a login left, to the end even if nobody waits for it any more: what a token is
    /// renewed with may be used up by then, and its successor has to be kept.
    async fn renew(&self, kept: &Kept, challenge: Option<&str>) -> Result<Kept, OAuthError> {
        let (account, kept) = (Arc::clone(&self.account), kept.clone());
        let challenge = challenge.map(str::to_owned);
        let renewal = tokio::spawn(async move { account.renew(&kept, challenge.as_deref()).await });
        let broken = |_| Err(self.account.login_needed("the login could not be renewed"));
        renewal.await.unwrap_or_else(broken)
    }

    async fn log_in(
        &self,
        challenge: &str,
        more: &[String],
        reason: &str,
    ) -> Result<Token, OAuthError> {
        match &self.present {
            Some(present) => {
                let kept = self.account.log_in(Some(challenge), more, &**present);
                kept.await.map(Token::OfLogin)
            }
            None => Err(self.account.login_needed(reason)),
        }
    }
}

impl Authorizer for Tokens {
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

/// What a server says when it refuses a request.
struct Challenge {
    /// Whether the token is good, but not for this.
    is_insufficient: bool,
    /// What leave is wanted.
    scopes: Vec<String>,
}

impl Challenge {
    fn read(header: &str, url: &Url) -> Self {
        let parameters = WWWAuthenticateParams::parse(header, url);
        Self {
            is_insufficient: parameters.is_insufficient_scope(),
            scopes: words(parameters.scope.as_deref().unwrap_or_default()).collect(),
        }
    }
}

impl Token {
    fn secret(&self) -> &Secret {
        match self {
            Self::OfLogin(kept) => &kept.access_token,
            Self::OfMachine(machine) => &machine.access_token,
        }
    }

    fn scopes(&self) -> &[String] {
        match self {
            Self::OfLogin(kept) => &kept.scopes,
            Self::OfMachine(machine) => &machine.scopes,
        }
    }

    fn is_fresh(&self) -> bool {
        match self {
            Self::OfLogin(kept) => kept.is_fresh(),
            Self::OfMachine(machine) => machine.ends_at.is_none_or(|end| now() < end),
        }
    }
}
