//! The formatter: it changes only blanks, is idempotent, and writes the canonical layout.

use proptest::prelude::*;
use windlass_gram::{SyntaxTree, TokenKind, format, parse};

use super::texts::{Random, Writer, mutate};

fn significant_tokens<'t>(tree: &'t SyntaxTree<'_>) -> Vec<(TokenKind, &'t str)> {
    (0..tree.tokens().len())
        .map(|index| (tree.tokens()[index].kind, tree.token_text(index).trim_end()))
        .filter(|(kind, _)| *kind != TokenKind::Whitespace)
        .collect()
}

fn check_layout(text: &str) {
    let tree = parse(text);
    let Some(formatted) = format(&tree) else {
        assert!(!tree.is_valid());
        return;
    };
    let again = parse(&formatted);
    assert!(
        again.is_valid(),
        "{text:?}\nbecame\n{formatted}\n{:?}",
        again.diagnostics()
    );
    assert_eq!(
        significant_tokens(&tree),
        significant_tokens(&again),
        "{text:?}\nbecame\n{formatted}"
    );
    assert_eq!(
        format(&again).as_deref(),
        Some(&*formatted),
        "not idempotent: {text:?}"
    );
    let has_trailing_blank = formatted.split('\n').any(|line| line.ends_with(' '));
    let is_from_input = text.contains(" \n") || text.contains("```") || text.contains('\r');
    assert!(!has_trailing_blank || is_from_input, "{formatted:?}");
}

#[test]
fn formatting_keeps_every_token_and_comment_and_is_idempotent() {
    for seed in 0..8_000 {
        let text = Writer::document(seed);
        check_layout(&text);
        check_layout(&mutate(&text, &mut Random::new(seed)));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_printed_and_formatted(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert_eq!(windlass_gram::print(&parse(&text)), text.as_ref());
        check_layout(&text);
    }

    #[test]
    fn quoted_texts_are_read_back(text in "\\PC*|[ /*`\"\n\\\\a]*") {
        let Some(quoted) = windlass_gram::quote(&text) else {
            return Ok(());
        };
        let source = std::format!("({{k: {quoted}}}) /** */ // ```");
        let tree = parse(&source);
        prop_assert!(tree.is_valid(), "{}", source);
        let Some(windlass_gram::Item::Path(path)) = tree.document().items().next() else {
            return Err(TestCaseError::fail("a path"));
        };
        let record = path.nodes().next().and_then(|node| node.subject().record());
        let value = record.and_then(|record| record.get("k")?.value());
        let word = value.as_ref().and_then(|value| value.data.as_word());
        prop_assert_eq!(word, Some(&*text));
    }

    #[test]
    fn quoted_names_are_read_back(name in "\\PC*|[ /*`a.1-]*") {
        let Some(quoted) = windlass_gram::quote_name(&name) else {
            return Ok(());
        };
        let source = std::format!("({quoted})");
        let tree = parse(&source);
        prop_assert!(tree.is_valid(), "{}", source);
        let Some(windlass_gram::Item::Path(path)) = tree.document().items().next() else {
            return Err(TestCaseError::fail("a path"));
        };
        let read = path.nodes().next().and_then(|node| node.subject().identifier());
        prop_assert_eq!(read.as_ref().map(|name| &*name.text), Some(&*name));
    }
}

#[test]
fn the_canonical_layout() {
    let text = r#"
// A file of one agent.
{kind:"agents",version:"1"}


[weather_desk:Agent{description:"Answers questions about the forecast",instruction:```
  Call the tool.
  ```,model:"OpenAI/gpt-4o-mini"}|
[lookup:Tool{description:"Fetches the forecast of one city",risk:reversible}|(city::String)==>(days :: Int{default:3})==>(::String)], // the only one

/** Runs after it. */ other, (a)-[:THEN]->(b)] (x {r : 1 .. 5, open: 3 ..., tags: [ a, "b", 3 ]})- -> (y)
@ k ( 1 ) @j({a:1}) (z) @@n:L   [ | a ]
[long:Tool {description: "A tool whose signature is much too long to stand on one line of the file"} | (firstParameter::String)==>(secondParameter::String {default: "something"})==>(thirdParameter::Int)==>(::String)]
"#;
    insta::assert_snapshot!(format(&parse(text)).unwrap());
}
