//! Closed sets of words, such as states and statuses: read in any case, written in one. Only the
//! macro is here; the sets are in their own modules.

/// A word that is not one of the expected ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not one of {}", .expected.join(", "))]
pub struct NotOneOf {
    /// The word, cut if it is long.
    pub word: String,
    /// The expected words.
    pub expected: Vec<&'static str>,
}

/// Defines an enum whose values are words: `as_str`, `ALL`, text and JSON both ways.
macro_rules! words {
    (
        $(#[$doc:meta])*
        $name:ident { $( $(#[$variant_doc:meta])* $variant:ident = $word:literal, )+ }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum $name {
            $( $(#[$variant_doc])* $variant, )+
        }

        impl $name {
            /// All of them.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word for it in JSON and messages.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::records::words::NotOneOf;

            /// Reads the word in any case.
            fn from_str(word: &str) -> Result<Self, $crate::records::words::NotOneOf> {
                let found = Self::ALL
                    .into_iter()
                    .find(|value| value.as_str().eq_ignore_ascii_case(word));
                found.ok_or_else(|| $crate::records::words::NotOneOf {
                    word: word.chars().take(60).collect(),
                    expected: Self::ALL.map(Self::as_str).to_vec(),
                })
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::records::words::NotOneOf;

            fn try_from(word: String) -> Result<Self, $crate::records::words::NotOneOf> {
                word.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.as_str().to_owned()
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
                $crate::records::schema::one_of_words(Self::ALL.map(Self::as_str))
            }
        }
    };
}

pub(super) use words;
