//! What is on its way between this program and one server. Both ways of transport pass every message
//! through here, as it came and before the protocol's library reads it: answers are kept whole, and
//! floods of notices end here, where they cost least.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetMeta, NumberOrString};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::api::{CallError, Limits, Progress, Reply, ServerError};
use super::list::Listing;
use super::{lock, shown};

/// What is on its way to and from one server.
#[derive(Debug)]
pub(crate) struct Wire {
    flights: Mutex<HashMap<i64, Weak<Flight>>>,
    listing: Arc<Listing>,
    pub(crate) limits: Limits,
    /// Cancelled when the server is gone.
    pub(crate) ended: CancellationToken,
    why: Mutex<Option<ServerError>>,
    unheard: AtomicU64,
}

/// What becomes of a message from the server.
pub(crate) enum Inbound {
    /// It was dealt with.
    Taken,
    /// The library is to read it.
    Pass(Value),
}

/// A request on its way.
pub(crate) struct Flight {
    is_call: bool,
    state: AtomicU8,
    token: OnceLock<NumberOrString>,
    answer: Mutex<Option<Value>>,
    failure: Mutex<Option<CallError>>,
    meter: Mutex<Meter>,
    listener: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    questions: mpsc::Sender<Question>,
    asked: AtomicUsize,
}

/// A question of a server in the middle of a call.
pub(crate) struct Question {
    /// The parameters of `elicitation/create`.
    pub(crate) params: Value,
    pub(crate) answer: oneshot::Sender<Reply>,
}

#[derive(Debug, Default)]
struct Meter {
    told: Option<Instant>,
    untold: Option<Progress>,
}

const QUEUED: u8 = 0;
const SENT: u8 = 1;
const WITHDRAWN: u8 = 2;

/// More questions than this of one call wait for nobody.
const QUESTIONS: usize = 4;

impl Flight {
    /// A request, with what hears its progress and the questions that come of it.
    pub(crate) fn new(
        is_call: bool,
        listener: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    ) -> (Arc<Self>, mpsc::Receiver<Question>) {
        let (questions, asked) = mpsc::channel(QUESTIONS);
        let flight = Self {
            is_call,
            state: AtomicU8::new(QUEUED),
            token: OnceLock::new(),
            answer: Mutex::default(),
            failure: Mutex::default(),
            meter: Mutex::default(),
            listener,
            questions,
            asked: AtomicUsize::new(0),
        };
        (Arc::new(flight), asked)
    }

    /// Takes the request back, if nothing of it was sent yet.
    pub(crate) fn withdraw(&self) -> bool {
        self.move_on(QUEUED, WITHDRAWN) || self.state.load(Ordering::Acquire) == WITHDRAWN
    }

    /// Whether any of it may have reached the server.
    pub(crate) fn is_sent(&self) -> bool {
        self.state.load(Ordering::Acquire) == SENT
    }

    /// It turned out that it cannot have reached the server.
    pub(crate) fn was_not_sent(&self) {
        self.move_on(SENT, QUEUED);
    }

    fn move_on(&self, from: u8, to: u8) -> bool {
        self.state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The server's answer, whole.
    pub(crate) fn take_answer(&self) -> Option<Value> {
        lock(&self.answer).take()
    }

    /// What went wrong underway, where more is known than that it went wrong.
    pub(crate) fn take_failure(&self) -> Option<CallError> {
        lock(&self.failure).take()
    }

    pub(crate) fn fail(&self, error: CallError) {
        *lock(&self.failure) = Some(error);
    }

    /// Counts what the server asks in this call.
    pub(crate) fn count_asked(&self) -> usize {
        self.asked.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn ask(
        &self,
        question: Question,
    ) -> Result<(), mpsc::error::TrySendError<Question>> {
        self.questions.try_send(question)
    }

    fn advance(&self, progress: Progress, interval: Duration) {
        let Some(listener) = &self.listener else {
            return;
        };
        let now = Instant::now();
        let told = {
            let mut meter = lock(&self.meter);
            match meter.told.is_none_or(|told| now - told >= interval) {
                true => {
                    meter.told = Some(now);
                    meter.untold = None;
                    Some(progress)
                }
                false => {
                    meter.untold = Some(progress);
                    None
                }
            }
        };
        if let Some(progress) = told {
            listener(progress);
        }
    }

    /// Tells the last progress that was held back.
    pub(crate) fn tell_rest(&self) {
        let untold = lock(&self.meter).untold.take();
        if let (Some(listener), Some(progress)) = (&self.listener, untold) {
            listener(progress);
        }
    }
}

impl std::fmt::Debug for Flight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flight").finish_non_exhaustive()
    }
}

impl Wire {
    pub(crate) fn new(listing: Arc<Listing>, limits: Limits) -> Self {
        Self {
            flights: Mutex::default(),
            listing,
            limits,
            ended: CancellationToken::new(),
            why: Mutex::default(),
            unheard: AtomicU64::new(0),
        }
    }

    /// The server is gone, for this reason. The first reason stands.
    pub(crate) fn end(&self, why: ServerError) {
        lock(&self.why).get_or_insert(why);
        self.ended.cancel();
    }

    /// Why the server is gone, or what is known of what went wrong so far.
    pub(crate) fn why(&self) -> Option<ServerError> {
        lock(&self.why).clone()
    }

    /// Keeps what went wrong, for whoever finds out that something did.
    pub(crate) fn note(&self, why: ServerError) {
        lock(&self.why).get_or_insert(why);
    }

    /// The list of tools may have changed.
    pub(crate) fn changed(&self) {
        self.listing.changed();
    }

    /// How many notices nobody heard.
    #[cfg(test)]
    pub(crate) fn unheard(&self) -> u64 {
        self.unheard.load(Ordering::Relaxed)
    }

    /// The request in a message, if it is one of those that are watched.
    pub(crate) fn flight_in(message: &ClientJsonRpcMessage) -> Option<Arc<Flight>> {
        let ClientJsonRpcMessage::Request(request) = message else {
            return None;
        };
        match &request.request {
            ClientRequest::CallToolRequest(call) => call.extensions.get::<Arc<Flight>>().cloned(),
            ClientRequest::ListToolsRequest(list) => list.extensions.get::<Arc<Flight>>().cloned(),
            _ => None,
        }
    }

    /// A message is about to be sent. `false` if it was taken back.
    pub(crate) fn sends(&self, message: &ClientJsonRpcMessage) -> bool {
        let (Some(flight), ClientJsonRpcMessage::Request(request)) =
            (Self::flight_in(message), message)
        else {
            return true;
        };
        if let Some(token) = request.request.get_meta().get_progress_token() {
            let _ = flight.token.set(token.0);
        }
        // Before the state moves on: the answer may come at once.
        if let NumberOrString::Number(id) = request.id {
            let mut flights = lock(&self.flights);
            flights.retain(|_, flight| flight.strong_count() > 0);
            flights.insert(id, Arc::downgrade(&flight));
        }
        flight.move_on(QUEUED, SENT) || flight.is_sent()
    }

    /// The request a message answers.
    fn answered(&self, id: &Value) -> Option<Arc<Flight>> {
        let id = match id {
            Value::Number(number) => number.as_i64()?,
            Value::String(text) => text.parse().ok()?,
            _ => return None,
        };
        self.flight(id)
    }

    fn flight(&self, id: i64) -> Option<Arc<Flight>> {
        lock(&self.flights).get(&id)?.upgrade()
    }

    /// The call that is meant by something that comes with the answer to this request, or, if it comes
    /// with none, the only call on its way.
    pub(crate) fn call_meant(&self, request: Option<&NumberOrString>) -> Option<Arc<Flight>> {
        if let Some(request) = request {
            let NumberOrString::Number(id) = request else {
                return None;
            };
            return self.flight(*id).filter(|flight| flight.is_call);
        }
        let flights = lock(&self.flights);
        let mut calls = flights
            .values()
            .filter_map(Weak::upgrade)
            .filter(|flight| flight.is_call && flight.is_sent());
        let only = calls.next()?;
        calls.next().is_none().then_some(only)
    }

    /// A message came. The answer to a watched request is kept here; of the answers to lists, which
    /// the library for HTTP reads as well, a copy.
    pub(crate) fn take_in(&self, mut message: Value, keeps_lists: bool) -> Inbound {
        let Some(fields) = message.as_object_mut() else {
            return Inbound::Pass(message);
        };
        match fields.get("method").and_then(Value::as_str) {
            Some(method) if !fields.contains_key("id") => {
                if self.hears(method, fields.get("params")) {
                    return Inbound::Taken;
                }
            }
            Some(_) => {}
            None => {
                let flight = fields.get("id").and_then(|id| self.answered(id));
                if let (Some(flight), Some(result)) = (flight, fields.get_mut("result")) {
                    let kept = match keeps_lists && !flight.is_call {
                        true => result.clone(),
                        false => std::mem::replace(result, Value::Object(Map::new())),
                    };
                    *lock(&flight.answer) = Some(kept);
                }
            }
        }
        Inbound::Pass(message)
    }

    /// Whether a notice ends here.
    fn hears(&self, method: &str, params: Option<&Value>) -> bool {
        match method {
            "notifications/progress" => self.progress(params),
            "notifications/tools/list_changed" => self.listing.changed(),
            "notifications/message"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/resources/updated" => {
                self.unheard.fetch_add(1, Ordering::Relaxed);
            }
            _ => return false,
        }
        true
    }

    fn progress(&self, params: Option<&Value>) {
        let told = || {
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
        let Some((token, progress)) = told() else {
            return;
        };
        let flight = lock(&self.flights)
            .values()
            .filter_map(Weak::upgrade)
            .find(|flight| flight.token.get() == Some(&token));
        if let Some(flight) = flight {
            flight.advance(progress, self.limits.progress_interval);
        }
    }

    /// An answer came that cannot be read. Whose it is can be seen in what there is of it, or there is
    /// only one it can be; else it may be anybody's, and all of them fail. Gives the ids of the
    /// requests that end by it.
    pub(crate) fn unreadable(&self, pieces: &[&[u8]], error: &CallError) -> Vec<i64> {
        let mut flights: Vec<(i64, Arc<Flight>)> = lock(&self.flights)
            .iter()
            .filter_map(|(id, flight)| Some((*id, flight.upgrade()?)))
            .filter(|(_, flight)| flight.is_sent())
            .collect();
        let named: Vec<i64> = pieces.iter().flat_map(|piece| ids(piece)).collect();
        if flights.len() > 1 && flights.iter().any(|(id, _)| named.contains(id)) {
            flights.retain(|(id, _)| named.contains(id));
        }
        for (_, flight) in &flights {
            flight.fail(error.clone());
        }
        flights.into_iter().map(|(id, _)| id).collect()
    }
}

/// What stands after `"id":` anywhere in a piece of JSON.
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
