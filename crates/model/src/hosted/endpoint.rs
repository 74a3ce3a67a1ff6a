//! The address and the key for a model: the provider's default address or a given one, and keys from the
//! environment only.

use std::net::IpAddr;

use reqwest::Url;
use windlass_core::model::ModelErrorKind;
use windlass_spec::{Model, Provider};

use crate::client::ModelError;
use crate::scrub::{Scrubber, Secret};

/// The protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// OpenAI's chat completions.
    OpenAi,
    /// OpenAI's responses.
    Responses,
    Anthropic,
    Gemini,
}

impl Protocol {
    /// Every protocol, by the name it is chosen with.
    const ALL: [(&'static str, Self); 4] = [
        ("chat", Self::OpenAi),
        ("responses", Self::Responses),
        ("anthropic", Self::Anthropic),
        ("gemini", Self::Gemini),
    ];

    /// Whether an answer can be constrained to a schema.
    pub(super) fn takes_schema(self) -> bool {
        match self {
            Self::OpenAi | Self::Responses => true,
            Self::Anthropic | Self::Gemini => false,
        }
    }

    fn named(name: &str, variable: &str) -> Result<Self, ModelError> {
        let known = Self::ALL
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name.trim()));
        known.map(|(_, protocol)| *protocol).ok_or_else(|| {
            let message = format!(
                "`{variable}` is `{name}`, which is no protocol. Set it to `chat`, `responses`, `anthropic` or `gemini`."
            );
            ModelError::new(ModelErrorKind::Unreachable, message)
        })
    }
}

/// The address and key for a model. `Debug` does not show the key.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) protocol: Protocol,
    /// Ends in a slash, so that paths can be joined to it.
    pub(crate) base_url: Url,
    pub(crate) model: String,
    pub(crate) key: Option<Secret>,
    /// The variable that the key is read from, for messages.
    pub(crate) key_variable: String,
    /// The provider, for messages.
    pub(crate) provider: String,
    /// `Provider/id`.
    pub(crate) priced_name: String,
    /// Whether the provider is a program that runs models itself.
    runs_models: bool,
}

impl Endpoint {
    /// Resolves a model. `variable` reads the environment.
    pub(crate) fn resolve(
        model: &Model,
        base_url: Option<&str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelError> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let name = variable_part(model.provider().as_str());
        let url_variable = format!("WINDLASS_{name}_BASE_URL");
        let given = base_url
            .map(str::to_owned)
            .or_else(|| variable(&url_variable));
        let own_key_variable = format!("WINDLASS_{name}_API_KEY");
        let (protocol, default_url, key_variables, needs_key) = match model.provider() {
            Provider::OpenAi => (
                match needs_responses(model.id()) {
                    true => Protocol::Responses,
                    false => Protocol::OpenAi,
                },
                Some("https://api.openai.com/v1/".to_owned()),
                vec!["OPENAI_API_KEY"],
                true,
            ),
            Provider::Anthropic => (
                Protocol::Anthropic,
                Some("https://api.anthropic.com/v1/".to_owned()),
                vec!["ANTHROPIC_API_KEY"],
                true,
            ),
            Provider::Google => (
                Protocol::Gemini,
                Some("https://generativelanguage.googleapis.com/v1beta/".to_owned()),
                vec!["GEMINI_API_KEY", "GOOGLE_API_KEY"],
                true,
            ),
            // Ollama's own protocol has no call ids and no end mark, so a lost connection could not be detected.
            Provider::Ollama => (
                Protocol::OpenAi,
                Some(ollama_url(variable("OLLAMA_HOST"))),
                vec!["OLLAMA_API_KEY"],
                false,
            ),
            Provider::Other(_) => (
                Protocol::OpenAi,
                None,
                vec![own_key_variable.as_str()],
                false,
            ),
        };
        let Some(url) = given.or(default_url) else {
            let message = format!(
                "The provider `{}` is unknown. Set `{url_variable}` to the base URL of a server with \
                 the OpenAI protocol, and `{own_key_variable}` if it needs a key.",
                model.provider().as_str()
            );
            return Err(ModelError::new(ModelErrorKind::Unreachable, message));
        };
        let protocol_variable = format!("WINDLASS_{name}_PROTOCOL");
        let protocol = match variable(&protocol_variable) {
            Some(chosen) => Protocol::named(&chosen, &protocol_variable)?,
            None => protocol,
        };
        let base_url = base(&url, model.provider())?;
        let key = key_variables.iter().find_map(|name| variable(name));
        let key_variable = key_variables
            .first()
            .map(|name| (*name).to_owned())
            .unwrap_or_default();
        // A server on this machine decides by itself whether it needs a key.
        if key.is_none() && needs_key && !is_local(&base_url) {
            let message = format!(
                "The key for {} is missing. Set `{key_variable}`.",
                model.provider().as_str()
            );
            return Err(ModelError::new(ModelErrorKind::Authentication, message));
        }
        Ok(Self {
            protocol,
            base_url,
            model: model.id().to_owned(),
            key: key.map(|key| Secret::new(key.trim().to_owned())),
            key_variable,
            provider: model.provider().as_str().to_owned(),
            priced_name: model.to_string(),
            runs_models: matches!(model.provider(), Provider::Ollama),
        })
    }

    /// Whether the model runs on this machine. A server of another kind on this machine may only forward requests to
    /// a provider, and so does Ollama for the models of its cloud.
    pub(crate) fn is_free(&self) -> bool {
        let is_of_cloud = self.model.ends_with("-cloud") || self.model.ends_with(":cloud");
        self.runs_models && self.is_local() && !is_of_cloud
    }

    /// The address of `path` below the base URL, whose own query is kept.
    pub(crate) fn url(&self, path: &str) -> Option<Url> {
        let mut url = self.base_url.join(path).ok()?;
        if let Some(given) = self.base_url.query() {
            let query = match url.query() {
                Some(own) => format!("{given}&{own}"),
                None => given.to_owned(),
            };
            url.set_query(Some(&query));
        }
        Some(url)
    }

    /// The address for messages, without its query.
    pub(crate) fn shown_url(&self) -> String {
        let port = self
            .base_url
            .port()
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        let host = self.base_url.host_str().unwrap_or_default();
        format!(
            "{}://{host}{port}{}",
            self.base_url.scheme(),
            self.base_url.path()
        )
    }

    /// A scrubber that removes the key from texts of the provider.
    pub(crate) fn scrubber(&self) -> Scrubber {
        Scrubber::new(self.key.iter().map(|key| key.expose().to_owned()))
    }

    /// Whether the address is on this machine. Then no proxy is used.
    pub(crate) fn is_local(&self) -> bool {
        is_local(&self.base_url)
    }
}

/// Whether an address is on this machine.
pub(crate) fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

/// Whether OpenAI offers a model only through responses.
fn needs_responses(model: &str) -> bool {
    let is_newer = |name: &str| {
        ["gpt-5", "gpt-6", "o1", "o3", "o4"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    model.contains("codex")
        || model.contains("deep-research")
        || (is_newer(model) && model.split('-').any(|part| part == "pro"))
}

fn base(text: &str, provider: &Provider) -> Result<Url, ModelError> {
    let refused = |why: &str| {
        let message = format!("`{}` is not a valid base URL: {why}.", without_user(text));
        ModelError::new(ModelErrorKind::Unreachable, message)
    };
    let mut url = Url::parse(text.trim()).map_err(|error| refused(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(refused("it must start with http:// or https:// and a host"));
    }
    // Addresses are shown and logged, so they must not contain credentials.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused(
            "it contains a user or password, which would be shown; set the key in the environment",
        ));
    }
    // Without the slash, joining would replace the last segment: `/v1` and `chat` would make `/chat`.
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    if *provider == Provider::Ollama && url.path() == "/" {
        url.set_path("/v1/");
    }
    Ok(url)
}

fn without_user(text: &str) -> &str {
    text.rsplit_once('@').map_or(text, |(_, host)| host)
}

/// The base URL from Ollama's own variable: a host, a host and a port, or a URL.
fn ollama_url(host: Option<String>) -> String {
    let host = host.unwrap_or_default();
    let host = host.trim().trim_end_matches('/');
    if host.contains("://") {
        return host.to_owned();
    }
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "11434"));
    let name = if matches!(name, "" | "0.0.0.0") {
        "127.0.0.1"
    } else {
        name
    };
    format!("http://{name}:{port}")
}

fn variable_part(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect()
}
