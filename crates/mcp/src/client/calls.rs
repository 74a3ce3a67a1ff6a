//! One call from its request to its answer, with the questions in between. A call that is dropped
//! takes itself back, or tells the server that nobody waits any more.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
    ClientNotification, ClientRequest, ErrorCode, ErrorData, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::instrument;
use windlass_spec::{Effect, ErrorCategory};

use super::api::{Answered, CallError, CallRequest, Elicitation, Era, Reply};
use super::connection::Connection;
use super::output::Checks;
use super::wire::{Flight, Question};
use super::{elicitation, shown};

/// A call that is on its way, or waits for a person.
pub(crate) struct Call {
    pub(crate) connection: Arc<Connection>,
    request: CallRequest,
    /// The request on its way. A call of the modern protocol that waits for a person has none.
    going: Option<Going>,
    waits_for: Option<WaitsFor>,
    /// How much the server asked so far.
    asked: usize,
}

/// How far a call came.
pub(crate) enum Step {
    Answered(Answered),
    Asks(Elicitation),
}

/// A request on its way.
struct Going {
    flight: Arc<Flight>,
    answer: oneshot::Receiver<Result<ServerResult, ServiceError>>,
    questions: mpsc::Receiver<Question>,
    _guard: Guard,
}

/// Tells the server that nobody waits for a request any more, unless it was answered.
struct Guard {
    peer: Peer<RoleClient>,
    flight: Arc<Flight>,
    id: Option<RequestId>,
}

/// Who gets the person's reply.
enum WaitsFor {
    /// The server, which asked in the middle of the call.
    Question(oneshot::Sender<Reply>),
    /// The next request, once everything is answered.
    Inputs(Inputs),
}

/// What a server wants to know before it goes on.
#[derive(Default)]
struct Inputs {
    state: Option<String>,
    left: VecDeque<(String, Value)>,
    asked: Option<String>,
    given: BTreeMap<String, Value>,
}

impl Call {
    pub(crate) fn new(connection: Arc<Connection>, request: CallRequest) -> Self {
        Self {
            connection,
            request,
            going: None,
            waits_for: None,
            asked: 0,
        }
    }

    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.request.cancel
    }

    /// Sends the request and goes on until there is an answer or a question.
    #[instrument(
        name = "mcp_request",
        level = "debug",
        skip_all,
        fields(mcp.method.name = "tools/call", gen_ai.tool.name = %self.request.tool)
    )]
    pub(crate) async fn begin(&mut self, checks: &Checks) -> Result<Step, CallError> {
        if let Some(promised) = &self.request.output_schema {
            checks.prepare(&self.request.tool, promised)?;
        }
        self.send(Inputs::default()).await?;
        self.go_on(checks).await
    }

    /// Hands the person's reply on and goes on. What listens now is who replied.
    pub(crate) async fn reply(
        &mut self,
        request: CallRequest,
        reply: Reply,
        checks: &Checks,
    ) -> Result<Step, CallError> {
        // What is called, and with what, was decided when it began.
        let begun = std::mem::replace(&mut self.request, request);
        self.request.tool = begun.tool;
        self.request.arguments = begun.arguments;
        match self.waits_for.take() {
            None => return Err(self.lost("the call waits for nobody")),
            Some(WaitsFor::Question(answer)) => {
                // If the server gave its question up, the call may still be answered.
                let _ = answer.send(reply);
            }
            Some(WaitsFor::Inputs(mut inputs)) => {
                if let Some(key) = inputs.asked.take() {
                    inputs.given.insert(key, elicitation::result(reply));
                }
                if let Some(question) = self.provide(inputs).await? {
                    return Ok(Step::Asks(question));
                }
            }
        }
        self.go_on(checks).await
    }

    async fn send(&mut self, inputs: Inputs) -> Result<(), CallError> {
        let mut params = CallToolRequestParams::new(self.request.tool.clone());
        params.arguments = Some(self.request.arguments.clone());
        params.request_state = inputs.state;
        params.input_responses = Some(inputs.given).filter(|given| !given.is_empty());
        let (flight, questions) = Flight::new(true, self.request.progress.clone());
        let mut request = CallToolRequest::new(params);
        request.extensions.insert(Arc::clone(&flight));
        let peer = self.connection.peer.clone();
        let mut guard = Guard {
            peer: peer.clone(),
            flight: Arc::clone(&flight),
            id: None,
        };
        let request = ClientRequest::CallToolRequest(request);
        let options = PeerRequestOptions::no_options();
        let cancel = self.request.cancel.clone();
        let sent = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(self.cancelled(&flight)),
            sent = peer.send_request_with_option(request, options) => sent,
        };
        let handle = sent.map_err(|error| self.failed(&flight, Some(error)))?;
        guard.id = Some(handle.id);
        self.going = Some(Going {
            flight,
            answer: handle.rx,
            questions,
            _guard: guard,
        });
        Ok(())
    }

    /// Waits for what comes next.
    async fn go_on(&mut self, checks: &Checks) -> Result<Step, CallError> {
        let cancel = self.request.cancel.clone();
        let ended = self.connection.wire.ended.clone();
        loop {
            let Some(going) = &mut self.going else {
                return Err(self.lost("the call is not on its way"));
            };
            let answer = tokio::select! {
                biased;
                answer = &mut going.answer => answer,
                () = cancel.cancelled() => {
                    let flight = Arc::clone(&going.flight);
                    self.going = None;
                    return Err(self.cancelled(&flight));
                }
                Some(question) = going.questions.recv() => {
                    if let Some(step) = self.asked(question)? {
                        return Ok(step);
                    }
                    continue;
                }
                () = ended.cancelled() => match going.answer.try_recv() {
                    Ok(answer) => Ok(answer),
                    Err(_) => Ok(Err(ServiceError::TransportClosed)),
                },
            };
            let Some(mut going) = self.going.take() else {
                return Err(self.lost("the call is not on its way"));
            };
            going.flight.tell_rest();
            going._guard.id = None;
            let result = match answer {
                Ok(Ok(_)) => going.flight.take_answer(),
                Ok(Err(error)) => return Err(self.failed(&going.flight, Some(error))),
                Err(_) => return Err(self.failed(&going.flight, None)),
            };
            let Some(result) = result else {
                return Err(self.failed(&going.flight, None));
            };
            self.connection.note_answer();
            if let Some(step) = self.take(result, checks).await? {
                return Ok(step);
            }
        }
    }

    /// Takes a result: the answer, a question, or nothing if the request was sent once more.
    async fn take(
        &mut self,
        mut result: Value,
        checks: &Checks,
    ) -> Result<Option<Step>, CallError> {
        let is_modern = self.connection.greeting.era == Era::Modern;
        let kind = result.get("resultType").and_then(Value::as_str);
        match kind {
            Some("input_required") if is_modern => {}
            Some("task") => {
                return Err(self.lost(
                    "the server made a task of the call, which it was not asked for and cannot be followed",
                ));
            }
            None | Some("complete") => {
                let (tool, most) = (&self.request.tool, self.request.max_output_bytes);
                let promised = self.request.output_schema.as_ref();
                let answered = checks.answer(result, tool, promised, most).await?;
                return Ok(Some(Step::Answered(answered)));
            }
            Some(kind) => {
                let kind = shown(kind, 40);
                return Err(self.lost(&format!("the server answered with an unknown `{kind}`")));
            }
        }
        let Some(requests) = elicitation::requests(&mut result) else {
            return Err(self.lost("the server asks for something that cannot be read"));
        };
        // Each of them may be a question to a person. One who asks for nothing asks to be called again.
        self.asked = self.asked.saturating_add(requests.len().max(1));
        if self.asked > self.connection.wire.limits.rounds {
            return Err(self.lost("the server asks on and on"));
        }
        let state = result.get("requestState").and_then(Value::as_str);
        let inputs = Inputs {
            state: state.map(str::to_owned),
            left: requests.into_iter().collect(),
            ..Inputs::default()
        };
        Ok(self.provide(inputs).await?.map(Step::Asks))
    }

    /// Answers what can be answered without a person, up to the next question; sends the request again
    /// when nothing is left.
    async fn provide(&mut self, mut inputs: Inputs) -> Result<Option<Elicitation>, CallError> {
        while let Some((key, request)) = inputs.left.pop_front() {
            let params = request.get("params").unwrap_or(&Value::Null);
            match request.get("method").and_then(Value::as_str) {
                Some("elicitation/create") => {
                    match elicitation::read(params, &self.connection.wire.limits) {
                        Ok(question) => {
                            inputs.asked = Some(key);
                            self.waits_for = Some(WaitsFor::Inputs(inputs));
                            return Ok(Some(question));
                        }
                        Err(_) => {
                            inputs
                                .given
                                .insert(key, elicitation::result(Reply::Decline));
                        }
                    }
                }
                Some("sampling/createMessage") => {
                    let cancel = self.request.cancel.clone();
                    let answer = tokio::select! {
                        () = cancel.cancelled() => return Err(stopped(Effect::Unknown)),
                        answer = self.connection.handler.sample(params) => answer,
                    };
                    let answer = answer.map_err(|why| {
                        self.lost(&format!("the server asks for a model in vain: {why}"))
                    })?;
                    inputs.given.insert(key, answer);
                }
                _ => return Err(self.lost("the server asks for something it was not offered")),
            }
        }
        self.send(inputs).await?;
        Ok(None)
    }

    /// A question in the middle of the call.
    fn asked(&mut self, question: Question) -> Result<Option<Step>, CallError> {
        match elicitation::read(&question.params, &self.connection.wire.limits) {
            Ok(asks) => {
                self.waits_for = Some(WaitsFor::Question(question.answer));
                Ok(Some(Step::Asks(asks)))
            }
            Err(_) => {
                let _ = question.answer.send(Reply::Decline);
                Ok(None)
            }
        }
    }

    fn cancelled(&self, flight: &Flight) -> CallError {
        stopped(match flight.withdraw() {
            true => Effect::None,
            false => Effect::Unknown,
        })
    }

    /// A call that went wrong in a way that says nothing of what it did.
    fn lost(&self, message: &str) -> CallError {
        CallError::new(ErrorCategory::ToolFailure, Effect::Unknown, message)
    }

    /// What it means that a request failed.
    fn failed(&self, flight: &Flight, error: Option<ServiceError>) -> CallError {
        if let Some(failure) = flight.take_failure() {
            return failure;
        }
        if let Some(ServiceError::McpError(error)) = &error {
            return refused(error, self.connection.wire.limits.text_characters);
        }
        let effect = match flight.withdraw() {
            true => Effect::None,
            false => Effect::Unknown,
        };
        let why = match (self.connection.wire.why(), error) {
            (Some(why), _) => why.message,
            (None, Some(error)) => shown(&error.to_string(), 500),
            (None, None) => "the server is gone".to_owned(),
        };
        let when = match effect {
            Effect::None => "before the call was sent",
            Effect::Applied | Effect::Unknown => "in the middle of the call",
        };
        CallError::new(ErrorCategory::Unavailable, effect, format!("{why}, {when}"))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else {
            self.flight.withdraw();
            return;
        };
        if self.flight.withdraw() {
            return;
        }
        let (peer, notice) = (self.peer.clone(), cancelled_notice(id));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = peer.send_notification(notice).await;
            });
        }
    }
}

fn cancelled_notice(id: RequestId) -> ClientNotification {
    let reason = Some("nobody waits for the answer any more".to_owned());
    let params = CancelledNotificationParam::new(Some(id), reason);
    ClientNotification::CancelledNotification(CancelledNotification::new(params))
}

fn stopped(effect: Effect) -> CallError {
    CallError::own(ErrorCategory::Cancelled, effect, "the call was cancelled")
}

/// An error of the protocol in answer to a call. Those that say that the request itself was wrong come
/// before the tool runs.
fn refused(error: &ErrorData, most: usize) -> CallError {
    let said = shown(&error.message, most);
    let lower = error.message.to_lowercase();
    let speaks_of_tool = lower.contains("tool")
        && (lower.contains("unknown") || lower.contains("not found") || lower.contains("no such"));
    let (category, effect) = match error.code {
        ErrorCode::METHOD_NOT_FOUND => (ErrorCategory::UnknownTool, Effect::None),
        ErrorCode::INVALID_PARAMS if speaks_of_tool => (ErrorCategory::UnknownTool, Effect::None),
        ErrorCode::INVALID_PARAMS => (ErrorCategory::InvalidArguments, Effect::None),
        _ => (ErrorCategory::ToolFailure, Effect::Unknown),
    };
    let code = error.code.0;
    CallError::new(
        category,
        effect,
        format!("the server answered with error {code}: {said}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_before_the_tool_ran_have_no_effect_and_others_are_unknown() {
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
