//! The requests of a server that this client answers: elicitation, and sampling where the operator allows
//! it.

// Sampling and roots are deprecated in the protocol; servers of the legacy era still request them.
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

use super::api::{ElicitationReply, Sampler, ServerOptions};
use super::sampling;
use super::wire::{PendingElicitation, PendingRequest, Wire};

/// Answers the requests of a server.
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

    /// The call that a request of the server belongs to.
    fn related_call(&self, extensions: &Extensions) -> Result<Arc<PendingRequest>, ErrorData> {
        let request = match extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
            _ => None,
        };
        let call = self.wire.related_call(request).ok_or_else(|| {
            refused("the request cannot be matched to a call: there is none, or there are several")
        })?;
        match call.count_input_request() > self.wire.limits.rounds {
            true => Err(refused("this call requests input too often")),
            false => Ok(call),
        }
    }

    /// Passes an elicitation to the task that waits for the call.
    async fn elicit(
        &self,
        params: Value,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let call = self.related_call(&context.extensions)?;
        let (answer, answered) = oneshot::channel();
        call.elicit(PendingElicitation { params, answer })
            .map_err(|_| refused("this call has too many elicitations at the same time"))?;
        // Otherwise the pending elicitation would keep its own call alive.
        drop(call);
        let reply = tokio::select! {
            reply = answered => reply.unwrap_or(ElicitationReply::Cancel),
            () = context.ct.cancelled() => ElicitationReply::Cancel,
            () = self.wire.ended.cancelled() => ElicitationReply::Cancel,
        };
        Ok(match reply {
            ElicitationReply::Accept(fields) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(fields))
            }
            ElicitationReply::Decline => ElicitResult::new(ElicitationAction::Decline),
            ElicitationReply::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    /// Asks the model, if sampling is allowed. Returns the `CreateMessageResult`.
    pub(crate) async fn sample(&self, params: &Value) -> Result<Value, String> {
        let Some(sampler) = &self.sampler else {
            return Err("this client does not allow sampling".to_owned());
        };
        let request = sampling::request(params)?;
        let answer = sampler.sample(request).await?;
        Ok(sampling::result(answer))
    }
}

fn refused(reason: &str) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, reason.to_owned(), None)
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
        self.elicit(params, context).await
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        if self.sampler.is_none() {
            return Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                "this client does not allow sampling",
                None,
            ));
        }
        let _call = self.related_call(&context.extensions)?;
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
            "this client has no roots",
            None,
        ))
    }

    /// Handles elicitations that `rmcp` cannot parse.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        match request.method.as_str() {
            "elicitation/create" => {
                let params = request.params.unwrap_or_default();
                let result = self.elicit(params, context).await?;
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
