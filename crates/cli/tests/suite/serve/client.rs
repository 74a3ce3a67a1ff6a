//! A client that can also send what a well-behaved client would not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// How long a test waits for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Vec<u8>>,
}

/// An answer.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Request {
    pub(super) fn new(method: &'static str, path: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            headers: Vec::new(),
            body: None,
        }
    }

    pub(super) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    pub(super) fn post(path: &str, body: &Value) -> Self {
        Self::new("POST", path).with_body(body.to_string())
    }

    pub(super) fn with_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self.header("Content-Type", "application/json")
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn token(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    /// The bytes of the request.
    pub(super) fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !self.has("host") {
            head += &format!("Host: {address}\r\n");
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if let (Some(body), false) = (&self.body, self.has("content-length")) {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "Connection: close\r\n\r\n";
        let mut bytes = head.into_bytes();
        bytes.extend(self.body.iter().flatten());
        bytes
    }

    fn has(&self, name: &str) -> bool {
        self.headers
            .iter()
            .any(|(given, _)| given.eq_ignore_ascii_case(name))
    }

    pub(super) fn send(&self, address: SocketAddr) -> Answer {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        self.send_over(stream, address)
    }

    /// Sends it over a connection that was made before.
    pub(super) fn send_over(&self, mut stream: impl Read + Write, address: SocketAddr) -> Answer {
        // A server that refuses a body does not read all of it.
        let _ = stream.write_all(&self.bytes(address));
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Answer::parse(&answer)
            .unwrap_or_else(|| panic!("no answer to {} {}", self.method, self.path))
    }
}

impl Answer {
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        Some(Self {
            status,
            headers: headers.collect(),
            body: body.to_owned(),
        })
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find_map(|(found, value)| (found == name).then_some(value.as_str()))
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a problem document or of an error of OpenAI's API, which has all that one needs and nothing that it
    /// must not have.
    pub(super) fn problem(&self) -> String {
        let problem = self.json();
        let code = match self.header("content-type") {
            Some("application/problem+json") => {
                assert_eq!(problem["status"], self.status, "{self:?}");
                let code = problem["code"].as_str().unwrap().to_owned();
                assert_eq!(problem["type"], format!("urn:windlass:problem:{code}"));
                code
            }
            kind => {
                assert_eq!(kind, Some("application/json"), "{self:?}");
                assert!(problem["error"]["message"].is_string(), "{self:?}");
                problem["error"]["code"].as_str().unwrap().to_owned()
            }
        };
        for leaked in ["/tmp", "SELECT", "sqlite", "windlass.db", "windlass_"] {
            assert!(!self.body.contains(leaked), "{leaked}: {self:?}");
        }
        code
    }

    /// The JSON of the server-sent events before `[DONE]`, which is the last one.
    pub(super) fn chunks(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"));
        // The body has its pieces with their lengths.
        let lines = self.body.lines();
        let mut data: Vec<&str> = lines
            .filter_map(|line| line.strip_prefix("data: "))
            .collect();
        assert_eq!(data.pop(), Some("[DONE]"), "{self:?}");
        let parse = |text: &str| serde_json::from_str(text).unwrap();
        data.into_iter().map(parse).collect()
    }
}
