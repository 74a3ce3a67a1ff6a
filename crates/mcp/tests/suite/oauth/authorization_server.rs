//! A protected server and its authorization server, on one loopback port. It implements the necessary HTTP,
//! issues tokens by the rules, and records the requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use windlass_spec::server::{HttpTransport, OAuth, ServerName, ServerSettings, Transport};

/// Deviations from the usual behaviour.
#[derive(Clone)]
pub(crate) struct ServerBehaviour {
    /// Whether it publishes OAuth metadata.
    pub(crate) publishes_metadata: bool,
    /// The authorization endpoint, if not its own `/authorize`.
    pub(crate) login_page: Option<String>,
    /// The token endpoint, if not its own `/token`.
    pub(crate) token_endpoint: Option<String>,
    /// The authorization servers of the server, if not itself.
    pub(crate) authorization_servers: Option<Vec<String>>,
    /// The issuer in the authorization response, if not its own.
    pub(crate) response_issuer: Option<String>,
    /// The error that it returns instead of a code.
    pub(crate) error: Option<&'static str>,
    /// The lifetime of its tokens in seconds.
    pub(crate) token_seconds: u64,
    /// Whether it accepts refresh tokens.
    pub(crate) accepts_refresh: bool,
    pub(crate) grants: &'static [&'static str],
    /// The only scope it grants, if it does not grant all.
    pub(crate) granted_scope: Option<&'static str>,
}

impl Default for ServerBehaviour {
    fn default() -> Self {
        Self {
            publishes_metadata: true,
            login_page: None,
            token_endpoint: None,
            authorization_servers: None,
            response_issuer: None,
            error: None,
            token_seconds: 3600,
            accepts_refresh: true,
            grants: &["authorization_code", "refresh_token"],
            granted_scope: None,
        }
    }
}

/// A request that it received.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    pub(crate) parameters: HashMap<String, String>,
    pub(crate) authorization: Option<String>,
    pub(crate) body: String,
}

struct State {
    behaviour: ServerBehaviour,
    requests: Vec<ReceivedRequest>,
    challenge: String,
    tokens: u32,
}

/// The protected server and its authorization server.
#[derive(Clone)]
pub(crate) struct MockAuthorizationServer {
    pub(crate) base: String,
    state: Arc<Mutex<State>>,
}

impl MockAuthorizationServer {
    pub(crate) async fn start(behaviour: ServerBehaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            base: format!("http://{}", listener.local_addr().unwrap()),
            state: Arc::new(Mutex::new(State {
                behaviour,
                requests: Vec::new(),
                challenge: String::new(),
                tokens: 0,
            })),
        };
        let served = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let served = served.clone();
                tokio::spawn(async move { served.serve(stream).await });
            }
        });
        server
    }

    /// The settings of the server, without a client id.
    pub(crate) fn settings(&self) -> ServerSettings {
        self.settings_with(OAuth::default())
    }

    pub(crate) fn settings_with(&self, oauth: OAuth) -> ServerSettings {
        let transport = Transport::Http(HttpTransport {
            url: format!("{}/mcp", self.base),
            headers: Default::default(),
            oauth: Some(oauth),
        });
        ServerSettings::new(ServerName::new("files").unwrap(), transport)
    }

    pub(crate) fn configure(&self, change: impl FnOnce(&mut ServerBehaviour)) {
        change(&mut self.state.lock().unwrap().behaviour);
    }

    /// The requests for a path, in order.
    pub(crate) fn requests(&self, path: &str) -> Vec<ReceivedRequest> {
        let state = self.state.lock().unwrap();
        let request = state.requests.iter().filter(|request| request.path == path);
        request.cloned().collect()
    }

    /// The challenge for a request without a valid token.
    pub(crate) fn challenge(&self) -> String {
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", self.base);
        format!("Bearer resource_metadata=\"{metadata}\", scope=\"read\"")
    }

    /// The challenge for a request whose token lacks `scope`.
    pub(crate) fn insufficient_scope(&self, scope: &str) -> String {
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", self.base);
        format!(
            "Bearer error=\"insufficient_scope\", scope=\"{scope}\", resource_metadata=\"{metadata}\""
        )
    }

    async fn serve(&self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        let mut chunk = [0; 4096];
        let (head, mut body) = loop {
            let Ok(read @ 1..) = stream.read(&mut chunk).await else {
                return;
            };
            bytes.extend_from_slice(&chunk[..read]);
            let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
                break (head, bytes.split_off(end + 4));
            }
        };
        let header = |name: &str| {
            head.lines().find_map(|line| {
                let (key, value) = line.split_once(": ")?;
                key.eq_ignore_ascii_case(name).then(|| value.to_owned())
            })
        };
        let length = header("content-length").map_or(0, |length| length.parse().unwrap());
        while body.len() < length {
            let read = stream.read(&mut chunk).await.unwrap();
            body.extend_from_slice(&chunk[..read]);
        }
        let target = head.split(' ').nth(1).unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let body = String::from_utf8(body).unwrap();
        let form = match header("content-type").as_deref() {
            Some("application/x-www-form-urlencoded") => body.as_str(),
            _ => query,
        };
        let request = ReceivedRequest {
            path: path.to_owned(),
            parameters: parameters(form),
            authorization: header("authorization"),
            body: body.clone(),
        };
        let (status, header, answer) = self.answer(&request);
        self.state.lock().unwrap().requests.push(request);
        let text = format!(
            "HTTP/1.1 {status} x\r\n{header}Content-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{answer}",
            answer.len()
        );
        let _ = stream.write_all(text.as_bytes()).await;
    }

    fn answer(&self, request: &ReceivedRequest) -> (u16, String, String) {
        let json = |value: Value| (200, String::new(), value.to_string());
        let base = &self.base;
        let mut state = self.state.lock().unwrap();
        let behaviour = state.behaviour.clone();
        let path = request.path.as_str();
        if path.starts_with("/.well-known/") && !behaviour.publishes_metadata {
            return (404, String::new(), String::new());
        }
        match path {
            "/mcp" => {
                let challenge = self.challenge();
                (
                    401,
                    format!("WWW-Authenticate: {challenge}\r\n"),
                    String::new(),
                )
            }
            "/.well-known/oauth-protected-resource/mcp" => json(json!({
                "resource": format!("{base}/mcp"),
                "authorization_servers": behaviour.authorization_servers.unwrap_or(vec![base.clone()]),
            })),
            "/.well-known/oauth-authorization-server" => json(json!({
                "issuer": base,
                "authorization_endpoint":
                    behaviour.login_page.unwrap_or(format!("{base}/authorize")),
                "token_endpoint": behaviour.token_endpoint.unwrap_or(format!("{base}/token")),
                "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"],
                "grant_types_supported": behaviour.grants,
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
                "authorization_response_iss_parameter_supported": true,
            })),
            "/register" => {
                let registration: Value = serde_json::from_str(&request.body).unwrap();
                json(json!({
                    "client_id": "registered",
                    "client_secret": "made-up-secret",
                    "redirect_uris": registration["redirect_uris"],
                }))
            }
            "/authorize" => {
                let given = &request.parameters;
                assert_eq!(given["code_challenge_method"], "S256");
                assert_eq!(given["resource"], format!("{base}/mcp"));
                state.challenge = given["code_challenge"].clone();
                let outcome = match behaviour.error {
                    Some(error) => format!("error={error}"),
                    None => "code=the-code".to_owned(),
                };
                let issuer = behaviour.response_issuer.unwrap_or(base.clone());
                let (back, known) = (&given["redirect_uri"], &given["state"]);
                let location = format!("{back}?{outcome}&state={known}&iss={issuer}");
                (302, format!("Location: {location}\r\n"), String::new())
            }
            "/token" => self.token(&mut state, request),
            _ => (404, String::new(), String::new()),
        }
    }

    fn token(&self, state: &mut State, request: &ReceivedRequest) -> (u16, String, String) {
        let given = &request.parameters;
        let bad = |error: &str| (400, String::new(), json!({ "error": error }).to_string());
        assert_eq!(given["resource"], format!("{}/mcp", self.base));
        let is_good = match given["grant_type"].as_str() {
            "authorization_code" => {
                let digest = Sha256::digest(given["code_verifier"].as_bytes());
                given["code"] == "the-code" && base64url(&digest) == state.challenge
            }
            // Only the last one that was issued, once.
            "refresh_token" => {
                let last = format!("refresh-{}", state.tokens);
                state.behaviour.accepts_refresh && given["refresh_token"] == last
            }
            grant => state.behaviour.grants.contains(&grant),
        };
        if !is_good {
            return bad("invalid_grant");
        }
        state.tokens += 1;
        let mut answer = json!({
            "access_token": format!("access-{}", state.tokens),
            "token_type": "Bearer",
            "expires_in": state.behaviour.token_seconds,
        });
        if given["grant_type"] != "client_credentials" {
            answer["refresh_token"] = json!(format!("refresh-{}", state.tokens));
        }
        if let Some(scope) = state.behaviour.granted_scope {
            answer["scope"] = json!(scope);
        }
        (200, String::new(), answer.to_string())
    }
}

fn parameters(form: &str) -> HashMap<String, String> {
    let url = reqwest::Url::parse(&format!("http://x/?{form}")).unwrap();
    let pairs = url.query_pairs();
    pairs
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
        .collect()
}

fn base64url(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let group = three
            .iter()
            .fold(0_u32, |group, byte| (group << 8) | u32::from(*byte));
        let group = group << (8 * (3 - three.len()));
        for index in 0..=three.len() {
            let letter = (group >> (18 - 6 * index)) & 63;
            text.push(char::from(LETTERS[letter as usize]));
        }
    }
    text
}
