//! Names of tools and parameters as words: `getUserName` and `get_user_name` both become "get user name".

use std::fmt::Write as _;

/// The words of an identifier, separated by blanks; case is kept.
///
/// A run of separators (`_ . / : \ -`) becomes one blank, then `lowerUpper` and `ABCDef` are split.
/// For names of tools and parameters only, not for prose.
pub fn split_identifier(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut before: Option<char> = None;
    let mut characters = name.chars().peekable();
    while let Some(character) = characters.next() {
        if is_separator(character) {
            if !before.is_some_and(is_separator) {
                words.push(' ');
            }
        } else {
            let begins_word = character.is_ascii_uppercase()
                && before.is_some_and(|before| {
                    before.is_ascii_lowercase()
                        || before.is_ascii_digit()
                        // The last capital of a run belongs to the word after it: `HTTPServer`.
                        || before.is_ascii_uppercase()
                            && characters.peek().is_some_and(char::is_ascii_lowercase)
                });
            if begins_word {
                words.push(' ');
            }
            words.push(character);
        }
        before = Some(character);
    }
    words
}

fn is_separator(character: char) -> bool {
    matches!(character, '_' | '.' | '/' | ':' | '\\' | '-')
}

/// The text that is embedded for a tool: its name in words, then its description. Use it to decide whether a tool
/// fits at all; [`tool_text_with_parameters`] is better to choose among several.
pub fn tool_text(name: &str, description: &str) -> String {
    format!("{}. {description}", split_identifier(name))
}

/// Like [`tool_text`], with names and descriptions of the parameters. It is better to choose among tools, and worse
/// to decide whether one fits at all, because parameters are similar across tools.
pub fn tool_text_with_parameters<'a>(
    name: &str,
    description: &str,
    parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let mut text = tool_text(name, description);
    for (name, description) in parameters {
        let _ = write!(text, " {}: {description}", split_identifier(name));
    }
    text
}
