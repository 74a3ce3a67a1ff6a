//! The parameters of a tool, read from its JSON Schema for filling: each leaf of nested records, with its words,
//! role, options, unit and formats.

mod options;
mod role;
mod schema;

use serde_json::Value;

use crate::extract::format::DateFormat;
use crate::extract::quantity::NumberFormat;

pub(crate) use options::{ParameterOption, written};
pub(crate) use role::{Direction, Role};
pub(crate) use schema::parameters;

/// The type of a parameter's values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    /// A list of values of this type.
    List(Box<Kind>),
    /// A list of records with these fields.
    Records(Vec<Parameter>),
    /// A record whose fields are not declared.
    Map,
    /// Any value.
    Any,
}

impl Kind {
    /// Whether it takes only numbers.
    pub(crate) fn is_numeric(&self) -> bool {
        matches!(self, Self::Integer | Self::Number)
    }
}

/// A leaf of a tool's schema.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameter {
    /// The path of names to it; one name, unless records are nested.
    pub(crate) path: Vec<String>,
    /// The type of its values.
    pub(crate) kind: Kind,
    /// Whether it and the records around it are required.
    pub(crate) required: bool,
    /// The words of its name.
    pub(crate) name_words: Vec<String>,
    /// The stems of its name, without generic words.
    pub(crate) name_stems: Vec<String>,
    /// The stems of its description, without generic words, defaults and examples.
    pub(crate) description_stems: Vec<String>,
    /// Its description without defaults and examples.
    pub(crate) meaning: String,
    /// Its known options.
    pub(crate) choices: Vec<ParameterOption>,
    /// Whether it can take only these options.
    pub(crate) closed: bool,
    /// Whether its description seems to list all options.
    pub(crate) listed: bool,
    /// Its default value.
    pub(crate) default: Option<Value>,
    /// The role of its values.
    pub(crate) role: Role,
    /// Whether it is the start or the end of something.
    pub(crate) direction: Direction,
    /// Its number among similar parameters, from 1.
    pub(crate) ordinal: Option<u32>,
    /// The format of its numbers.
    pub(crate) number_format: NumberFormat,
    /// The format of its dates.
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
