//! The action of an answer. It follows the rules of a tool's name; whether such a tool exists is not
//! checked here.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::words::HilAction;
use crate::names::{TextError, ToolName};

/// The `action` of an answer: the name of the tool, or the kind of request to a person.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Action(Cow<'static, str>);

impl Action {
    /// The action if neither the answer nor its reader names the tool.
    pub const UNKNOWN: Self = Self(Cow::Borrowed("unknown"));

    /// Validates a name.
    ///
    /// # Errors
    /// If the text cannot be the name of a tool.
    pub fn new(name: impl Into<String>) -> Result<Self, TextError> {
        ToolName::new(name).map(Self::from)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<ToolName> for Action {
    fn from(name: ToolName) -> Self {
        Self(Cow::Owned(name.into()))
    }
}

impl From<&ToolName> for Action {
    fn from(name: &ToolName) -> Self {
        name.clone().into()
    }
}

impl From<HilAction> for Action {
    fn from(action: HilAction) -> Self {
        Self(Cow::Borrowed(action.as_str()))
    }
}

impl FromStr for Action {
    type Err = TextError;

    fn from_str(name: &str) -> Result<Self, TextError> {
        Self::new(name)
    }
}

impl Serialize for Action {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}
