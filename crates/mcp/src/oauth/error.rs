//! Why a server's guard gave no leave.

use std::path::PathBuf;

use windlass_spec::server::ServerName;
use windlass_spec::text::{TextUse, strip};

use crate::text::clipped;

/// Why there is no leave to use a server. No message holds a token or a client's secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// The server is a program that is started, not an address.
    #[error("`{0}` is not reached over HTTP, so there is nothing to log in to")]
    NotHttp(ServerName),
    /// A person has to log in.
    #[error("{reason}; run `windlass mcp login {server}`")]
    LoginNeeded {
        /// The server.
        server: ServerName,
        /// Why.
        reason: String,
    },
    /// An address is not one that a person or a token may be sent to.
    #[error("the {what} `{address}` is refused: {reason}")]
    Address {
        /// Which address it is.
        what: &'static str,
        /// The address, without characters that would do something to a terminal.
        address: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The server does not say who guards it.
    #[error("`{0}` does not say who grants leave to use it: it publishes no OAuth metadata")]
    NoGuard(ServerName),
    /// What the server or its guard says does not hold together, or could not be fetched.
    #[error("who guards `{server}` could not be found out: {reason}")]
    Discovery {
        /// The server.
        server: ServerName,
        /// What went wrong.
        reason: String,
    },
    /// The guard does not know this program and cannot be made to.
    #[error(
        "{issuer} did not register this program: {reason}; if it has a client id for you, set `client_id`"
    )]
    Registration {
        /// The guard.
        issuer: String,
        /// What went wrong.
        reason: String,
    },
    /// The guard, or the person, said no.
    #[error("{issuer} gave no leave: {reason}")]
    Refused {
        /// The guard.
        issuer: String,
        /// What it said.
        reason: String,
    },
    /// The person did not come back in time.
    #[error("nobody answered at the login page within {0} minutes")]
    TooLate(u64),
    /// The server wants leave that the operator's settings leave out.
    #[error("`{server}` wants leave for `{scope}`, which the `scopes` of its settings do not name")]
    BeyondScopes {
        /// The server.
        server: ServerName,
        /// What it wants.
        scope: String,
    },
    /// The server keeps refusing what it asked for.
    #[error("`{server}` refuses the leave it asked for (`{scope}`) although it was granted")]
    StillRefused {
        /// The server.
        server: ServerName,
        /// What it wants.
        scope: String,
    },
    /// A setting names a variable that is not set.
    #[error("the client's secret for `{server}` is missing: {reason}")]
    Secret {
        /// The server.
        server: ServerName,
        /// What is missing.
        reason: String,
    },
    /// What is kept on disk cannot be used.
    #[error("{}: {reason}", path.display())]
    Kept {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The port a browser comes back to could not be opened.
    #[error("no port on this machine could be opened for the login to come back to: {0}")]
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
