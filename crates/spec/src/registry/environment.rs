//! Environments: where an agent works, such as `production`. Three are predefined, others must be
//! declared before they are used, so that a misspelt one is found.

use std::collections::BTreeSet;

use super::word::{is_name, word};
use crate::nearest::nearest;

word! {
    /// The name of an environment. That it is one of the declared ones is for [`Environments`] to say.
    Environment is
    "the name of an environment",
    "it begins with a lower-case letter and has at most 32 lower-case letters, digits, `_` and `-`",
    "^[a-z][a-z0-9_-]{0,31}$",
    |text| is_name(text, 32)
}

impl Environment {
    /// Where agents are tried out.
    pub const DEVELOPMENT: Self = Self(std::borrow::Cow::Borrowed("development"));
    /// Where agents are tried as if it were serious.
    pub const STAGING: Self = Self(std::borrow::Cow::Borrowed("staging"));
    /// Where it is serious.
    pub const PRODUCTION: Self = Self(std::borrow::Cow::Borrowed("production"));
    /// Those that exist without being declared.
    pub const PREDEFINED: [Self; 3] = [Self::DEVELOPMENT, Self::STAGING, Self::PRODUCTION];
}

/// The environments that exist: the predefined ones and those declared beside them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environments(BTreeSet<Environment>);

/// An environment that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no environment `{name}`")]
pub struct UnknownEnvironment {
    /// What it was called.
    pub name: String,
    /// What may have been meant.
    pub nearest: Option<String>,
    /// Those that exist.
    pub known: Vec<String>,
}

impl Default for Environments {
    fn default() -> Self {
        Self(Environment::PREDEFINED.into_iter().collect())
    }
}

impl Environments {
    /// Declares one more; declaring one twice changes nothing.
    pub fn declare(&mut self, environment: Environment) {
        self.0.insert(environment);
    }

    /// Whether there is such an environment.
    #[must_use]
    pub fn contains(&self, environment: &Environment) -> bool {
        self.0.contains(environment)
    }

    /// All of them, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Environment> {
        self.0.iter()
    }

    /// Checks that there is an environment of that name.
    ///
    /// # Errors
    /// If there is none, with the name that may have been meant.
    pub fn require(&self, name: &str) -> Result<&Environment, UnknownEnvironment> {
        self.0.get(name).ok_or_else(|| UnknownEnvironment {
            name: name.chars().take(60).collect(),
            nearest: nearest(name, self.iter().map(Environment::as_str)).map(str::to_owned),
            known: self.iter().map(Environment::to_string).collect(),
        })
    }
}
