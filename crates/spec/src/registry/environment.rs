//! Environments in which an agent runs, such as `production`. Three are predefined, others must be
//! declared before they are used, so that a misspelt one is found.

use std::collections::BTreeSet;

use super::word::{is_name, word};
use crate::nearest::nearest;

word! {
    /// The name of an environment. [`Environments`] checks that it is declared.
    Environment is
    "the name of an environment",
    "it begins with a lower-case letter and has at most 32 lower-case letters, digits, `_` and `-`",
    "^[a-z][a-z0-9_-]{0,31}$",
    |text| is_name(text, 32)
}

impl Environment {
    /// The environment for development.
    pub const DEVELOPMENT: Self = Self(std::borrow::Cow::Borrowed("development"));
    /// The environment for tests under production conditions.
    pub const STAGING: Self = Self(std::borrow::Cow::Borrowed("staging"));
    /// The production environment.
    pub const PRODUCTION: Self = Self(std::borrow::Cow::Borrowed("production"));
    /// The predefined environments.
    pub const PREDEFINED: [Self; 3] = [Self::DEVELOPMENT, Self::STAGING, Self::PRODUCTION];
}

/// The known environments: the predefined and the declared ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environments(BTreeSet<Environment>);

/// An environment that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no environment `{name}`")]
pub struct UnknownEnvironment {
    /// The unknown name.
    pub name: String,
    /// The most similar known name.
    pub nearest: Option<String>,
    /// The known names.
    pub known: Vec<String>,
}

impl Default for Environments {
    fn default() -> Self {
        Self(Environment::PREDEFINED.into_iter().collect())
    }
}

impl Environments {
    /// Declares an environment; declaring one twice changes nothing.
    pub fn declare(&mut self, environment: Environment) {
        self.0.insert(environment);
    }

    /// Whether there is such an environment.
    #[must_use]
    pub fn contains(&self, environment: &Environment) -> bool {
        self.0.contains(environment)
    }

    /// All environments, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Environment> {
        self.0.iter()
    }

    /// Checks that there is an environment of that name.
    ///
    /// # Errors
    /// If there is none, with the most similar name.
    pub fn require(&self, name: &str) -> Result<&Environment, UnknownEnvironment> {
        self.0.get(name).ok_or_else(|| UnknownEnvironment {
            name: name.chars().take(60).collect(),
            nearest: nearest(name, self.iter().map(Environment::as_str)).map(str::to_owned),
            known: self.iter().map(Environment::to_string).collect(),
        })
    }
}
