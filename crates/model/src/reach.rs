//! Which models are available: which keys are set, and which local servers answer. No request is sent to
//! a hosted provider.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use reqwest::Url;
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;
use tracing::{Instrument as _, debug_span};
use windlass_spec::{Model, Provider};

use crate::hosted::endpoint::Endpoint;
use crate::hosted::wire::shared_client;

/// How long a local server may take to answer.
const LOCAL_TIMEOUT: Duration = Duration::from_millis(700);

/// The most bytes of a list of models.
const LONGEST_LIST: usize = 1024 * 1024;

/// The availability of a provider or local server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProviderStatus {
    /// The provider: the first part of a model's name.
    pub provider: String,
    /// Whether it is available, as far as this can be determined without a request to it.
    pub is_reachable: bool,
    /// The reason, or what to do.
    pub why: String,
    /// The models it lists, if it does; with their names for the command line.
    pub models: Vec<String>,
}

/// Common local servers with their default ports.
const LOCAL_SERVERS: [(&str, u16); 2] = [("llama.cpp", 8080), ("LM Studio", 1234)];

/// The availability of all known providers and local servers.
pub async fn provider_statuses() -> Vec<ProviderStatus> {
    let mut statuses: Vec<ProviderStatus> = [
        (Provider::OpenAi, "OPENAI_API_KEY"),
        (Provider::Anthropic, "ANTHROPIC_API_KEY"),
        (Provider::Google, "GEMINI_API_KEY"),
    ]
    .into_iter()
    .map(|(provider, variable)| hosted(&provider, variable))
    .collect();
    let ollama = endpoint(&Provider::Ollama, None);
    let ollama = async {
        match ollama {
            Some(endpoint) => server("Ollama", &endpoint.base_url, "Ollama").await,
            None => None,
        }
    };
    let others = LOCAL_SERVERS.map(|(name, port)| async move {
        let url = Url::parse(&format!("http://127.0.0.1:{port}/v1/")).ok()?;
        server(name, &url, "local").await
    });
    let (ollama, others) = futures::join!(ollama, futures::future::join_all(others));
    statuses.extend(ollama);
    statuses.extend(others.into_iter().flatten());
    statuses
}

/// Checks whether a model is available: its key is set, or its local server answers.
///
/// # Errors
/// If it is not, with what to do.
pub fn check(model: &Model, base_url: Option<&str>) -> Result<(), String> {
    let variable = |name: &str| std::env::var(name).ok();
    let endpoint = Endpoint::resolve(model, base_url, &variable).map_err(|error| error.message)?;
    if !endpoint.is_local() {
        return Ok(());
    }
    let host = endpoint.base_url.host_str().unwrap_or_default();
    let host = host.trim_matches(['[', ']']).to_owned();
    let port = endpoint.base_url.port_or_known_default().unwrap_or(80);
    let mut addresses = (host, port).to_socket_addrs().into_iter().flatten();
    if addresses.any(|address| TcpStream::connect_timeout(&address, LOCAL_TIMEOUT).is_ok()) {
        return Ok(());
    }
    Err(format!(
        "No server answers at {}. Start it, or check the address.",
        endpoint.shown_url()
    ))
}

fn endpoint(provider: &Provider, base_url: Option<&str>) -> Option<Endpoint> {
    let model: Model = format!("{}/any", provider.as_str()).parse().ok()?;
    Endpoint::resolve(&model, base_url, &|name| std::env::var(name).ok()).ok()
}

fn hosted(provider: &Provider, variable: &str) -> ProviderStatus {
    let (is_reachable, why) = match endpoint(provider, None) {
        Some(endpoint) => (true, format!("`{}` is set", endpoint.key_variable)),
        None => (false, format!("set `{variable}` to a key")),
    };
    ProviderStatus {
        provider: provider.as_str().to_owned(),
        is_reachable,
        why,
        models: Vec::new(),
    }
}

/// A local server and the models it lists.
async fn server(name: &str, base_url: &Url, provider: &str) -> Option<ProviderStatus> {
    let shown = base_url.to_string();
    let listed = timeout(LOCAL_TIMEOUT, list_models(base_url)).await;
    let listed = listed.ok().flatten();
    let models = listed.as_ref().and_then(|listed| listed["data"].as_array());
    let models = models.into_iter().flatten();
    let models = models.filter_map(|model| Some(format!("{provider}/{}", model["id"].as_str()?)));
    let why = match (&listed, provider) {
        (None, _) => format!("no server answers at {shown}"),
        (Some(_), "local") => format!("answers; use it with `--base-url {shown}`"),
        (Some(_), _) => format!("answers at {shown}"),
    };
    Some(ProviderStatus {
        provider: name.to_owned(),
        is_reachable: listed.is_some(),
        why,
        models: models.collect(),
    })
}

async fn list_models(base_url: &Url) -> Option<Value> {
    let client = shared_client(base_url).ok()?;
    let span = debug_span!(
        "http_request",
        http.request.method = "GET",
        server.address = base_url.host_str(),
    );
    let response = client.get(base_url.join("models").ok()?).send();
    let mut response = response.instrument(span).await.ok()?;
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.ok()? {
        if body.len() + piece.len() > LONGEST_LIST {
            return None;
        }
        body.extend_from_slice(&piece);
    }
    serde_json::from_slice(&body).ok()
}
