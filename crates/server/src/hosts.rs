//! Which names a server answers to. A page of another site that resolves its own name to this computer sends its own
//! name as `Host`, and a page that sends requests elsewhere sends its own `Origin`.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::problem::Problem;

/// The accepted values of `Host`, in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    names: Vec<String>,
    is_loopback: bool,
}

impl Hosts {
    /// These names, and with `is_loopback` those of loopback addresses.
    pub(crate) fn new(names: &[String], is_loopback: bool) -> Self {
        Self {
            names: names.iter().map(|name| name.to_lowercase()).collect(),
            is_loopback,
        }
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
        for origin in headers.get_all(header::ORIGIN) {
            let is_own = text(origin).is_some_and(|origin| {
                let name = origin
                    .strip_prefix("http://")
                    .or_else(|| origin.strip_prefix("https://"));
                name == Some(host.as_str())
            });
            if !is_own {
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

    /// The address of the server as the client of a checked request knows it. Behind a proxy, clients use TLS.
    pub(crate) fn address(&self, headers: &HeaderMap) -> String {
        let scheme = match self.is_loopback {
            true => "http",
            false => "https",
        };
        let host = headers.get(header::HOST).and_then(text);
        format!("{scheme}://{}", host.unwrap_or_default())
    }

    fn accepts(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let is_named = |known: &String| known == host || known == name;
        (self.is_loopback && ["localhost", "127.0.0.1", "[::1]"].contains(&name))
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
        let hosts = Hosts::new(&["Windlass.example.org".to_owned()], true);
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
        assert!(check(&Hosts::new(&[], false), &[("host", "localhost")]).is_err());

        let with = |origin| check(&hosts, &[("host", "localhost:80"), ("origin", origin)]);
        assert_eq!(with("http://localhost:80"), Ok(()));
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost:81",
            "file://localhost:80",
        ] {
            assert_eq!(
                with(origin),
                Err("origin_not_accepted".to_owned()),
                "{origin}"
            );
        }
    }
}
