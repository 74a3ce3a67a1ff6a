//! Renders what an approver decides about, so that nothing in it can be hidden, look like something else, or
//! break out of its line. The text shown has the same digest as the arguments that are approved.

use serde_json::Value;
use windlass_core::approval::sorted_json;
use windlass_spec::text::{TextUse, class_of, escape, escape_line, push_json_escape};

/// Renders JSON with sorted keys, one item per line, and escapes for invisible characters. The result is JSON
/// of the same value.
pub(super) fn json(value: &Value) -> String {
    let sorted = sorted_json(value);
    let mut text = String::with_capacity(sorted.len() * 2);
    let mut depth = 0;
    let mut in_text = false;
    let mut is_escaped = false;
    let mut characters = sorted.chars().peekable();
    while let Some(c) = characters.next() {
        if in_text {
            match class_of(c) {
                Some(_) => push_json_escape(&mut text, c),
                None => text.push(c),
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

/// Escapes every invisible character except the line break.
pub(super) fn escape_exact(text: &str) -> String {
    escape(text, TextUse::Exact).into_owned()
}

/// Escapes every invisible character and the line break.
pub(super) fn escape_exact_line(text: &str) -> String {
    escape_line(text, TextUse::Exact).into_owned()
}

/// Escapes a text and indents all but its first line, so that none can pass for a line of Windlass.
pub(super) fn escape_indented(text: &str, margin: &str) -> String {
    escape_exact(text).replace('\n', &format!("\n{margin}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{escape_exact, escape_indented};

    #[test]
    fn rendered_arguments_are_sorted_and_keep_their_value() {
        let value = json!({"b": [19.5, {}, [], {"c": "x: {y}, [z] \\\" \n"}], "a": null});
        let shown = super::json(&value);
        let expected = "{\n  \"a\": null,\n  \"b\": [\n    19.5,\n    {},\n    [],\n    {\n      \
                        \"c\": \"x: {y}, [z] \\\\\\\" \\n\"\n    }\n  ]\n}";
        assert_eq!(shown, expected);
        let read: Option<Value> = serde_json::from_str(&shown).ok();
        assert_eq!(read, Some(value));
    }

    #[test]
    fn invisible_characters_in_arguments_are_escaped() {
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
        assert!(escape_exact(hidden).is_ascii());
        assert_eq!(super::json(&json!("Zürich 東京 🙂")), "\"Zürich 東京 🙂\"");
    }

    #[test]
    fn further_lines_are_indented() {
        assert_eq!(
            escape_indented("fine\nrisk: reversible", "    "),
            "fine\n    risk: reversible"
        );
    }
}
