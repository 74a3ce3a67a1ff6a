//! Answers chat clients with the text of a run: piece by piece as the model writes it, or as a whole.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use windlass_service::types::{Approval, RunEnd, RunId, TextUse, escape};
use windlass_service::{ChatAnswer, Identity, ReservedChat, subject_of};

use crate::app::{App, blocking};
use crate::problem::Problem;
use crate::start::{CHECK_PERIOD, StartedRun};

/// How many characters of the arguments of a call a question shows.
const SHOWN_ARGUMENTS: usize = 1_000;

/// What the model of a run writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LiveText {
    /// More text.
    More(String),
    /// Its turn has ended.
    TurnEnded,
}

/// The chat clients that wait for the text of a run.
#[derive(Debug, Default)]
pub(crate) struct Chats {
    listeners: Mutex<HashMap<RunId, Vec<UnboundedSender<LiveText>>>>,
}

impl Chats {
    /// Passes text on. It is made only if somebody listens.
    pub(crate) fn send(&self, run: &RunId, text: impl Fn() -> LiveText) {
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(of_run) = listeners.get_mut(run) {
            of_run.retain(|listener| listener.send(text()).is_ok());
            if of_run.is_empty() {
                listeners.remove(run);
            }
        }
    }

    /// The text of a run from now on.
    fn listen(&self, run: &RunId) -> UnboundedReceiver<LiveText> {
        let (sender, receiver) = unbounded_channel();
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.entry(run.clone()).or_default().push(sender);
        receiver
    }

    /// Forgets the listeners of a run that have gone.
    fn tidy(&self, run: &RunId) {
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(of_run) = listeners.get_mut(run) {
            of_run.retain(|listener| !listener.is_closed());
            if of_run.is_empty() {
                listeners.remove(run);
            }
        }
    }
}

/// The text of a run from the moment on at which this was made.
pub(crate) struct ChatText {
    app: Arc<App>,
    run: RunId,
    receiver: UnboundedReceiver<LiveText>,
}

impl ChatText {
    pub(crate) fn of(app: &Arc<App>, run: &RunId) -> Self {
        Self {
            receiver: app.chats.listen(run),
            app: Arc::clone(app),
            run: run.clone(),
        }
    }
}

impl Drop for ChatText {
    fn drop(&mut self) {
        self.receiver.close();
        self.app.chats.tidy(&self.run);
    }
}

/// The next piece of an answer.
#[derive(Debug)]
pub(crate) enum Piece {
    /// More text.
    Text(String),
    /// Nothing for a while; the run is under way.
    Nothing,
    /// The end of the answer.
    End(Box<Finished>),
}

/// How an answer ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// What was found about the run.
    pub(crate) answer: ChatAnswer,
    /// What was not sent of the text yet.
    pub(crate) rest: String,
    /// The whole text, for an answer that is sent at once.
    pub(crate) whole: String,
}

/// An answer that is being made.
pub(crate) struct ChatReply {
    app: Arc<App>,
    identity: Identity,
    reserved: ReservedChat,
    live: ChatText,
    driven: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_driven: bool,
    /// When it was last checked whether the run is over.
    checked: Option<Instant>,
    /// The address of this server, with which links begin.
    address: String,
    /// The text that was sent.
    sent: String,
    /// Whether a turn has ended since text was sent.
    has_turn_ended: bool,
}

impl ChatReply {
    pub(crate) fn new(
        app: &Arc<App>,
        identity: Identity,
        reserved: ReservedChat,
        (started, live): (StartedRun, ChatText),
        address: String,
    ) -> Self {
        Self {
            app: Arc::clone(app),
            identity,
            reserved,
            live,
            driven: Box::pin(started.driven()),
            is_driven: true,
            checked: None,
            address,
            sent: String::new(),
            has_turn_ended: false,
        }
    }

    pub(crate) fn run(&self) -> &RunId {
        &self.reserved.run
    }

    /// Waits for the end of the answer.
    pub(crate) async fn end(mut self) -> Result<Finished, Problem> {
        loop {
            // What the model writes before it calls tools is not part of the answer.
            if let Piece::End(finished) = self.next(Duration::MAX).await? {
                return Ok(*finished);
            }
        }
    }

    /// The next piece. After `patience` it is [`Piece::Nothing`].
    pub(crate) async fn next(&mut self, patience: Duration) -> Result<Piece, Problem> {
        let quiet = tokio::time::sleep(patience);
        tokio::pin!(quiet);
        loop {
            let checked = self.checked.map_or(CHECK_PERIOD, |at| at.elapsed());
            tokio::select! {
                biased;
                () = self.app.closing.cancelled() => return Err(Problem::closing()),
                Some(text) = self.live.receiver.recv() => {
                    if let Some(text) = self.take(text) {
                        return Ok(Piece::Text(text));
                    }
                }
                () = &mut self.driven, if self.is_driven => self.is_driven = false,
                () = tokio::time::sleep(CHECK_PERIOD.saturating_sub(checked)), if !self.is_driven => {
                    if let Some(finished) = self.finish().await? {
                        return Ok(Piece::End(Box::new(finished)));
                    }
                    self.checked = Some(Instant::now());
                }
                () = &mut quiet => return Ok(Piece::Nothing),
            }
        }
    }

    /// The text to send for what the model wrote.
    fn take(&mut self, text: LiveText) -> Option<String> {
        match text {
            LiveText::More(text) if text.is_empty() => None,
            LiveText::More(text) => {
                let ended = std::mem::take(&mut self.has_turn_ended);
                let text = match ended && !self.sent.is_empty() {
                    true => format!("\n\n{text}"),
                    false => text,
                };
                self.sent.push_str(&text);
                Some(text)
            }
            LiveText::TurnEnded => {
                self.has_turn_ended = true;
                None
            }
        }
    }

    /// The end of the answer, if the run has ended or waits for a person.
    async fn finish(&mut self) -> Result<Option<Finished>, Problem> {
        let (service, identity) = (self.app.service.clone(), self.identity.clone());
        let reserved = self.reserved.clone();
        let found = blocking(move || service.answer_chat(&identity, &reserved)).await?;
        let Some(answer) = found else {
            return Ok(None);
        };
        let mut rest = String::new();
        while let Ok(text) = self.live.receiver.try_recv() {
            rest.extend(self.take(text));
        }
        let whole = text_of(&answer, &self.address)?;
        if !self.sent.trim_end().ends_with(whole.trim()) {
            if !self.sent.is_empty() {
                rest.push_str("\n\n");
            }
            rest.push_str(&whole);
        }
        Ok(Some(Finished {
            answer,
            rest,
            whole,
        }))
    }
}

/// The text of an answer.
///
/// # Errors
/// If the run failed.
fn text_of(answer: &ChatAnswer, address: &str) -> Result<String, Problem> {
    match &answer.end {
        RunEnd::WaitingForPerson | RunEnd::WaitingForCaller { .. } => {
            Ok(waiting_text(answer, address))
        }
        RunEnd::Cancelled => Ok(format!("The run {} was cancelled.", answer.run)),
        RunEnd::Failed { category, .. } => Err(Problem::new(500, "run_failed", "The run failed")
            .with_detail(format!("{category}, in the run {}", answer.run))
            .with_hint("the operator can see why with `windlass runs show`")),
        RunEnd::Completed | RunEnd::IterationLimit | RunEnd::Budget { .. } => {
            Ok(answer.text.clone())
        }
    }
}

/// Where a question is shown and decided.
pub(crate) fn approval_link(address: &str, approval: &Approval) -> String {
    format!("{address}/v1/approvals/{}", approval.call())
}

/// What the user reads while a run waits for a person.
fn waiting_text(answer: &ChatAnswer, address: &str) -> String {
    let mut text = String::from("Waiting for a person.\n");
    for question in &answer.questions {
        let what = escape(subject_of(question.question()), TextUse::Exact);
        text.push('\n');
        match question.question().authorize() {
            Some(_) => {
                let arguments = serde_json::to_string(&question.arguments()).unwrap_or_default();
                let shown: String = arguments.chars().take(SHOWN_ARGUMENTS).collect();
                let more = match shown.len() < arguments.len() {
                    true => " ...",
                    false => "",
                };
                let shown = escape(&shown, TextUse::Exact);
                text.push_str(&format!("Needs approval: {what} {shown}{more}\n"));
            }
            None => text.push_str(&format!("Needs an answer: {what}\n")),
        }
        text.push_str(&format!("Approval: {}\n", question.call()));
        text.push_str(&format!("Link: {}\n", approval_link(address, question)));
        text.push_str(&format!("Expires: {}\n", question.request().expires_at));
    }
    text.push_str("\nWhen it is decided, send any message to get the answer.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_passed_to_those_who_listen_to_its_run() {
        let chats = Chats::default();
        let run = |name: &str| RunId::new(name).unwrap();
        chats.send(&run("one"), || unreachable!("nobody listens"));
        let mut listener = chats.listen(&run("one"));
        chats.send(&run("one"), || LiveText::More("Hello".to_owned()));
        chats.send(&run("two"), || unreachable!("nobody listens"));
        assert_eq!(listener.try_recv(), Ok(LiveText::More("Hello".to_owned())));
        listener.close();
        chats.tidy(&run("one"));
        assert!(chats.listeners.lock().unwrap().is_empty());
    }
}
