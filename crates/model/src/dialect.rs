//! How a model is asked for calls: with the provider's own tool calls, or as JSON of a given
//! schema. Either way, what comes back is read leniently.

mod lenient;
mod shape;
mod structured;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub(crate) use lenient::{Found, find};
pub(crate) use structured::{Speaker, conversation, schema};

/// How a model is asked for calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// With the provider's own tool calls.
    Native,
    /// As JSON of a given schema, which even small models get right.
    Structured,
    /// Native until the model shows that it does not do that, then structured.
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

/// A name that no dialect has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no dialect; write `native`, `structured` or `auto`")]
pub struct UnknownDialect(pub String);
