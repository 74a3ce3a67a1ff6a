//! Tests that no secret reaches the disk.

use proptest::prelude::*;
use serde_json::json;
use windlass_core::model::{ChatMessage, ModelAnswer, Usage};
use windlass_core::run::{CallEnd, Event, RunEnd};
use windlass_spec::{CallId, ErrorCategory, Turn};
use windlass_store::{Durability, Error, Options, Redactor, Store, StoredConversation};

use super::support::{answered, asked, at, contains, file_bytes, id, new_run, started};

fn open_with(secrets: &[String]) -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        redactor: Redactor::new(secrets),
        ..Options::default()
    };
    let store = Store::open_with(directory.path().join("windlass.db"), options).unwrap();
    (directory, store)
}

fn escaped(text: &str) -> String {
    let quoted = json!(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Events with a secret in every kind of text field.
fn events_with(secret: &str, before: &str, after: &str) -> Vec<Event> {
    let text = format!("{before}{secret}{after}");
    let first = started("r1", &text);
    let run = windlass_core::run::Run::fold([&first]).unwrap();
    let nested = json!({ "inner": text }).to_string();
    let nested = json!({ "outer": nested, "inner": text }).to_string();
    let value = json!({ "list": [text, 7, null], (text.clone()): { "deep": nested } });
    let call = CallId {
        run: id("r1"),
        turn: Turn::FIRST,
        index: 0,
    };
    let answer = ModelAnswer {
        text: text.clone(),
        thought: Some(nested.clone()),
        ..ModelAnswer::default()
    };
    vec![
        first,
        answered(&run, vec![asked(&text, value.clone())], 1),
        Event::ModelAnswered {
            turn: Turn::FIRST,
            answer,
            at: at(2),
        },
        Event::CallEnded {
            call,
            end: CallEnd::Success(value),
            usage: Usage::default(),
            calls: 0,
            ran: None,
            tainted: false,
            at: at(3),
        },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_secret_occurs_in_the_bytes_of_the_files(
        secrets in prop::collection::vec(r#"[A-Za-z0-9_/+="\\.-]{3}[0-9A-Z]{5}[A-Za-z0-9_/+="\\.-]{0,30}[0-9a-z]"#, 1..4),
        before in "[a-z \"\\\\]{0,8}",
        after in "[a-z \"\\\\]{0,8}",
    ) {
        let (_directory, store) = open_with(&secrets);
        let events = events_with(&secrets[0], &before, &after);
        let journal = store.start(new_run(), &events[0], Durability::Synced).unwrap();
        for secret in &secrets {
            for event in &events_with(secret, &before, &after)[1..] {
                journal.append(event, Durability::Relaxed).unwrap();
            }
        }
        let last = secrets.last().unwrap();
        let message = format!("{before}{last}{after}");
        store.save_conversation(&StoredConversation {
            id: "c1".to_owned(),
            tenant: "acme".to_owned(),
            principal: "ada".to_owned(),
            agent: "helper".to_owned(),
            runs: vec![id("r1")],
            messages: vec![ChatMessage::User { content: message.clone() }],
            open: Vec::new(),
            updated_at: at(9),
        }).unwrap();
        journal.end(&RunEnd::Failed { category: ErrorCategory::Internal, message }).unwrap();

        let bytes = file_bytes(&store);
        for secret in &secrets {
            // Unescaped, and escaped in one, two and three layers of JSON.
            let mut form = secret.clone();
            for _ in 0..4 {
                prop_assert!(!contains(&bytes, &form), "{form}");
                form = escaped(&form);
            }
        }
        prop_assert!(contains(&bytes, "[redacted]"));
        prop_assert_eq!(store.events(&id("r1")).unwrap().len(), 1 + 3 * secrets.len());
        drop(journal);
        drop(store);
    }

    #[test]
    fn an_event_without_secrets_is_stored_unchanged(text in ".{0,60}") {
        let redactor = Redactor::new(["sk-0123456789abcdef"]);
        for event in events_with(&text, "", "") {
            prop_assert_eq!(redactor.event(event.clone()).unwrap().into_event(), event);
        }
    }
}

#[test]
fn a_numeric_secret_is_redacted_in_numbers() {
    let redactor = Redactor::new(["73108842"]);
    let call = CallId {
        run: id("r1"),
        turn: Turn::FIRST,
        index: 0,
    };
    let end = CallEnd::Success(json!({ "code": 73_108_842, "count": 3 }));
    let event = Event::CallEnded {
        call: call.clone(),
        end,
        usage: Usage::default(),
        calls: 0,
        ran: None,
        tainted: false,
        at: at(0),
    };
    let Event::CallEnded {
        end: CallEnd::Success(value),
        ..
    } = redactor.event(event.clone()).unwrap().into_event()
    else {
        panic!()
    };
    assert_eq!(value, json!({ "code": "[redacted]", "count": 3 }));
}

#[test]
fn a_secret_like_a_timestamp_or_count_leaves_the_event_readable() {
    // Part of the microseconds of `at`, and a number of tokens.
    let redactor = Redactor::new(["123456", "100000"]);
    let mut answer = ModelAnswer {
        text: "it is 100000".to_owned(),
        ..ModelAnswer::default()
    };
    answer.usage.input_tokens = 100_000;
    let time = windlass_spec::Timestamp::from_microseconds(1_760_000_000_123_456);
    let event = Event::ModelAnswered {
        turn: Turn::FIRST,
        answer,
        at: time,
    };
    let Event::ModelAnswered { answer, at, .. } =
        redactor.event(event.clone()).unwrap().into_event()
    else {
        panic!()
    };
    assert_eq!(
        (answer.text.as_str(), answer.usage.input_tokens),
        ("it is [redacted]", 100_000)
    );
    assert_eq!(at, time);
}

#[test]
fn an_event_with_a_secret_in_its_structure_is_refused() {
    // The secret is a key in the JSON of an agent.
    let (_directory, store) = open_with(&["instruction".to_owned()]);
    let error = store
        .start(new_run(), &started("r1", "x"), Durability::Synced)
        .unwrap_err();
    assert!(matches!(error, Error::SecretInStructure), "{error}");
    assert!(matches!(store.events(&id("r1")), Err(Error::NoSuchRun(_))));
}

#[test]
fn short_secrets_are_ignored_and_debug_output_shows_none() {
    let redactor = Redactor::new(["", "   ", "abc", "redacted", "sk-0123456789"]);
    assert_eq!(
        redactor.text("abc sk-0123456789 redacted"),
        "abc [redacted] redacted"
    );
    assert!(!format!("{redactor:?}").contains("sk-"));
}

#[test]
fn the_longer_of_two_secrets_is_replaced_whole() {
    let redactor = Redactor::new(["sk-abcdef", "sk-abcdef-and-more"]);
    assert_eq!(
        redactor.text("sk-abcdef-and-more sk-abcdef"),
        "[redacted] [redacted]"
    );
}
