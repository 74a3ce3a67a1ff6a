//! Errors of the OAuth flow.

use std::path::PathBuf;

use windlass_spec::server::ServerName;
use windlass_spec::text::{TextUse, strip};

use crate::text::clipped;

/// Why there is no authorization to use a server. No message contains a token or a client secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// The server is a program that is started, not an address.
    #[error("`{0}` is not an HTTP server, so it has no login")]
    NotHttp(ServerName),
    /// The user has to log in.
    #[error("{reason}; run `windlass mcp login {server}`")]
    LoginNeeded {
        /// The server.
        server: ServerName,
        /// Why.
        reason: String,
    },
    /// The user or a token must not be sent to this URL.
    #[error("the {what} `{address}` is refused: {reason}")]
    Address {
        /// What the URL is for.
        what: &'static str,
        /// The URL, without terminal control characters.
        address: String,
        /// Why it is refused.
        reason: &'static str,
    },
    /// The server names no authorization server.
    #[error("`{0}` names no authorization server: it publishes no OAuth metadata")]
    NoAuthorizationServer(ServerName),
    /// The metadata of the server or its authorization server is inconsistent, or could not be fetched.
    #[error("cannot discover the authorization server of `{server}`: {reason}")]
    Discovery {
        /// The server.
        server: ServerName,
        /// What went wrong.
        reason: String,
    },
    /// The authorization server did not register this client.
    #[error(
        "{issuer} did not register this client: {reason}; if you have a client id, set `client_id`"
    )]
    Registration {
        /// The authorization server.
        issuer: String,
        /// What went wrong.
        reason: String,
    },
    /// The authorization server, or the user, refused.
    #[error("{issuer} did not grant authorization: {reason}")]
    Refused {
        /// The authorization server.
        issuer: String,
        /// The reason it gave.
        reason: String,
    },
    /// The user did not complete the login in time.
    #[error("the login was not completed within {0} minutes; start it again")]
    LoginTimeout(u64),
    /// The server requires a scope that the operator's settings do not allow.
    #[error(
        "`{server}` requires the scope `{scope}`; add it to `scopes` in its settings to allow it"
    )]
    ScopeNotAllowed {
        /// The server.
        server: ServerName,
        /// The required scope.
        scope: String,
    },
    /// The server refuses a token that has the scope it required.
    #[error("`{server}` refuses the token although the scope it requires (`{scope}`) was granted")]
    ScopeStillRefused {
        /// The server.
        server: ServerName,
        /// The required scope.
        scope: String,
    },
    /// A setting names a variable that is not set.
    #[error("the client secret for `{server}` is missing: {reason}")]
    Secret {
        /// The server.
        server: ServerName,
        /// What is missing.
        reason: String,
    },
    /// A stored login cannot be used.
    #[error("{}: {reason}", path.display())]
    LoginFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The loopback port for the redirect could not be opened.
    #[error("cannot open a loopback port for the login redirect: {0}")]
    Loopback(std::io::Error),
}

/// Untrusted text, fit for one line of a terminal.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 300;
    let line = text.replace(char::is_whitespace, " ");
    let line = strip(&line, TextUse::Name);
    let beginning = clipped(&line, LONGEST);
    match beginning.len() < line.len() {
        true => format!("{beginning}..."),
        false => beginning.to_owned(),
    }
}
