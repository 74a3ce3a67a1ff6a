//! Which names a server answers to. A page of another site that resolves its own name to this computer sends its own
//! name as `Host`, and a page that sends requests elsewhere sends its own `Origin`.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderValue, header};

use crate::problem::Problem;

/// The accepted values of `Host`, in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    names: Vec<String>,
    transport: Transport,
}

/// How requests arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Without encryption, from this computer.
    Plain,
    /// Encrypted by this server.
    Encrypted,
    /// From a proxy, which says how they arrived there.
    Proxied,
}

impl Transport {
    /// Whether clients use the server over connections that nobody can read.
    pub(crate) fn is_encrypted(self) -> bool {
        self != Self::Plain
    }

    /// The scheme of a page of this server that sends a request with these headers.
    fn scheme(self, headers: &HeaderMap) -> &'static str {
        let is_forwarded_unencrypted = || {
            let last = headers.get_all("x-forwarded-proto").iter().next_back();
            let last = last.and_then(text).unwrap_or_default();
            last.rsplit(',').next().unwrap_or_default().trim() == "http"
        };
        match self {
            Self::Plain => "http",
            Self::Proxied if is_forwarded_unencrypted() => "http",
            Self::Encrypted | Self::Proxied => "https",
        }
    }
}

impl Hosts {
    /// These names, and without a proxy those of loopback addresses.
    pub(crate) fn new(names: &[String], transport: Transport) -> Self {
        Self {
            names: names.iter().map(|name| name.to_lowercase()).collect(),
            transport,
        }
    }

    /// The address of the client: that of the connection, or what the proxy says.
    pub(crate) fn client(&self, connection: Option<IpAddr>, headers: &HeaderMap) -> Option<IpAddr> {
        if self.transport != Transport::Proxied {
            return connection;
        }
        // The last one is what the proxy has seen. Those before it are what its client says.
        let last = headers.get_all("x-forwarded-for").iter().next_back();
        let last = last.and_then(|value| value.to_str().ok());
        let last = last.and_then(|value| value.rsplit(',').next()?.trim().parse().ok());
        last.or(connection)
    }

    /// Refuses a request with another `Host` or `Origin`.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => text(host),
            _ => None,
        };
        let Some(host) = host.filter(|host| self.accepts(host)) else {
            return Err(
                Problem::new(403, "host_not_accepted", "The server has another name").with_hint(
                    "use the name that the server was started with (`--host`), or 127.0.0.1",
                ),
            );
        };
        let own = format!("{}://{host}", self.transport.scheme(headers));
        for origin in headers.get_all(header::ORIGIN) {
            if text(origin).is_none_or(|origin| origin != own) {
                return Err(Problem::new(
                    403,
                    "origin_not_accepted",
                    "The request comes from a page of another site",
                )
                .with_hint("send requests from a program, or from a page of this server"));
            }
        }
        Ok(())
    }

    /// The address of the server as the client of a checked request knows it.
    pub(crate) fn address(&self, headers: &HeaderMap) -> String {
        let scheme = self.transport.scheme(headers);
        let host = headers.get(header::HOST).and_then(text);
        format!("{scheme}://{}", host.unwrap_or_default())
    }

    fn accepts(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let is_named = |known: &String| known == host || known == name;
        (self.transport != Transport::Proxied
            && ["localhost", "127.0.0.1", "[::1]"].contains(&name))
            || self.names.iter().any(is_named)
    }
}

fn text(value: &HeaderValue) -> Option<String> {
    Some(value.to_str().ok()?.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hosts: &Hosts, headers: &[(&'static str, &str)]) -> Result<(), String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        hosts
            .check(&map)
            .map_err(|problem| problem.code().to_owned())
    }

    #[test]
    fn only_names_of_the_server_and_its_own_pages_are_accepted() {
        let hosts = Hosts::new(&["Windlass.example.org".to_owned()], Transport::Plain);
        for host in [
            "localhost",
            "127.0.0.1:4747",
            "[::1]:1",
            "WINDLASS.example.org:8443",
        ] {
            assert_eq!(check(&hosts, &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "",
        ] {
            let refused = check(&hosts, &[("host", host)]);
            assert_eq!(refused, Err("host_not_accepted".to_owned()), "{host}");
        }
        assert!(check(&hosts, &[]).is_err());
        assert!(check(&hosts, &[("host", "localhost"), ("host", "evil.example")]).is_err());
        assert!(
            check(
                &Hosts::new(&[], Transport::Proxied),
                &[("host", "localhost")]
            )
            .is_err()
        );

        let with = |origin| check(&hosts, &[("host", "localhost:80"), ("origin", origin)]);
        assert_eq!(with("http://localhost:80"), Ok(()));
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost:81",
            "https://localhost:80",
            "file://localhost:80",
        ] {
            assert_eq!(
                with(origin),
                Err("origin_not_accepted".to_owned()),
                "{origin}"
            );
        }
    }
    #[test]
    fn only_a_proxy_says_how_a_request_arrived_and_from_where() {
        let headers = |list: &[(&'static str, &'static str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in list {
                map.append(*name, HeaderValue::from_static(value));
            }
            map
        };
        let connection: IpAddr = "10.0.0.1".parse().unwrap();
        let forwarded = headers(&[
            ("x-forwarded-for", "1.1.1.1, 2.2.2.2"),
            ("x-forwarded-proto", "http"),
        ]);
        let client = |transport| {
            let hosts = Hosts::new(&[], transport);
            hosts
                .client(Some(connection), &forwarded)
                .unwrap()
                .to_string()
        };
        assert_eq!(client(Transport::Plain), "10.0.0.1");
        assert_eq!(client(Transport::Encrypted), "10.0.0.1");
        assert_eq!(client(Transport::Proxied), "2.2.2.2");
        assert_eq!(Transport::Plain.scheme(&headers(&[])), "http");
        assert_eq!(Transport::Encrypted.scheme(&forwarded), "https");
        assert_eq!(Transport::Proxied.scheme(&forwarded), "http");
        assert_eq!(Transport::Proxied.scheme(&headers(&[])), "https");
    }
}
