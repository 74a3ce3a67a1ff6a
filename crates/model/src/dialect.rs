//! How a model is asked for calls: with the provider's native tool calls, or as JSON with a given schema.
//! In both cases the answer is parsed leniently.

mod lenient;
mod shape;
mod structured;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub(crate) use lenient::{ParsedText, parse_calls};
pub(crate) use structured::{Speaker, conversation, schema};

/// How a model is asked for calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// With the provider's native tool calls.
    Native,
    /// As JSON with a given schema, which even small models can write.
    Structured,
    /// Native until the model fails to make native calls, then structured.
    #[default]
    Auto,
}

impl Dialect {
    /// Every dialect, by the name it is chosen with.
    pub const ALL: [(&'static str, Self); 3] = [
        ("native", Self::Native),
        ("structured", Self::Structured),
        ("auto", Self::Auto),
    ];
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL
            .iter()
            .find(|(_, dialect)| dialect == self)
            .map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, UnknownDialect> {
        let named = Self::ALL
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text.trim()));
        named
            .map(|(_, dialect)| *dialect)
            .ok_or_else(|| UnknownDialect(text.to_owned()))
    }
}

/// The error for an unknown dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a dialect; use `native`, `structured` or `auto`")]
pub struct UnknownDialect(pub String);
