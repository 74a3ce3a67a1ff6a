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
        $crate::checked_text! {
            $(#[$doc])*
            $name(std::borrow::Cow<'static, str>), $crate::registry::FormatError, |text| {
                let fits: fn(&str) -> bool = $fits;
                match fits(text) {
                    true => Ok(()),
                    false => Err($crate::registry::FormatError::new(text, $what, $form)),
                }
            }
        }
        $crate::records::schema::inline_schema!(
            $name = schemars::json_schema!({ "type": "string", "pattern": $pattern })
        );
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
