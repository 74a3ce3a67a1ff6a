//! Tests of the agent `examples/researcher.gram`, bound to the library and run with the embedded tool-caller.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use windlass_core::model::{ChatCall, ChatMessage, FINISH, ModelRequest, RequestedArguments};
use windlass_core::run::CallEnd;
use windlass_reflex::{Reflex, Settings};
use windlass_spec::Agent;
use windlass_tools::{
    BindingMode, BoundTools, BuiltinSettings, FileSettings, HttpSettings, bind, builtin,
    builtin_specifications,
};

use super::super::permits::call;
use super::search::search_at;
use super::server::{MockServer, html};

fn text() -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    std::fs::read_to_string(examples.join("researcher.gram")).unwrap()
}

fn researcher() -> Agent {
    let reading = windlass_spec::read(&text());
    assert!(reading.diagnostics.is_empty(), "{:?}", reading.diagnostics);
    let file = reading.file.unwrap();
    Agent::clone(&file.agents()[0])
}

fn bound(settings: &BuiltinSettings) -> BoundTools {
    bind(&researcher(), &builtin(settings), BindingMode::Exact).unwrap()
}

#[test]
fn the_researcher_declares_the_tools_with_their_attributes() {
    let specifications = builtin_specifications();
    for declared in &bound(&BuiltinSettings::default()) {
        let shipped = specifications
            .iter()
            .find(|tool| tool.name() == declared.name());
        let (shipped, declared) = (
            shipped.unwrap().attributes(),
            declared.specification().attributes(),
        );
        assert_eq!(declared.risk, shipped.risk);
        assert_eq!(declared.category, shipped.category);
        assert_eq!(declared.timeout_seconds, shipped.timeout_seconds);
        // An attribute that the file omits is false.
        for (declared, shipped) in [
            (declared.idempotent, shipped.idempotent),
            (declared.open_world, shipped.open_world),
            (declared.sensitive, shipped.sensitive),
        ] {
            assert_eq!(declared.unwrap_or(false), shipped.unwrap_or(false));
        }
    }
}

#[test]
fn the_researcher_is_in_the_canonical_layout() {
    let text = text();
    let formatted = windlass_gram::format(&windlass_gram::parse(&text));
    assert_eq!(formatted.as_deref(), Some(text.as_str()));
}

/// Runs a task like a run, but without a gate: calls the tools that the tool-caller requests, until it
/// finishes. Returns the called tools and the answer.
async fn run_task(settings: &BuiltinSettings, task: &str) -> (Vec<String>, String) {
    const MAX_TURNS: usize = 6;
    let (agent, bound) = (researcher(), bound(settings));
    let reflex = Reflex::new(Settings::default());
    let mut request = ModelRequest {
        messages: vec![
            Arc::new(ChatMessage::System {
                content: agent.instruction().to_owned(),
            }),
            Arc::new(ChatMessage::User {
                content: task.to_owned(),
            }),
        ],
        tools: bound
            .iter()
            .map(|tool| Arc::clone(tool.specification()))
            .collect(),
    };
    let mut called = Vec::new();
    for turn in 0..MAX_TURNS {
        let answer = reflex.answer(&request);
        let requested = answer.calls.first().unwrap();
        let RequestedArguments::Json(arguments) = requested.arguments.clone() else {
            panic!("{requested:?}");
        };
        if requested.tool == FINISH {
            return (called, arguments["answer"].as_str().unwrap().to_owned());
        }
        let content = match call(bound.get(&requested.tool).unwrap(), arguments.clone()).await {
            CallEnd::Success(Value::String(text)) => text,
            CallEnd::Success(value) => value.to_string(),
            CallEnd::Error(failure) => failure.model_message,
            other => panic!("{other:?}"),
        };
        let id = format!("call_{turn}");
        let asked = ChatMessage::Assistant {
            content: String::new(),
            calls: vec![ChatCall {
                id: id.clone(),
                tool: requested.tool.clone(),
                arguments,
            }],
        };
        let observed = ChatMessage::Tool {
            call_id: id,
            tool: requested.tool.clone(),
            content,
            untrusted: false,
        };
        request.messages.extend([asked, observed].map(Arc::new));
        called.push(requested.tool.clone());
    }
    panic!("no answer after {MAX_TURNS} turns: {called:?}");
}

#[tokio::test]
async fn the_researcher_tells_the_time() {
    let (called, answer) = run_task(&BuiltinSettings::default(), "What time is it in UTC?").await;
    assert_eq!(called, ["get_current_time"]);
    assert!(
        answer.contains("+00:00") && answer.contains("UTC"),
        "{answer}"
    );
    let (_, answer) = run_task(&BuiltinSettings::default(), "What time is it in Tokyo?").await;
    assert!(
        answer.contains("+09:00") && answer.contains("Asia/Tokyo"),
        "{answer}"
    );
}

#[tokio::test]
async fn the_researcher_searches_the_web() {
    let server = MockServer::searxng().await;
    let task = "Search the web for the capital of France";
    let (called, answer) = run_task(&search_at(&server, "/search"), task).await;
    assert_eq!(called, ["web_search"]);
    assert!(
        answer.contains("Paris is the capital of France."),
        "{answer}"
    );
    assert!(answer.contains("https://example.org/about"), "{answer}");
}

#[tokio::test]
async fn the_researcher_reads_pages_and_files() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("plan.txt"), "Lift the load.").unwrap();
    let page = html("<title>Rivers</title><p>The Seine is 777 km long.</p>");
    let server = MockServer::with([("/rivers".to_owned(), page)].into()).await;
    let hosts = HttpSettings::new([server.address.to_string()]).unwrap();
    let settings = BuiltinSettings {
        files: Some(FileSettings::new([directory.path()]).unwrap()),
        http: hosts.allow_private(true),
        ..BuiltinSettings::default()
    };
    let (called, answer) = run_task(&settings, "Read the file plan.txt").await;
    assert_eq!(called, ["read_file"]);
    assert!(answer.contains("Lift the load."), "{answer}");
    let task = format!("Read the page {}", server.url("/rivers"));
    let (called, answer) = run_task(&settings, &task).await;
    assert_eq!(called, ["web_crawl"]);
    assert!(answer.contains("The Seine is 777 km long."), "{answer}");
    let (called, answer) = run_task(&settings, "Which files are there?").await;
    assert_eq!(called, ["list_directory"]);
    assert!(answer.contains("plan.txt"), "{answer}");
}

#[tokio::test]
async fn the_researcher_reports_what_is_not_configured() {
    let task = "Search the web for the capital of France";
    let (called, answer) = run_task(&BuiltinSettings::default(), task).await;
    assert_eq!(called, ["web_search"]);
    assert!(answer.contains("[search] endpoint"), "{answer}");
}
