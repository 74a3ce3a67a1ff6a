//! The index is compared with a plain search through all content.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const TURN: Turn = Turn::FIRST;

fn content(texts: &[String], unfiltered: usize, limit: usize) -> UntrustedContent {
    let mut content = UntrustedContent::default();
    for text in texts {
        content.add_within(unfiltered, limit, TURN, &json!([[text, 7]]));
    }
    content
}

/// Who writes untrusted content can choose the names of fields.
#[test]
fn names_of_fields_are_content() {
    let mut content = UntrustedContent::default();
    content.add(TURN, &json!({"found": [{"eve@example.com": true}]}));
    assert!(content.taints(&json!("eve@example.com"), "", &[]));
    assert!(!content.taints(&json!({"found": "ada@example.com"}), "", &[]));
}

/// Whether a text occurs in the content, found the slow way.
fn occurs(texts: &[String], wanted: &str) -> bool {
    let all: String = texts.iter().map(|text| format!("{text}\n7\n")).collect();
    wanted.len() >= MIN_TAINTED_LENGTH && all.contains(wanted)
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[ab7é\n]{0,12}", 0..12)
}

/// A text of its own, or a part of the others.
fn wanted(texts: &[String]) -> impl Strategy<Value = String> + use<> {
    let all: String = texts.iter().map(|text| format!("{text}\n7\n")).collect();
    let all: Vec<char> = all.chars().collect();
    prop_oneof![
        "[abc7é\n]{0,8}".boxed(),
        (0..=all.len(), 0..10_usize)
            .prop_map(move |(from, length)| all[from..].iter().take(length).collect::<String>())
            .boxed(),
    ]
}

proptest! {
    #[test]
    fn below_the_cap_it_finds_exactly_what_a_plain_search_finds(
        (texts, wanted) in texts().prop_flat_map(|texts| (Just(texts.clone()), wanted(&texts))),
        unfiltered in 0..40_usize,
    ) {
        let content = content(&texts, unfiltered, MAX_CONTENT);
        let wanted = wanted.trim();
        prop_assert_eq!(content.taints(&json!([wanted]), "", &[]), occurs(&texts, wanted));
        prop_assert!(!content.taints(&json!([wanted]), "", &[wanted]));
    }

    #[test]
    fn beyond_the_cap_it_misses_nothing(
        (texts, wanted) in texts().prop_flat_map(|texts| (Just(texts.clone()), wanted(&texts))),
        unfiltered in 0..10_usize,
        limit in 10..60_usize,
    ) {
        let content = content(&texts, unfiltered, limit);
        let wanted = wanted.trim();
        if occurs(&texts, wanted) {
            prop_assert!(content.taints(&json!([wanted]), "", &[]));
        }
        prop_assert!(content.kept.len() <= limit);
    }
}

#[test]
fn beyond_the_cap_a_text_that_was_never_read_is_not_tainted() {
    let content = content(&["the password is swordfish".to_owned()], 0, 0);
    assert!(content.is_kept_no_more);
    assert!(content.taints(&json!("swordfish"), "", &[]));
    assert!(!content.taints(&json!("carp and trout"), "", &[]));
}

#[test]
fn content_of_the_turns_that_have_not_ended_counts() {
    let content = UntrustedContent::default();
    assert!(content.taints(&json!("swordfish"), "a swordfish", &[]));
    assert_eq!(content.first(), None);
}
