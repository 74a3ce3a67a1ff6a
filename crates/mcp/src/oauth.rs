//! Leave to use a server that somebody guards (OAuth 2.1 as MCP uses it).
//!
//! A person logs in once ([`login`]): the guard is found by what the server publishes, this program is
//! made known to it, a page is shown, and the browser comes back to a port of this machine. What the
//! guard then gives is kept in a file, and [`Tokens`] gives it to connections and renews it. A server
//! with a client id and a secret of its own in its settings needs no person where its guard allows
//! that.
//!
//! The page's address is only ever shown: nothing here starts a browser or a shell. Every address a
//! server or a guard names is looked at before it is used, and a token is sent to nobody but the
//! address it was given for.

mod account;
mod address;
mod authorizer;
mod callback;
mod error;
mod given;
mod kept;
mod secret;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windlass_spec::server::ServerSettings;

use account::Account;
use kept::{Files, Kept};

use crate::Lookup;

pub use authorizer::Tokens;
pub use error::OAuthError;

/// How long a person may take to log in.
const LONGEST_LOGIN: Duration = Duration::from_secs(300);

/// What shows a person the address of a page.
pub type Present = Arc<dyn Fn(&str) + Send + Sync>;

/// A login, without what it is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// Who gave leave.
    pub issuer: String,
    /// Who this program is there.
    pub client_id: String,
    /// What leave was given for. Empty if the guard knows of no differences.
    pub scopes: Vec<String>,
    /// When the token is over, if the guard says.
    pub ends_at: Option<SystemTime>,
    /// Whether the token can be renewed without a person.
    pub is_renewable: bool,
}

impl From<&Kept> for Login {
    fn from(kept: &Kept) -> Self {
        Self {
            issuer: kept.issuer.clone(),
            client_id: kept.client_id.clone(),
            scopes: kept.scopes.clone(),
            ends_at: kept
                .ends_at
                .and_then(|end| UNIX_EPOCH.checked_add(Duration::from_secs(end))),
            is_renewable: kept.refresh_token.is_some(),
        }
    }
}

/// Lets a person log in to a server's guard and keeps what comes of it in `directory`. `present` shows
/// the address of the page; the rest waits for the browser to come back to this machine, at most five
/// minutes. `lookup` gives the values of environment variables.
///
/// # Errors
/// If the server names no guard, the guard or the person says no, nobody comes back, or something that
/// a stranger said is not to be trusted.
pub async fn login(
    settings: &ServerSettings,
    directory: &Path,
    lookup: &Lookup,
    present: &(dyn Fn(&str) + Send + Sync),
) -> Result<Login, OAuthError> {
    let account = Account::new(settings, directory, lookup)?;
    // What a run was refused for is asked for besides what was given before.
    let more = match account.kept()? {
        Some(kept) if !kept.wanted.is_empty() => [kept.scopes, kept.wanted].concat(),
        _ => Vec::new(),
    };
    let kept = account.log_in(None, &more, present).await?;
    Ok(Login::from(&kept))
}

/// The login that is kept for a server, if there is one.
///
/// # Errors
/// If it cannot be read.
pub fn kept_login(
    settings: &ServerSettings,
    directory: &Path,
) -> Result<Option<Login>, OAuthError> {
    let kept = Files::of_server(settings, directory)?.newest()?;
    Ok(kept.as_ref().map(Login::from))
}

/// Forgets all logins of a server, and says whether there were any. The guard is not told.
///
/// # Errors
/// If one cannot be deleted.
pub fn forget_logins(settings: &ServerSettings, directory: &Path) -> Result<bool, OAuthError> {
    Files::of_server(settings, directory)?.forget()
}
