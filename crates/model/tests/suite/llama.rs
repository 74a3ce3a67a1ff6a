//! Tests against a real llama.cpp server with a real, very small model. `cargo xtask test` starts the
//! server; without it these tests report that they were skipped.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;
use windlass_core::model::{
    ChatMessage, FINISH, ModelErrorKind, ModelRequest, RequestedArguments, RequestedCall,
};
use windlass_model::{Dialect, HostedModel, HostedSettings, ModelClient, ModelEvent};

use super::support::{ask, longer_request, request};

/// More tokens than any test waits for.
const LONG: u32 = 700;

/// Lets one test run at a time, because the server answers one request at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// A server, with the lock to use it.
struct Llama {
    url: String,
    _lock: MutexGuard<'static, ()>,
}

impl Llama {
    fn model(&self, dialect: Dialect, max_output_tokens: u32) -> HostedModel {
        model(&self.url, dialect, max_output_tokens)
    }
}

/// The server that `cargo xtask test` started.
async fn llama() -> Option<Llama> {
    let url = variable("WINDLASS_LLAMA_URL")?;
    Some(Llama {
        url,
        _lock: ONE_AT_A_TIME.lock().await,
    })
}

fn variable(name: &str) -> Option<String> {
    static REPORTED: Once = Once::new();
    let value = std::env::var(name).ok();
    if value.is_none() {
        // Directly to standard error, because the test harness would capture it.
        REPORTED.call_once(|| {
            let message = format!(
                "SKIPPED: tests against a real llama.cpp server, because {name} is not set; \
                 `cargo xtask test` runs them."
            );
            let _ = writeln!(std::io::stderr(), "{message}");
        });
    }
    value
}

/// A server that a test can kill.
struct OwnServer {
    child: Child,
    url: String,
}

impl OwnServer {
    fn start() -> Option<Self> {
        let python = variable("WINDLASS_LLAMA_PYTHON")?;
        let model = variable("WINDLASS_LLAMA_MODEL")?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/llama_server.py");
        let mut child = Command::new(python)
            .args([script, &model])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        assert!(url.starts_with("http://"), "the server did not start");
        Some(Self { child, url })
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn model(url: &str, dialect: Dialect, max_output_tokens: u32) -> HostedModel {
    let settings = HostedSettings {
        dialect,
        base_url: Some(url.to_owned()),
        temperature: Some(0.0),
        max_output_tokens: Some(max_output_tokens),
        first_wait: Duration::from_millis(1),
        ..HostedSettings::default()
    };
    HostedModel::with_variables(&"llama/smollm2".parse().unwrap(), settings, &|_| None).unwrap()
}

fn asking(text: &str) -> ModelRequest {
    let content = text.to_owned();
    ModelRequest {
        messages: vec![ChatMessage::User { content }.into()],
        ..request()
    }
}

/// A conversation that leads the model to write a call as text.
fn with_calls_as_text() -> ModelRequest {
    let mut messages = Vec::new();
    for subject in ["Python", "Java"] {
        let call = format!("{{\"name\": \"search\", \"arguments\": {{\"query\": \"{subject}\"}}}}");
        messages.push(ChatMessage::User {
            content: format!("What is {subject}?"),
        });
        messages.push(ChatMessage::Assistant {
            content: call,
            calls: Vec::new(),
        });
    }
    messages.push(ChatMessage::User {
        content: "What is Rust?".to_owned(),
    });
    ModelRequest {
        messages: messages.into_iter().map(Into::into).collect(),
        ..request()
    }
}

/// Whether a call is one that the schema of the structured dialect allows.
fn matches_schema(call: &RequestedCall) -> bool {
    let RequestedArguments::Json(arguments) = &call.arguments else {
        return false;
    };
    let is_sure = |confidence: Option<f64>| confidence.is_some_and(|c| (0.0..=1.0).contains(&c));
    match call.tool.as_str() {
        "search" => arguments["query"].is_string() && is_sure(call.confidence),
        FINISH => {
            arguments["answer"].is_string()
                && arguments["reasoning"].is_string()
                && is_sure(arguments["confidence"].as_f64())
        }
        _ => false,
    }
}

#[tokio::test]
async fn text_is_emitted_in_many_pieces_and_usage_at_the_end() {
    let Some(llama) = llama().await else { return };
    let model = llama.model(Dialect::Native, 24);
    let outcome = ask(&model, &request()).await;
    let answer = outcome.answer.unwrap();
    let (last, pieces) = outcome.events.split_last().unwrap();
    assert!(pieces.len() > 5, "{pieces:?}");
    let emitted: String = pieces
        .iter()
        .map(|event| match event {
            ModelEvent::Text { text } => text.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(emitted, answer.text);
    let usage = answer.usage;
    assert_eq!(*last, ModelEvent::Usage { usage });
    assert!(usage.input_tokens > 5, "{usage:?}");
    assert!((6..=24).contains(&usage.output_tokens), "{usage:?}");
}

#[tokio::test]
async fn requests_with_tools_and_past_calls_are_answered() {
    let Some(llama) = llama().await else { return };
    for request in [request(), longer_request()] {
        let model = llama.model(Dialect::Native, 24);
        let answer = ask(&model, &request).await.answer.unwrap();
        assert!(
            !answer.text.trim().is_empty() || !answer.calls.is_empty(),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn the_structured_dialect_constrains_the_model_to_a_call() {
    let Some(llama) = llama().await else { return };
    let model = llama.model(Dialect::Structured, 250);
    let outcome = ask(&model, &request()).await;
    let answer = outcome.answer.unwrap();
    assert!(
        answer.calls.len() == 1 && matches_schema(&answer.calls[0]),
        "{answer:?}"
    );
    assert_eq!(answer.text, "");
    let is_text = |event: &ModelEvent| matches!(event, ModelEvent::Text { .. });
    assert!(!outcome.events.iter().any(is_text), "{:?}", outcome.events);
}

#[tokio::test]
async fn auto_becomes_structured_with_a_model_that_writes_its_calls_as_text() {
    let Some(llama) = llama().await else { return };
    let model = llama.model(Dialect::Auto, 200);
    let request = with_calls_as_text();
    let first = ask(&model, &request).await.answer.unwrap();
    assert_eq!(first.calls.len(), 1, "{first:?}");
    assert_eq!(first.calls[0].tool, "search");
    // It imitates the conversation, which does not match the schema.
    assert!(!matches_schema(&first.calls[0]), "{first:?}");
    let second = ask(&model, &request).await.answer.unwrap();
    assert!(
        second.calls.len() == 1 && matches_schema(&second.calls[0]),
        "{second:?}"
    );
}

#[tokio::test]
async fn a_call_truncated_by_the_token_limit_is_an_error() {
    let Some(llama) = llama().await else { return };
    for limit in [2, 20] {
        let model = llama.model(Dialect::Structured, limit);
        let error = ask(&model, &request()).await.answer.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Malformed);
        let advice = "Allow more output tokens";
        assert!(error.message.contains(advice), "{error}");
    }
}

#[tokio::test]
async fn a_conversation_beyond_the_context_is_too_long() {
    let Some(llama) = llama().await else { return };
    let model = llama.model(Dialect::Native, 1);
    let request = asking(&"a long story ".repeat(1500));
    let error = ask(&model, &request).await.answer.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::ContextTooLong, "{error}");
}

#[tokio::test]
async fn cancelling_during_the_stream_returns_at_once_and_frees_the_server() {
    let Some(llama) = llama().await else { return };
    let cancel = CancellationToken::new();
    let mut events = Vec::new();
    let mut emit = |_| {
        events.push(Instant::now());
        if events.len() == 11 {
            cancel.cancel();
        }
    };
    let model = llama.model(Dialect::Native, LONG);
    let story = asking("Write a very long story about a ship.");
    let error = model.answer(&story, &cancel, &mut emit).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Cancelled);
    let cancelled = events[10];
    // Measured by the model's own speed, so that a busy machine does not matter.
    let rest = (cancelled - events[0]) / 10 * (LONG - 11);
    let returned = cancelled.elapsed();
    assert!(returned < rest / 10, "{returned:?}, {rest:?}");
    let next = llama.model(Dialect::Native, 1);
    ask(&next, &asking("Hello.")).await.answer.unwrap();
    let answered = cancelled.elapsed();
    assert!(answered < rest / 2, "{answered:?}, {rest:?}");
}

#[tokio::test]
async fn a_server_killed_during_the_stream_is_an_error_with_advice() {
    let Some(mut server) = OwnServer::start() else {
        return;
    };
    let _lock = ONE_AT_A_TIME.lock().await;
    let model = model(&server.url, Dialect::Native, LONG);
    let story = asking("Write a very long story about a ship.");
    let mut events = 0;
    let mut emit = |_| {
        events += 1;
        if events == 3 {
            server.child.kill().unwrap();
        }
    };
    let cancel = CancellationToken::new();
    let error = model.answer(&story, &cancel, &mut emit).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Malformed, "{error}");
    let message = "The connection to llama was lost before the answer was complete. Try again;";
    assert!(error.message.starts_with(message), "{error}");

    let error = ask(&model, &story).await.answer.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable, "{error}");
    assert!(
        error.message.ends_with("Check that the server is running."),
        "{error}"
    );
}
