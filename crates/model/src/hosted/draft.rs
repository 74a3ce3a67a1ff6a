//! An answer in the making: gathers what arrives, tells it on, bounds it, and makes the machine's
//! answer of it at the end.

use windlass_core::model::{
    FINISH, ModelAnswer, ModelErrorKind, ModelRequest, RequestedCall, Usage,
};

use super::Form;
use super::failure::Failure;
use crate::client::ModelEvent;
use crate::dialect::find;

/// What has arrived of an answer.
pub(super) struct Draft {
    form: Form,
    text: String,
    /// How much of the text was told on.
    told: usize,
    thought: String,
    /// The calls that were told on, by the provider's name for them, and how long each is.
    calls: Vec<(String, usize)>,
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
        id: String,
        tool: String,
        length: usize,
        tell: &mut dyn FnMut(ModelEvent),
    ) -> Result<(), Failure> {
        match self.calls.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = length.max(*known),
            None if tool.is_empty() => {}
            None => {
                self.calls.push((id, length));
                tell(ModelEvent::Call { tool });
            }
        }
        self.bounded()
    }

    pub(super) fn finish(
        self,
        request: &ModelRequest,
        calls: Vec<RequestedCall>,
        usage: Usage,
        tell: &mut dyn FnMut(ModelEvent),
    ) -> Finished {
        let is_offered = |name: &str| {
            name == FINISH
                || request
                    .tools
                    .iter()
                    .any(|tool| tool.name().as_str() == name)
        };
        let mut found = find(&self.text, &is_offered);
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

    /// A person should not see a call being spelled out as JSON, so what may be one is held back.
    fn may_be_call(&self) -> bool {
        let start = self.text.trim_start();
        self.form == Form::Structured || start.is_empty() || start.starts_with(['{', '[', '`', '<'])
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
