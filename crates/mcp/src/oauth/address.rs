//! Which URLs a token or the user's browser may be sent to. Most of them come from a server, which is
//! untrusted.
//!
//! `rmcp` checks the IP addresses behind host names when it connects. This module checks the URLs
//! themselves, including the login page, which only a browser opens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

use super::error::{OAuthError, shown};

/// Host names of cloud metadata services, which give a machine its credentials.
const CLOUD_METADATA: [&str; 3] = [
    "metadata",
    "metadata.google.internal",
    "metadata.azure.internal",
];

/// Characters that no shell interprets: the user copies the URL.
const SHELL_SAFE: &str = "-._~:/?#[]@!&*+,=%";

/// The network that a host name or IP address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetworkZone {
    Public,
    Loopback,
    PrivateNetwork,
    Forbidden,
}

/// Parses the server's own URL, which the operator configured.
pub(super) fn server(text: &str) -> Result<Url, OAuthError> {
    let what = "server URL";
    let url = plain(what, text)?;
    let is_private = matches!(
        zone(&url),
        NetworkZone::Loopback | NetworkZone::PrivateNetwork
    );
    if url.scheme() == "http" && !is_private {
        let reason =
            "without https, others on the network could read the token; use an https:// URL";
        return Err(refused(what, text, reason));
    }
    Ok(url)
}

/// Parses a URL that the server or its authorization server named.
pub(super) fn endpoint(server: &Url, what: &'static str, text: &str) -> Result<Url, OAuthError> {
    let url = plain(what, text)?;
    if url.scheme() == "http" && server.scheme() == "https" {
        return Err(refused(what, text, "it is not https, but the server is"));
    }
    match zone(&url) {
        NetworkZone::Public => Ok(url),
        NetworkZone::Forbidden => Err(refused(
            what,
            text,
            "it is a link-local, metadata or reserved address",
        )),
        private if private == zone(server) => Ok(url),
        _ => Err(refused(
            what,
            text,
            "it leads to a private network or to this machine, but the server is elsewhere",
        )),
    }
}

/// Parses a URL that begins with `http:` or `https:` and has no userinfo and no shell characters.
fn plain(what: &'static str, text: &str) -> Result<Url, OAuthError> {
    let Ok(url) = Url::parse(text) else {
        return Err(refused(what, text, "it is not a URL"));
    };
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused(what, text, "only http and https are allowed"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(refused(what, text, "it names no host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let reason = "a user name before the host can make it look like another host";
        return Err(refused(what, text, reason));
    }
    let is_shell_safe = |c: char| c.is_ascii_alphanumeric() || SHELL_SAFE.contains(c);
    // Checks the original text, because the parser drops line breaks.
    if !text.chars().all(is_shell_safe) {
        return Err(refused(
            what,
            text,
            "it contains characters that a shell interprets",
        ));
    }
    Ok(url)
}

fn refused(what: &'static str, text: &str, reason: &'static str) -> OAuthError {
    OAuthError::Address {
        what,
        address: shown(text),
        reason,
    }
}

fn zone(url: &Url) -> NetworkZone {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return match address {
            IpAddr::V4(address) => zone_of_v4(address),
            IpAddr::V6(address) => zone_of_v6(address),
        };
    }
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    if name == "localhost" || name.ends_with(".localhost") {
        NetworkZone::Loopback
    } else if CLOUD_METADATA.contains(&name.as_str()) {
        NetworkZone::Forbidden
    } else {
        NetworkZone::Public
    }
}

fn zone_of_v4(address: Ipv4Addr) -> NetworkZone {
    let [first, second, ..] = address.octets();
    if address.is_loopback() {
        NetworkZone::Loopback
    } else if address.is_private() || (first == 100 && (64..=127).contains(&second)) {
        NetworkZone::PrivateNetwork
    } else if address.is_link_local()
        || address.is_broadcast()
        || address.is_multicast()
        || first == 0
        || (first == 198 && matches!(second, 18 | 19))
    {
        NetworkZone::Forbidden
    } else {
        NetworkZone::Public
    }
}

fn zone_of_v6(address: Ipv6Addr) -> NetworkZone {
    if address.is_loopback() {
        return NetworkZone::Loopback;
    }
    let segments = address.segments();
    let low = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    // An IPv4 address embedded in an IPv6 address leads where the IPv4 address leads.
    match segments {
        [0, 0, 0, 0, 0, 0 | 0xffff, g, h] | [0x64, 0xff9b, 0, 0, 0, 0, g, h] => {
            return zone_of_v4(low(g, h));
        }
        [0x2002, b, c, ..] => return zone_of_v4(low(b, c)),
        [0x2001, 0, ..] | [0x64, 0xff9b, 1, ..] => return NetworkZone::Forbidden,
        _ => {}
    }
    if address.is_unique_local() {
        NetworkZone::PrivateNetwork
    } else if address.is_unspecified() || address.is_multicast() || address.is_unicast_link_local()
    {
        NetworkZone::Forbidden
    } else {
        NetworkZone::Public
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(server_url: &str, named: &str) -> bool {
        let server_url = server(server_url).unwrap();
        endpoint(&server_url, "login page", named).is_ok()
    }

    #[test]
    fn login_page_must_be_a_plain_http_or_https_url() {
        for bad in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "$(touch /tmp/x)",
            "https://auth.example/$(touch%20x)",
            "https://auth.example/`id`",
            "https://auth.example/a;id",
            "https://auth.example/a|id",
            "https://auth.example/\u{1b}[2J",
            "https://auth.example/a\nb",
            "https://accounts.example@evil.example/",
            "data:text/html,x",
            "https:",
            "",
        ] {
            assert!(!is_allowed("https://mcp.example/mcp", bad), "{bad:?}");
        }
        for good in [
            "https://auth.example/authorize",
            "https://auth.example:8443/t/v2.0/authorize?policy=a_b&x=1",
        ] {
            assert!(is_allowed("https://mcp.example/mcp", good), "{good}");
        }
    }

    #[test]
    fn private_addresses_are_allowed_only_for_servers_in_the_same_network() {
        let loopback = [
            "http://127.0.0.1:9/a",
            "http://localhost:9/a",
            "http://[::1]:9/a",
            "http://[::ffff:127.0.0.1]/a",
        ];
        let private = [
            "http://10.0.0.9/a",
            "http://192.168.1.1/a",
            "http://[fd00::1]/a",
        ];
        for address in loopback {
            assert!(is_allowed("http://localhost:8/mcp", address), "{address}");
            assert!(!is_allowed("http://10.0.0.8/mcp", address), "{address}");
        }
        for address in private {
            assert!(is_allowed("http://10.0.0.8/mcp", address), "{address}");
            assert!(!is_allowed("http://localhost:8/mcp", address), "{address}");
        }
        for address in loopback.iter().chain(&private) {
            let address = address.replace("http:", "https:");
            assert!(
                !is_allowed("https://mcp.example/mcp", &address),
                "{address}"
            );
        }
    }

    #[test]
    fn cloud_metadata_addresses_are_refused() {
        for address in [
            "http://169.254.169.254/latest/meta-data",
            "http://[::ffff:169.254.169.254]/",
            "http://[fe80::1]/",
            "http://metadata.google.internal/",
            "http://0.0.0.0/",
        ] {
            for server in ["http://localhost:8/mcp", "http://10.0.0.8/mcp"] {
                assert!(!is_allowed(server, address), "{address} of {server}");
            }
        }
    }

    #[test]
    fn an_https_server_cannot_name_an_http_authorization_server() {
        assert!(!is_allowed(
            "https://mcp.example/mcp",
            "http://auth.example/authorize"
        ));
        assert!(server("http://mcp.example/mcp").is_err());
        assert!(server("http://127.0.0.1:8/mcp").is_ok());
    }
}
