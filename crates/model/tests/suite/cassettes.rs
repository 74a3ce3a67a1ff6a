//! Recording and replaying of cassettes.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_core::model::{ChatMessage, ModelAnswer, ModelErrorKind, ModelRequest, Usage};
use windlass_model::{
    CassetteError, ModelClient, ModelError, RecordingModel, ReplayModel, ScriptedModel, Scrubber,
};
use windlass_spec::Money;

use super::support::{ask, call, longer_request, request};

/// A file in memory that a test can read while it is written.
#[derive(Clone, Default)]
struct MemoryFile(Arc<Mutex<Vec<u8>>>);

impl MemoryFile {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn answer() -> ModelAnswer {
    ModelAnswer {
        text: "Let me look.".to_owned(),
        thought: Some("Hm.".to_owned()),
        calls: vec![call("search", json!({"query": "rust", "weight": 0.1}))],
        usage: Usage {
            input_tokens: 3,
            output_tokens: 4,
            microdollars: Some(Money::from_microdollars(5)),
            ..Usage::default()
        },
        ..ModelAnswer::default()
    }
}

fn limited() -> ModelError {
    let retry_after = Some(Duration::from_millis(1500));
    ModelError {
        retry_after,
        ..ModelError::new(ModelErrorKind::RateLimited, "Slow down.")
    }
}

async fn recorded(scrubber: Scrubber, requests: &[ModelRequest]) -> String {
    let tape = MemoryFile::default();
    let model = ScriptedModel::outcomes([Ok(answer()), Err(limited()), Ok(answer())]);
    let model = RecordingModel::to_writer(model, Box::new(tape.clone()), scrubber);
    for request in requests {
        let _ = ask(&model, request).await;
    }
    tape.text()
}

#[tokio::test]
async fn a_replay_has_the_same_events_and_records_the_same_bytes() {
    let requests = [request(), longer_request(), request()];
    let first = recorded(Scrubber::default(), &requests).await;
    let replay = ReplayModel::from_text(&first, Scrubber::default()).unwrap();
    let tape = MemoryFile::default();
    let again = RecordingModel::to_writer(replay, Box::new(tape.clone()), Scrubber::default());
    let script = ScriptedModel::outcomes([Ok(answer()), Err(limited()), Ok(answer())]);
    for request in &requests {
        let (replayed, original) = (ask(&again, request).await, ask(&script, request).await);
        assert_eq!(
            (replayed.answer, replayed.events),
            (original.answer, original.events)
        );
    }
    assert_eq!(tape.text(), first);
    assert_eq!(first.lines().count(), 3);
}

#[tokio::test]
async fn secrets_are_not_recorded_and_ignored_in_a_replay() {
    let with_secret = |secret: &str| {
        let mut request = request();
        let content = format!("Use {secret} and sk-live-0123456789.");
        let message = ChatMessage::User { content };
        request.messages.push(message.into());
        request
    };
    let old = Scrubber::new(["the-old-secret".to_owned()]);
    let tape = recorded(old, &[with_secret("the-old-secret")]).await;
    assert!(tape.contains("Use [redacted] and [redacted]."), "{tape}");
    assert!(!tape.contains("the-old-secret") && !tape.contains("sk-live"));
    let new = Scrubber::new(["the-new-secret".to_owned()]);
    let replay = ReplayModel::from_text(&tape, new).unwrap();
    assert_eq!(
        ask(&replay, &with_secret("the-new-secret")).await.answer,
        Ok(answer())
    );
}

#[tokio::test]
async fn a_different_request_is_refused_and_consumes_no_exchange() {
    let tape = recorded(Scrubber::default(), &[longer_request()]).await;
    let replay = ReplayModel::from_text(&tape, Scrubber::default()).unwrap();
    let mut other = longer_request();
    other.messages[3] = ChatMessage::Tool {
        call_id: "call_1_0".to_owned(),
        tool: "search".to_owned(),
        content: "A lathe.".to_owned(),
        untrusted: false,
    }
    .into();
    let mut fewer = longer_request();
    fewer.messages.pop();
    let mut without_tools = longer_request();
    without_tools.tools.clear();
    let mut messages = Vec::new();
    for request in [&other, &fewer, &without_tools] {
        messages.push(ask(&replay, request).await.answer.unwrap_err().message);
    }
    assert_eq!(replay.remaining(), 1);
    assert_eq!(ask(&replay, &longer_request()).await.answer, Ok(answer()));
    messages.push(
        ask(&replay, &longer_request())
            .await
            .answer
            .unwrap_err()
            .message,
    );
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn an_invalid_cassette_is_refused_with_its_line() {
    let error = ReplayModel::from_text("\n{\"request\": {}}\n", Scrubber::default()).unwrap_err();
    assert!(
        matches!(error, CassetteError::Line { line: 2, .. }),
        "{error}"
    );
    let error = ReplayModel::open("/nowhere/at/all.jsonl".as_ref()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot use the cassette /nowhere/at/all.jsonl: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_write_error_of_a_recording_fails_the_request() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let model = RecordingModel::to_writer(
        ScriptedModel::answers([answer()]),
        Box::new(Full),
        Scrubber::default(),
    );
    let error = ask(&model, &request()).await.answer.unwrap_err();
    assert_eq!(
        error.message,
        "The model's answer could not be recorded: no storage space."
    );
}

#[tokio::test]
async fn a_script_answers_in_order_and_then_fails() {
    let script = ScriptedModel::answers([answer()]);
    assert_eq!(ask(&script, &request()).await.answer, Ok(answer()));
    let error = ask(&script, &longer_request()).await.answer.unwrap_err();
    assert_eq!(error.message, "The script has only 1 answers.");
    assert_eq!(script.requests(), [request(), longer_request()]);

    let echo: Arc<dyn ModelClient> = Arc::new(ScriptedModel::function(|request| {
        Ok(ModelAnswer {
            text: request.messages.len().to_string(),
            ..ModelAnswer::default()
        })
    }));
    assert_eq!(ask(&*echo, &request()).await.answer.unwrap().text, "2");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = echo
        .answer(&request(), &cancel, &mut |_| {})
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Cancelled);
}

#[tokio::test]
async fn what_was_learned_since_makes_no_difference_to_a_replay() {
    let with = |learned: &str| {
        let mut request = request();
        let content = format!("You look things up.{learned}\n\nNo tool here does this:\n- paint");
        let message = ChatMessage::System { content };
        request.messages.insert(0, message.into());
        request
    };
    let learned = "\n\nWhat worked before for tasks like this:\n- Search first.\n- Then finish.";
    for (before, since) in [("", learned), (learned, "")] {
        let tape = recorded(Scrubber::default(), &[with(before)]).await;
        // The recording keeps what the model saw.
        assert_eq!(tape.contains("Search first."), !before.is_empty());
        let replay = ReplayModel::from_text(&tape, Scrubber::default()).unwrap();
        let other = ask(&replay, &with("\n\nSay nothing.")).await;
        assert!(other.answer.is_err(), "another instruction");
        assert_eq!(ask(&replay, &with(since)).await.answer, Ok(answer()));
    }
}
