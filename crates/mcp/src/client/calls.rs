//! One call from its request to its answer, with the elicitations in between. A call that is dropped
//! withdraws its request, or sends the server a `cancelled` notification.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
    ClientNotification, ClientRequest, ErrorCode, ErrorData, RequestId, RequestMetaObject,
    ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::instrument;
use windlass_spec::{Effect, ErrorCategory};

use super::api::{CallError, CallRequest, Elicitation, ElicitationReply, Era, ToolAnswer};
use super::connection::Connection;
use super::output::OutputSchemas;
use super::wire::{PendingElicitation, PendingRequest};
use super::{elicitation, shown};

/// The key in `_meta` of the proof of an approval that the tool asked for.
const APPROVAL_META: &str = "windlass/approval";

/// A call whose request is in flight, or that waits for the user.
pub(crate) struct Call {
    pub(crate) connection: Arc<Connection>,
    request: CallRequest,
    /// The request in flight. A call of the modern era that waits for the user has none.
    in_flight: Option<InFlight>,
    awaited: Option<AwaitedReply>,
    /// The number of requests for input so far.
    input_requests: usize,
}

/// What a call has reached.
pub(crate) enum Step {
    Answered(ToolAnswer),
    NeedsInput(Elicitation),
}

/// A request in flight.
struct InFlight {
    request: Arc<PendingRequest>,
    answer: oneshot::Receiver<Result<ServerResult, ServiceError>>,
    elicitations: mpsc::Receiver<PendingElicitation>,
    cancel_on_drop: CancelOnDrop,
}

/// Withdraws the request, or notifies the server that it is cancelled, unless it was answered.
struct CancelOnDrop {
    peer: Peer<RoleClient>,
    request: Arc<PendingRequest>,
    id: Option<RequestId>,
}

/// Where the user's reply goes.
enum AwaitedReply {
    /// To the server, which sent an elicitation request during the call.
    Elicitation(oneshot::Sender<ElicitationReply>),
    /// Into the next request, once all inputs are there.
    Inputs(InputRequests),
}

/// The input requests of an `input_required` result.
#[derive(Default)]
struct InputRequests {
    state: Option<String>,
    open: VecDeque<(String, Value)>,
    asked: Option<String>,
    responses: BTreeMap<String, Value>,
}

impl Call {
    pub(crate) fn new(connection: Arc<Connection>, request: CallRequest) -> Self {
        Self {
            connection,
            request,
            in_flight: None,
            awaited: None,
            input_requests: 0,
        }
    }

    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.request.cancel
    }

    /// Sends the request and waits for an answer or an elicitation.
    #[instrument(
        name = "mcp_request",
        level = "debug",
        skip_all,
        fields(mcp.method.name = "tools/call", gen_ai.tool.name = %self.request.tool)
    )]
    pub(crate) async fn begin(&mut self, schemas: &OutputSchemas) -> Result<Step, CallError> {
        if let Some(output_schema) = &self.request.output_schema {
            schemas.prepare(&self.request.tool, output_schema)?;
        }
        self.send(InputRequests::default()).await?;
        self.wait(schemas).await
    }

    /// Passes the user's reply on and waits for the next step. Cancellation and progress are those of the
    /// new request.
    pub(crate) async fn reply(
        &mut self,
        request: CallRequest,
        reply: ElicitationReply,
        schemas: &OutputSchemas,
    ) -> Result<Step, CallError> {
        // The tool and the arguments were decided when the call started.
        let original = std::mem::replace(&mut self.request, request);
        self.request.tool = original.tool;
        self.request.arguments = original.arguments;
        match self.awaited.take() {
            None => return Err(self.lost("the call does not wait for a reply")),
            Some(AwaitedReply::Elicitation(answer)) => {
                // If the server withdrew its elicitation, the call may still be answered.
                let _ = answer.send(reply);
            }
            Some(AwaitedReply::Inputs(mut inputs)) => {
                if let Some(key) = inputs.asked.take() {
                    inputs.responses.insert(key, elicitation::result(reply));
                }
                if let Some(elicitation) = self.provide(inputs).await? {
                    return Ok(Step::NeedsInput(elicitation));
                }
            }
        }
        self.wait(schemas).await
    }

    async fn send(&mut self, inputs: InputRequests) -> Result<(), CallError> {
        let mut params = CallToolRequestParams::new(self.request.tool.clone());
        params.arguments = Some(self.request.arguments.clone());
        params.request_state = inputs.state;
        params.input_responses = Some(inputs.responses).filter(|responses| !responses.is_empty());
        let (pending, elicitations) = PendingRequest::new(true, self.request.progress.clone());
        if let Some(statement) = &self.request.approval {
            let mut meta = RequestMetaObject::default();
            meta.insert(APPROVAL_META.to_owned(), statement.as_str().into());
            params.meta = Some(meta);
        }
        let mut request = CallToolRequest::new(params);
        request.extensions.insert(Arc::clone(&pending));
        let peer = self.connection.peer.clone();
        let mut cancel_on_drop = CancelOnDrop {
            peer: peer.clone(),
            request: Arc::clone(&pending),
            id: None,
        };
        let request = ClientRequest::CallToolRequest(request);
        let options = PeerRequestOptions::no_options();
        let cancel = self.request.cancel.clone();
        let sent = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(self.cancelled(&pending)),
            sent = peer.send_request_with_option(request, options) => sent,
        };
        let handle = sent.map_err(|error| self.failed(&pending, Some(error)))?;
        cancel_on_drop.id = Some(handle.id);
        self.in_flight = Some(InFlight {
            request: pending,
            answer: handle.rx,
            elicitations,
            cancel_on_drop,
        });
        Ok(())
    }

    /// Waits for the next step.
    async fn wait(&mut self, schemas: &OutputSchemas) -> Result<Step, CallError> {
        let cancel = self.request.cancel.clone();
        let ended = self.connection.wire.ended.clone();
        loop {
            let Some(in_flight) = &mut self.in_flight else {
                return Err(self.lost("the call has no request in flight"));
            };
            let answer = tokio::select! {
                biased;
                answer = &mut in_flight.answer => answer,
                () = cancel.cancelled() => {
                    let request = Arc::clone(&in_flight.request);
                    self.in_flight = None;
                    return Err(self.cancelled(&request));
                }
                Some(elicitation) = in_flight.elicitations.recv() => {
                    if let Some(step) = self.take_elicitation(elicitation)? {
                        return Ok(step);
                    }
                    continue;
                }
                () = ended.cancelled() => match in_flight.answer.try_recv() {
                    Ok(answer) => Ok(answer),
                    Err(_) => Ok(Err(ServiceError::TransportClosed)),
                },
            };
            let Some(mut in_flight) = self.in_flight.take() else {
                return Err(self.lost("the call has no request in flight"));
            };
            in_flight.request.report_held_back();
            in_flight.cancel_on_drop.id = None;
            let result = match answer {
                Ok(Ok(_)) => in_flight.request.take_answer(),
                Ok(Err(error)) => return Err(self.failed(&in_flight.request, Some(error))),
                Err(_) => return Err(self.failed(&in_flight.request, None)),
            };
            let Some(result) = result else {
                return Err(self.failed(&in_flight.request, None));
            };
            self.connection.note_answer();
            if let Some(step) = self.take_result(result, schemas).await? {
                return Ok(step);
            }
        }
    }

    /// Handles a result. Returns the answer, an elicitation, or `None` if the request was sent again.
    async fn take_result(
        &mut self,
        mut result: Value,
        schemas: &OutputSchemas,
    ) -> Result<Option<Step>, CallError> {
        let is_modern = self.connection.server_info.era == Era::Modern;
        let kind = result.get("resultType").and_then(Value::as_str);
        match kind {
            Some("input_required") if is_modern => {}
            Some("task") => {
                return Err(
                    self.lost("the server turned the call into a task, which is not supported")
                );
            }
            None | Some("complete") => {
                let (tool, most) = (&self.request.tool, self.request.max_output_bytes);
                let output_schema = self.request.output_schema.as_ref();
                let answer = schemas.answer(result, tool, output_schema, most).await?;
                return Ok(Some(Step::Answered(answer)));
            }
            Some(kind) => {
                let kind = shown(kind, 40);
                return Err(self.lost(&format!(
                    "the server answered with an unknown result type `{kind}`"
                )));
            }
        }
        let Some(requests) = elicitation::requests(&mut result) else {
            return Err(self.lost("the server's input requests cannot be read"));
        };
        // Each request may be an elicitation. A result without requests asks for a retry and counts too.
        self.input_requests = self.input_requests.saturating_add(requests.len().max(1));
        if self.input_requests > self.connection.wire.limits.rounds {
            return Err(self.lost("the server requests input too often"));
        }
        let state = result.get("requestState").and_then(Value::as_str);
        let inputs = InputRequests {
            state: state.map(str::to_owned),
            open: requests.into_iter().collect(),
            ..InputRequests::default()
        };
        Ok(self.provide(inputs).await?.map(Step::NeedsInput))
    }

    /// Answers the input requests that need no user, up to the next elicitation. Sends the call again
    /// when all are answered.
    async fn provide(
        &mut self,
        mut inputs: InputRequests,
    ) -> Result<Option<Elicitation>, CallError> {
        while let Some((key, request)) = inputs.open.pop_front() {
            let params = request.get("params").unwrap_or(&Value::Null);
            match request.get("method").and_then(Value::as_str) {
                Some("elicitation/create") => {
                    match elicitation::read(params, &self.connection.wire.limits) {
                        Ok(elicitation) => {
                            inputs.asked = Some(key);
                            self.awaited = Some(AwaitedReply::Inputs(inputs));
                            return Ok(Some(elicitation));
                        }
                        Err(_) => {
                            inputs
                                .responses
                                .insert(key, elicitation::result(ElicitationReply::Decline));
                        }
                    }
                }
                Some("sampling/createMessage") => {
                    let cancel = self.request.cancel.clone();
                    let answer = tokio::select! {
                        () = cancel.cancelled() => return Err(stopped(Effect::Unknown)),
                        answer = self.connection.handler.sample(params) => answer,
                    };
                    let answer = answer.map_err(|reason| {
                        self.lost(&format!("the server's sampling request failed: {reason}"))
                    })?;
                    inputs.responses.insert(key, answer);
                }
                _ => {
                    return Err(self.lost(
                        "the server sent an input request that this client does not support",
                    ));
                }
            }
        }
        self.send(inputs).await?;
        Ok(None)
    }

    /// Handles an elicitation request during the call.
    fn take_elicitation(&mut self, request: PendingElicitation) -> Result<Option<Step>, CallError> {
        match elicitation::read(&request.params, &self.connection.wire.limits) {
            Ok(elicitation) => {
                self.awaited = Some(AwaitedReply::Elicitation(request.answer));
                Ok(Some(Step::NeedsInput(elicitation)))
            }
            Err(_) => {
                let _ = request.answer.send(ElicitationReply::Decline);
                Ok(None)
            }
        }
    }

    fn cancelled(&self, request: &PendingRequest) -> CallError {
        stopped(match request.withdraw() {
            true => Effect::None,
            false => Effect::Unknown,
        })
    }

    /// The error for a call whose effect is unknown.
    fn lost(&self, message: &str) -> CallError {
        CallError::new(ErrorCategory::ToolFailure, Effect::Unknown, message)
    }

    /// The error for a request that failed.
    fn failed(&self, request: &PendingRequest, error: Option<ServiceError>) -> CallError {
        if let Some(failure) = request.take_failure() {
            return failure;
        }
        if let Some(ServiceError::McpError(error)) = &error {
            return refused(error, self.connection.wire.limits.text_characters);
        }
        let effect = match request.withdraw() {
            true => Effect::None,
            false => Effect::Unknown,
        };
        let reason = match (self.connection.wire.failure(), error) {
            (Some(failure), _) => failure.message,
            (None, Some(error)) => shown(&error.to_string(), 500),
            (None, None) => "the server has ended".to_owned(),
        };
        let when = match effect {
            Effect::None => "before the call was sent",
            Effect::Applied | Effect::Unknown => "during the call",
        };
        CallError::new(
            ErrorCategory::Unavailable,
            effect,
            format!("{reason}, {when}"),
        )
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else {
            self.request.withdraw();
            return;
        };
        if self.request.withdraw() {
            return;
        }
        let (peer, notification) = (self.peer.clone(), cancelled_notification(id));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = peer.send_notification(notification).await;
            });
        }
    }
}

fn cancelled_notification(id: RequestId) -> ClientNotification {
    let reason = Some("the client no longer waits for the answer".to_owned());
    let params = CancelledNotificationParam::new(Some(id), reason);
    ClientNotification::CancelledNotification(CancelledNotification::new(params))
}

fn stopped(effect: Effect) -> CallError {
    CallError::own(ErrorCategory::Cancelled, effect, "the call was cancelled")
}

/// The error for a protocol error in answer to a call. Errors about the request itself occur before the
/// tool runs.
fn refused(error: &ErrorData, most: usize) -> CallError {
    let text = shown(&error.message, most);
    let lower = error.message.to_lowercase();
    let names_unknown_tool = lower.contains("tool")
        && (lower.contains("unknown") || lower.contains("not found") || lower.contains("no such"));
    let (category, effect) = match error.code {
        ErrorCode::METHOD_NOT_FOUND => (ErrorCategory::UnknownTool, Effect::None),
        ErrorCode::INVALID_PARAMS if names_unknown_tool => {
            (ErrorCategory::UnknownTool, Effect::None)
        }
        ErrorCode::INVALID_PARAMS => (ErrorCategory::InvalidArguments, Effect::None),
        _ => (ErrorCategory::ToolFailure, Effect::Unknown),
    };
    let code = error.code.0;
    let message = format!("the server answered with error {code}: {text}");
    CallError {
        is_reported: true,
        ..CallError::new(category, effect, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_about_the_request_have_no_effect_and_others_an_unknown_one() {
        let of = |code, message: &'static str| {
            let error = refused(&ErrorData::new(ErrorCode(code), message, None), 100);
            (error.category, error.effect)
        };
        assert_eq!(of(-32601, "x"), (ErrorCategory::UnknownTool, Effect::None));
        assert_eq!(
            of(-32602, "Unknown tool: x"),
            (ErrorCategory::UnknownTool, Effect::None)
        );
        assert_eq!(
            of(-32602, "a is missing"),
            (ErrorCategory::InvalidArguments, Effect::None)
        );
        assert_eq!(
            of(-32603, "x"),
            (ErrorCategory::ToolFailure, Effect::Unknown)
        );
        assert_eq!(of(-1, "x"), (ErrorCategory::ToolFailure, Effect::Unknown));
    }
}
