//! What a tool's JSON Schema says about each of its parameters, in the form that filling needs:
//! leaves of nested records one by one, with words, roles, options, units and formats.

mod options;
mod role;
mod schema;

use serde_json::Value;

use crate::extract::format::DateFormat;
use crate::extract::quantity::Wanted;

pub(crate) use options::{Choice, written};
pub(crate) use role::{Direction, Role};
pub(crate) use schema::parameters;

/// What values a parameter takes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    /// A list of such values.
    List(Box<Kind>),
    /// A list of records with these fields.
    Records(Vec<Parameter>),
    /// A record whose fields are not declared.
    Map,
    /// Anything.
    Any,
}

impl Kind {
    /// Whether it takes numbers only.
    pub(crate) fn is_numeric(&self) -> bool {
        matches!(self, Self::Integer | Self::Number)
    }
}

/// A leaf of a tool's schema.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameter {
    /// The names that lead to it; one, unless records are nested.
    pub(crate) path: Vec<String>,
    /// What values it takes.
    pub(crate) kind: Kind,
    /// Whether it and the records around it must be given.
    pub(crate) required: bool,
    /// The words of its name.
    pub(crate) name_words: Vec<String>,
    /// The stems of its name that say which value is meant.
    pub(crate) name_stems: Vec<String>,
    /// The stems of its description that do, without defaults and examples.
    pub(crate) description_stems: Vec<String>,
    /// Its description without defaults and examples.
    pub(crate) meaning: String,
    /// The values it can take, or some of them.
    pub(crate) choices: Vec<Choice>,
    /// Whether it can take only these.
    pub(crate) closed: bool,
    /// Whether its description lists them as if there were no others.
    pub(crate) listed: bool,
    /// What it is when it is left out.
    pub(crate) default: Option<Value>,
    /// What its values are about.
    pub(crate) role: Role,
    /// Whether it is where something begins or ends.
    pub(crate) direction: Direction,
    /// Which of several alike it is, counted from 1.
    pub(crate) ordinal: Option<u32>,
    /// How its numbers are wanted.
    pub(crate) wanted: Wanted,
    /// How its dates are wanted.
    pub(crate) date_format: Option<DateFormat>,
    /// The whole description.
    pub(crate) description: String,
}

impl Parameter {
    /// Its name without the records around it.
    pub(crate) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// Whether its name has this word.
    pub(crate) fn is_named(&self, word: &str) -> bool {
        self.name_words.iter().any(|known| known == word)
    }
}
