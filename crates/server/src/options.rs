//! The options of a server, checked before a socket is opened.

use std::net::SocketAddr;

/// The options of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Whether a proxy in front of it adds TLS. Without it, only loopback addresses are possible.
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
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4747)),
            is_behind_proxy: false,
            hosts: Vec::new(),
            jobs: 4,
            concurrent_runs: 64,
            requests_per_second: 100,
            has_worker: true,
        }
    }
}

/// Why a server cannot have these options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerOptionsError {
    /// Other computers could read requests and tokens.
    NeedsProxy(SocketAddr),
    /// Nobody could reach it, because no `Host` is accepted.
    NeedsHost,
    /// A name is not a host name.
    InvalidHost(String),
}

impl std::fmt::Display for ServerOptionsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NeedsProxy(address) => write!(
                f,
                "`{address}` can be reached from other computers, and this server does not encrypt\n\
                 hint: put a proxy with TLS in front of it and add `--behind-proxy --host NAME`, or listen on \
                 127.0.0.1"
            ),
            Self::NeedsHost => f.write_str(
                "behind a proxy, the server needs the name that its clients use\n\
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
        match (self.listen.ip().is_loopback(), self.is_behind_proxy) {
            (false, false) => Err(ServerOptionsError::NeedsProxy(self.listen)),
            (_, true) if self.hosts.is_empty() => Err(ServerOptionsError::NeedsHost),
            _ => Ok(()),
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
    fn only_loopback_needs_no_proxy() {
        let open = ServerOptions {
            listen: SocketAddr::from(([0, 0, 0, 0], 4747)),
            ..ServerOptions::default()
        };
        assert_eq!(
            open.check(),
            Err(ServerOptionsError::NeedsProxy(open.listen))
        );
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
