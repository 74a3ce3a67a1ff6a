//! Where a browser comes back to after a login: one path on one random port of this machine, for as
//! long as the login takes. Whoever else finds the port does not know the `state` and is sent away.

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

/// How long a browser may take to send its request once it is connected; browsers open connections
/// that they then do not use.
const LONGEST_REQUEST: Duration = Duration::from_secs(20);

/// No browser sends a longer one to a page this small.
const MOST_BYTES: usize = 32 * 1024;

/// A port that waits for a browser.
pub(super) struct Callback {
    listener: TcpListener,
    redirect: String,
}

/// What the browser brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Brought {
    /// The code, or what the guard says instead of giving one.
    pub(super) code: Result<String, String>,
    /// Who says so, if it says who it is.
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

    /// What the guard is told to send the browser to.
    pub(super) fn redirect(&self) -> &str {
        &self.redirect
    }

    /// Waits for the browser that knows `state`.
    pub(super) async fn wait(self, state: &str, longest: Duration) -> Result<Brought, OAuthError> {
        let (send, mut brought) = mpsc::channel(1);
        let mut visits = JoinSet::new();
        let wait = async {
            loop {
                tokio::select! {
                    Some(brought) = brought.recv() => return Ok(brought),
                    Some(_) = visits.join_next() => {}
                    visit = self.listener.accept() => {
                        let (stream, _) = visit.map_err(OAuthError::Loopback)?;
                        let (send, state) = (send.clone(), state.to_owned());
                        visits.spawn(async move {
                            let brought = timeout(LONGEST_REQUEST, visited(stream, &state)).await;
                            if let Ok(Some(brought)) = brought {
                                let _ = send.send(brought).await;
                            }
                        });
                    }
                }
            }
        };
        match timeout(longest, wait).await {
            Ok(brought) => brought,
            Err(_) => Err(OAuthError::TooLate(longest.as_secs().div_ceil(60))),
        }
    }
}

/// Reads a request and answers it. `None` if it is not what is waited for.
async fn visited(mut stream: TcpStream, state: &str) -> Option<Brought> {
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
    let brought = target.and_then(|target| brought(target, state));
    let (status, says) = match &brought {
        Some(Brought { code: Ok(_), .. }) => ("200 OK", "Windlass has what it needs."),
        Some(_) => ("200 OK", "Windlass was told that there is no leave."),
        None => ("404 Not Found", "There is nothing here."),
    };
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>Windlass</title>\
         <p>{says} You can close this page.</p>"
    );
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    // Whether the person sees the page is not what matters.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    brought
}

/// What a request's target brings, if it is the one that is waited for.
fn brought(target: &str, state: &str) -> Option<Brought> {
    let url = Url::parse(&format!("http://{}{target}", Ipv4Addr::LOCALHOST)).ok()?;
    if url.path() != PATH {
        return None;
    }
    // A parameter that is there twice could be read in two ways.
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
    Some(Brought { code, issuer })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_with_the_right_state_counts() {
        let code = |issuer: Option<&str>| Brought {
            code: Ok("c".to_owned()),
            issuer: issuer.map(str::to_owned),
        };
        assert_eq!(brought("/callback?code=c&state=s", "s"), Some(code(None)));
        let with_issuer = "/callback?code=c&state=s&iss=https%3A%2F%2Fa.example";
        assert_eq!(
            brought(with_issuer, "s"),
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
            assert_eq!(brought(other, "s"), None, "{other}");
        }
    }

    #[test]
    fn a_refusal_is_told_in_the_guards_words() {
        let target = "/callback?error=access_denied&error_description=no%1b%5b2J%20way&state=s";
        let brought = brought(target, "s").unwrap();
        assert_eq!(brought.code, Err("access_denied: no[2J way".to_owned()));
    }

    #[tokio::test]
    async fn an_idle_connection_does_not_hold_up_the_answer() {
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
        let (brought, ()) = tokio::join!(wait, browser);
        assert_eq!(brought.unwrap().code, Ok("c".to_owned()));
    }

    #[tokio::test]
    async fn a_login_does_not_wait_for_ever() {
        let callback = Callback::open().await.unwrap();
        let brought = callback.wait("s", Duration::from_millis(20)).await;
        assert!(matches!(brought, Err(OAuthError::TooLate(_))));
    }
}
