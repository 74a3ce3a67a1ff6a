//! What a request is about.

use std::sync::Arc;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage,
};

use crate::client::wire::{Flight, Wire};

/// What a request is about, for telling that it failed.
pub(super) struct Subject {
    pub(super) flight: Option<Arc<Flight>>,
    pub(super) id: Option<RequestId>,
    pub(super) is_greeting: bool,
    pub(super) is_probe: bool,
    pub(super) is_call: bool,
}

impl Subject {
    pub(super) fn of(message: &ClientJsonRpcMessage) -> Self {
        let (id, request) = match message {
            ClientJsonRpcMessage::Request(request) => {
                (Some(request.id.clone()), Some(&request.request))
            }
            _ => (None, None),
        };
        let is_probe = matches!(request, Some(ClientRequest::DiscoverRequest(_)));
        Self {
            flight: Wire::flight_in(message),
            id,
            is_greeting: is_probe || matches!(request, Some(ClientRequest::InitializeRequest(_))),
            is_probe,
            is_call: matches!(request, Some(ClientRequest::CallToolRequest(_))),
        }
    }

    /// The error to give the library instead of an answer.
    pub(super) fn error(&self, message: &str) -> ServerJsonRpcMessage {
        let data = ErrorData::new(ErrorCode::INTERNAL_ERROR, message.to_owned(), None);
        ServerJsonRpcMessage::error(data, self.id.clone())
    }

    /// The subject of what nobody waits for.
    pub(super) fn nobody() -> Self {
        Self {
            flight: None,
            id: None,
            is_greeting: false,
            is_probe: false,
            is_call: false,
        }
    }
}
