//! Tests of stored conversations.

use windlass_core::approval::{Principal, TenantPrincipal};
use windlass_core::model::ChatMessage;
use windlass_spec::NonEmptyText;
use windlass_store::{Error, StoredConversation};

use super::support::{at, id, open};

fn user() -> TenantPrincipal {
    user_of("acme", "ada")
}

fn user_of(tenant: &str, principal: &str) -> TenantPrincipal {
    TenantPrincipal::new(
        NonEmptyText::new(tenant).unwrap(),
        Principal::new(principal).unwrap(),
    )
}

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
        open: Vec::new(),
        updated_at: at(second),
    }
}

#[test]
fn saving_a_conversation_replaces_the_earlier_version() {
    let (_directory, store) = open();
    assert_eq!(store.conversation(&user(), "c1").unwrap(), None);
    let mut saved = conversation("c1", 1);
    store.save_conversation(&saved).unwrap();
    saved.messages.push(ChatMessage::Assistant {
        content: "Hi".to_owned(),
        calls: Vec::new(),
    });
    store.save_conversation(&saved).unwrap();
    assert_eq!(store.conversation(&user(), "c1").unwrap(), Some(saved));
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
        store
            .latest_conversation(&user(), "helper")
            .unwrap()
            .unwrap()
            .id,
        "c3"
    );
    assert_eq!(store.latest_conversation(&user(), "nobody").unwrap(), None);
}

#[test]
fn a_conversation_belongs_to_one_user() {
    let (_directory, store) = open();
    store.save_conversation(&conversation("c1", 1)).unwrap();
    for (tenant, principal) in [("acme", "bob"), ("other", "ada")] {
        let other = user_of(tenant, principal);
        assert_eq!(store.conversation(&other, "c1").unwrap(), None);
        assert_eq!(store.latest_conversation(&other, "helper").unwrap(), None);
        let mut forged = conversation("c1", 2);
        forged.tenant = tenant.to_owned();
        forged.principal = principal.to_owned();
        forged.messages.clear();
        let refused = store.save_conversation(&forged).unwrap_err();
        assert!(matches!(refused, Error::ConversationExists(_)), "{refused}");
    }
    let kept = store.conversation(&user(), "c1").unwrap().unwrap();
    assert_eq!(kept, conversation("c1", 1));
}

#[test]
fn conversations_are_listed_by_page_and_deleted_by_their_user() {
    let (_directory, store) = open();
    for (name, second) in [("c1", 1), ("c2", 3), ("c3", 2)] {
        let saved = conversation(name, second);
        store.save_conversation(&saved).unwrap();
    }
    let listed = |limit, after| -> Vec<String> {
        let listed = store.conversations(&user(), None, limit, after).unwrap();
        listed.into_iter().map(|found| found.id).collect()
    };
    assert_eq!(listed(10, None), ["c2", "c3", "c1"]);
    assert_eq!(listed(2, None), ["c2", "c3"]);
    assert_eq!(listed(2, Some("c3")), ["c1"]);
    assert_eq!(listed(2, Some("unknown")), [""; 0]);
    let other = store.conversations(&user(), Some("another"), 10, None);
    assert_eq!(other.unwrap(), []);

    let other = user_of("acme", "bob");
    assert!(!store.delete_conversation(&other, "c3").unwrap());
    assert!(store.delete_conversation(&user(), "c3").unwrap());
    assert!(!store.delete_conversation(&user(), "c3").unwrap());
    assert_eq!(listed(10, None), ["c2", "c1"]);
}
