//! Who judges the calls of a hook: the service in this process, or a server.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use windlass_service::types::Digest;
use windlass_service::{
    Attachment, Identity, OutsideCallRequest, OutsideDecision, OutsideOutcome, OutsideTool,
    Service, ServiceError,
};

use crate::arguments::Hook;
use crate::program::{Notices, Program};

/// The variables that name a server and a token for it.
const SERVER: &str = "WINDLASS_SERVER";
const TOKEN: &str = "WINDLASS_TOKEN";

/// The longest time that a server lets a request wait.
const LONGEST_WAIT: Duration = Duration::from_secs(50);

/// How long a server may take to answer, besides waiting.
const ANSWER_TIME: Duration = Duration::from_secs(20);

/// A decision, as the API describes it.
#[derive(Debug, Deserialize)]
pub(super) struct Decision {
    pub(super) id: String,
    pub(super) state: String,
    pub(super) reason: Option<String>,
    pub(super) digest: Option<String>,
    pub(super) arguments: Map<String, Value>,
    pub(super) edited: bool,
    pub(super) approval: Option<String>,
}

impl Decision {
    pub(super) fn is_waiting(&self) -> bool {
        ["held", "waiting"].contains(&self.state.as_str())
    }

    fn of(decision: &OutsideDecision) -> anyhow::Result<Self> {
        Ok(serde_json::from_value(decision.to_json())?)
    }
}

/// Who judges calls.
pub(super) enum Backend {
    /// This process, on behalf of the local user.
    Local {
        service: Service,
        identity: Identity,
    },
    /// A server.
    Server(Server),
}

/// A server, on behalf of the holder of a token.
pub(super) struct Server {
    /// It is not used to judge.
    service: Service,
    address: String,
    token: String,
}

impl Backend {
    /// The server that the environment names, else this process.
    pub(super) fn choose(program: &Program, command: &Hook) -> anyhow::Result<Self> {
        let service = program.service_with(command.data.as_deref(), Notices::Text);
        let Some(address) = std::env::var(SERVER).ok().filter(|text| !text.is_empty()) else {
            return Ok(Self::Local {
                service,
                identity: program.identity()?,
            });
        };
        let address = address.trim_end_matches('/').to_owned();
        let is_local = ["http://127.0.0.1:", "http://localhost:", "http://[::1]:"]
            .iter()
            .any(|local| address.starts_with(local));
        if !is_local && !address.starts_with("https://") {
            bail!(
                "{SERVER} is `{address}`; a token is only sent to `https://` or to this computer"
            );
        }
        let token = std::env::var(TOKEN).map_err(|_| {
            anyhow!(
                "{SERVER} is set and {TOKEN} is not; create a token with `windlass token create`"
            )
        })?;
        Ok(Self::Server(Server {
            service,
            address,
            token,
        }))
    }

    /// The service to close at the end.
    pub(super) fn service(&self) -> &Service {
        match self {
            Self::Local { service, .. } => service,
            Self::Server(server) => &server.service,
        }
    }

    /// Asks for a decision.
    pub(super) async fn judge(&self, request: &Value) -> anyhow::Result<Decision> {
        match self {
            Self::Server(server) => server.post("/v1/decisions", request).await,
            Self::Local { service, identity } => {
                let text = |name: &str| request[name].as_str().map(str::to_owned);
                let request = OutsideCallRequest {
                    tool: OutsideTool::Named {
                        name: text("tool").unwrap_or_default(),
                        agent: None,
                        library: None,
                    },
                    arguments: request["arguments"]
                        .as_object()
                        .cloned()
                        .unwrap_or_default(),
                    program: text("program"),
                    session: text("session"),
                    call_id: text("call_id"),
                    task: None,
                    confidence: None,
                    read: Vec::new(),
                    is_tainted: false,
                    outcome_seconds: None,
                };
                let judged = service.judge_outside_call(identity, request, Attachment::default());
                Decision::of(&judged.await?)
            }
        }
    }

    /// Waits for a decision.
    pub(super) async fn wait(&self, id: &str, wait: Duration) -> anyhow::Result<Decision> {
        match self {
            Self::Server(server) => {
                let seconds = wait.min(LONGEST_WAIT).as_secs().max(1);
                server
                    .get(&format!("/v1/decisions/{id}?wait={seconds}"))
                    .await
            }
            Self::Local { service, identity } => {
                Decision::of(&service.wait_for_outside_call(identity, id, wait).await?)
            }
        }
    }

    /// Begins a call.
    pub(super) async fn begin(&self, decision: &Decision) -> anyhow::Result<Decision> {
        match self {
            Self::Server(server) => {
                let path = format!("/v1/decisions/{}/begin", decision.id);
                server
                    .post(&path, &json!({"digest": decision.digest}))
                    .await
            }
            Self::Local { service, identity } => {
                let digest = decision.digest.as_deref().map(str::parse::<Digest>);
                let digest = digest.transpose()?;
                let begun = service.begin_outside_call(identity, &decision.id, digest);
                Decision::of(&begun.await?)
            }
        }
    }

    /// The decision about a call of a session, by the program's own id.
    pub(super) async fn find(
        &self,
        program: &str,
        session: &str,
        call_id: &str,
    ) -> anyhow::Result<Option<Decision>> {
        match self {
            Self::Server(server) => {
                let query = [
                    ("program", program),
                    ("session", session),
                    ("call_id", call_id),
                ];
                let query: Vec<String> = query
                    .iter()
                    .map(|(name, value)| format!("{name}={}", encoded(value)))
                    .collect();
                let page: Value = server
                    .get(&format!("/v1/decisions?{}", query.join("&")))
                    .await?;
                let first = page["items"].get(0).cloned();
                Ok(first.map(serde_json::from_value).transpose()?)
            }
            Self::Local { service, identity } => {
                let found =
                    service.outside_decision_of(identity, Some(program), Some(session), call_id);
                match found {
                    Ok(decision) => Decision::of(&decision).map(Some),
                    Err(error) if error.code() == "no_such_decision" => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// Reports how a call ended. One that has ended already stays as it is.
    pub(super) async fn end(&self, id: &str, outcome: &Value) -> anyhow::Result<()> {
        match self {
            Self::Server(server) => {
                let path = format!("/v1/decisions/{id}/outcome");
                server.post::<Value>(&path, outcome).await.map(drop)
            }
            Self::Local { service, identity } => {
                let message = || outcome["message"].as_str().unwrap_or_default().to_owned();
                let reported = match outcome["outcome"].as_str() {
                    Some("success") => OutsideOutcome::Success(outcome["result"].clone()),
                    Some("not_made") => OutsideOutcome::NotMade(message()),
                    _ => OutsideOutcome::Error(message()),
                };
                let ended: Result<_, ServiceError> =
                    service.end_outside_call(identity, id, reported).await;
                ended.map(drop).map_err(Into::into)
            }
        }
    }
}

/// A value in a query.
fn encoded(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    value
        .bytes()
        .map(|byte| match is_plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

impl Server {
    async fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.send(path, None).await
    }

    async fn post<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<T> {
        self.send(path, Some(body)).await
    }

    async fn send<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<T> {
        let client = windlass_http::client_builder()
            .connect_timeout(Duration::from_secs(5))
            .timeout(LONGEST_WAIT + ANSWER_TIME)
            .build()?;
        let url = format!("{}{path}", self.address);
        let request = match body {
            Some(body) => client
                .post(&url)
                .header("Content-Type", "application/json")
                .body(body.to_string()),
            None => client.get(&url),
        };
        let request = request.header("Authorization", format!("Bearer {}", self.token));
        let unreachable = || format!("the server {} cannot be reached", self.address);
        let answer = request.send().await.with_context(unreachable)?;
        let status = answer.status();
        let text = answer.text().await.with_context(unreachable)?;
        let answered: Value = serde_json::from_str(&text).with_context(|| {
            format!(
                "the server {} did not answer with JSON ({status})",
                self.address
            )
        })?;
        if !status.is_success() {
            let part = |name: &str| answered[name].as_str().unwrap_or_default().to_owned();
            bail!("{}: {} ({})", part("title"), part("detail"), part("code"));
        }
        Ok(serde_json::from_value(answered)?)
    }
}
