//! An answer in the making: gathers what arrives, tells it on, bounds it, and makes the machine's
//! answer of it at the end.

use windlass_core::model::{
    FINISH, ModelAnswer, ModelErrorKind, ModelRequest, RequestedCall, Usage,
};

use super::Form;
use super::failure::Failure;
use crate::client::ModelEvent;
use crate::dialect::{Found, find};

/// What a call that is written as text starts with.
const CALL_STARTS: [char; 4] = ['{', '[', '`', '<'];

/// More calls than anyone means to make in one answer.
const MOST_CALLS: usize = 128;

/// What has arrived of an answer.
pub(super) struct Draft {
    form: Form,
    text: String,
    /// How much of the text was told on.
    told: usize,
    thought: String,
    /// The calls so far: whether each was told on, and how long it is.
    calls: Vec<(bool, usize)>,
    parts: usize,
    longest: usize,
}

/// A finished answer and whether its calls were written as text.
pub(super) struct Finished {
    pub(super) answer: ModelAnswer,
    pub(super) wrote_calls_as_text: bool,
}

impl Draft {
    pub(super) fn new(form: Form, longest: usize) -> Self {
        Self {
            form,
            longest,
            text: String::new(),
            told: 0,
            thought: String::new(),
            calls: Vec::new(),
            parts: 0,
        }
    }

    pub(super) fn text(
        &mut self,
        text: &str,
        tell: &mut dyn FnMut(ModelEvent),
    ) -> Result<(), Failure> {
        self.text.push_str(text);
        if !self.may_be_call() {
            tell(ModelEvent::Text {
                text: self.text[self.told..].to_owned(),
            });
            self.told = self.text.len();
        }
        self.bounded()
    }

    pub(super) fn thought(
        &mut self,
        text: String,
        tell: &mut dyn FnMut(ModelEvent),
    ) -> Result<(), Failure> {
        self.thought.push_str(&text);
        tell(ModelEvent::Thought { text });
        self.bounded()
    }

    /// Hears of a call. It is told of once, with its name; its arguments come piece by piece.
    pub(super) fn call(
        &mut self,
        position: usize,
        tool: String,
        length: usize,
        tell: &mut dyn FnMut(ModelEvent),
    ) -> Result<(), Failure> {
        if position >= MOST_CALLS {
            let message =
                format!("The answer was stopped: it asks for more than {MOST_CALLS} calls.");
            return Err(Failure::lasting(ModelErrorKind::Malformed, message));
        }
        if position >= self.calls.len() {
            self.calls.resize(position + 1, (false, 0));
        }
        let (is_told, known) = &mut self.calls[position];
        *known = length;
        // The name may come after the first of the arguments.
        if !*is_told && !tool.is_empty() {
            *is_told = true;
            tell(ModelEvent::Call { tool });
        }
        self.bounded()
    }

    /// What broke off at the length limit before it was anything is no answer: neither part of a
    /// call, nor nothing at all because the model was still thinking.
    pub(super) fn refuse_fragment(&self, request: &ModelRequest) -> Result<(), Failure> {
        let text = self.text.trim_start();
        let is_said = !text.is_empty() && !text.starts_with(CALL_STARTS);
        if is_said || !self.found(request).calls.is_empty() {
            return Ok(());
        }
        let message = "The answer broke off before it said anything: it was longer than it was \
                       allowed to be. Allow more output tokens, or ask for less at once.";
        Err(Failure::lasting(ModelErrorKind::Malformed, message))
    }

    pub(super) fn finish(
        self,
        request: &ModelRequest,
        calls: Vec<RequestedCall>,
        usage: Usage,
        tell: &mut dyn FnMut(ModelEvent),
    ) -> Finished {
        let mut found = self.found(request);
        let wrote_calls_as_text = calls.is_empty() && !found.calls.is_empty();
        if !calls.is_empty() {
            // The provider has already read the calls; what looks like more of them is text.
            if !found.calls.is_empty() {
                found.text = self.text.clone();
            }
            found.calls = calls;
        }
        if let Some(thought) = &found.thought {
            tell(ModelEvent::Thought {
                text: thought.clone(),
            });
        }
        if self.told == 0 && !found.text.is_empty() {
            tell(ModelEvent::Text {
                text: found.text.clone(),
            });
        }
        if wrote_calls_as_text {
            for call in &found.calls {
                tell(ModelEvent::Call {
                    tool: call.tool.clone(),
                });
            }
        }
        tell(ModelEvent::Usage { usage });
        let thoughts = [Some(self.thought), found.thought].into_iter().flatten();
        let thought: Vec<String> = thoughts
            .filter(|thought| !thought.trim().is_empty())
            .collect();
        let thought = (!thought.is_empty()).then(|| thought.join("\n"));
        Finished {
            answer: ModelAnswer {
                text: found.text,
                thought,
                calls: found.calls,
                usage,
            },
            wrote_calls_as_text,
        }
    }

    fn found(&self, request: &ModelRequest) -> Found {
        let is_offered = |name: &str| {
            let mut tools = request.tools.iter();
            name == FINISH || tools.any(|tool| tool.name().as_str() == name)
        };
        find(&self.text, &is_offered)
    }

    /// A person should not see a call being spelled out as JSON, so what may be one is held back.
    fn may_be_call(&self) -> bool {
        let start = self.text.trim_start();
        self.form == Form::Structured || start.is_empty() || start.starts_with(CALL_STARTS)
    }

    /// Every part counts, so that a stream of empty ones ends too.
    fn bounded(&mut self) -> Result<(), Failure> {
        self.parts += 1;
        let arguments: usize = self.calls.iter().map(|(_, length)| length).sum();
        let size = self.text.len() + self.thought.len() + arguments;
        if size.max(self.parts) <= self.longest {
            return Ok(());
        }
        let message = format!(
            "The answer was stopped: it did not end within {} bytes.",
            self.longest
        );
        Err(Failure::lasting(ModelErrorKind::Malformed, message))
    }
}
