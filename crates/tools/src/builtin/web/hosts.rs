//! Host patterns as the operator lists them: a name, all subdomains of a name, an address, or all public
//! hosts. A pattern allows requests to a host; it does not allow private addresses.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

use crate::builtin::settings::SettingsError;

/// A pattern for one or several hosts that may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    host: Host,
    /// The only port; by default the default port of `http` and `https`.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    /// Every host with a public address.
    Any,
    /// The host with this name.
    Name(String),
    /// Every host whose name ends in a dot and this.
    Below(String),
    /// The host at this address.
    Address(IpAddr),
}

impl HostPattern {
    /// Whether the pattern matches the host and port of the URL.
    pub(super) fn covers(&self, url: &Url) -> bool {
        // A parsed URL omits the default port of its scheme.
        if url.port() != self.port.filter(|&port| Some(port) != default_port(url)) {
            return false;
        }
        match (&self.host, host_of(url)) {
            (Host::Any, Some(_)) => true,
            (Host::Address(listed), Some(UrlHost::Address(asked))) => *listed == asked,
            (Host::Name(listed), Some(UrlHost::Name(asked))) => listed == asked,
            (Host::Below(listed), Some(UrlHost::Name(asked))) => asked
                .strip_suffix(listed.as_str())
                .is_some_and(|before| before.len() > 1 && before.ends_with('.')),
            _ => false,
        }
    }

    /// Whether it is an address, so that the operator knows whether it is private.
    pub(super) fn is_address(&self) -> bool {
        matches!(self.host, Host::Address(_))
    }
}

fn default_port(url: &Url) -> Option<u16> {
    match url.scheme() {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// The host of a URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UrlHost<'a> {
    Name(&'a str),
    Address(IpAddr),
}

pub(super) fn host_of(url: &Url) -> Option<UrlHost<'_>> {
    let host = url.host_str()?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse() {
        return Some(UrlHost::Address(address));
    }
    // A dot at the end of a name does not change the host.
    let name = host.strip_suffix('.').unwrap_or(host);
    (!name.is_empty()).then_some(UrlHost::Name(name))
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Any => f.write_str("*")?,
            Host::Name(name) => f.write_str(name)?,
            Host::Below(name) => write!(f, "*.{name}")?,
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}")?,
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl FromStr for HostPattern {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let invalid = |why: &str| SettingsError::new("http.hosts", format!("{text:?} {why}"));
        const EXPECTED: &str = "is not a host; write one such as `example.org`, `*.example.org`, `example.org:8443` or `*`";
        if text.contains("://") {
            return Err(invalid(
                "is a URL; write the host alone, such as `example.org`",
            ));
        }
        if text.contains(['/', '?', '#', '@']) {
            return Err(invalid(
                "is more than a host; remove the path and everything before an `@`",
            ));
        }
        if text.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(invalid(EXPECTED));
        }
        // An IPv6 address needs no brackets as long as no port follows.
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self {
                host: Host::Address(address),
                port: None,
            });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let port = port.parse().ok().filter(|&port: &u16| port > 0);
                (
                    host,
                    Some(port.ok_or_else(|| invalid("has a port that is not 1 to 65535"))?),
                )
            }
            _ => (text, None),
        };
        if host == "*" {
            return Ok(Self {
                host: Host::Any,
                port,
            });
        }
        let (is_below, name) = match host.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, host),
        };
        if name.contains('*') {
            return Err(invalid(
                "has a `*` that is not at its beginning; write `*.example.org`",
            ));
        }
        // Parsed as a URL, so that the pattern has the same normal form.
        let url = Url::parse(&format!("http://{name}/")).map_err(|_| invalid(EXPECTED))?;
        let host = match (host_of(&url), is_below) {
            (Some(UrlHost::Address(address)), false) => Host::Address(address),
            (Some(UrlHost::Address(_)), true) => {
                return Err(invalid("is an address, and an address has no subdomains"));
            }
            (Some(UrlHost::Name(name)), false) => Host::Name(name.to_owned()),
            (Some(UrlHost::Name(name)), true) => Host::Below(name.to_owned()),
            (None, _) => return Err(invalid(EXPECTED)),
        };
        Ok(Self { host, port })
    }
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::HostPattern;

    fn covers(pattern: &str, url: &str) -> bool {
        let pattern: HostPattern = pattern.parse().unwrap();
        pattern.covers(&Url::parse(url).unwrap())
    }

    #[test]
    fn a_name_matches_only_itself() {
        assert!(covers("example.org", "https://example.org/x"));
        assert!(covers("Example.ORG", "http://EXAMPLE.org./"));
        assert!(!covers("example.org", "https://www.example.org/"));
        assert!(!covers("example.org", "https://example.org.evil.test/"));
        assert!(!covers("example.org", "https://badexample.org/"));
        assert!(covers("bücher.example", "https://xn--bcher-kva.example/"));
    }

    #[test]
    fn a_star_matches_subdomains_and_not_the_name_itself() {
        assert!(covers("*.example.org", "https://a.b.example.org/"));
        assert!(!covers("*.example.org", "https://example.org/"));
        assert!(!covers("*.example.org", "https://badexample.org/"));
    }

    #[test]
    fn a_port_other_than_the_default_must_be_listed() {
        assert!(!covers("example.org", "https://example.org:8443/"));
        assert!(!covers("example.org", "http://example.org:443/"));
        assert!(covers("example.org:8443", "https://example.org:8443/"));
        assert!(!covers("example.org:8443", "https://example.org/"));
        assert!(covers("example.org:443", "https://example.org/"));
        assert!(!covers("example.org:443", "http://example.org/"));
        assert!(!covers("*", "http://example.org:22/"));
    }

    #[test]
    fn an_address_is_the_same_in_every_spelling() {
        assert!(covers("127.0.0.1", "http://2130706433/"));
        assert!(covers("127.0.0.1", "http://0x7f.1/"));
        assert!(covers("::1", "http://[0:0:0:0:0:0:0:1]/"));
        assert!(covers("[::1]:8080", "http://[::1]:8080/"));
        assert!(!covers("127.0.0.1", "http://[::ffff:127.0.0.1]/"));
        assert!(!covers("127.0.0.1", "http://127.0.0.1.example.org/"));
    }

    #[test]
    fn invalid_hosts_are_refused_with_a_fix() {
        for (text, why) in [
            ("https://example.org", "is a URL"),
            ("example.org/path", "more than a host"),
            ("user@example.org", "more than a host"),
            ("www.*.org", "`*` that is not at its beginning"),
            ("*example.org", "`*` that is not at its beginning"),
            ("*.127.0.0.1", "an address has no subdomains"),
            ("*.1.2.3", "an address has no subdomains"),
            ("example.org:0", "port"),
            ("example.org:99999", "port"),
            ("", "is not a host"),
            ("exa mple.org", "is not a host"),
            ("*.", "is not a host"),
            (".", "is not a host"),
        ] {
            let error = text.parse::<HostPattern>().unwrap_err();
            assert_eq!(error.key, "http.hosts");
            assert!(error.message.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_pattern_is_written_as_it_is_read() {
        for text in [
            "*",
            "example.org",
            "*.example.org:8443",
            "10.0.0.1:80",
            "[::1]",
            "[::1]:81",
        ] {
            assert_eq!(text.parse::<HostPattern>().unwrap().to_string(), text);
        }
    }
}
