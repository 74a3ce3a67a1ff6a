//! The redirect endpoint for a login: one path on a random loopback port, open for as long as the login
//! takes. A request without the right `state` is refused.

use std::net::Ipv4Addr;
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::error::{OAuthError, shown};

const PATH: &str = "/callback";

/// How long a browser may take to send its request once it is connected. Browsers open connections that
/// they do not use.
const LONGEST_REQUEST: Duration = Duration::from_secs(20);

/// The longest request that is read. Browsers send shorter ones.
const MOST_BYTES: usize = 32 * 1024;

/// A loopback port that waits for the redirect.
pub(super) struct Callback {
    listener: TcpListener,
    redirect: String,
}

/// The authorization response (RFC 6749, section 4.1.2) that the redirect carries.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AuthorizationResponse {
    /// The authorization code, or the error of the authorization server.
    pub(super) code: Result<String, String>,
    /// The issuer (`iss`), if the authorization server sends it.
    pub(super) issuer: Option<String>,
}

impl Callback {
    /// Opens a port.
    pub(super) async fn open() -> Result<Self, OAuthError> {
        let open = async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let port = listener.local_addr()?.port();
            Ok(Self {
                listener,
                redirect: format!("http://{}:{port}{PATH}", Ipv4Addr::LOCALHOST),
            })
        };
        open.await.map_err(OAuthError::Loopback)
    }

    /// The redirect URI.
    pub(super) fn redirect(&self) -> &str {
        &self.redirect
    }

    /// Waits for the redirect with the right `state`.
    pub(super) async fn wait(
        self,
        state: &str,
        longest: Duration,
    ) -> Result<AuthorizationResponse, OAuthError> {
        let (send, mut responses) = mpsc::channel(1);
        let mut connections = JoinSet::new();
        let wait = async {
            loop {
                tokio::select! {
                    Some(response) = responses.recv() => return Ok(response),
                    Some(_) = connections.join_next() => {}
                    connection = self.listener.accept() => {
                        let (stream, _) = connection.map_err(OAuthError::Loopback)?;
                        let (send, state) = (send.clone(), state.to_owned());
                        connections.spawn(async move {
                            let response =
                                timeout(LONGEST_REQUEST, handle_connection(stream, &state)).await;
                            if let Ok(Some(response)) = response {
                                let _ = send.send(response).await;
                            }
                        });
                    }
                }
            }
        };
        match timeout(longest, wait).await {
            Ok(response) => response,
            Err(_) => Err(OAuthError::LoginTimeout(longest.as_secs().div_ceil(60))),
        }
    }
}

/// Reads a request and answers it. Returns `None` if it is not the expected redirect.
async fn handle_connection(mut stream: TcpStream, state: &str) -> Option<AuthorizationResponse> {
    let mut request = Vec::new();
    let mut chunk = [0; 4096];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") && request.len() < MOST_BYTES {
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => request.extend_from_slice(&chunk[..read]),
        }
    }
    let head = String::from_utf8_lossy(&request);
    let target = head
        .strip_prefix("GET ")
        .and_then(|rest| rest.split_once(' '))
        .map(|(target, _)| target);
    let response = target.and_then(|target| parse_redirect(target, state));
    let (status, text) = match &response {
        Some(AuthorizationResponse { code: Ok(_), .. }) => {
            ("200 OK", "Windlass received the authorization code.")
        }
        Some(_) => ("200 OK", "The login failed."),
        None => ("404 Not Found", "There is nothing here."),
    };
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>Windlass</title>\
         <p>{text} You can close this page.</p>"
    );
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    // The login does not depend on whether the page arrives.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    response
}

/// Parses the target of a request. Returns `None` if it is not the expected redirect.
fn parse_redirect(target: &str, state: &str) -> Option<AuthorizationResponse> {
    let url = Url::parse(&format!("http://{}{target}", Ipv4Addr::LOCALHOST)).ok()?;
    if url.path() != PATH {
        return None;
    }
    // A repeated parameter is ambiguous.
    let one = |name: &str| {
        let mut values = url.query_pairs().filter(|(key, _)| key == name);
        match (values.next(), values.next()) {
            (Some((_, value)), None) => Ok(Some(value.into_owned())),
            (None, _) => Ok(None),
            (Some(_), Some(_)) => Err(()),
        }
    };
    if one("state").ok()?.as_deref() != Some(state) {
        return None;
    }
    let issuer = one("iss").ok()?;
    let code = match (one("code").ok()?, one("error").ok()?) {
        (Some(code), None) => Ok(code),
        (_, Some(error)) => {
            let description = one("error_description").ok()?;
            Err(match description {
                Some(description) => shown(&format!("{error}: {description}")),
                None => shown(&error),
            })
        }
        (None, None) => return None,
    };
    Some(AuthorizationResponse { code, issuer })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_redirect_with_the_right_state_is_accepted() {
        let code = |issuer: Option<&str>| AuthorizationResponse {
            code: Ok("c".to_owned()),
            issuer: issuer.map(str::to_owned),
        };
        assert_eq!(
            parse_redirect("/callback?code=c&state=s", "s"),
            Some(code(None))
        );
        let with_issuer = "/callback?code=c&state=s&iss=https%3A%2F%2Fa.example";
        assert_eq!(
            parse_redirect(with_issuer, "s"),
            Some(code(Some("https://a.example")))
        );
        for other in [
            "/callback?code=c&state=t",
            "/callback?code=c",
            "/other?code=c&state=s",
            "/callback?state=s",
            "/callback?code=c&state=s&state=t",
            "/callback?code=c&code=d&state=s",
            "/callback?code=c&state=s&iss=a&iss=b",
            "/favicon.ico",
        ] {
            assert_eq!(parse_redirect(other, "s"), None, "{other}");
        }
    }

    #[test]
    fn a_refusal_contains_the_error_of_the_authorization_server() {
        let target = "/callback?error=access_denied&error_description=no%1b%5b2J%20way&state=s";
        let response = parse_redirect(target, "s").unwrap();
        assert_eq!(response.code, Err("access_denied: no[2J way".to_owned()));
    }

    #[tokio::test]
    async fn an_idle_connection_does_not_delay_the_redirect() {
        let callback = Callback::open().await.unwrap();
        let address = callback.listener.local_addr().unwrap();
        let _idle = TcpStream::connect(address).await.unwrap();
        let browser = async {
            for target in [
                "/favicon.ico",
                "/callback?code=x&state=wrong",
                "/callback?code=c&state=s",
            ] {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
                stream.write_all(request.as_bytes()).await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                assert_eq!(
                    answer.starts_with("HTTP/1.1 200"),
                    target.contains("state=s"),
                    "{answer}"
                );
            }
        };
        let wait = callback.wait("s", Duration::from_secs(10));
        let (response, ()) = tokio::join!(wait, browser);
        assert_eq!(response.unwrap().code, Ok("c".to_owned()));
    }

    #[tokio::test]
    async fn a_login_times_out() {
        let callback = Callback::open().await.unwrap();
        let response = callback.wait("s", Duration::from_millis(20)).await;
        assert!(matches!(response, Err(OAuthError::LoginTimeout(_))));
    }
}
