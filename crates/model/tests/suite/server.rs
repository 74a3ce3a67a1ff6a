//! A server on loopback that says exactly what a test wants, down to the chunks it is cut into.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What a client asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: String,
    pub(crate) body: Value,
}

/// What the server does with one request.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
enum Part {
    /// One chunk of the body: the client reads each on its own.
    Chunk(Vec<u8>),
    /// The same chunk, until the client hangs up.
    Endless(Vec<u8>),
    /// Nothing, until the client hangs up.
    Silence,
    /// Hangs up in the middle of the body.
    Cut,
}

impl Reply {
    pub(crate) fn status(status: u16, body: Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            parts: vec![Part::Chunk(body.to_string().into_bytes())],
        }
    }

    pub(crate) fn stream() -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            parts: Vec::new(),
        }
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
        self.part(Part::Endless(format!("data: {event}\n\n").into_bytes()))
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

pub(crate) struct Server {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    hung_up: Arc<Notify>,
}

impl Server {
    /// Gives each request the next reply; the last one from then on.
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let hung_up = Arc::new(Notify::new());
        let server = Self {
            url,
            asked: Arc::clone(&asked),
            hung_up: Arc::clone(&hung_up),
        };
        let mut replies: VecDeque<Reply> = replies.into_iter().collect();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let reply = if replies.len() > 1 {
                    replies.pop_front()
                } else {
                    replies.front().cloned()
                };
                let (asked, hung_up) = (Arc::clone(&asked), Arc::clone(&hung_up));
                tokio::spawn(serve(stream, reply.unwrap(), asked, hung_up));
            }
        });
        server
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Waits until a client hung up on a reply that had not ended.
    pub(crate) async fn until_hung_up(&self) {
        self.hung_up.notified().await;
    }
}

async fn serve(
    mut stream: TcpStream,
    reply: Reply,
    asked: Arc<Mutex<Vec<Asked>>>,
    hung_up: Arc<Notify>,
) {
    let Some(request) = read(&mut stream).await else {
        return;
    };
    asked.lock().unwrap().push(request);
    let mut head = format!(
        "HTTP/1.1 {} Whatever\r\nconnection: close\r\ntransfer-encoding: chunked\r\n",
        reply.status
    );
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    // Without a body there is not even a head: the first byte is what is waited for.
    if !matches!(reply.parts.first(), Some(Part::Silence))
        && stream.write_all(head.as_bytes()).await.is_err()
    {
        return;
    }
    for part in reply.parts {
        match part {
            Part::Chunk(bytes) => {
                if stream.write_all(&chunked(&bytes)).await.is_err() {
                    return hung_up.notify_one();
                }
            }
            Part::Endless(bytes) => {
                while stream.write_all(&chunked(&bytes)).await.is_ok() {}
                return hung_up.notify_one();
            }
            Part::Silence => {
                let mut byte = [0];
                while matches!(stream.read(&mut byte).await, Ok(1..)) {}
                return hung_up.notify_one();
            }
            Part::Cut => return,
        }
    }
    let _ = stream.write_all(b"0\r\n\r\n").await;
    let _ = stream.shutdown().await;
}

fn chunked(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
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
                return Some(Asked {
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
