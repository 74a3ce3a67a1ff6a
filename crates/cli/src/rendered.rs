//! What a person decides about, as it is shown to them: nothing in it can hide, look like something
//! else, or leave its place. Arguments are written from the canonical text that their digest is made
//! of, so what is read is what is approved.

use serde_json::Value;
use unicode_general_category::{GeneralCategory, get_general_category};
use windlass_core::approval::canonical;
use windlass_spec::is_invisible;

/// JSON with sorted keys, an item a line, and every character that cannot be seen as an escape. It is
/// still JSON, and still the same value.
pub(super) fn json(value: &Value) -> String {
    let canonical = canonical(value);
    let mut text = String::with_capacity(canonical.len() * 2);
    let mut depth = 0;
    let mut in_text = false;
    let mut is_escaped = false;
    let mut characters = canonical.chars().peekable();
    while let Some(c) = characters.next() {
        if in_text {
            match is_hidden(c) {
                true => push_escape(&mut text, c),
                false => text.push(c),
            }
            in_text = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                text.push(c);
                if let Some(close) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    text.push(close);
                } else {
                    depth += 1;
                    break_line(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                break_line(&mut text, depth);
                text.push(c);
            }
            ',' => {
                text.push(c);
                break_line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            _ => {
                in_text = c == '"';
                text.push(c);
            }
        }
    }
    text
}

fn break_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
}

/// As JSON escapes it: in units of UTF-16.
fn push_escape(text: &mut String, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        text.push_str(&format!("\\u{unit:04x}"));
    }
}

/// A text with every character that cannot be seen, but the line break, as an escape.
pub(super) fn seen(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_hidden(c) && c != '\n' {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown
}

/// A text on one line: the line break is an escape too.
pub(super) fn on_one_line(text: &str) -> String {
    seen(text).replace('\n', "\\u{a}")
}

/// A text whose further lines stand further in, so that none of them can pass for a line of ours.
pub(super) fn indented(text: &str, margin: &str) -> String {
    seen(text).replace('\n', &format!("\n{margin}"))
}

/// Whether a reader might not see a character, or take it for a blank.
fn is_hidden(c: char) -> bool {
    let is_blank_by_looks = matches!(
        c,
        '\u{034F}' // joins letters, looks like nothing
            | '\u{115F}' | '\u{1160}' | '\u{3164}' | '\u{FFA0}' // fillers
            | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{FE00}'..='\u{FE0F}' // choose between looks
            | '\u{E0000}'..='\u{E0FFF}'
            | '\u{2800}'
    );
    is_invisible(c)
        || is_blank_by_looks
        || match get_general_category(c) {
            GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::PrivateUse
            | GeneralCategory::Surrogate
            | GeneralCategory::Unassigned => true,
            GeneralCategory::SpaceSeparator => c != ' ',
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{indented, seen};

    #[test]
    fn arguments_are_shown_by_name_and_stay_what_they_are() {
        let value = json!({"b": [1.0, {}, [], {"c": "x: {y}, [z] \\\" \n"}], "a": null});
        let shown = super::json(&value);
        let expected = "{\n  \"a\": null,\n  \"b\": [\n    1,\n    {},\n    [],\n    {\n      \
                        \"c\": \"x: {y}, [z] \\\\\\\" \\n\"\n    }\n  ]\n}";
        assert_eq!(shown, expected);
        let read: Option<Value> = serde_json::from_str(&shown).ok();
        assert_eq!(
            read,
            Some(json!({"b": [1, {}, [], {"c": "x: {y}, [z] \\\" \n"}], "a": null}))
        );
    }

    #[test]
    fn nothing_in_arguments_can_hide() {
        let hidden =
            "a\u{202E}b\u{200B}c\u{A0}d\u{2028}e\u{E0041}f\u{1B}[2Jg\u{AD}h\u{3164}i\u{85}";
        let value = json!({ hidden: hidden });
        let shown = super::json(&value);
        assert!(shown.is_ascii(), "{shown}");
        for escape in [
            "\\u202e",
            "\\u200b",
            "\\u00a0",
            "\\u2028",
            "\\udb40\\udc41",
            "\\u001b",
        ] {
            assert!(shown.contains(escape), "{shown}");
        }
        let read: Option<Value> = serde_json::from_str(&shown).ok();
        assert_eq!(read, Some(value));
        assert!(seen(hidden).is_ascii());
        assert_eq!(super::json(&json!("Zürich 東京 🙂")), "\"Zürich 東京 🙂\"");
    }

    #[test]
    fn a_line_break_does_not_leave_its_place() {
        assert_eq!(
            indented("fine\nrisk: reversible", "    "),
            "fine\n    risk: reversible"
        );
    }
}
