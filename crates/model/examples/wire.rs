//! The processor time that a hosted model costs: reading a stream, and sending the next turn of a long
//! conversation. A thread plays the server; only the client's thread is measured.
//!
//! `cargo run --release -p windlass-model --example wire`

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_core::model::{ChatCall, ChatMessage, ModelRequest};
use windlass_model::{Dialect, HostedModel, HostedSettings, ModelClient as _};
use windlass_spec::{NonEmptyText, Signature, ToolName, ToolSpecification};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let text = openai((0..2000).map(|_| json!({"content": " word"})));
    let thought = openai((0..2000).map(|_| json!({"reasoning_content": "a \"quoted\" line\n"})));
    let arguments = std::iter::once(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "search", "arguments": "{\"query\": \""}}]}))
        .chain((0..4000).map(|_| json!({"tool_calls": [{"index": 0, "function": {"arguments": "some words "}}]})))
        .chain([json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"}"}}]})]);
    let arguments = openai(arguments);
    runtime.block_on(async {
        for (name, stream, events) in [
            ("text deltas", text, 2000),
            ("thought deltas with escapes", thought, 2000),
            ("argument deltas", arguments, 4000),
        ] {
            let nanoseconds = streams("OpenAI/m", stream, &request(0, 0)).await?;
            report(name, nanoseconds / events, "ns per event");
        }
        let calls = anthropic(4000);
        let nanoseconds = streams("Anthropic/claude-m", calls, &request(0, 0)).await?;
        report(
            "Anthropic argument deltas",
            nanoseconds / 4000,
            "ns per event",
        );
        for (turns, tools) in [(2, 4), (50, 4), (200, 4), (800, 4), (50, 40)] {
            let nanoseconds = conversation(turns, tools).await?;
            let name = format!("turn after {turns} turns, {tools} tools");
            report(&name, nanoseconds / 1000, "us per turn");
        }
        Ok(())
    })
}

fn report(name: &str, number: u64, unit: &str) {
    let _ = writeln!(std::io::stdout(), "{name:40} {number:8} {unit}");
}

/// The processor time of reading an answer.
async fn streams(model: &str, stream: String, request: &ModelRequest) -> Outcome<u64> {
    let model = hosted(model, stream)?;
    ask(&model, request).await?;
    let before = processor_time()?;
    for _ in 0..20 {
        ask(&model, request).await?;
    }
    Ok((processor_time()? - before) / 20)
}

/// The processor time of one more turn, of a conversation that grows by each.
async fn conversation(turns: usize, tools: usize) -> Outcome<u64> {
    let model = hosted("OpenAI/m", openai([json!({"content": "Yes."})].into_iter()))?;
    let mut request = request(turns, tools);
    ask(&model, &request).await?;
    let mut spent = 0;
    for turn in turns..turns + 50 {
        request.messages.extend(turn_messages(turn).map(Arc::new));
        let before = processor_time()?;
        ask(&model, &request).await?;
        spent += processor_time()? - before;
    }
    Ok(spent / 50)
}

fn request(turns: usize, tools: usize) -> ModelRequest {
    let mut messages = vec![
        ChatMessage::System {
            content: "You are helpful. ".repeat(100),
        },
        ChatMessage::User {
            content: "What is Rust?".to_owned(),
        },
    ];
    messages.extend((0..turns).flat_map(turn_messages));
    let tools = (0..tools).map_while(|number| tool(number).ok()).collect();
    ModelRequest {
        messages: messages.into_iter().map(Arc::new).collect(),
        tools,
    }
}

fn turn_messages(turn: usize) -> [ChatMessage; 2] {
    let id = format!("call_{turn}_0");
    [
        ChatMessage::Assistant {
            content: "I look for it.".to_owned(),
            calls: vec![ChatCall {
                id: id.clone(),
                tool: "search".to_owned(),
                arguments: json!({"query": format!("number {turn}"), "limit": 3}),
            }],
        },
        ChatMessage::Tool {
            call_id: id,
            tool: "search".to_owned(),
            content: "{\"title\": \"A line of a result\", \"body\": \"Some words.\"}\n".repeat(18),
            untrusted: false,
        },
    ]
}

fn tool(number: usize) -> Outcome<Arc<ToolSpecification>> {
    Ok(Arc::new(ToolSpecification::new(
        ToolName::new(format!("tool_{number}"))?,
        NonEmptyText::new("Looks for something in the place that it is for.")?,
        Signature::parse("(query: Text, limit: Maybe Int, kind: Maybe Text) --> IO Text")
            .map_err(|_| "the signature is not valid")?,
    )))
}

fn hosted(model: &str, stream: String) -> Outcome<HostedModel> {
    let settings = HostedSettings {
        base_url: Some(serve(stream)?),
        dialect: Dialect::Native,
        time_limit: Duration::from_secs(60),
        ..HostedSettings::default()
    };
    let keys = |name: &str| {
        name.ends_with("_API_KEY")
            .then(|| "key-of-this-example".to_owned())
    };
    Ok(HostedModel::with_variables(
        &model.parse()?,
        settings,
        &keys,
    )?)
}

async fn ask(model: &HostedModel, request: &ModelRequest) -> Outcome<()> {
    model
        .answer(request, &CancellationToken::new(), &mut |_| {})
        .await?;
    Ok(())
}

/// The processor time of this thread, in nanoseconds.
fn processor_time() -> Outcome<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().unwrap_or_default().parse()?)
}

fn openai(deltas: impl Iterator<Item = Value>) -> String {
    let mut stream: String = deltas
        .map(|delta| {
            let event = json!({"id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion.chunk",
                               "created": 1_741_569_952, "model": "m", "service_tier": "default", "system_fingerprint": "fp_44709d6fcb",
                               "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]});
            format!("data: {event}\n\n")
        })
        .collect();
    stream.push_str("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    stream
}

fn anthropic(count: usize) -> String {
    let event = |name: &str, event: Value| format!("event: {name}\ndata: {event}\n\n");
    let mut stream = event(
        "message_start",
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 20, "output_tokens": 1}}}),
    );
    let block = json!({"type": "tool_use", "id": "t1", "name": "search", "input": {}});
    stream += &event(
        "content_block_start",
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
    );
    let delta = |text: &str| {
        let delta = json!({"type": "input_json_delta", "partial_json": text});
        event(
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        )
    };
    stream += &delta("{\"query\": \"");
    stream += &delta("some words ").repeat(count);
    stream += &delta("\"}");
    stream += &event(
        "content_block_stop",
        json!({"type": "content_block_stop", "index": 0}),
    );
    stream += &event("message_stop", json!({"type": "message_stop"}));
    stream
}

/// A server that answers every request with the same stream.
fn serve(stream: String) -> Outcome<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/v1/", listener.local_addr()?);
    let mut reply = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        stream.len()
    );
    reply.push_str(&stream);
    let reply: Arc<str> = reply.into();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let reply = Arc::clone(&reply);
            std::thread::spawn(move || answer(connection, &reply));
        }
    });
    Ok(url)
}

fn answer(mut connection: TcpStream, reply: &str) {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let length = head.and_then(|end| {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let (_, rest) = head.split_once("content-length: ")?;
            let length: usize = rest.lines().next()?.trim().parse().ok()?;
            Some(end + 4 + length)
        });
        match length {
            Some(length) if bytes.len() >= length => {
                bytes.drain(..length);
                if connection.write_all(reply.as_bytes()).is_err() {
                    return;
                }
            }
            _ => match connection.read(&mut buffer) {
                Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
                _ => return,
            },
        }
    }
}
