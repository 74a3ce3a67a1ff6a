//! Sessions of browsers. The operator opens a URL with a code that is valid once and for a short time, and the browser
//! gets a cookie with a session, which acts as them. The service stores sessions like tokens; codes are only in memory.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, header};
use windlass_service::{LoginCode, Service, ServiceError, SessionSecret};

use crate::app::blocking;
use crate::hosts::Transport;
use crate::options::{LoginOptions, ServerOptions};
use crate::problem::Problem;

/// How long a code is valid.
const CODE_LIFETIME: Duration = Duration::from_secs(600);

/// Where the browser is sent after the login.
pub(crate) const AFTER_LOGIN: &str = "/v1/session";

/// The cookie that has the session. Its name has the port of the server, because browsers do not tell the ports of a
/// computer apart when they send cookies.
#[derive(Debug, Clone)]
pub(crate) struct SessionCookie {
    name: String,
    attributes: &'static str,
}

impl SessionCookie {
    pub(crate) fn new(port: u16, transport: Transport) -> Self {
        match transport.is_encrypted() {
            // Browsers refuse this prefix in a cookie that another name or an unencrypted page could have set.
            true => Self {
                name: format!("__Host-windlass-{port}"),
                attributes: "Path=/; HttpOnly; SameSite=Lax; Secure",
            },
            false => Self {
                name: format!("windlass-{port}"),
                attributes: "Path=/; HttpOnly; SameSite=Lax",
            },
        }
    }

    /// The session in the cookies of a request, if there is exactly one.
    pub(crate) fn read(&self, headers: &HeaderMap) -> Option<String> {
        let cookies = headers.get_all(header::COOKIE).iter();
        let cookies = cookies.filter_map(|value| value.to_str().ok());
        let cookies = cookies.flat_map(|value| value.split(';'));
        let mut found = cookies.filter_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            (name == self.name).then_some(value)
        });
        match (found.next(), found.next()) {
            (Some(session), None) => Some(session.to_owned()),
            _ => None,
        }
    }

    /// The header that gives a browser the session.
    fn set(&self, session: &SessionSecret) -> Option<HeaderValue> {
        let seconds = session.lifetime().as_secs();
        let (name, attributes) = (&self.name, self.attributes);
        let text = format!(
            "{name}={}; Max-Age={seconds}; {attributes}",
            session.reveal()
        );
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The header that takes the session away from a browser.
    pub(crate) fn clear(&self) -> String {
        format!("{}=; Max-Age=0; {}", self.name, self.attributes)
    }
}

/// The login of browsers.
pub(crate) struct Logins {
    options: Option<LoginOptions>,
    /// The beginning of the URLs that browsers open.
    base: String,
    code: Mutex<Option<PendingCode>>,
    pub(crate) cookie: SessionCookie,
}

/// A code that was announced and not used.
struct PendingCode {
    code: LoginCode,
    since: Instant,
}

impl Logins {
    pub(crate) fn new(options: &ServerOptions, address: SocketAddr, transport: Transport) -> Self {
        let scheme = match transport.is_encrypted() {
            true => "https",
            false => "http",
        };
        let host = match (options.hosts.first(), transport) {
            (None, _) => address.to_string(),
            // The port is that of the proxy.
            (Some(host), Transport::Proxied) => host.clone(),
            (Some(host), _) if host.contains(':') => host.clone(),
            (Some(host), _) => format!("{host}:{}", address.port()),
        };
        Self {
            options: options.login.clone(),
            base: format!("{scheme}://{host}"),
            code: Mutex::default(),
            cookie: SessionCookie::new(address.port(), transport),
        }
    }

    /// Shows the operator a URL to log in with, unless one is still valid. Returns false if nobody may log in.
    ///
    /// # Errors
    /// If there are no random numbers.
    pub(crate) fn announce(&self, now: Instant) -> Result<bool, ServiceError> {
        let Some(options) = &self.options else {
            return Ok(false);
        };
        let mut pending = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        let is_valid = |pending: &PendingCode| now.duration_since(pending.since) < CODE_LIFETIME;
        if !pending.as_ref().is_some_and(is_valid) {
            let (code, text) = LoginCode::create()?;
            *pending = Some(PendingCode { code, since: now });
            (options.announce)(&format!("{}/login?code={text}", self.base));
        }
        Ok(true)
    }

    /// Takes a code, which cannot be used again. `None` if it is not the present one.
    fn take(&self, code: &str, now: Instant) -> Option<LoginOptions> {
        let mut pending = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        let is_present = pending.as_ref().is_some_and(|pending| {
            pending.code.is(code) && now.duration_since(pending.since) < CODE_LIFETIME
        });
        if !is_present {
            return None;
        }
        *pending = None;
        self.options.clone()
    }

    /// Begins a session for the holder of a code. Returns the header with its cookie.
    pub(crate) async fn log_in(
        self: &Arc<Self>,
        service: &Service,
        code: &str,
    ) -> Result<HeaderValue, Problem> {
        let Some(options) = self.take(code, Instant::now()) else {
            return Err(Problem::new(
                403,
                "code_not_valid",
                "The code was used, has expired, or is not the present one",
            )
            .with_hint("open `/login`, and then the new URL at the terminal of the server"));
        };
        let service = service.clone();
        let session = blocking(move || service.begin_session(&options.identity)).await?;
        let cookie = self.cookie.set(&session);
        cookie.ok_or_else(|| Problem::internal(&"the session cannot be a cookie"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use windlass_service::Identity;

    use super::*;

    fn logins(announced: &Arc<Mutex<Vec<String>>>) -> Logins {
        let announced = Arc::clone(announced);
        let options = ServerOptions {
            login: Some(LoginOptions {
                identity: Identity::local().unwrap(),
                announce: Arc::new(move |url| announced.lock().unwrap().push(url.to_owned())),
            }),
            ..ServerOptions::default()
        };
        Logins::new(&options, options.listen, Transport::Plain)
    }

    fn code(url: &str) -> &str {
        url.split_once("/login?code=").unwrap().1
    }

    #[test]
    fn a_code_is_valid_once_and_for_a_short_time() {
        let announced = Arc::default();
        let logins = logins(&announced);
        let now = Instant::now();
        assert!(logins.announce(now).unwrap());
        // As long as one is valid, there is no other one.
        assert!(logins.announce(now + CODE_LIFETIME / 2).unwrap());
        let urls = announced.lock().unwrap().clone();
        assert_eq!(urls.len(), 1);
        assert!(urls[0].starts_with("http://127.0.0.1:4747/login?code="));
        let first = code(&urls[0]).to_owned();
        assert!(logins.take("", now).is_none());
        assert!(logins.take(&first, now + CODE_LIFETIME).is_none());
        assert!(logins.take(&first, now).is_some());
        assert!(logins.take(&first, now).is_none());
        assert!(logins.announce(now).unwrap());
        let second = code(&announced.lock().unwrap()[1]).to_owned();
        assert_ne!(first, second);
        assert!(logins.take(&first, now).is_none());
        assert!(logins.take(&second, now).is_some());
    }

    #[test]
    fn of_several_requests_with_a_code_one_gets_it() {
        let announced = Arc::default();
        let logins = logins(&announced);
        let now = Instant::now();
        logins.announce(now).unwrap();
        let code = code(&announced.lock().unwrap()[0]).to_owned();
        let taken = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let got = logins.take(&code, now).is_some();
                    taken.fetch_add(usize::from(got), Ordering::Relaxed);
                });
            }
        });
        assert_eq!(taken.into_inner(), 1);
    }

    #[test]
    fn the_cookie_of_a_session_is_read_if_there_is_one_of_it() {
        let cookie = SessionCookie::new(4747, Transport::Plain);
        let read = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::from_static(value));
            cookie.read(&headers)
        };
        assert_eq!(read("a=1; windlass-4747=x; b=2"), Some("x".to_owned()));
        for other in [
            "",
            "windlass-4748=x",
            "windlass-4747",
            "windlass-4747=x; windlass-4747=y",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
        assert!(!cookie.attributes.contains("Secure"));
        let secure = SessionCookie::new(443, Transport::Encrypted);
        assert!(secure.name.starts_with("__Host-") && secure.attributes.ends_with("; Secure"));
    }
}
