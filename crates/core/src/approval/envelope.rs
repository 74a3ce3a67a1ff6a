//! An approval as the response envelope that reports a pending question.

use serde_json::{Map, Value};
use windlass_spec::envelope::{AskHuman, AuthorizationRequest, Intervention, PendingCall};
use windlass_spec::{NonEmptyText, ToolResponse};

use super::{Approval, Question};

impl Approval {
    /// The response that reports the pending question: `request_authorization` for a call, `ask_human`
    /// for everything else.
    #[must_use]
    pub fn response(&self) -> ToolResponse {
        self.typed_response().with_extra(self.further_fields())
    }

    /// What the person sees and the response has no field for: the credentials that a call would use, the call
    /// that a tool names, and further fields of its request.
    fn further_fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        let call = self.question().authorize();
        if let Some(credentials) = call.and_then(|call| call.credentials.as_ref())
            && let Ok(Value::Object(credentials)) = serde_json::to_value(credentials)
        {
            fields.extend(credentials);
        }
        if let Some(named) = &self.request().named_call {
            fields.insert("tool_name".to_owned(), named.tool_name.as_str().into());
            fields.insert("tool_args".to_owned(), named.tool_args.clone().into());
        }
        fields.extend(self.request().further.clone());
        fields
    }

    fn typed_response(&self) -> ToolResponse {
        let request = self.request();
        let at = request.asked_at;
        match self.question() {
            Question::Authorize(call) => {
                let pending = PendingCall {
                    request_id: NonEmptyText::or(&request.call.to_string(), "-"),
                    tool_name: call.tool_name.clone(),
                    tool_args: call.tool_args.clone(),
                    security_level: call.security_level,
                    expires_at: request.expires_at,
                };
                let written = AuthorizationRequest {
                    user_id: request.user_id.clone(),
                    instruction: request.instruction.clone(),
                    message: request.message.clone(),
                    ..AuthorizationRequest::new(pending, call.reason.clone())
                };
                ToolResponse::authorization(written, at)
            }
            Question::Ask(ask) => {
                let options: Vec<&str> = ask.options.iter().map(NonEmptyText::as_str).collect();
                let choose = (!options.is_empty())
                    .then(|| format!("Choose one of: {}.", options.join(", ")));
                let written = AskHuman {
                    context: ask.context.clone(),
                    user_id: request.user_id.clone(),
                    instruction: request.instruction.clone().or(choose),
                    message: request.message.clone(),
                    ..AskHuman::new(ask.question.clone())
                };
                ToolResponse::ask_human(written, at)
            }
            Question::Intervene(work) => {
                let message = request.message.as_ref().unwrap_or(&work.message);
                let written = Intervention {
                    status: work.status,
                    url: work.url.clone(),
                    screenshot: work.screenshot.clone(),
                    oauth_url: work.oauth_url.clone(),
                    details: work.details.clone(),
                    instruction: request.instruction.clone(),
                    ..Intervention::new(
                        work.intervention_type,
                        work.provider.clone(),
                        message.clone(),
                    )
                };
                ToolResponse::intervention(written, at)
            }
        }
    }
}
