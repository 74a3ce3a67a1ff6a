//! Types whose values are texts: `word_set!` defines a closed set of words, `checked_text!` a text with a rule.
//! `parsed_text!` is for all other types that are stored as text. All crates use these.

/// A closed set of words. Each is read in any case and written in one spelling.
pub(crate) trait Word: Copy + 'static {
    /// The name of the set in messages.
    const WHAT: &'static str;

    /// Every word.
    fn all() -> &'static [Self];

    /// The canonical spelling.
    fn word(self) -> &'static str;

    /// The word that `text` spells, in any case.
    fn from_word(text: &str) -> Option<Self> {
        let mut all = Self::all().iter().copied();
        all.find(|word| word.word().eq_ignore_ascii_case(text))
    }

    /// All spellings.
    fn spellings() -> Vec<&'static str> {
        Self::all().iter().map(|word| word.word()).collect()
    }

    /// All spellings, for messages.
    fn known() -> String {
        Self::spellings().join(", ")
    }
}

/// A word that is not in its set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not a valid {what}; write one of {}", .expected.join(", "))]
pub struct UnknownWord {
    /// The name of the set.
    pub what: &'static str,
    /// The word, cut if it is long.
    pub word: String,
    /// The words of the set.
    pub expected: Vec<&'static str>,
}

impl UnknownWord {
    /// The error about `word`, which is not in the set `what` of `expected` words.
    #[must_use]
    pub fn new(what: &'static str, word: &str, expected: Vec<&'static str>) -> Self {
        Self {
            what,
            word: word.chars().take(60).collect(),
            expected,
        }
    }
}

/// Defines an enum whose values are words: `ALL`, `as_str`, and text and JSON both ways. It is read in any case.
#[doc(hidden)]
#[macro_export]
macro_rules! word_set {
    (
        $(#[$doc:meta])*
        $name:ident, $what:literal { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum $name {
            $($(#[$word_doc])* $variant,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word for it in JSON and messages.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;

            /// Reads the word in any case.
            fn from_str(word: &str) -> Result<Self, Self::Err> {
                let mut all = Self::ALL.into_iter();
                all.find(|known| known.as_str().eq_ignore_ascii_case(word))
                    .ok_or_else(|| {
                        $crate::UnknownWord::new($what, word, Self::ALL.map(Self::as_str).to_vec())
                    })
            }
        }

        $crate::parsed_text!($name);
    };
}

/// A [`word_set!`] of the records, with its JSON Schema.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($words:tt)+ }) => {
        $crate::word_set! {
            $(#[$doc])*
            $name, $what { $($words)+ }
        }

        impl $crate::words::Word for $name {
            const WHAT: &'static str = $what;

            fn all() -> &'static [Self] {
                &Self::ALL
            }

            fn word(self) -> &'static str {
                self.as_str()
            }
        }

        $crate::records::schema::inline_schema!(
            $name = $crate::records::schema::one_of_words(Self::ALL.map(Self::as_str))
        );
    };
}

/// Implements the conversions that JSON needs for a type that is read with `FromStr` and written with `Display`.
#[doc(hidden)]
#[macro_export]
macro_rules! parsed_text {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = <$name as std::str::FromStr>::Err;

            fn try_from(text: String) -> Result<Self, <Self as std::str::FromStr>::Err> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }
    };
}

/// Defines a type for texts that fulfil a rule: `new`, `as_str`, text and JSON both ways. The rule is a function
/// from `&str` to `Result<(), E>`.
#[doc(hidden)]
#[macro_export]
macro_rules! checked_text {
    ($(#[$attribute:meta])* $name:ident($inner:ty), $error:ty, $rule:expr) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name($inner);

        impl $name {
            /// Validates a text.
            ///
            /// # Errors
            /// If the text breaks the rule of this type.
            pub fn new(text: impl Into<String>) -> Result<Self, $error> {
                let text = text.into();
                let rule: fn(&str) -> Result<(), $error> = $rule;
                rule(&text)?;
                Ok(Self(text.into()))
            }

            /// The text.
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
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, $error> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0.into()
            }
        }
    };
}

pub(crate) use words;
