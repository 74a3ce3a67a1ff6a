//! A body that was built from the turn before is the same as one that was built anew.

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_core::model::ChatCall;

use super::*;

const MODELS: [&str; 4] = [
    "OpenAI/m",
    "OpenAI/gpt-5-codex",
    "Anthropic/claude",
    "Google/gemini-3-pro",
];

fn builder(model: &str) -> BodyBuilder {
    let key = |_: &str| Some("key".to_owned());
    let url = Some("http://127.0.0.1/v1");
    let variables = |name: &str| key(name).filter(|_| name.ends_with("_API_KEY"));
    let endpoint = Endpoint::resolve(&model.parse().unwrap(), url, &variables).unwrap();
    BodyBuilder::new(Arc::new(endpoint))
}

fn body(builder: &BodyBuilder, messages: &[ChatMessage]) -> Bytes {
    let request = ModelRequest {
        messages: messages.iter().cloned().map(Arc::new).collect(),
        tools: Vec::new(),
    };
    let settings = HostedSettings::default();
    let prepared = builder.build(&request, Form::Native, &settings).unwrap();
    prepared.body
}

fn message() -> impl Strategy<Value = ChatMessage> {
    let text = "[ab\"\n]{0,3}";
    prop_oneof![
        1 => text.prop_map(|content| ChatMessage::System { content }),
        2 => text.prop_map(|content| ChatMessage::User { content }),
        3 => (text, 0_usize..3).prop_map(|(content, calls)| ChatMessage::Assistant {
            content,
            calls: (0..calls)
                .map(|number| ChatCall {
                    id: format!("c{number}"),
                    tool: "search".to_owned(),
                    arguments: json!({"number": number}),
                })
                .collect(),
        }),
        4 => (text, 0_usize..2).prop_map(|(content, call)| ChatMessage::Tool {
            call_id: format!("c{call}"),
            tool: "search".to_owned(),
            content,
            untrusted: false,
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_body_does_not_depend_on_the_requests_before(
        histories in proptest::collection::vec((0_usize..12, proptest::collection::vec(message(), 0..4)), 1..8),
    ) {
        for model in MODELS {
            let kept = builder(model);
            let mut messages: Vec<ChatMessage> = Vec::new();
            for (keep, more) in &histories {
                messages.truncate(*keep);
                messages.extend_from_slice(more);
                let built = body(&kept, &messages);
                prop_assert_eq!(&built, &body(&builder(model), &messages));
                let json: Value = serde_json::from_slice(&built).unwrap();
                prop_assert!(json.is_object());
            }
        }
    }
}

#[test]
fn a_growing_conversation_is_written_once() {
    let kept = builder("OpenAI/m");
    let mut messages = vec![
        ChatMessage::System {
            content: "s".repeat(1000),
        },
        ChatMessage::User {
            content: "t".repeat(1000),
        },
    ];
    body(&kept, &messages);
    for turn in 0..20 {
        messages.push(ChatMessage::User {
            content: format!("{turn}"),
        });
        let before = kept.lock()[0].list.len();
        body(&kept, &messages);
        let conversations = kept.lock();
        assert_eq!(conversations.len(), 1);
        assert!(conversations[0].list.len() - before < 100);
    }
}

#[test]
fn runs_at_the_same_time_keep_their_own_and_the_oldest_is_dropped() {
    let kept = builder("OpenAI/m");
    let system = ChatMessage::System {
        content: "s".to_owned(),
    };
    let task = |number: usize| ChatMessage::User {
        content: format!("task {number}"),
    };
    for number in 0..MOST_CONVERSATIONS + 4 {
        body(&kept, &[system.clone(), task(number)]);
    }
    assert_eq!(kept.lock().len(), MOST_CONVERSATIONS);
    let large = ChatMessage::User {
        content: "x".repeat(MOST_BYTES),
    };
    body(&kept, &[system, large]);
    assert!(kept.lock().is_empty());
}
