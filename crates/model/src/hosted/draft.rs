//! A partial answer: collects the pieces, emits events, enforces limits, and builds the final answer.

use windlass_core::model::{
    FINISH, ModelAnswer, ModelErrorKind, ModelRequest, RequestedCall, Usage,
};

use super::Form;
use super::failure::Failure;
use crate::client::ModelEvent;
use crate::dialect::{ParsedText, parse_calls};

/// The characters with which a call written as text can start.
const CALL_STARTS: [char; 4] = ['{', '[', '`', '<'];

/// The most calls of one answer.
const MOST_CALLS: usize = 128;

/// The part of an answer that has arrived.
pub(super) struct Draft {
    form: Form,
    text: String,
    /// How many bytes of the text were emitted.
    emitted: usize,
    thought: String,
    /// The calls so far: whether each was emitted, and the length of its arguments.
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
            emitted: 0,
            thought: String::new(),
            calls: Vec::new(),
            parts: 0,
        }
    }

    pub(super) fn text(
        &mut self,
        text: &str,
        emit: &mut dyn FnMut(ModelEvent),
    ) -> Result<(), Failure> {
        self.text.push_str(text);
        if !self.may_be_call() {
            emit(ModelEvent::Text {
                text: self.text[self.emitted..].to_owned(),
            });
            self.emitted = self.text.len();
        }
        self.check_limits()
    }

    pub(super) fn thought(
        &mut self,
        text: String,
        emit: &mut dyn FnMut(ModelEvent),
    ) -> Result<(), Failure> {
        self.thought.push_str(&text);
        emit(ModelEvent::Thought { text });
        self.check_limits()
    }

    /// Records a piece of a call. The call is emitted once, when its name is known.
    pub(super) fn call(
        &mut self,
        position: usize,
        tool: String,
        length: usize,
        emit: &mut dyn FnMut(ModelEvent),
    ) -> Result<(), Failure> {
        if position >= MOST_CALLS {
            let message =
                format!("The answer was stopped: it requests more than {MOST_CALLS} calls.");
            return Err(Failure::permanent(ModelErrorKind::Malformed, message));
        }
        if position >= self.calls.len() {
            self.calls.resize(position + 1, (false, 0));
        }
        let (is_emitted, known) = &mut self.calls[position];
        *known = length;
        // The name may arrive after the first arguments.
        if !*is_emitted && !tool.is_empty() {
            *is_emitted = true;
            emit(ModelEvent::Call { tool });
        }
        self.check_limits()
    }

    /// Refuses an answer that was cut off at the token limit before it contained anything usable: a
    /// partial call, or no text because the model was still reasoning.
    pub(super) fn refuse_fragment(&self, request: &ModelRequest) -> Result<(), Failure> {
        let text = self.text.trim_start();
        let has_text = !text.is_empty() && !text.starts_with(CALL_STARTS);
        if has_text || !self.parse(request).calls.is_empty() {
            return Ok(());
        }
        let message = "The answer was cut off at the output token limit before it contained \
                       anything usable. Allow more output tokens, or ask for less at once.";
        Err(Failure::permanent(ModelErrorKind::Malformed, message))
    }

    pub(super) fn finish(
        self,
        request: &ModelRequest,
        calls: Vec<RequestedCall>,
        usage: Usage,
        emit: &mut dyn FnMut(ModelEvent),
    ) -> Finished {
        let mut found = self.parse(request);
        let wrote_calls_as_text = calls.is_empty() && !found.calls.is_empty();
        if !calls.is_empty() {
            // The provider has parsed the calls; anything else that looks like a call is text.
            if !found.calls.is_empty() {
                found.text = self.text.clone();
            }
            found.calls = calls;
        }
        if let Some(thought) = &found.thought {
            emit(ModelEvent::Thought {
                text: thought.clone(),
            });
        }
        if self.emitted == 0 && !found.text.is_empty() {
            emit(ModelEvent::Text {
                text: found.text.clone(),
            });
        }
        if wrote_calls_as_text {
            for call in &found.calls {
                emit(ModelEvent::Call {
                    tool: call.tool.clone(),
                });
            }
        }
        emit(ModelEvent::Usage { usage });
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

    fn parse(&self, request: &ModelRequest) -> ParsedText {
        let is_offered = |name: &str| {
            let mut tools = request.tools.iter();
            name == FINISH || tools.any(|tool| tool.name().as_str() == name)
        };
        parse_calls(&self.text, &is_offered)
    }

    /// Whether the text may be a call. Such text is held back, so that the user does not see its JSON.
    fn may_be_call(&self) -> bool {
        let start = self.text.trim_start();
        self.form == Form::Structured || start.is_empty() || start.starts_with(CALL_STARTS)
    }

    /// Checks the limits. Every part counts, so that a stream of empty parts ends too.
    fn check_limits(&mut self) -> Result<(), Failure> {
        self.parts += 1;
        let arguments: usize = self.calls.iter().map(|(_, length)| length).sum();
        let size = self.text.len() + self.thought.len() + arguments;
        if size.max(self.parts) <= self.longest {
            return Ok(());
        }
        let message = format!(
            "The answer was stopped: it is longer than {} bytes.",
            self.longest
        );
        Err(Failure::permanent(ModelErrorKind::Malformed, message))
    }
}
