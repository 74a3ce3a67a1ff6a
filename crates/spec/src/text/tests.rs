use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const USES: [TextUse; 4] = [
    TextUse::Name,
    TextUse::Exact,
    TextUse::Display,
    TextUse::Model,
];

/// Code points that must never be displayed without suitable neighbours, with their classes.
const DANGEROUS: [(u32, u32, CharacterClass); 27] = {
    use CharacterClass::{
        Bidirectional, Control, Format, LineSeparator, PrivateUse, Tag, VariationSelector,
        ZeroWidth,
    };
    [
        (0x00, 0x08, Control),
        (0x0B, 0x1F, Control),
        (0x7F, 0x9F, Control),
        (0xAD, 0xAD, Format),
        (0x034F, 0x034F, ZeroWidth),
        (0x061C, 0x061C, Bidirectional),
        (0x115F, 0x1160, ZeroWidth),
        (0x17B4, 0x17B5, ZeroWidth),
        (0x180B, 0x180D, VariationSelector),
        (0x180E, 0x180E, Format),
        (0x180F, 0x180F, VariationSelector),
        (0x200B, 0x200D, ZeroWidth),
        (0x200E, 0x200F, Bidirectional),
        (0x2028, 0x2029, LineSeparator),
        (0x202A, 0x202E, Bidirectional),
        (0x2061, 0x2065, Format),
        (0x2066, 0x2069, Bidirectional),
        (0x206A, 0x206F, Format),
        (0x3164, 0x3164, ZeroWidth),
        (0xFE00, 0xFE0F, VariationSelector),
        (0xFEFF, 0xFEFF, ZeroWidth),
        (0xFFF9, 0xFFFB, Format),
        (0x1BCA0, 0x1BCA3, Format),
        (0x1D173, 0x1D17A, Format),
        (0xE0000, 0xE00FF, Tag),
        (0xE0100, 0xE01EF, VariationSelector),
        (0x10FFFE, 0x10FFFF, PrivateUse),
    ]
};

#[test]
fn dangerous_characters_are_hidden_in_every_use() {
    for (first, last, class) in DANGEROUS {
        for c in (first..=last).filter_map(char::from_u32) {
            assert_eq!(class_of(c), Some(class), "{c:?}");
            assert!(is_hidden(c), "{c:?}");
            let text = format!("a{c}b");
            for text_use in USES {
                assert!(!is_clean(&text, text_use), "{c:?} in {text_use:?}");
                let expected = format!("a{}b", c.escape_unicode());
                assert_eq!(escape(&text, text_use), expected);
                assert_eq!(strip(&text, text_use), "ab");
            }
        }
    }
}

#[test]
fn the_table_in_the_module_documentation_is_correct() {
    // Name, exact, display, model.
    let rows = [
        ("a\nb", [false, true, true, true]),
        ("a\tb", [false, false, true, true]),
        ("a\r\nb", [false, false, false, true]),
        ("❤\u{FE0F}", [true, false, true, true]),
        ("1\u{FE0F}\u{20E3}", [true, false, true, true]),
        ("👨\u{200D}👩\u{200D}👧", [false, false, true, true]),
        ("می\u{200C}خواهم", [false, false, true, true]),
        ("ᠮᠣᠩᠭᠣᠯ\u{180B}", [false, false, true, true]),
        ("⠗\u{2800}⠑", [false, false, true, true]),
        ("שלום\u{200E}", [false, false, false, true]),
        ("النص\u{61C}", [false, false, false, true]),
        ("葛\u{E0100}", [false, false, false, true]),
        (
            "🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
            [false, false, false, true],
        ),
        ("שלום\u{202E}", [false; 4]),
        ("a\u{E000}", [false; 4]),
        ("a\u{FDD0}", [false; 4]),
        ("a\u{378}", [true, false, false, true]),
        ("\u{1FAFF}", [true, false, true, true]),
        ("a\u{A0}b\u{202F}c\u{3000}d", [true, false, true, true]),
        ("\u{0600}1", [true, false, true, true]),
        ("Zürich 東京 🙂 naïve — “x” ≤ π", [true; 4]),
    ];
    for (text, expected) in rows {
        let passes = USES.map(|text_use| is_clean(text, text_use));
        assert_eq!(passes, expected, "{text:?}");
    }
}

#[test]
fn clean_text_is_not_copied() {
    let text = "Zürich\n東京";
    assert!(matches!(escape(text, TextUse::Exact), Cow::Borrowed(_)));
    assert!(matches!(strip(text, TextUse::Model), Cow::Borrowed(_)));
}

#[test]
fn escape_line_escapes_line_feeds_and_tabs() {
    assert_eq!(
        escape_line("a\nb\tc\u{85}", TextUse::Display),
        "a\\u{a}b\\u{9}c\\u{85}"
    );
}

#[test]
fn descriptions_name_the_hidden_characters() {
    let described = |text: &str| {
        let span = hidden_spans(text, TextUse::Model).next();
        span.map(|span| describe_hidden(span.class, &text[span.start..span.end]))
    };
    assert_eq!(described("a\u{200B}").as_deref(), Some("⟨U+200B⟩"));
    assert_eq!(described("\u{8}\u{8}").as_deref(), Some("⟨BS ×2⟩"));
    assert_eq!(
        described("\u{E0068}\u{E0069}").as_deref(),
        Some("⟨tags: hi⟩")
    );
    assert_eq!(described("plain"), None);
}

#[test]
fn confusable_letters_have_the_same_skeleton() {
    assert_eq!(skeleton("s\u{435}nd"), skeleton("send"));
    assert_eq!(look_alike("s\u{435}nd").as_deref(), Some("send"));
    assert_eq!(look_alike("größe"), None);
    assert_eq!(look_alike("отправить"), None);
}

/// Texts with many hidden characters and many neighbours that make them ordinary.
fn any_text() -> impl Strategy<Value = String> {
    let dangerous = prop::sample::select(DANGEROUS.to_vec())
        .prop_flat_map(|(first, last, _)| first..=last)
        .prop_filter_map("a character", char::from_u32)
        .prop_map(String::from);
    let neighbours = prop::sample::select(vec![
        "a",
        "1",
        "\n",
        "\t",
        "\r",
        "😀",
        "❤",
        "🏴",
        "ی",
        "क",
        "漢",
        "ᠮ",
        "ᄀ",
        "⠗",
        "ש",
        "\u{20E3}",
        "\u{378}",
        "\u{A0}",
        "\u{600}",
        "\\",
        "\"",
        "\u{1b}[31m",
    ])
    .prop_map(str::to_owned);
    let pieces = prop_oneof![
        3 => dangerous,
        3 => neighbours,
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

/// Whether a character is allowed in text on a terminal after `before`.
fn may_be_displayed(before: Option<char>, c: char) -> bool {
    match class_of(c) {
        None => true,
        Some(CharacterClass::Space | CharacterClass::NumberSign) => true,
        Some(CharacterClass::Unassigned) => classes::is_pictograph(c),
        Some(_) if matches!(c, '\n' | '\t') => true,
        // Never first, and never after another hidden character except U+FE0F.
        Some(CharacterClass::ZeroWidth | CharacterClass::VariationSelector) => {
            let is_listed = matches!(
                c,
                '\u{200C}' | '\u{200D}' | '\u{FE0E}' | '\u{FE0F}' | '\u{180B}'
                    ..='\u{180F}' | '\u{115F}' | '\u{1160}' | '\u{2800}'
            );
            is_listed
                && (matches!(c, '\u{115F}' | '\u{1160}' | '\u{2800}')
                    || before.is_some_and(|before| !is_hidden(before) || before == '\u{FE0F}'))
        }
        // U+180E after a letter of its script.
        Some(CharacterClass::Format) => {
            c == '\u{180E}' && before.is_some_and(classes::is_mongolian)
        }
        Some(_) => false,
    }
}

proptest! {
    #[test]
    fn displayed_text_has_no_dangerous_characters(text in any_text()) {
        let shown = escape(&text, TextUse::Display).into_owned();
        let mut before = None;
        for c in shown.chars() {
            prop_assert!(may_be_displayed(before, c), "{:?} in {:?} of {:?}", c, shown, text);
            before = Some(c);
        }
    }

    #[test]
    fn text_for_approvals_has_no_classified_characters(text in any_text()) {
        let shown = escape(&text, TextUse::Exact);
        prop_assert!(shown.chars().all(|c| c == '\n' || class_of(c).is_none()), "{:?}", shown);
        let line = escape_line(&text, TextUse::Exact);
        prop_assert!(line.chars().all(|c| class_of(c).is_none()), "{:?}", line);
    }

    #[test]
    fn escaped_text_is_clean(text in any_text()) {
        for text_use in USES {
            let escaped = escape(&text, text_use).into_owned();
            prop_assert!(is_clean(&escaped, text_use), "{:?} of {:?}", escaped, text);
            prop_assert_eq!(escape(&escaped, text_use), escaped.as_str());
            prop_assert_eq!(escaped == text, is_clean(&text, text_use));
        }
    }

    #[test]
    fn escaped_json_is_the_same_value(text in any_text(), key in any_text()) {
        let value = json!({ key: [text] });
        for text_use in [TextUse::Display, TextUse::Exact] {
            for json in [value.to_string(), format!("{value:#}")] {
                let shown = escape_json(&json, text_use);
                prop_assert!(is_clean(&shown, text_use), "{:?}", shown);
                let read: Value = serde_json::from_str(&shown)
                    .map_err(|error| TestCaseError::fail(error.to_string()))?;
                prop_assert_eq!(&read, &value);
            }
        }
    }

    #[test]
    fn a_hidden_character_alone_never_passes(c in any::<char>()) {
        // Without neighbours, only line feeds and tabs pass.
        let text = c.to_string();
        if is_hidden(c) && !matches!(c, '\n' | '\t') {
            for text_use in USES {
                prop_assert!(!is_clean(&text, text_use), "{:?}", c);
            }
        }
    }
}
