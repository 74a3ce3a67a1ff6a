//! A mock server with the OpenAI protocol that answers at once: first with a call of the tool, and
//! after the tool result with the answer. It streams if the request asks for it, and
//! gives the answer by the tool `finish` if that is offered. It runs as a process of its own, so that
//! its costs are not measured.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Value, json};

/// The characters of a text or of arguments per streamed chunk.
const CHUNK_LENGTH: usize = 8;

const ANSWER: &str = "Bergen: it rains there on each of the next three days.";

/// The relevant fields of a request.
#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    stream: bool,
    messages: Vec<Message>,
    #[serde(default)]
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
}

#[derive(Deserialize)]
struct Tool {
    function: Named,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// A running server. It stops when this is dropped.
pub struct Server {
    process: Child,
    url: String,
}

impl Server {
    /// Starts this program again as a server.
    pub fn start() -> anyhow::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the server")?;
        let output = process.stdout.take().context("the server has no output")?;
        let mut address = String::new();
        BufReader::new(output).read_line(&mut address)?;
        Ok(Self {
            process,
            url: format!("http://{}/v1", address.trim()),
        })
    }

    /// Its base URL.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Serves until the parent process ends.
pub fn serve() -> anyhow::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    println!("{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            std::thread::spawn(move || answer_all(&connection, |_| {}));
        }
    });
    // Nothing is written to it; it closes when the parent process ends.
    let _ = std::io::stdin().read(&mut [0; 1]);
    Ok(())
}

/// The same server in this process, which keeps the bodies of the requests.
pub struct Recorder {
    url: String,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Recorder {
    /// Starts it. It stops with this process.
    pub fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || {
                    answer_all(&connection, |body| {
                        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                        kept.push(body.to_owned());
                    });
                });
            }
        });
        Ok(Self { url, bodies })
    }

    /// Its base URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The bodies so far.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        let bodies = self.bodies.lock();
        bodies.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn answer_all(connection: &TcpStream, seen: impl Fn(&[u8])) {
    let _ = connection.set_nodelay(true);
    let mut reader = BufReader::new(connection);
    while let Some(body) = read_request(&mut reader) {
        seen(&body);
        let response = match serde_json::from_slice::<Request>(&body) {
            Ok(request) => respond(&request),
            Err(error) => plain(400, &json!({"error": {"message": error.to_string()}})),
        };
        let mut writer = connection;
        if writer.write_all(&response).is_err() {
            return;
        }
    }
}

/// The body of the next request; `None` at the end of the connection.
fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<Vec<u8>> {
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn respond(request: &Request) -> Vec<u8> {
    let is_answered = request
        .messages
        .iter()
        .any(|message| message.role == "tool");
    let has_finish = request
        .tools
        .iter()
        .any(|tool| tool.function.name == "finish");
    let answer = match (is_answered, has_finish) {
        (false, _) => MockAnswer::call("weather", &json!({"city": "Bergen", "days": 3})),
        (true, true) => MockAnswer::call(
            "finish",
            &json!({"answer": ANSWER, "reasoning": "I looked.", "confidence": 0.9}),
        ),
        (true, false) => MockAnswer::Text,
    };
    match request.stream {
        true => streamed(&answer),
        false => whole(&answer),
    }
}

/// The answer of the mock model.
enum MockAnswer {
    Text,
    Call {
        tool: &'static str,
        arguments: String,
    },
}

impl MockAnswer {
    fn call(tool: &'static str, arguments: &Value) -> Self {
        Self::Call {
            tool,
            arguments: arguments.to_string(),
        }
    }

    fn finish_reason(&self) -> &'static str {
        match self {
            Self::Text => "stop",
            Self::Call { .. } => "tool_calls",
        }
    }
}

fn usage() -> Value {
    json!({"prompt_tokens": 120, "completion_tokens": 20, "total_tokens": 140})
}

fn whole(answer: &MockAnswer) -> Vec<u8> {
    let message = match answer {
        MockAnswer::Text => json!({"role": "assistant", "content": ANSWER}),
        MockAnswer::Call { tool, arguments } => json!({
            "role": "assistant",
            "content": null,
            "tool_calls": [{
                "id": "call_1",
                "type": "function",
                "function": {"name": tool, "arguments": arguments},
            }],
        }),
    };
    let body = json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "fake",
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish_reason()}],
        "usage": usage(),
    });
    plain(200, &body)
}

fn plain(status: u16, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} .\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

fn streamed(answer: &MockAnswer) -> Vec<u8> {
    let mut deltas = Vec::new();
    match answer {
        MockAnswer::Text => {
            deltas.push(json!({"role": "assistant", "content": ""}));
            deltas.extend(pieces(ANSWER).map(|piece| json!({"content": piece})));
        }
        MockAnswer::Call { tool, arguments } => {
            deltas.push(
                json!({"role": "assistant", "content": null, "tool_calls": [{
                    "index": 0,
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": tool, "arguments": ""},
                }]}),
            );
            let more = pieces(arguments).map(
                |piece| json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}),
            );
            deltas.extend(more);
        }
    }
    let mut out = String::from(
        "HTTP/1.1 200 .\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    for delta in deltas {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
        put_event(&mut out, &chunk(&json!([choice]), &Value::Null).to_string());
    }
    let choice = json!({"index": 0, "delta": {}, "finish_reason": answer.finish_reason()});
    put_event(&mut out, &chunk(&json!([choice]), &Value::Null).to_string());
    put_event(&mut out, &chunk(&json!([]), &usage()).to_string());
    put_event(&mut out, "[DONE]");
    out.push_str("0\r\n\r\n");
    out.into_bytes()
}

fn chunk(choices: &Value, usage: &Value) -> Value {
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "fake",
        "choices": choices,
        "usage": usage,
    })
}

fn put_event(out: &mut String, data: &str) {
    let event = format!("data: {data}\n\n");
    out.push_str(&format!("{:x}\r\n{event}\r\n", event.len()));
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    // The texts here are ASCII.
    (0..text.len())
        .step_by(CHUNK_LENGTH)
        .map(move |start| &text[start..text.len().min(start + CHUNK_LENGTH)])
}
