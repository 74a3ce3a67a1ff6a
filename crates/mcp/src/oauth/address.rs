//! Which addresses a token, or a person's browser, may be sent to. Most of them come from a server,
//! which is a stranger.
//!
//! The protocol's own library looks at the addresses behind host names when it connects. Here the
//! names themselves are looked at, also of the page that only a browser visits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

use super::error::{OAuthError, shown};

/// Names under which clouds tell a machine its own credentials.
const CLOUD_METADATA: [&str; 3] = [
    "metadata",
    "metadata.google.internal",
    "metadata.azure.internal",
];

/// Nothing that means something to a shell: the address is shown to be copied.
const HARMLESS: &str = "-._~:/?#[]@!&*+,=%";

/// Where a host name or address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Public,
    ThisMachine,
    PrivateNetwork,
    Never,
}

/// The server's own address, which the operator wrote.
pub(super) fn server(text: &str) -> Result<Url, OAuthError> {
    let what = "address of the server";
    let url = plain(what, text)?;
    let is_near = matches!(place(&url), Place::ThisMachine | Place::PrivateNetwork);
    if url.scheme() == "http" && !is_near {
        let reason = "without https, everybody on the way could read the token";
        return Err(refused(what, text, reason));
    }
    Ok(url)
}

/// An address that the server or its guard named.
pub(super) fn endpoint(server: &Url, what: &'static str, text: &str) -> Result<Url, OAuthError> {
    let url = plain(what, text)?;
    if url.scheme() == "http" && server.scheme() == "https" {
        return Err(refused(what, text, "it is not https though the server is"));
    }
    match place(&url) {
        Place::Public => Ok(url),
        Place::Never => Err(refused(
            what,
            text,
            "it leads to where nobody serves people",
        )),
        near if near == place(server) => Ok(url),
        _ => Err(refused(
            what,
            text,
            "it leads into a private network or to this machine, where the server is not",
        )),
    }
}

/// An address that begins with `http:` or `https:` and holds nothing odd.
fn plain(what: &'static str, text: &str) -> Result<Url, OAuthError> {
    let Ok(url) = Url::parse(text) else {
        return Err(refused(what, text, "it is no address"));
    };
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused(what, text, "only http and https are used"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(refused(what, text, "it names no host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let reason = "a name before the host can make it look like another host";
        return Err(refused(what, text, reason));
    }
    let is_harmless = |c: char| c.is_ascii_alphanumeric() || HARMLESS.contains(c);
    // What was written, not what the parser made of it: that leaves out line breaks.
    if !text.chars().all(is_harmless) {
        return Err(refused(
            what,
            text,
            "it holds characters that a shell would act on",
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

fn place(url: &Url) -> Place {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return match address {
            IpAddr::V4(address) => place_of_v4(address),
            IpAddr::V6(address) => place_of_v6(address),
        };
    }
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    if name == "localhost" || name.ends_with(".localhost") {
        Place::ThisMachine
    } else if CLOUD_METADATA.contains(&name.as_str()) {
        Place::Never
    } else {
        Place::Public
    }
}

fn place_of_v4(address: Ipv4Addr) -> Place {
    let [first, second, ..] = address.octets();
    if address.is_loopback() {
        Place::ThisMachine
    } else if address.is_private() || (first == 100 && (64..=127).contains(&second)) {
        Place::PrivateNetwork
    } else if address.is_link_local()
        || address.is_broadcast()
        || address.is_multicast()
        || first == 0
        || (first == 198 && matches!(second, 18 | 19))
    {
        Place::Never
    } else {
        Place::Public
    }
}

fn place_of_v6(address: Ipv6Addr) -> Place {
    if address.is_loopback() {
        return Place::ThisMachine;
    }
    let segments = address.segments();
    let low = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    // An address of the old kind inside one of the new kind leads to where the old one leads.
    match segments {
        [0, 0, 0, 0, 0, 0 | 0xffff, g, h] | [0x64, 0xff9b, 0, 0, 0, 0, g, h] => {
            return place_of_v4(low(g, h));
        }
        [0x2002, b, c, ..] => return place_of_v4(low(b, c)),
        [0x2001, 0, ..] | [0x64, 0xff9b, 1, ..] => return Place::Never,
        _ => {}
    }
    if address.is_unique_local() {
        Place::PrivateNetwork
    } else if address.is_unspecified() || address.is_multicast() || address.is_unicast_link_local()
    {
        Place::Never
    } else {
        Place::Public
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
    fn only_http_and_https_are_shown_to_a_person() {
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
    fn private_addresses_are_for_servers_that_are_there_themselves() {
        let here = [
            "http://127.0.0.1:9/a",
            "http://localhost:9/a",
            "http://[::1]:9/a",
            "http://[::ffff:127.0.0.1]/a",
        ];
        let near = [
            "http://10.0.0.9/a",
            "http://192.168.1.1/a",
            "http://[fd00::1]/a",
        ];
        for address in here {
            assert!(is_allowed("http://localhost:8/mcp", address), "{address}");
            assert!(!is_allowed("http://10.0.0.8/mcp", address), "{address}");
        }
        for address in near {
            assert!(is_allowed("http://10.0.0.8/mcp", address), "{address}");
            assert!(!is_allowed("http://localhost:8/mcp", address), "{address}");
        }
        for address in here.iter().chain(&near) {
            let address = address.replace("http:", "https:");
            assert!(
                !is_allowed("https://mcp.example/mcp", &address),
                "{address}"
            );
        }
    }

    #[test]
    fn nobody_is_sent_to_a_clouds_own_addresses() {
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
    fn a_guard_is_not_reached_less_safely_than_its_server() {
        assert!(!is_allowed(
            "https://mcp.example/mcp",
            "http://auth.example/authorize"
        ));
        assert!(server("http://mcp.example/mcp").is_err());
        assert!(server("http://127.0.0.1:8/mcp").is_ok());
    }
}
