//! Writes texts and names so that they can be read back.

use std::fmt::Write as _;

use crate::parse;
use crate::scan::{Scanner, starts_symbol};

/// Writes a text as a gram value: fenced if it has several lines and can be, otherwise in double
/// quotes. `None` for a text with a NUL character, which gram does not allow.
///
/// ```
/// assert_eq!(windlass_gram::quote("say \"hi\"").as_deref(), Some(r#""say \"hi\"""#));
/// ```
#[must_use]
pub fn quote(text: &str) -> Option<String> {
    if text.contains('\0') {
        return None;
    }
    let fenced = format!("```\n{text}```");
    let can_be_fenced = text.contains('\n')
        && Scanner::new(fenced.as_bytes())
            .fenced(0)
            .is_ok_and(|found| found.text == (4, fenced.len() - 3) && found.end == fenced.len())
        // A comment opener could be closed by something later in the file.
        && !text.trim_start().starts_with("/**");
    Some(if can_be_fenced {
        fenced
    } else {
        quoted(text, '"')
    })
}

/// Writes a name: bare if it can be, otherwise in backticks. `None` for a name with a NUL character.
#[must_use]
pub fn quote_name(name: &str) -> Option<String> {
    if name.contains('\0') {
        return None;
    }
    let bytes = name.as_bytes();
    let is_bare = bytes.first().is_some_and(|&byte| starts_symbol(byte))
        && Scanner::new(bytes).symbol(0) == bytes.len();
    Some(if is_bare {
        name.to_owned()
    } else {
        quoted(name, '`')
    })
}

fn quoted(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    let starts_like_comment = text.trim_start().starts_with('/');
    let mut is_start = true;
    for c in text.chars() {
        match c {
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            '/' if starts_like_comment && is_start => out.push_str("\\/"),
            c if c == quote => {
                let _ = write!(out, "\\{c}");
            }
            c => out.push(c),
        }
        is_start &= c.is_whitespace();
    }
    out.push(quote);
    debug_assert!(parse(&format!("({{k: {out}}})")).is_valid());
    out
}
