//! Words of a fixed form, such as the names of environments. Only the macro is here; each form
//! is next to its word.

/// A text that does not have the required form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {what}: {form}")]
pub struct FormatError {
    /// The text, cut if it is long.
    pub text: String,
    /// What kind of word is expected.
    pub what: &'static str,
    /// The form of such a word.
    pub form: &'static str,
}

impl FormatError {
    pub(super) fn new(text: &str, what: &'static str, form: &'static str) -> Self {
        Self {
            text: text.chars().take(60).collect(),
            what,
            form,
        }
    }
}

/// Defines a type for words of one form. `$fits` checks whether a text has the form, `$form` describes
/// the form for messages, and `$pattern` is its regular expression for schemas.
macro_rules! word {
    (
        $(#[$doc:meta])*
        $name:ident is $what:literal, $form:literal, $pattern:literal, $fits:expr
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(std::borrow::Cow<'static, str>);

        impl $name {
            /// Validates a text.
            ///
            /// # Errors
            /// If the text does not have the form of this word.
            pub fn new(text: impl Into<String>) -> Result<Self, $crate::registry::FormatError> {
                let text = text.into();
                let fits: fn(&str) -> bool = $fits;
                if fits(&text) {
                    Ok(Self(text.into()))
                } else {
                    Err($crate::registry::FormatError::new(&text, $what, $form))
                }
            }

            /// The word.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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

        impl std::str::FromStr for $name {
            type Err = $crate::registry::FormatError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::registry::FormatError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                word.0.into_owned()
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

pub(super) use word;

/// Whether a text begins with a lower-case letter, continues with lower-case letters, digits, `_` and
/// `-`, and has at most `longest` bytes.
pub(super) fn is_name(text: &str, longest: usize) -> bool {
    text.len() <= longest
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
}
