//! Authorization for servers that require it (OAuth 2.1 as MCP uses it).
//!
//! The user logs in once ([`login`]). The authorization server is discovered from the server's metadata,
//! this client is registered, the URL of the login page is shown, and the browser is redirected to a
//! loopback port. The tokens are stored in a file. [`OAuthTokens`] gives them to connections and refreshes
//! them. A server whose settings have a client id and a client secret needs no user, if its authorization
//! server supports the client credentials grant.
//!
//! The URL of the login page is only shown: nothing here starts a browser or a shell. Every URL that a
//! server or an authorization server names is checked before it is used. A token is sent only to the URL
//! it was issued for.

mod account;
mod address;
mod authorizer;
mod callback;
mod error;
mod login_files;
mod secret;
mod token_response;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windlass_spec::server::ServerSettings;

use account::Account;
use login_files::{LoginFiles, StoredLogin};

use crate::Lookup;

pub use authorizer::OAuthTokens;
pub use error::OAuthError;

/// How long the user may take to log in.
const LONGEST_LOGIN: Duration = Duration::from_secs(300);

/// Shows the user the URL of the login page.
pub type ShowLoginUrl = Arc<dyn Fn(&str) + Send + Sync>;

/// A login, without its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The issuer of the authorization server.
    pub issuer: String,
    /// The client id of this program at that authorization server.
    pub client_id: String,
    /// The granted scopes. Empty if the authorization server has no scopes.
    pub scopes: Vec<String>,
    /// When the token expires, if the authorization server says.
    pub ends_at: Option<SystemTime>,
    /// Whether the token can be refreshed without the user.
    pub is_renewable: bool,
}

impl From<&StoredLogin> for Login {
    fn from(stored: &StoredLogin) -> Self {
        Self {
            issuer: stored.issuer.clone(),
            client_id: stored.client_id.clone(),
            scopes: stored.scopes.clone(),
            ends_at: stored
                .ends_at
                .and_then(|end| UNIX_EPOCH.checked_add(Duration::from_secs(end))),
            is_renewable: stored.refresh_token.is_some(),
        }
    }
}

/// Lets the user log in to a server's authorization server and stores the tokens in `directory`.
/// `show_url` shows the URL of the login page. Then waits at most five minutes for the redirect to this
/// machine. `lookup` returns the values of environment variables.
///
/// # Errors
/// If the server names no authorization server, the authorization server or the user refuses, the login
/// times out, or a URL from untrusted metadata is rejected.
pub async fn login(
    settings: &ServerSettings,
    directory: &Path,
    lookup: &Lookup,
    show_url: &(dyn Fn(&str) + Send + Sync),
) -> Result<Login, OAuthError> {
    let account = Account::new(settings, directory, lookup)?;
    // Requests the scopes that a run lacked in addition to the scopes granted before.
    let more = match account.stored_login()? {
        Some(stored) if !stored.wanted.is_empty() => [stored.scopes, stored.wanted].concat(),
        _ => Vec::new(),
    };
    let stored = account.log_in(None, &more, show_url).await?;
    Ok(Login::from(&stored))
}

/// The stored login for a server, if there is one.
///
/// # Errors
/// If it cannot be read.
pub fn stored_login(
    settings: &ServerSettings,
    directory: &Path,
) -> Result<Option<Login>, OAuthError> {
    let stored = LoginFiles::of_server(settings, directory)?.newest()?;
    Ok(stored.as_ref().map(Login::from))
}

/// Deletes all stored logins of a server. Returns whether there were any. The tokens are not revoked at
/// the authorization server.
///
/// # Errors
/// If one cannot be deleted.
pub fn forget_logins(settings: &ServerSettings, directory: &Path) -> Result<bool, OAuthError> {
    LoginFiles::of_server(settings, directory)?.delete_all()
}
