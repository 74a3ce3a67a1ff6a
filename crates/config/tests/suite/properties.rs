//! Loading never panics, for any input.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;
use windlass_config::{load, schema, starter};

use super::project;

const PARTS: [&str; 24] = [
    "environment",
    "=",
    "\"qa\"",
    "\n",
    "[",
    "]",
    "[[",
    "]]",
    ".",
    "{",
    "}",
    ",",
    "5",
    "-1",
    "1e400",
    "categories",
    "web_tools",
    "tools",
    "permissions",
    "\"crm:read\"",
    "true",
    "ceilings",
    "'",
    "\u{feff}",
];

static SCHEMA: LazyLock<jsonschema::Validator> =
    LazyLock::new(|| jsonschema::validator_for(&schema()).unwrap());

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_mutated_file_never_panics(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..20, prop::sample::select(PARTS.to_vec())), 1..6)
    ) {
        let mut text: Vec<char> = starter().chars().collect();
        for (at, length, part) in cuts {
            let at = at.index(text.len());
            let end = (at + length).min(text.len());
            text.splice(at..end, part.chars());
        }
        let text: String = text.into_iter().collect();
        match load(&[project(&text)], [], &[]) {
            Err(mistakes) => {
                prop_assert!(mistakes.iter().any(windlass_config::ConfigMistake::is_error));
                for mistake in mistakes {
                    prop_assert!(!mistake.message.is_empty(), "{mistake}");
                }
            }
            // A file that loads is valid by the schema.
            Ok(_) => {
                let json = json!(toml::from_str::<toml::Table>(&text).unwrap());
                prop_assert!(SCHEMA.is_valid(&json), "{}", text);
            }
        }
    }

    #[test]
    fn parts_in_any_order_never_panic(parts in prop::collection::vec(prop::sample::select(PARTS.to_vec()), 0..40)) {
        let text = parts.join(" ");
        if let Ok(loaded) = load(&[project(&text)], [], std::slice::from_ref(&text)) {
            let _ = loaded.configuration.entries();
        }
    }

    #[test]
    fn flags_and_variables_never_panic(key in "[a-z_.\"*=\\[]{0,20}", value in ".{0,20}") {
        let flag = format!("{key}={value}");
        let variable = (format!("WINDLASS_CONFIG__{key}"), value);
        let _ = load(&[], [variable], &[flag]);
    }
}

#[test]
fn deep_nesting_is_refused_without_a_stack_overflow() {
    for text in [
        format!("x = {}", "[".repeat(100_000)),
        format!("x = {}1{}", "[".repeat(5_000), "]".repeat(5_000)),
        format!("{}x = 1", "a.".repeat(5_000)),
        format!("[{}x]", "a.".repeat(5_000)),
        format!("x = {}", "{ a = ".repeat(5_000)),
    ] {
        assert!(load(&[project(&text)], [], &[]).is_err());
    }
    let flag = format!("{}x=1", "a.".repeat(100_000));
    assert!(load(&[], [], &[flag]).is_err());
}
