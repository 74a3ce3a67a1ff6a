//! What a server may ask of this program: a question to a person, a model where the operator allows
//! it, and nothing else.

// Models and directories are deprecated in the protocol; servers of the legacy era still ask for them.
#![allow(deprecated)]

use std::sync::Arc;

use rmcp::ClientHandler;
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    CustomRequest, CustomResult, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorCode, ErrorData, Extensions, FormElicitationCapability,
    Implementation, ListRootsResult, ProtocolVersion, SamplingCapability, UrlElicitationCapability,
};
use rmcp::service::{InboundStreamOrigin, RequestContext};
use serde_json::Value;
use tokio::sync::oneshot;
use windlass_spec::server::ServerSettings;

use super::api::{Reply, Sampler, ServerOptions};
use super::sampling;
use super::wire::{Flight, Question, Wire};

/// Answers a server.
#[derive(Clone)]
pub(crate) struct Handler {
    wire: Arc<Wire>,
    sampler: Option<Arc<dyn Sampler>>,
}

impl Handler {
    pub(crate) fn new(settings: &ServerSettings, options: &ServerOptions, wire: Arc<Wire>) -> Self {
        Self {
            wire,
            sampler: options.sampler.clone().filter(|_| settings.may_sample),
        }
    }

    /// The call that something the server asks belongs to.
    fn call_meant(&self, extensions: &Extensions) -> Result<Arc<Flight>, ErrorData> {
        let request = match extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
            _ => None,
        };
        let flight = self.wire.call_meant(request).ok_or_else(|| {
            refused(
                "it cannot be told which call this belongs to: there is none, or there are several",
            )
        })?;
        match flight.count_asked() > self.wire.limits.rounds {
            true => Err(refused("this call asks too often")),
            false => Ok(flight),
        }
    }

    /// Puts a question to whoever waits for the call.
    async fn ask(
        &self,
        params: Value,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let flight = self.call_meant(&context.extensions)?;
        let (answer, answered) = oneshot::channel();
        flight
            .ask(Question { params, answer })
            .map_err(|_| refused("this call asks too much at once"))?;
        // The question keeps the call; the call must not be kept by its own question.
        drop(flight);
        let reply = tokio::select! {
            reply = answered => reply.unwrap_or(Reply::Cancel),
            () = context.ct.cancelled() => Reply::Cancel,
            () = self.wire.ended.cancelled() => Reply::Cancel,
        };
        Ok(match reply {
            Reply::Accept(fields) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(fields))
            }
            Reply::Decline => ElicitResult::new(ElicitationAction::Decline),
            Reply::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    /// Asks the model, if that is allowed. Gives the `CreateMessageResult`.
    pub(crate) async fn sample(&self, params: &Value) -> Result<Value, String> {
        let Some(sampler) = &self.sampler else {
            return Err("this client lends no model".to_owned());
        };
        let request = sampling::request(params)?;
        let answer = sampler.sample(request).await?;
        Ok(sampling::result(answer))
    }
}

fn refused(why: &str) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, why.to_owned(), None)
}

fn unreadable(error: serde_json::Error) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_PARAMS, error.to_string(), None)
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::default())
                .with_url(UrlElicitationCapability::default()),
        );
        if self.sampler.is_some() {
            capabilities.sampling = Some(SamplingCapability::default());
        }
        let client = Implementation::new("windlass", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, client)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(request).map_err(unreadable)?;
        self.ask(params, context).await
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        if self.sampler.is_none() {
            return Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                "this client lends no model",
                None,
            ));
        }
        let _flight = self.call_meant(&context.extensions)?;
        let params = serde_json::to_value(params).map_err(unreadable)?;
        let answer = tokio::select! {
            answer = self.sample(&params) => answer,
            () = context.ct.cancelled() => Err("cancelled".to_owned()),
            () = self.wire.ended.cancelled() => Err("closed".to_owned()),
        };
        let result = answer.map_err(|error| refused(&error))?;
        serde_json::from_value(result).map_err(unreadable)
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            "this client shows no directories",
            None,
        ))
    }

    /// Questions that the library cannot read come here; they may still be understood.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        match request.method.as_str() {
            "elicitation/create" => {
                let params = request.params.unwrap_or_default();
                let result = self.ask(params, context).await?;
                let result = serde_json::to_value(result).map_err(unreadable)?;
                Ok(CustomResult::new(result))
            }
            method => Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                method.to_owned(),
                None,
            )),
        }
    }
}
