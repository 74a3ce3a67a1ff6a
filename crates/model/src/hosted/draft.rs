//! A partial answer: collects the pieces, emits events, enforces limits, and builds the final answer.

use serde_json::Value;
use windlass_core::model::{
    FINISH, ModelAnswer, ModelErrorKind, ModelRequest, RequestedCall, Usage,
};

use super::calls::{CallKey, Calls};
use super::failure::Failure;
use super::limits::{AnswerLimits, ExceededLimit};
use super::names::WireNames;
use super::{Form, HostedSettings};
use crate::client::ModelEvent;
use crate::dialect::{ParsedText, parse_calls};

/// The characters with which a call written as text can start.
const CALL_STARTS: [char; 4] = ['{', '[', '`', '<'];

/// The part of an answer that has arrived.
pub(super) struct Draft<'a> {
    form: Form,
    names: &'a WireNames,
    emit: &'a mut (dyn FnMut(ModelEvent) + Send),
    text: String,
    /// How many bytes of the text were emitted.
    emitted: usize,
    thought: String,
    calls: Calls,
    /// Which calls were emitted.
    emitted_calls: Vec<bool>,
    /// The length of all arguments.
    argument_bytes: usize,
    parts: usize,
    longest: usize,
    limits: AnswerLimits,
    /// The usage so far.
    pub(super) usage: Usage,
    /// Why the model stopped, if it has.
    pub(super) stop: Option<Stop>,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Finished,
    /// The answer was cut off at the output token limit.
    CutOff,
}

/// A finished answer and whether its calls were written as text.
pub(super) struct Finished {
    pub(super) answer: ModelAnswer,
    pub(super) wrote_calls_as_text: bool,
}

impl<'a> Draft<'a> {
    pub(super) fn new(
        form: Form,
        settings: &HostedSettings,
        names: &'a WireNames,
        emit: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> Self {
        Self {
            form,
            names,
            emit,
            text: String::new(),
            emitted: 0,
            thought: String::new(),
            calls: Calls::default(),
            emitted_calls: Vec::new(),
            argument_bytes: 0,
            parts: 0,
            longest: settings.longest_answer,
            limits: settings.limits,
            usage: Usage::default(),
            stop: None,
        }
    }

    /// Whether anything has arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.parts > 0
    }

    pub(super) fn text(&mut self, text: &str) -> Result<(), ExceededLimit> {
        self.text.push_str(text);
        if !self.may_be_call() {
            (self.emit)(ModelEvent::Text {
                text: self.text[self.emitted..].to_owned(),
            });
            self.emitted = self.text.len();
        }
        self.check_limits()
    }

    pub(super) fn thought(&mut self, text: &str) -> Result<(), ExceededLimit> {
        self.thought.push_str(text);
        (self.emit)(ModelEvent::Thought {
            text: text.to_owned(),
        });
        self.check_limits()
    }

    /// A piece of a call.
    pub(super) fn call_piece(
        &mut self,
        key: CallKey<&str>,
        name: &str,
        arguments: &str,
    ) -> Result<(), ExceededLimit> {
        let position = self.calls.find_or_begin(key, name);
        self.calls.append(position, arguments)?;
        self.update_call(position, 0, arguments.len())
    }

    /// The start of a call.
    pub(super) fn begin_call(&mut self, number: u64, name: &str) -> Result<(), ExceededLimit> {
        let position = self.calls.begin(CallKey::Number(number), name);
        self.update_call(position, 0, 0)
    }

    /// More arguments of a call that has begun.
    pub(super) fn append_arguments(
        &mut self,
        number: u64,
        arguments: &str,
    ) -> Result<(), ExceededLimit> {
        let Some(position) = self.calls.numbered(number) else {
            return self.check_limits();
        };
        self.calls.append(position, arguments)?;
        self.update_call(position, 0, arguments.len())
    }

    /// The whole arguments of a call, which may have begun.
    pub(super) fn set_arguments(
        &mut self,
        number: u64,
        name: &str,
        arguments: &str,
    ) -> Result<(), ExceededLimit> {
        let known = self.calls.numbered(number);
        let position = known.unwrap_or_else(|| self.calls.begin(CallKey::Number(number), name));
        let before = self.calls.length(position);
        self.calls.replace(position, arguments)?;
        self.update_call(position, before, arguments.len())
    }

    /// A whole call.
    pub(super) fn whole_call(
        &mut self,
        name: &str,
        arguments: Option<Value>,
    ) -> Result<(), ExceededLimit> {
        let position = self.calls.begin(CallKey::Id(""), name);
        if let Some(arguments) = arguments.filter(|arguments| !arguments.is_null()) {
            self.calls.set_json(position, arguments);
        }
        self.update_call(position, 0, self.calls.length(position))
    }

    /// Replaces `before` bytes of a call's arguments by `added` ones. The call is emitted once, when its name
    /// is known.
    fn update_call(
        &mut self,
        position: usize,
        before: usize,
        added: usize,
    ) -> Result<(), ExceededLimit> {
        if self.calls.len() > self.limits.calls {
            return Err(ExceededLimit::Calls(self.limits.calls));
        }
        if self.calls.length(position) > self.limits.argument_bytes {
            return Err(ExceededLimit::ArgumentBytes(self.limits.argument_bytes));
        }
        self.argument_bytes = self.argument_bytes + added - before;
        self.emitted_calls.resize(self.calls.len(), false);
        let name = self.calls.name(position);
        // The name may arrive after the first arguments.
        if !self.emitted_calls[position] && !name.is_empty() {
            self.emitted_calls[position] = true;
            let tool = self.names.tool_name(name);
            (self.emit)(ModelEvent::Call { tool });
        }
        self.check_limits()
    }

    /// The answer.
    pub(super) fn finish(mut self, request: &ModelRequest) -> Result<Finished, Failure> {
        let mut found = self.parse(request);
        let names = self.names;
        let calls = std::mem::take(&mut self.calls).finish();
        let calls: Vec<RequestedCall> = calls
            .map(|(name, arguments)| RequestedCall {
                tool: names.tool_name(&name),
                arguments,
                confidence: None,
            })
            .collect();
        if self.stop == Some(Stop::CutOff) && calls.is_empty() && found.calls.is_empty() {
            self.refuse_fragment()?;
        }
        if found.calls.len() > self.limits.calls {
            return Err(ExceededLimit::Calls(self.limits.calls).into());
        }
        let usage = self.usage;
        let wrote_calls_as_text = calls.is_empty() && !found.calls.is_empty();
        if !calls.is_empty() {
            // The provider has parsed the calls; anything else that looks like a call is text.
            if !found.calls.is_empty() {
                found.text = std::mem::take(&mut self.text);
            }
            found.calls = calls;
        }
        if let Some(thought) = &found.thought {
            (self.emit)(ModelEvent::Thought {
                text: thought.clone(),
            });
        }
        if self.emitted == 0 && !found.text.is_empty() {
            (self.emit)(ModelEvent::Text {
                text: found.text.clone(),
            });
        }
        if wrote_calls_as_text {
            for call in &found.calls {
                (self.emit)(ModelEvent::Call {
                    tool: call.tool.clone(),
                });
            }
        }
        (self.emit)(ModelEvent::Usage { usage });
        let thoughts = [Some(self.thought), found.thought].into_iter().flatten();
        let thought: Vec<String> = thoughts
            .filter(|thought| !thought.trim().is_empty())
            .collect();
        let thought = (!thought.is_empty()).then(|| thought.join("\n"));
        Ok(Finished {
            answer: ModelAnswer {
                text: found.text,
                thought,
                calls: found.calls,
                usage,
                model: None,
            },
            wrote_calls_as_text,
        })
    }

    /// Refuses an answer without calls that was cut off at the token limit before it contained anything
    /// usable: a partial call, or no text because the model was still reasoning.
    fn refuse_fragment(&self) -> Result<(), Failure> {
        let text = self.text.trim_start();
        if !text.is_empty() && !text.starts_with(CALL_STARTS) {
            return Ok(());
        }
        let message = "The answer was cut off at the output token limit before it contained \
                       anything usable. Allow more output tokens, or ask for less at once.";
        Err(Failure::permanent(ModelErrorKind::Malformed, message))
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
    fn check_limits(&mut self) -> Result<(), ExceededLimit> {
        self.parts += 1;
        let size = self.text.len() + self.thought.len() + self.argument_bytes;
        match size.max(self.parts) > self.longest {
            true => Err(ExceededLimit::AnswerBytes(self.longest)),
            false => Ok(()),
        }
    }
}
