//! The messages between this client and one server. Both transports pass every message through here
//! before `rmcp` reads it. Answers are kept complete, and floods of notifications are dropped here, where
//! they cost least.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetMeta, NumberOrString};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::api::{CallError, ElicitationReply, Limits, Progress, ServerError};
use super::list::Listing;
use super::{lock, shown};

/// The messages to and from one server.
#[derive(Debug)]
pub(crate) struct Wire {
    requests: Mutex<HashMap<i64, Weak<PendingRequest>>>,
    listing: Arc<Listing>,
    pub(crate) limits: Limits,
    /// Cancelled when the connection has ended.
    pub(crate) ended: CancellationToken,
    failure: Mutex<Option<ServerError>>,
    ignored: AtomicU64,
}

/// What to do with a message from the server.
pub(crate) enum Inbound {
    /// It was handled here.
    Consumed,
    /// `rmcp` handles it.
    Pass(Value),
}

/// A request without an answer yet.
pub(crate) struct PendingRequest {
    is_call: bool,
    state: AtomicU8,
    token: OnceLock<NumberOrString>,
    answer: Mutex<Option<Value>>,
    failure: Mutex<Option<CallError>>,
    throttle: Mutex<ProgressThrottle>,
    on_progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    elicitations: mpsc::Sender<PendingElicitation>,
    input_requests: AtomicUsize,
}

/// An elicitation request of a server during a call.
pub(crate) struct PendingElicitation {
    /// The parameters of `elicitation/create`.
    pub(crate) params: Value,
    pub(crate) answer: oneshot::Sender<ElicitationReply>,
}

#[derive(Debug, Default)]
struct ProgressThrottle {
    last_report: Option<Instant>,
    held_back: Option<Progress>,
}

const QUEUED: u8 = 0;
const SENT: u8 = 1;
const WITHDRAWN: u8 = 2;

/// The most elicitations of one call that wait at the same time.
const MOST_ELICITATIONS: usize = 4;

impl PendingRequest {
    /// A request, with the callback for its progress and the receiver of its elicitations.
    pub(crate) fn new(
        is_call: bool,
        on_progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    ) -> (Arc<Self>, mpsc::Receiver<PendingElicitation>) {
        let (elicitations, received) = mpsc::channel(MOST_ELICITATIONS);
        let pending = Self {
            is_call,
            state: AtomicU8::new(QUEUED),
            token: OnceLock::new(),
            answer: Mutex::default(),
            failure: Mutex::default(),
            throttle: Mutex::default(),
            on_progress,
            elicitations,
            input_requests: AtomicUsize::new(0),
        };
        (Arc::new(pending), received)
    }

    /// Withdraws the request if nothing of it was sent yet. Returns whether it is withdrawn.
    pub(crate) fn withdraw(&self) -> bool {
        self.transition(QUEUED, WITHDRAWN) || self.state.load(Ordering::Acquire) == WITHDRAWN
    }

    /// Whether any part of it may have reached the server.
    pub(crate) fn is_sent(&self) -> bool {
        self.state.load(Ordering::Acquire) == SENT
    }

    /// Records that it cannot have reached the server.
    pub(crate) fn mark_not_sent(&self) {
        self.transition(SENT, QUEUED);
    }

    fn transition(&self, from: u8, to: u8) -> bool {
        self.state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The server's complete answer.
    pub(crate) fn take_answer(&self) -> Option<Value> {
        lock(&self.answer).take()
    }

    /// The recorded failure, if there is one.
    pub(crate) fn take_failure(&self) -> Option<CallError> {
        lock(&self.failure).take()
    }

    pub(crate) fn fail(&self, error: CallError) {
        *lock(&self.failure) = Some(error);
    }

    /// Counts a request for input during this call. Returns the new count.
    pub(crate) fn count_input_request(&self) -> usize {
        self.input_requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn elicit(
        &self,
        elicitation: PendingElicitation,
    ) -> Result<(), mpsc::error::TrySendError<PendingElicitation>> {
        self.elicitations.try_send(elicitation)
    }

    fn report_progress(&self, progress: Progress, interval: Duration) {
        let Some(on_progress) = &self.on_progress else {
            return;
        };
        let now = Instant::now();
        let due = {
            let mut throttle = lock(&self.throttle);
            match throttle
                .last_report
                .is_none_or(|last| now - last >= interval)
            {
                true => {
                    throttle.last_report = Some(now);
                    throttle.held_back = None;
                    Some(progress)
                }
                false => {
                    throttle.held_back = Some(progress);
                    None
                }
            }
        };
        if let Some(progress) = due {
            on_progress(progress);
        }
    }

    /// Reports the last progress that was held back.
    pub(crate) fn report_held_back(&self) {
        let held_back = lock(&self.throttle).held_back.take();
        if let (Some(on_progress), Some(progress)) = (&self.on_progress, held_back) {
            on_progress(progress);
        }
    }
}

impl std::fmt::Debug for PendingRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingRequest").finish_non_exhaustive()
    }
}

impl Wire {
    pub(crate) fn new(listing: Arc<Listing>, limits: Limits) -> Self {
        Self {
            requests: Mutex::default(),
            listing,
            limits,
            ended: CancellationToken::new(),
            failure: Mutex::default(),
            ignored: AtomicU64::new(0),
        }
    }

    /// Records that the connection has ended, and why. The first reason is kept.
    pub(crate) fn end(&self, reason: ServerError) {
        lock(&self.failure).get_or_insert(reason);
        self.ended.cancel();
    }

    /// Why the connection has ended, or the failure recorded so far.
    pub(crate) fn failure(&self) -> Option<ServerError> {
        lock(&self.failure).clone()
    }

    /// Records a failure. The first one is kept.
    pub(crate) fn record_failure(&self, failure: ServerError) {
        lock(&self.failure).get_or_insert(failure);
    }

    /// The list of tools may have changed.
    pub(crate) fn changed(&self) {
        self.listing.changed();
    }

    /// The number of notifications that were ignored.
    #[cfg(test)]
    pub(crate) fn ignored(&self) -> u64 {
        self.ignored.load(Ordering::Relaxed)
    }

    /// The pending request of a message, if it is a call or a list.
    pub(crate) fn pending_in(message: &ClientJsonRpcMessage) -> Option<Arc<PendingRequest>> {
        let ClientJsonRpcMessage::Request(request) = message else {
            return None;
        };
        match &request.request {
            ClientRequest::CallToolRequest(call) => {
                call.extensions.get::<Arc<PendingRequest>>().cloned()
            }
            ClientRequest::ListToolsRequest(list) => {
                list.extensions.get::<Arc<PendingRequest>>().cloned()
            }
            _ => None,
        }
    }

    /// Records that a message is about to be sent. `false` if it was withdrawn.
    pub(crate) fn mark_sent(&self, message: &ClientJsonRpcMessage) -> bool {
        let (Some(pending), ClientJsonRpcMessage::Request(request)) =
            (Self::pending_in(message), message)
        else {
            return true;
        };
        if let Some(token) = request.request.get_meta().get_progress_token() {
            let _ = pending.token.set(token.0);
        }
        // Before the state changes: the answer may arrive at once.
        if let NumberOrString::Number(id) = request.id {
            let mut requests = lock(&self.requests);
            requests.retain(|_, pending| pending.strong_count() > 0);
            requests.insert(id, Arc::downgrade(&pending));
        }
        pending.transition(QUEUED, SENT) || pending.is_sent()
    }

    /// The request that a message answers.
    fn answered(&self, id: &Value) -> Option<Arc<PendingRequest>> {
        let id = match id {
            Value::Number(number) => number.as_i64()?,
            Value::String(text) => text.parse().ok()?,
            _ => return None,
        };
        self.pending(id)
    }

    fn pending(&self, id: i64) -> Option<Arc<PendingRequest>> {
        lock(&self.requests).get(&id)?.upgrade()
    }

    /// The call that a request of the server belongs to: the call on whose response stream it came, or
    /// else the only call in flight.
    pub(crate) fn related_call(
        &self,
        request: Option<&NumberOrString>,
    ) -> Option<Arc<PendingRequest>> {
        if let Some(request) = request {
            let NumberOrString::Number(id) = request else {
                return None;
            };
            return self.pending(*id).filter(|pending| pending.is_call);
        }
        let requests = lock(&self.requests);
        let mut calls = requests
            .values()
            .filter_map(Weak::upgrade)
            .filter(|pending| pending.is_call && pending.is_sent());
        let only = calls.next()?;
        calls.next().is_none().then_some(only)
    }

    /// Receives a message. The answer to a pending request is stored in it. With `copies_lists`, the
    /// answer to a list request is copied, because the HTTP transport of `rmcp` reads it too.
    pub(crate) fn receive(&self, mut message: Value, copies_lists: bool) -> Inbound {
        let Some(fields) = message.as_object_mut() else {
            return Inbound::Pass(message);
        };
        match fields.get("method").and_then(Value::as_str) {
            Some(method) if !fields.contains_key("id") => {
                if self.handles_notification(method, fields.get("params")) {
                    return Inbound::Consumed;
                }
            }
            Some(_) => {}
            None => {
                let pending = fields.get("id").and_then(|id| self.answered(id));
                if let (Some(pending), Some(result)) = (pending, fields.get_mut("result")) {
                    let answer = match copies_lists && !pending.is_call {
                        true => result.clone(),
                        false => std::mem::replace(result, Value::Object(Map::new())),
                    };
                    *lock(&pending.answer) = Some(answer);
                }
            }
        }
        Inbound::Pass(message)
    }

    /// Handles a notification. Returns whether it was handled here.
    fn handles_notification(&self, method: &str, params: Option<&Value>) -> bool {
        match method {
            "notifications/progress" => self.progress(params),
            "notifications/tools/list_changed" => self.listing.changed(),
            "notifications/message"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/resources/updated" => {
                self.ignored.fetch_add(1, Ordering::Relaxed);
            }
            _ => return false,
        }
        true
    }

    fn progress(&self, params: Option<&Value>) {
        let parse = || {
            let params = params?;
            let token = match params.get("progressToken")? {
                Value::Number(number) => NumberOrString::Number(number.as_i64()?),
                Value::String(text) => NumberOrString::String(text.as_str().into()),
                _ => return None,
            };
            let progress = Progress {
                done: params.get("progress")?.as_f64()?,
                total: params.get("total").and_then(Value::as_f64),
                message: params
                    .get("message")
                    .and_then(Value::as_str)
                    .map(|text| shown(text, self.limits.text_characters)),
            };
            Some((token, progress))
        };
        let Some((token, progress)) = parse() else {
            return;
        };
        let pending = lock(&self.requests)
            .values()
            .filter_map(Weak::upgrade)
            .find(|pending| pending.token.get() == Some(&token));
        if let Some(pending) = pending {
            pending.report_progress(progress, self.limits.progress_interval);
        }
    }

    /// Fails the requests that an unreadable answer may belong to: those whose ids appear in its pieces,
    /// or else all that were sent. Returns their ids.
    pub(crate) fn fail_unreadable(&self, pieces: &[&[u8]], error: &CallError) -> Vec<i64> {
        let mut requests: Vec<(i64, Arc<PendingRequest>)> = lock(&self.requests)
            .iter()
            .filter_map(|(id, pending)| Some((*id, pending.upgrade()?)))
            .filter(|(_, pending)| pending.is_sent())
            .collect();
        let named: Vec<i64> = pieces.iter().flat_map(|piece| ids(piece)).collect();
        if requests.len() > 1 && requests.iter().any(|(id, _)| named.contains(id)) {
            requests.retain(|(id, _)| named.contains(id));
        }
        for (_, pending) in &requests {
            pending.fail(error.clone());
        }
        requests.into_iter().map(|(id, _)| id).collect()
    }
}

/// The values of `"id":` anywhere in a piece of JSON.
fn ids(piece: &[u8]) -> Vec<i64> {
    let text = String::from_utf8_lossy(piece);
    text.split("\"id\"")
        .skip(1)
        .filter_map(|rest| {
            let rest = rest.trim_start().strip_prefix(':')?.trim_start();
            let rest = rest.strip_prefix('"').unwrap_or(rest);
            let end = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            rest.get(..end)?.parse().ok()
        })
        .collect()
}

#[cfg(test)]
mod tests;
