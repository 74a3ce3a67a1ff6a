//! Which language model an agent asks for. Only the choice is here; clients are elsewhere.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::names::{NonEmptyText, TextError};

/// A model: who provides it and what the provider calls it. Written `Provider/id`; an id alone
/// means OpenAI.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Model {
    provider: Provider,
    id: NonEmptyText,
}

impl Model {
    /// The model that `provider` calls `id`.
    #[must_use]
    pub fn new(provider: Provider, id: NonEmptyText) -> Self {
        Self { provider, id }
    }

    /// Who provides it.
    #[must_use]
    pub fn provider(&self) -> &Provider {
        &self.provider
    }

    /// What the provider calls it.
    #[must_use]
    pub fn id(&self) -> &str {
        self.id.as_str()
    }
}

/// Who provides a model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Provider {
    /// OpenAI.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Google (Gemini).
    Google,
    /// A local Ollama server.
    Ollama,
    /// Any other, by name: a server that speaks the OpenAI protocol.
    Other(NonEmptyText),
}

impl Provider {
    /// The names of the providers known by name.
    pub const KNOWN: [&'static str; 4] = ["OpenAI", "Anthropic", "Google", "Ollama"];

    /// The name as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::OpenAi => "OpenAI",
            Self::Anthropic => "Anthropic",
            Self::Google => "Google",
            Self::Ollama => "Ollama",
            Self::Other(name) => name.as_str(),
        }
    }

    fn named(name: &str) -> Result<Self, TextError> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "openai" => Self::OpenAi,
            "anthropic" => Self::Anthropic,
            "google" | "gemini" => Self::Google,
            "ollama" => Self::Ollama,
            _ => Self::Other(NonEmptyText::new(name)?),
        })
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider.as_str(), self.id)
    }
}

impl FromStr for Model {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let (provider, id) = match text.split_once('/') {
            Some((provider, id)) => (Provider::named(provider.trim())?, id),
            None => (Provider::OpenAi, text),
        };
        Ok(Self::new(provider, NonEmptyText::new(id.trim())?))
    }
}

impl TryFrom<String> for Model {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        text.parse()
    }
}

impl From<Model> for String {
    fn from(model: Model) -> Self {
        model.to_string()
    }
}
