//! Comparison with the reference implementation. `tests/data` was made with it; `data/golden.json` came with the
//! vectors.

use serde::Deserialize;
use windlass_embed::{StaticEmbedder, split_identifier, tool_text};

#[derive(Deserialize)]
struct Golden {
    text: String,
    ids: Vec<u32>,
    first8: Vec<f32>,
}

#[derive(Deserialize)]
struct Tokens {
    text: String,
    ids: Vec<u32>,
    first4: Vec<f32>,
    last4: Vec<f32>,
}

#[track_caller]
fn assert_near(found: &[f32], expected: &[f32], text: &str) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() <= 1e-5,
            "{found} is not {expected} in {text:?}"
        );
    }
}

#[test]
fn embeddings_match_the_golden_ones() {
    let golden: Vec<Golden> = serde_json::from_str(include_str!("../../data/golden.json")).unwrap();
    assert_eq!(golden.len(), 8);
    for Golden { text, ids, first8 } in golden {
        assert_eq!(StaticEmbedder::new().token_ids(&text), ids, "{text:?}");
        assert_near(
            &StaticEmbedder::new().embed(&text).as_slice()[..8],
            &first8,
            &text,
        );
    }
}

#[test]
fn tokens_and_embeddings_match_the_reference() {
    // A larger file of the same form may be named, to compare more than is worth committing.
    let file = std::env::var_os("WINDLASS_TOKENS").map_or_else(
        || include_str!("../data/tokens.json").to_owned(),
        |path| std::fs::read_to_string(path).unwrap(),
    );
    let tokens: Vec<Tokens> = serde_json::from_str(&file).unwrap();
    assert!(tokens.len() > 300);
    for Tokens {
        text,
        ids,
        first4,
        last4,
    } in tokens
    {
        assert_eq!(StaticEmbedder::new().token_ids(&text), ids, "{text:?}");
        let embedding = StaticEmbedder::new().embed(&text);
        assert_near(&embedding.as_slice()[..4], &first4, &text);
        assert_near(&embedding.as_slice()[252..], &last4, &text);
    }
}

#[test]
fn identifiers_are_split_as_in_the_reference() {
    let pairs: Vec<(String, String)> =
        serde_json::from_str(include_str!("../data/identifiers.json")).unwrap();
    for (name, words) in pairs {
        assert_eq!(split_identifier(&name), words, "{name:?}");
    }
}

#[test]
fn tool_text_is_the_name_in_words_and_the_description() {
    assert_eq!(
        tool_text("db.getUserName", "Finds a user."),
        "db get User Name. Finds a user."
    );
}
