//! Answers MCP servers that ask for a model and may: by the model of the configuration, with nothing but
//! what the server wrote. Nothing of a run is in it, and no tool can be called.

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_config::Configuration;
use windlass_core::model::{ChatMessage, FINISH, ModelAnswer, ModelRequest, RequestedArguments};
use windlass_mcp::{BoxFuture, SampleAnswer, SampleRequest, Sampler};
use windlass_model::{HostedModel, HostedSettings, ModelClient as _};
use windlass_spec::Model;

/// How many tokens a server may have at most.
const MOST_TOKENS: u32 = 4_096;

/// The model of the configuration, for servers.
pub(crate) struct ConfiguredModel {
    model: Option<String>,
    base_url: Option<String>,
}

impl ConfiguredModel {
    pub(crate) fn of(configuration: &Configuration) -> Self {
        Self {
            model: configuration.model().map(str::to_owned),
            base_url: configuration.base_url().map(str::to_owned),
        }
    }

    async fn answer(&self, request: SampleRequest) -> Result<SampleAnswer, String> {
        let none = "this client has no model for servers: `model` in its configuration names none";
        let name = self.model.clone().ok_or(none)?;
        let model: Model = name.parse().map_err(|_| none.to_owned())?;
        let settings = HostedSettings {
            base_url: self.base_url.clone(),
            max_output_tokens: Some(request.max_tokens.min(MOST_TOKENS)),
            ..HostedSettings::default()
        };
        let client = HostedModel::new(&model, settings).map_err(|error| error.to_string())?;
        let system = request
            .system_prompt
            .map(|content| ChatMessage::System { content });
        let said = request
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
            messages: system.into_iter().chain(said).collect(),
            tools: Vec::new(),
        };
        let nothing = CancellationToken::new();
        let answer = client.answer(&asked, &nothing, &mut |_| {}).await;
        let text = text(answer.map_err(|error| error.to_string())?);
        Ok(SampleAnswer { model: name, text })
    }
}

/// What the model said, also if it said so by finishing.
fn text(answer: ModelAnswer) -> String {
    let finished = answer.calls.iter().find(|call| call.tool == FINISH);
    let said = finished.and_then(|call| match &call.arguments {
        RequestedArguments::Json(arguments) => arguments.get("answer").cloned(),
        RequestedArguments::Text(text) => serde_json::from_str::<Value>(text)
            .ok()?
            .get("answer")
            .cloned(),
    });
    match said {
        Some(Value::String(said)) => said,
        _ => answer.text,
    }
}

impl Sampler for ConfiguredModel {
    fn sample(&self, request: SampleRequest) -> BoxFuture<'_, Result<SampleAnswer, String>> {
        Box::pin(self.answer(request))
    }
}
