//! The options of a server, checked before a socket is opened.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use windlass_service::Identity;

use crate::tls::TlsFiles;

/// The options of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The certificate with which it encrypts connections. Without it and without a proxy, only loopback addresses are
    /// possible.
    pub tls: Option<TlsFiles>,
    /// Whether a proxy in front of it adds TLS. Then the headers `X-Forwarded-Proto` and `X-Forwarded-For` count.
    pub is_behind_proxy: bool,
    /// The names that clients reach it by (`Host`), besides those of loopback addresses. A port is optional.
    pub hosts: Vec<String>,
    /// How many runs its worker resumes at the same time.
    pub jobs: usize,
    /// How many new runs it drives at the same time. Its worker takes the others.
    pub concurrent_runs: usize,
    /// How many requests a token may make in a second, on average.
    pub requests_per_second: u32,
    /// Whether it also resumes runs. Without a worker, another process does.
    pub has_worker: bool,
    /// Who may log in with a browser, if anybody may.
    pub login: Option<LoginOptions>,
}

/// How a person logs in with a browser: by a URL with a code that is valid once and for a short time.
#[derive(Clone)]
pub struct LoginOptions {
    /// As whom they act. They see the announced URLs, and nobody else does.
    pub identity: Identity,
    /// Shows them a URL.
    pub announce: Arc<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for LoginOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginOptions")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4747)),
            tls: None,
            is_behind_proxy: false,
            hosts: Vec::new(),
            jobs: 4,
            concurrent_runs: 64,
            requests_per_second: 100,
            has_worker: true,
            login: None,
        }
    }
}

/// Why a server cannot have these options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerOptionsError {
    /// Other computers could read requests and tokens.
    NeedsTls(SocketAddr),
    /// Nobody could reach it, because no `Host` is accepted.
    NeedsHost,
    /// A name is not a host name.
    InvalidHost(String),
}

impl fmt::Display for ServerOptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeedsTls(address) => write!(
                f,
                "`{address}` can be reached from other computers, so connections must be encrypted\n\
                 hint: add `--tls-cert FILE --tls-key FILE --host NAME`, or put a proxy with TLS in front of the server \
                 and add `--behind-proxy --host NAME`, or listen on 127.0.0.1"
            ),
            Self::NeedsHost => f.write_str(
                "other computers reach the server by a name that it has to know\n\
                 hint: add `--host NAME`, such as `--host windlass.example.org`",
            ),
            Self::InvalidHost(host) => write!(
                f,
                "`{host}` is not a host name\nhint: write it as in `windlass.example.org` or `windlass.example.org:8443`"
            ),
        }
    }
}

impl std::error::Error for ServerOptionsError {}

impl ServerOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// If the server would be open to other computers without TLS, or could not be reached.
    pub fn check(&self) -> Result<(), ServerOptionsError> {
        if let Some(host) = self.hosts.iter().find(|host| !is_host(host)) {
            return Err(ServerOptionsError::InvalidHost(host.clone()));
        }
        let is_open = !self.listen.ip().is_loopback();
        if is_open && self.tls.is_none() && !self.is_behind_proxy {
            return Err(ServerOptionsError::NeedsTls(self.listen));
        }
        match (is_open || self.is_behind_proxy) && self.hosts.is_empty() {
            true => Err(ServerOptionsError::NeedsHost),
            false => Ok(()),
        }
    }
}

/// Whether a text is a host name with an optional port.
fn is_host(text: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte);
    !text.is_empty() && text.bytes().all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_needs_no_encryption() {
        let open = ServerOptions {
            listen: SocketAddr::from(([0, 0, 0, 0], 4747)),
            ..ServerOptions::default()
        };
        assert_eq!(open.check(), Err(ServerOptionsError::NeedsTls(open.listen)));
        let tls = Some(TlsFiles {
            certificate: "server.pem".into(),
            key: "server.key".into(),
        });
        let encrypted = ServerOptions {
            tls,
            ..open.clone()
        };
        assert_eq!(encrypted.check(), Err(ServerOptionsError::NeedsHost));
        let without_name = ServerOptions {
            is_behind_proxy: true,
            ..open.clone()
        };
        assert_eq!(without_name.check(), Err(ServerOptionsError::NeedsHost));
        let named = ServerOptions {
            hosts: vec!["windlass.example.org".to_owned()],
            ..without_name
        };
        assert_eq!(named.check(), Ok(()));
        assert_eq!(ServerOptions::default().check(), Ok(()));
        let invalid = ServerOptions {
            hosts: vec!["http://windlass".to_owned()],
            ..ServerOptions::default()
        };
        assert!(matches!(
            invalid.check(),
            Err(ServerOptionsError::InvalidHost(_))
        ));
    }
}
