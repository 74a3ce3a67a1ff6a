//! Tests of stored conversations.

use windlass_core::model::ChatMessage;
use windlass_store::StoredConversation;

use super::support::{at, id, open};

fn conversation(name: &str, second: i64) -> StoredConversation {
    StoredConversation {
        id: name.to_owned(),
        tenant: "acme".to_owned(),
        principal: "ada".to_owned(),
        agent: "helper".to_owned(),
        runs: vec![id("r1"), id("r2")],
        messages: vec![ChatMessage::User {
            content: "Hello".to_owned(),
        }],
        updated_at: at(second),
    }
}

#[test]
fn saving_a_conversation_replaces_the_earlier_version() {
    let (_directory, store) = open();
    assert_eq!(store.conversation("c1").unwrap(), None);
    let mut saved = conversation("c1", 1);
    store.save_conversation(&saved).unwrap();
    saved.messages.push(ChatMessage::Assistant {
        content: "Hi".to_owned(),
        calls: Vec::new(),
    });
    store.save_conversation(&saved).unwrap();
    assert_eq!(store.conversation("c1").unwrap(), Some(saved));
}

#[test]
fn the_latest_conversation_with_an_agent_is_found() {
    let (_directory, store) = open();
    for (name, second) in [("c1", 1), ("c3", 3), ("c2", 2)] {
        store
            .save_conversation(&conversation(name, second))
            .unwrap();
    }
    assert_eq!(
        store.latest_conversation("helper").unwrap().unwrap().id,
        "c3"
    );
    assert_eq!(store.latest_conversation("nobody").unwrap(), None);
}
