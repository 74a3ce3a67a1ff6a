//! The language model of an agent. Only its name is here; the clients are in `windlass-model`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::names::{NonEmptyText, TextError};

/// A model: its provider and its id at that provider. Written `Provider/id`; an id alone
/// means OpenAI.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Model {
    provider: Provider,
    id: NonEmptyText,
}

impl Model {
    /// The model `id` of `provider`.
    #[must_use]
    pub fn new(provider: Provider, id: NonEmptyText) -> Self {
        Self { provider, id }
    }

    /// Its provider.
    #[must_use]
    pub fn provider(&self) -> &Provider {
        &self.provider
    }

    /// Its id at the provider.
    #[must_use]
    pub fn id(&self) -> &str {
        self.id.as_str()
    }
}

/// The provider of a model.
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
    /// Any other, by name: a server with the OpenAI protocol.
    Other(NonEmptyText),
}

impl Provider {
    /// The names of the built-in providers.
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

    fn from_name(name: &str) -> Result<Self, TextError> {
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
            Some((provider, id)) => (Provider::from_name(provider.trim())?, id),
            None => (Provider::OpenAi, text),
        };
        Ok(Self::new(provider, NonEmptyText::new(id.trim())?))
    }
}

crate::parsed_text!(Model);
