//! A loopback server with scripted replies, down to the single chunks.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A request that the server received.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    pub(crate) headers: String,
    pub(crate) body: Value,
}

/// The reply to one request.
#[derive(Debug, Clone)]
pub(crate) struct MockReply {
    status: u16,
    headers: Vec<(String, String)>,
    parts: Vec<Part>,
    /// Whether the parts are the whole reply, without a head and chunks of our own.
    is_raw: bool,
    /// Whether the connection takes another request after the reply.
    is_kept: bool,
}

#[derive(Debug, Clone)]
enum Part {
    /// One chunk of the body, which the client reads separately.
    Chunk(Vec<u8>),
    /// The same chunk, until the client disconnects.
    Endless(Vec<u8>),
    /// The same chunk with a pause after each, until the client disconnects.
    Drip(Vec<u8>, Duration),
    /// Nothing, until the client disconnects.
    Silence,
    /// Disconnects in the middle of the body.
    Cut,
}

impl MockReply {
    pub(crate) fn status(status: u16, body: Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            parts: vec![Part::Chunk(body.to_string().into_bytes())],
            is_raw: false,
            is_kept: false,
        }
    }

    pub(crate) fn stream() -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            parts: Vec::new(),
            is_raw: false,
            is_kept: false,
        }
    }

    /// A reply whose parts are sent as they are, from its first byte.
    pub(crate) fn raw() -> Self {
        Self {
            is_raw: true,
            ..Self::stream()
        }
    }

    /// A reply with this status and no body yet.
    pub(crate) fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            ..Self::stream()
        }
    }

    /// Leaves the connection open for the next request.
    pub(crate) fn kept(mut self) -> Self {
        self.is_kept = true;
        self
    }

    /// A whole stream of OpenAI events.
    pub(crate) fn events(events: &[Value]) -> Self {
        events.iter().fold(Self::stream(), Self::event).done()
    }

    /// A whole answer of this text.
    pub(crate) fn text(text: &str) -> Self {
        Self::events(&[delta(json!({"content": text}))])
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn event(self, event: &Value) -> Self {
        self.chunk(format!("data: {event}\n\n").as_bytes())
    }

    pub(crate) fn named_event(self, name: &str, event: &Value) -> Self {
        self.chunk(format!("event: {name}\ndata: {event}\n\n").as_bytes())
    }

    pub(crate) fn done(self) -> Self {
        self.chunk(b"data: [DONE]\n\n")
    }

    pub(crate) fn chunk(self, bytes: &[u8]) -> Self {
        self.part(Part::Chunk(bytes.to_vec()))
    }

    pub(crate) fn endless(self, event: &Value) -> Self {
        self.endless_bytes(format!("data: {event}\n\n").as_bytes())
    }

    pub(crate) fn endless_bytes(self, bytes: &[u8]) -> Self {
        self.part(Part::Endless(bytes.to_vec()))
    }

    pub(crate) fn drip(self, bytes: &[u8], pause: Duration) -> Self {
        self.part(Part::Drip(bytes.to_vec(), pause))
    }

    pub(crate) fn silence(self) -> Self {
        self.part(Part::Silence)
    }

    pub(crate) fn cut(self) -> Self {
        self.part(Part::Cut)
    }

    fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }
}

/// An OpenAI event with this delta.
pub(crate) fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

pub(crate) struct MockServer {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    connections: Arc<AtomicUsize>,
    disconnected: Arc<Notify>,
}

impl MockServer {
    /// Answers each request with the next reply, and repeats the last one.
    pub(crate) async fn start(replies: impl IntoIterator<Item = MockReply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let disconnected = Arc::new(Notify::new());
        let connections = Arc::new(AtomicUsize::new(0));
        let server = Self {
            url,
            requests: Arc::clone(&requests),
            connections: Arc::clone(&connections),
            disconnected: Arc::clone(&disconnected),
        };
        let replies: VecDeque<MockReply> = replies.into_iter().collect();
        let replies = Arc::new(Mutex::new(replies));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (requests, disconnected) = (Arc::clone(&requests), Arc::clone(&disconnected));
                let replies = Arc::clone(&replies);
                tokio::spawn(async move {
                    while let Some(request) = read(&mut stream).await {
                        requests.lock().unwrap().push(request);
                        let reply = next_reply(&mut replies.lock().unwrap());
                        if !serve(&mut stream, reply, &disconnected).await {
                            return;
                        }
                    }
                });
            }
        });
        server
    }

    /// How many connections clients have opened.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until a client disconnects before the end of a reply.
    pub(crate) async fn until_disconnected(&self) {
        self.disconnected.notified().await;
    }
}

fn next_reply(replies: &mut VecDeque<MockReply>) -> MockReply {
    let reply = if replies.len() > 1 {
        replies.pop_front()
    } else {
        replies.front().cloned()
    };
    reply.unwrap()
}

/// Sends a reply. Returns whether the connection takes another request.
async fn serve(stream: &mut TcpStream, reply: MockReply, disconnected: &Notify) -> bool {
    let connection = if reply.is_kept { "keep-alive" } else { "close" };
    let mut head = format!(
        "HTTP/1.1 {} Whatever\r\nconnection: {connection}\r\ntransfer-encoding: chunked\r\n",
        reply.status
    );
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    // A silent reply has no head either, because clients wait for the first byte.
    let has_head = !reply.is_raw && !matches!(reply.parts.first(), Some(Part::Silence));
    if has_head && stream.write_all(head.as_bytes()).await.is_err() {
        return false;
    }
    let framed = |bytes: &[u8]| match reply.is_raw {
        true => bytes.to_vec(),
        false => chunked(bytes),
    };
    for part in &reply.parts {
        match part {
            Part::Chunk(bytes) => {
                if stream.write_all(&framed(bytes)).await.is_err() {
                    disconnected.notify_one();
                    return false;
                }
            }
            Part::Endless(bytes) => {
                let bytes = framed(bytes);
                while stream.write_all(&bytes).await.is_ok() {}
                disconnected.notify_one();
                return false;
            }
            Part::Drip(bytes, pause) => {
                let bytes = framed(bytes);
                while stream.write_all(&bytes).await.is_ok() {
                    tokio::time::sleep(*pause).await;
                }
                disconnected.notify_one();
                return false;
            }
            Part::Silence => {
                let mut byte = [0];
                while matches!(stream.read(&mut byte).await, Ok(1..)) {}
                disconnected.notify_one();
                return false;
            }
            Part::Cut => return false,
        }
    }
    if !reply.is_raw {
        let _ = stream.write_all(b"0\r\n\r\n").await;
    }
    if !reply.is_kept {
        let _ = stream.shutdown().await;
    }
    reply.is_kept
}

fn chunked(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

async fn read(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse::<usize>().ok())?
            });
            let length = length.unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                let body =
                    serde_json::from_slice(&bytes[end + 4..end + 4 + length]).unwrap_or_default();
                let path = head
                    .split_whitespace()
                    .nth(1)
                    .unwrap_or_default()
                    .to_owned();
                return Some(ReceivedRequest {
                    path,
                    headers: head.to_ascii_lowercase(),
                    body,
                });
            }
        }
        let count = stream
            .read(&mut buffer)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
    }
}
