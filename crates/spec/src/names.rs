//! Names and texts that are validated once, on construction.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

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

macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $check:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Validates a text.
            ///
            /// # Errors
            /// If the text breaks the rule of this type.
            pub fn new(text: impl Into<String>) -> Result<Self, TextError> {
                let text = text.into();
                $check(&text)?;
                Ok(Self(text))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = TextError;

            fn from_str(text: &str) -> Result<Self, TextError> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = TextError;

            fn try_from(text: String) -> Result<Self, TextError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }
    };
}

checked_text! {
    /// A text that is not empty and not only blanks.
    NonEmptyText, check_text
}
checked_text! {
    /// The name of a tool.
    ToolName, check_name
}
checked_text! {
    /// The name of an agent.
    AgentName, check_name
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
