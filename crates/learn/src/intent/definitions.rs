//! The declarations of intents: their examples, the tools that serve them, the context they need, and what to do
//! if tools fail. Written as TOML:
//!
//! ```toml
//! [intents.fetch]
//! examples = ["get me the page at https://example.org", "download the latest report"]
//! tools = ["http_get"]
//! context = ["what to fetch, or where it is"]
//! fallbacks = ["ask for the address"]
//!
//! [out_of_scope]
//! examples = ["good morning", "thanks a lot"]
//! ```

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use windlass_spec::{NonEmptyText, ToolName};

use super::classifier::{IntentClass, IntentClassifier, TrainError};

static SHIPPED: &str = include_str!("shipped.toml");

/// The declaration of an intent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntentDefinition {
    /// Texts with this intent.
    pub examples: Vec<NonEmptyText>,
    /// The tools that serve it, best first; they need not all exist.
    #[serde(default)]
    pub tools: Vec<ToolName>,
    /// What must be known to serve it.
    #[serde(default)]
    pub context: Vec<NonEmptyText>,
    /// What to do if the tools fail.
    #[serde(default)]
    pub fallbacks: Vec<NonEmptyText>,
}

/// Intents by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntentDefinitions {
    #[serde(default)]
    intents: BTreeMap<String, IntentDefinition>,
    #[serde(default)]
    out_of_scope: OutOfScope,
}

/// Texts that have no intent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct OutOfScope {
    examples: Vec<NonEmptyText>,
}

/// Why intents cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// The text is not TOML of this form.
    #[error("{0}")]
    Form(#[from] toml::de::Error),
    /// An intent has no name.
    #[error("an intent has an empty name; name it")]
    NoName,
    /// An intent has no examples, which are what defines it.
    #[error("the intent `{0}` has no examples; add at least 5, better 25")]
    NoExamples(String),
}

impl IntentDefinitions {
    /// Reads definitions from TOML.
    ///
    /// # Errors
    /// If the text has another form, or an intent has no name or no examples.
    pub fn read(text: &str) -> Result<Self, DefinitionError> {
        let definitions: Self = toml::from_str(text)?;
        for (name, definition) in &definitions.intents {
            if name.trim().is_empty() {
                return Err(DefinitionError::NoName);
            }
            if definition.examples.is_empty() {
                return Err(DefinitionError::NoExamples(name.clone()));
            }
        }
        Ok(definitions)
    }

    /// The built-in definitions: summarize, analyze, fetch and explain.
    ///
    /// # Errors
    /// Never; a test reads them.
    pub fn shipped() -> Result<Self, DefinitionError> {
        Self::read(SHIPPED)
    }

    /// The intent of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&IntentDefinition> {
        self.intents.get(name)
    }

    /// The intents in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &IntentDefinition)> {
        self.intents
            .iter()
            .map(|(name, definition)| (name.as_str(), definition))
    }

    /// Merges the intents of `other`, which replace those of the same name. The out-of-scope examples of both are
    /// kept, except those that are an example of an intent of `other`.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        let wanted: HashSet<&str> = other.texts().collect();
        let out_of_scope = &mut self.out_of_scope.examples;
        out_of_scope.retain(|text| !wanted.contains(text.as_str()));
        drop(wanted);
        self.out_of_scope
            .examples
            .extend(other.out_of_scope.examples);
        self.intents.extend(other.intents);
        self
    }

    /// Trains a classifier for these intents.
    ///
    /// # Errors
    /// If there is no intent, or one has no example with a letter or digit.
    pub fn train(&self) -> Result<IntentClassifier, TrainError> {
        let text = |text: &NonEmptyText| text.as_str().to_owned();
        let out_of_scope: Vec<String> = self.out_of_scope.examples.iter().map(text).collect();
        IntentClassifier::train_against(&self.classes(), &out_of_scope)
    }

    /// The examples of all intents.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let definitions = self.intents.values();
        definitions.flat_map(|definition| definition.examples.iter().map(NonEmptyText::as_str))
    }

    /// Adds an intent, or replaces the one of that name.
    pub fn insert(&mut self, name: &str, definition: IntentDefinition) {
        self.intents.insert(name.to_owned(), definition);
    }

    /// The classes that a classifier learns.
    #[must_use]
    pub fn classes(&self) -> Vec<IntentClass> {
        let class = |(name, definition): (&str, &IntentDefinition)| IntentClass {
            name: name.to_owned(),
            examples: definition
                .examples
                .iter()
                .map(|text| text.as_str().to_owned())
                .collect(),
        };
        self.iter().map(class).collect()
    }
}
