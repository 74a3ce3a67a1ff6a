//! The properties of a request that error handling needs.

use std::sync::Arc;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage,
};

use crate::client::wire::{PendingRequest, Wire};

/// The properties of a request that error handling needs.
pub(super) struct RequestInfo {
    pub(super) pending: Option<Arc<PendingRequest>>,
    pub(super) id: Option<RequestId>,
    pub(super) is_handshake: bool,
    pub(super) is_probe: bool,
    pub(super) is_call: bool,
}

impl RequestInfo {
    pub(super) fn of(message: &ClientJsonRpcMessage) -> Self {
        let (id, request) = match message {
            ClientJsonRpcMessage::Request(request) => {
                (Some(request.id.clone()), Some(&request.request))
            }
            _ => (None, None),
        };
        let is_probe = matches!(request, Some(ClientRequest::DiscoverRequest(_)));
        Self {
            pending: Wire::pending_in(message),
            id,
            is_handshake: is_probe || matches!(request, Some(ClientRequest::InitializeRequest(_))),
            is_probe,
            is_call: matches!(request, Some(ClientRequest::CallToolRequest(_))),
        }
    }

    /// The error that `rmcp` gets instead of an answer.
    pub(super) fn error(&self, message: &str) -> ServerJsonRpcMessage {
        let data = ErrorData::new(ErrorCode::INTERNAL_ERROR, message.to_owned(), None);
        ServerJsonRpcMessage::error(data, self.id.clone())
    }

    /// For a request whose result is not awaited.
    pub(super) fn none() -> Self {
        Self {
            pending: None,
            id: None,
            is_handshake: false,
            is_probe: false,
            is_call: false,
        }
    }
}
