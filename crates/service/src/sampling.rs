//! MCP sampling: answers requests of permitted servers with the configured model. The model sees only the
//! server's messages, nothing of a run, and cannot call tools.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_config::Configuration;
use windlass_core::model::{
    ChatMessage, FINISH, ModelAnswer, ModelRequest, RequestedArguments, Usage,
};
use windlass_mcp::{BoxFuture, SampleAnswer, SampleRequest, Sampler};
use windlass_model::{HostedModel, HostedSettings, ModelClient as _};
use windlass_runtime::{Stored, now, priced_usage};
use windlass_spec::Model;
use windlass_spec::server::ServerSettings;
use windlass_store::{NewUsage, UsagePurpose};

/// The largest number of output tokens for a server.
const MAX_TOKENS: u32 = 4_096;

/// The configured model, for servers.
pub(crate) struct ConfiguredModel {
    model: Option<String>,
    base_url: Option<String>,
    configuration: Configuration,
    /// The server that asks.
    server: String,
    /// Where the usage is recorded.
    stored: Option<Stored>,
}

impl ConfiguredModel {
    pub(crate) fn of(
        configuration: &Configuration,
        server: &ServerSettings,
        stored: Option<Stored>,
    ) -> Self {
        Self {
            model: configuration.model().map(str::to_owned),
            base_url: configuration.base_url().map(str::to_owned),
            configuration: configuration.clone(),
            server: server.name.to_string(),
            stored,
        }
    }

    /// Records what an answer used up. The answer was paid for, and is used even if that cannot be stored.
    fn record(&self, client: &HostedModel, usage: Usage) {
        let Some(stored) = &self.stored else {
            return;
        };
        let new = NewUsage {
            who: stored.who(),
            agent: &self.server,
            run: None,
            purpose: UsagePurpose::Sampling,
            model: client.priced_name(),
            usage: priced_usage(&self.configuration, client, usage),
            at: now(),
        };
        if let Err(error) = stored.store().record_usage(&new) {
            tracing::warn!(%error, "usage_not_recorded");
        }
    }

    async fn answer(&self, request: SampleRequest) -> Result<SampleAnswer, String> {
        let none = "this client has no model for servers: its configuration does not set `model`";
        let name = self.model.clone().ok_or(none)?;
        let model: Model = name.parse().map_err(|_| none.to_owned())?;
        let settings = HostedSettings {
            base_url: self.base_url.clone(),
            max_output_tokens: Some(request.max_tokens.min(MAX_TOKENS)),
            ..HostedSettings::default()
        };
        let client = HostedModel::new(&model, settings).map_err(|error| error.to_string())?;
        let system = request
            .system_prompt
            .map(|content| ChatMessage::System { content });
        let messages = request
            .messages
            .into_iter()
            .map(|message| match message.is_from_model {
                true => ChatMessage::Assistant {
                    content: message.text,
                    calls: Vec::new(),
                },
                false => ChatMessage::User {
                    content: message.text,
                },
            });
        let asked = ModelRequest {
            messages: system.into_iter().chain(messages).map(Arc::new).collect(),
            tools: Vec::new(),
        };
        let cancel = CancellationToken::new();
        let answer = client.answer(&asked, &cancel, &mut |_| {}).await;
        let answer = answer.map_err(|error| error.to_string())?;
        self.record(&client, answer.usage);
        let text = text(answer);
        Ok(SampleAnswer { model: name, text })
    }
}

/// The text of a model's answer, also if the model called `finish`.
fn text(answer: ModelAnswer) -> String {
    let finished = answer.calls.iter().find(|call| call.tool == FINISH);
    let text = finished.and_then(|call| match &call.arguments {
        RequestedArguments::Json(arguments) => arguments.get("answer").cloned(),
        RequestedArguments::Text(text) => serde_json::from_str::<Value>(text)
            .ok()?
            .get("answer")
            .cloned(),
    });
    match text {
        Some(Value::String(text)) => text,
        _ => answer.text,
    }
}

impl Sampler for ConfiguredModel {
    fn sample(&self, request: SampleRequest) -> BoxFuture<'_, Result<SampleAnswer, String>> {
        Box::pin(self.answer(request))
    }
}
