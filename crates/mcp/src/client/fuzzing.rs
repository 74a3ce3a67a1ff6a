//! The parts that read bytes of servers, without a server. Only for fuzz targets.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ListToolsRequest, RequestId, ServerJsonRpcMessage,
};
use serde_json::Value;
use sse_stream::SseStream;
use windlass_spec::{Effect, ErrorCategory, Timestamp};

use super::api::{CallError, Limits};
use super::elicitation;
use super::http::response::bounded;
use super::list::Listing;
use super::schema::Schema;
use super::wire::{Inbound, PendingRequest, Wire};
use crate::{Definition, pin, text};

/// The most bytes of an event.
const MOST_BYTES: usize = 4096;

/// Reads a line that the program of a server wrote, as the answer to a list of tools, and as an elicitation.
pub fn read_message(line: &[u8]) {
    let (wire, pending) = wire();
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        let error = CallError::new(ErrorCategory::InvalidOutput, Effect::Unknown, "unreadable");
        let failed = wire.fail_unreadable(&[line], &error);
        assert_eq!(failed, [1]);
        return;
    };
    let _ = elicitation::read(&message, &wire.limits);
    if let Some(params) = message.get("params") {
        let _ = elicitation::read(params, &wire.limits);
    }
    if let Inbound::Pass(message) = wire.receive(message, false) {
        let _ = serde_json::from_value::<ServerJsonRpcMessage>(message);
    }
    let answer = pending.take_answer().unwrap_or_default();
    let tools = answer.get("tools").and_then(Value::as_array);
    let tools = tools.into_iter().flatten();
    let definitions: Vec<Definition> = tools
        .filter_map(|tool| tool.as_object().cloned())
        .map(Definition::new)
        .collect();
    for definition in &definitions {
        let _ = text::findings(definition);
        if crate::bounds::check(definition).is_ok()
            && let Some(schema) = definition.input_schema()
        {
            let _ = Schema::new(schema);
        }
    }
    let at = Timestamp::from_microseconds(0);
    let pins = pin::reconcile(&[], definitions.clone(), true, at);
    let again = pin::reconcile(&pins, definitions, false, at);
    assert_eq!(again, pins);
    for pin in &pins {
        let _ = pin::diff(pin);
    }
}

/// Reads an event stream that arrives in pieces of `size` bytes.
pub fn read_events(bytes: &[u8], size: usize) {
    let (wire, _pending) = wire();
    let pieces: Vec<Result<Vec<u8>, reqwest::Error>> =
        bytes.chunks(size).map(|piece| Ok(piece.to_vec())).collect();
    let pieces =
        bounded(stream::iter(pieces), MOST_BYTES).map(|piece| piece.map(std::io::Cursor::new));
    let mut events = SseStream::from_bytes_stream(pieces);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        while let Some(Ok(event)) = events.next().await {
            let Some(data) = event.data else { continue };
            assert!(data.len() <= MOST_BYTES);
            if let Ok(message) = serde_json::from_str::<Value>(&data)
                && let Inbound::Pass(message) = wire.receive(message, true)
            {
                let _ = serde_json::from_value::<ServerJsonRpcMessage>(message);
            }
        }
    });
}

/// A connection with one request, whose id is 1.
fn wire() -> (Wire, Arc<PendingRequest>) {
    let listing = Listing::new(Duration::ZERO, Duration::ZERO);
    let wire = Wire::new(Arc::new(listing), Limits::default());
    let (pending, _elicitations) = PendingRequest::new(false, None);
    let mut request = ListToolsRequest::default();
    request.extensions.insert(Arc::clone(&pending));
    let request = ClientRequest::ListToolsRequest(request);
    wire.mark_sent(&ClientJsonRpcMessage::request(
        request,
        RequestId::Number(1),
    ));
    (wire, pending)
}
