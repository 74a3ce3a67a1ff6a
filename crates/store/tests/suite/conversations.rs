//! Conversations are kept and found again.

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
fn a_conversation_is_replaced_by_what_it_became() {
    let (_directory, store) = open();
    assert_eq!(store.conversation("c1").unwrap(), None);
    let mut kept = conversation("c1", 1);
    store.save_conversation(&kept).unwrap();
    kept.messages.push(ChatMessage::Assistant {
        content: "Hi".to_owned(),
        calls: Vec::new(),
    });
    store.save_conversation(&kept).unwrap();
    assert_eq!(store.conversation("c1").unwrap(), Some(kept));
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
