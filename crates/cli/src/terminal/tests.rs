use proptest::prelude::*;
use windlass_spec::text::{CharacterClass, class_of};

use super::*;

/// Texts with many characters and sequences that control a terminal.
pub(super) fn any_text() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        prop::sample::select(vec![
            "a",
            "m",
            "[",
            ";",
            "8",
            "\n",
            "\t",
            "\r",
            "\u{7}",
            "\u{8}",
            "\u{1b}",
            "\u{1b}[31m",
            "\u{1b}[8m",
            "\u{1b}[0;8m",
            "\u{1b}[38;2;8;8;8m",
            "\u{1b}[2J",
            "\u{1b}]0;x\u{7}",
            "\u{9b}2J",
            "\u{61c}",
            "\u{202e}",
            "\u{2028}",
            "\u{2029}",
            "\u{e0041}",
            "\u{200d}",
            "\u{fe0f}",
            "😀",
            "\u{e000}",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
        (0x80_u32..0xA0)
            .prop_filter_map("a character", char::from_u32)
            .prop_map(String::from),
    ];
    prop::collection::vec(pieces, 0..20).prop_map(|pieces| pieces.concat())
}

/// Whether no character of a text moves the cursor, changes the order or is invisible, except line breaks,
/// tabs and the joiners of emoji and scripts.
pub(super) fn is_harmless(text: &str) -> bool {
    text.chars().all(|c| match class_of(c) {
        Some(CharacterClass::Control) => matches!(c, '\n' | '\t'),
        Some(
            CharacterClass::LineSeparator
            | CharacterClass::Bidirectional
            | CharacterClass::Tag
            | CharacterClass::PrivateUse,
        ) => false,
        _ => true,
    }) && windlass_spec::text::is_clean(text, TextUse::Display)
}

/// A text without the sequences that set colours.
pub(super) fn without_colors(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::new();
    while let Some(at) = rest.find("\u{1b}[") {
        let (before, sequence) = rest.split_at(at);
        plain.push_str(before);
        let end = sequence.find('m').map_or(2, |end| end + 1);
        let numbers = sequence[2..end].trim_end_matches('m');
        assert!(
            numbers.chars().all(|c| c.is_ascii_digit() || c == ';'),
            "{text:?}"
        );
        rest = &sequence[end..];
    }
    plain + rest
}

proptest! {
    #[test]
    fn printed_text_cannot_control_a_terminal(text in any_text()) {
        prop_assert!(is_harmless(&visible(&text)), "{:?}", text);
        let line = visible_line(&text);
        prop_assert!(is_harmless(&line) && !line.contains(['\n', '\t']), "{:?}", text);
        let json = serde_json::json!({ "text": text }).to_string();
        prop_assert!(is_harmless(&escape_json(&json, TextUse::Display)), "{:?}", text);
        let drawn = styled(&text);
        prop_assert!(is_harmless(&without_colors(&drawn)), "{:?}: {:?}", text, drawn);
    }

    #[test]
    fn styling_escaped_text_changes_nothing(text in any_text()) {
        let shown = visible(&text);
        prop_assert_eq!(styled(&shown), shown);
    }
}

#[test]
fn colors_are_kept_and_other_sequences_are_escaped() {
    let colored = "\u{1b}[1m\u{1b}[38;2;8;88;8merror\u{1b}[0m: x";
    assert_eq!(styled(colored), colored);
    assert_eq!(styled("\u{1b}[8mx"), "\\u{1b}[8mx");
    assert_eq!(styled("\u{1b}[2J\u{1b}"), "\\u{1b}[2J\\u{1b}");
    assert_eq!(styled("\u{1b}]0;x\u{7}"), "\\u{1b}]0;x\\u{7}");
}
