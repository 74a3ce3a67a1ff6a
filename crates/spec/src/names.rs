//! Names and texts that are validated once, on construction.

use crate::checked_text;
use crate::text::{TextUse, is_clean};

/// Why a name or text was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// It is empty or only blanks.
    #[error("it is empty")]
    Empty,
    /// A name with an invisible or control character.
    #[error("it contains an invisible or control character")]
    ControlCharacter,
    /// A name longer than providers accept.
    #[error("it has more than {MAX_NAME} characters")]
    TooLong,
}

const MAX_NAME: usize = 128;

checked_text! {
    /// A text that is not empty and not only blanks.
    NonEmptyText(String), TextError, check_text
}
checked_text! {
    /// The name of a tool.
    ToolName(String), TextError, check_name
}
checked_text! {
    /// The name of an agent.
    AgentName(String), TextError, check_name
}

impl NonEmptyText {
    /// The text, or `fallback` if the text is blank, or a dash if both are blank.
    #[must_use]
    pub fn or(text: &str, fallback: &str) -> Self {
        let found = [text, fallback]
            .into_iter()
            .find(|text| !text.trim().is_empty());
        Self(found.unwrap_or("-").to_owned())
    }
}

fn check_text(text: &str) -> Result<(), TextError> {
    if text.trim().is_empty() {
        return Err(TextError::Empty);
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), TextError> {
    check_text(name)?;
    if !is_clean(name, TextUse::Name) {
        return Err(TextError::ControlCharacter);
    }
    if name.chars().count() > MAX_NAME {
        return Err(TextError::TooLong);
    }
    Ok(())
}
