//! The scripted policy that playbooks are measured with. It stands where a model stands and sees what a
//! model is shown: the system text, the task, the tools, and what came of its calls in this run. It was
//! laid down before there was a playbook and stays as it is: whoever changes it measures something else.
//!
//! It is no agent. Its *arguments* come from an oracle that knows the calls which are expected next: if it
//! picks the tool of the next expected call, it is given the right arguments; for any other tool it has
//! none, and the call is made with `{}`. Windlass or the tool then refuses it, or, if the tool needs no
//! arguments, it really happens. So what is measured is the *choice of tools*, and nothing else. When all
//! expected calls were made it finishes.
//!
//! How it chooses, one tool a turn of the run: the tool with the highest score, the first by name among
//! equals. The score of a tool is
//!
//! 1. the likeness of the task's text to the tool's own text (the words of its name, its description, the
//!    names of its parameters): the cosine of TF-IDF vectors whose frequencies come from the offered tools;
//! 2. less [`JUST_DONE`] if it is the tool that succeeded last;
//! 3. plus what the strategies in the system text say for it, less what they say against it.
//!
//! A tool that was called in vain, because it was refused or because it was not what was expected, is not
//! picked again before an expected call has succeeded. Once all were called in vain, it begins anew from the
//! top, until the run's turns are used up: it never gives up by finishing.
//!
//! Strategies are read from the system text only: the lines below [`HEADING`]. A line names tools in the
//! order in which to call them, may quote a task that it worked for in double quotes, and may begin with
//! "Avoid", which speaks against the tool it names last. What a line is worth is its likeness to the task's
//! text plus [`PLACE`] over its place in the list. How far it was followed is the longest beginning of its
//! tools that is a subsequence of the calls that succeeded. The next tool gains [`NEXT`] times the worth of
//! the line, each later one [`LATER`] times.

mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use windlass_core::model::{
    ChatMessage, FINISH, ModelAnswer, ModelRequest, RequestedArguments, RequestedCall, Usage,
};
use windlass_model::{ModelClient, ModelError, ModelEvent};
use windlass_spec::ToolSpecification;

use words::{Lexicon, cosine, identifier_words, words};

/// What strategies stand below in the system text.
pub const HEADING: &str = "What worked before for tasks like this:";

// The weights were set once, by the following reasons, and not by trying.

/// What the next tool of a strategy gains, times the worth of the line. Likeness to a task and likeness to
/// a tool's text are cosines of the same kind. Whoever was told what worked for a task goes by that more
/// than by what a tool says of itself: advice counts as much as a description that fits twice as well.
const NEXT: f64 = 2.0;

/// What each tool after the next one gains. A step may not be needed this time, so the others should rise
/// above tools nobody spoke of, but stay well below the next one: a quarter of it.
const LATER: f64 = 0.5;

/// What a tool loses that a line speaks against: half of what it would gain if the line spoke for it.
/// A warning tells what failed once, which says less than what worked.
const AVOID: f64 = 1.0;

/// The worth that a line has merely for being first in the list, whoever made the list having put the best
/// first; the second has half of it, the third a third. About the likeness of texts that share one word, so
/// that it decides between lines that are equally alike and is not by itself a reason to follow one.
const PLACE: f64 = 0.1;

/// What is left of the worth of a line whose next tool was called in vain since the last expected call: it may
/// still be right about what comes later, but is no longer in step.
const OUT_OF_STEP: f64 = 0.5;

/// What the tool that succeeded last loses: the same thing is rarely done twice in a row, but sometimes is.
/// About the likeness of texts that share one word.
const JUST_DONE: f64 = 0.1;

/// How many bytes a token has, roughly, as Windlass estimates it.
const BYTES_PER_TOKEN: usize = 4;

/// A call that a task expects.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedCall {
    /// The tool, as it is offered.
    pub tool: String,
    /// The right arguments.
    pub arguments: Map<String, Value>,
}

/// The policy. It remembers nothing between requests but what the oracle knows.
#[derive(Debug, Default)]
pub struct Policy {
    expected: Mutex<Vec<ExpectedCall>>,
}

impl Policy {
    /// Tells the oracle what is expected in the run that comes next.
    pub fn expect(&self, calls: Vec<ExpectedCall>) {
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner) = calls;
    }

    fn answered(&self, request: &ModelRequest) -> ModelAnswer {
        let expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = Seen::of(request, &expected);
        let (tool, arguments) = match expected.get(seen.made) {
            None => (FINISH.to_owned(), finish()),
            Some(next) => match pick(request, &seen) {
                Some(tool) if tool == next.tool => {
                    (tool.to_owned(), Value::Object(next.arguments.clone()))
                }
                Some(tool) => (tool.to_owned(), json!({})),
                // Without tools there is nothing it could do.
                None => (FINISH.to_owned(), finish()),
            },
        };
        ModelAnswer {
            calls: vec![RequestedCall {
                tool,
                arguments: RequestedArguments::Json(arguments),
                confidence: Some(1.0),
            }],
            usage: Usage {
                input_tokens: tokens(request),
                ..Usage::default()
            },
            ..ModelAnswer::default()
        }
    }
}

impl ModelClient for Policy {
    fn answer<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: &'a CancellationToken,
        _: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        Box::pin(std::future::ready(Ok(self.answered(request))))
    }
}

fn finish() -> Value {
    json!({"answer": "Done.", "reasoning": "Everything that was asked for was done.", "confidence": 1})
}

/// How many tokens a request has, roughly: its messages and the tools it offers.
fn tokens(request: &ModelRequest) -> u64 {
    let messages = request.messages.iter().map(ChatMessage::characters);
    let tools = request.tools.iter().map(|tool| {
        tool.name().as_str().len() + tool.description().len() + tool.schema().to_string().len()
    });
    let bytes = messages.chain(tools).sum::<usize>();
    u64::try_from(bytes / BYTES_PER_TOKEN).unwrap_or(u64::MAX)
}

/// What came of a call, as far as its observation tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    Succeeded,
    /// It was not made, because it had been made before.
    Repeated,
    Refused,
}

impl Came {
    /// Results are JSON objects; what went wrong is told in words.
    fn of(observation: &str) -> Self {
        if matches!(serde_json::from_str(observation), Ok(Value::Object(_))) {
            Self::Succeeded
        } else if observation.starts_with("You made exactly this call before") {
            Self::Repeated
        } else {
            Self::Refused
        }
    }
}

/// What a request shows.
#[derive(Debug, Default)]
struct Seen<'r> {
    task: &'r str,
    strategies: Vec<&'r str>,
    /// The tools of the calls that succeeded in this run, in order.
    succeeded: Vec<&'r str>,
    /// Those that were called in vain since the last expected call was made.
    in_vain: BTreeSet<&'r str>,
    /// How many of the expected calls were made.
    made: usize,
}

impl<'r> Seen<'r> {
    fn of(request: &'r ModelRequest, expected: &[ExpectedCall]) -> Self {
        let mut seen = Self::default();
        if let Some(ChatMessage::System { content }) = request.messages.first() {
            seen.strategies = strategies(content);
        }
        let messages = &request.messages;
        let task = messages
            .iter()
            .rposition(|message| matches!(message, ChatMessage::User { .. }));
        let Some(task) = task else {
            return seen;
        };
        if let ChatMessage::User { content } = &messages[task] {
            seen.task = content;
        }
        let mut asked = &Value::Null;
        for message in &messages[task + 1..] {
            match message {
                ChatMessage::Assistant { calls, .. } => {
                    asked = calls.first().map_or(&Value::Null, |call| &call.arguments);
                }
                ChatMessage::Tool { tool, content, .. } => {
                    seen.observe(tool, asked, Came::of(content), expected);
                }
                ChatMessage::System { .. } | ChatMessage::User { .. } => {}
            }
        }
        seen
    }

    fn observe(&mut self, tool: &'r str, asked: &Value, came: Came, expected: &[ExpectedCall]) {
        let is_expected = expected
            .get(self.made)
            .is_some_and(|next| next.tool == tool && asked.as_object() == Some(&next.arguments));
        if came == Came::Succeeded {
            self.succeeded.push(tool);
        }
        // What had been made already, and is known, need not be made again.
        if is_expected && came != Came::Refused {
            self.made += 1;
            self.in_vain.clear();
        } else {
            self.in_vain.insert(tool);
        }
    }
}

/// The lines below the heading.
fn strategies(system: &str) -> Vec<&str> {
    let mut lines = system.lines().skip_while(|line| *line != HEADING).skip(1);
    let mut found = Vec::new();
    while let Some(line) = lines.next().and_then(|line| line.strip_prefix("- ")) {
        found.push(line);
    }
    found
}

/// The tool with the highest score.
fn pick<'r>(request: &'r ModelRequest, seen: &Seen<'_>) -> Option<&'r str> {
    let mut tools: Vec<&ToolSpecification> = request.tools.iter().map(AsRef::as_ref).collect();
    tools.sort_by_key(|tool| tool.name().as_str());
    let names: Vec<&str> = tools.iter().map(|tool| tool.name().as_str()).collect();
    let texts: Vec<Vec<String>> = tools.iter().map(|tool| text_of(tool)).collect();
    let lexicon = Lexicon::fitted(&texts);
    let task = lexicon.vector(&words(seen.task));
    let mut scores: Vec<f64> = texts
        .iter()
        .map(|text| cosine(&task, &lexicon.vector(text)))
        .collect();
    if let Some(last) = seen.succeeded.last()
        && let Some(at) = names.iter().position(|name| name == last)
    {
        scores[at] -= JUST_DONE;
    }
    for (place, line) in seen.strategies.iter().enumerate() {
        let line = Line::read(line, &names);
        let alike = cosine(&task, &lexicon.vector(&words(&line.about)));
        let worth = alike + PLACE / (place + 1) as f64;
        line.speak(worth, seen, &names, &mut scores);
    }
    let best = |is_open: &dyn Fn(&str) -> bool| {
        let open = (0..names.len()).filter(|&tool| is_open(names[tool]));
        // The first of those that are equal, which a maximum would not give.
        open.reduce(|best, tool| {
            if scores[tool] > scores[best] {
                tool
            } else {
                best
            }
        })
    };
    let fresh = best(&|name| !seen.in_vain.contains(name));
    fresh.or_else(|| best(&|_| true)).map(|tool| names[tool])
}

/// The words of a tool.
fn text_of(tool: &ToolSpecification) -> Vec<String> {
    let mut text = identifier_words(tool.name().as_str());
    text.extend(words(tool.description()));
    for parameter in tool.signature().parameters() {
        text.extend(identifier_words(&parameter.name));
    }
    text
}

/// A strategy, as it is understood.
#[derive(Debug, PartialEq)]
struct Line {
    /// The offered tools it names, by their place, in its order.
    tools: Vec<usize>,
    /// What tells which tasks it is for: what it quotes, or else all of it.
    about: String,
    is_warning: bool,
}

impl Line {
    fn read(line: &str, names: &[&str]) -> Self {
        // A quotation that does not end is none.
        let parts: Vec<&str> = line.split('"').collect();
        let ended = (parts.len() - 1) / 2 * 2;
        let (mut quoted, mut plain) = (Vec::new(), Vec::new());
        for (index, part) in parts.into_iter().enumerate() {
            match index % 2 == 1 && index < ended {
                true => quoted.push(part),
                false => plain.push(part),
            }
        }
        let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let named = plain.iter().flat_map(|part| part.split(|c| !is_of_name(c)));
        let tools = named
            .map(|word| word.trim_matches('.'))
            .filter_map(|word| names.iter().position(|name| *name == word));
        let about = match quoted.is_empty() {
            true => line.to_owned(),
            false => quoted.join(" "),
        };
        let beginning = line.trim_start().get(.."avoid".len());
        Self {
            tools: tools.collect(),
            about,
            is_warning: beginning.is_some_and(|word| word.eq_ignore_ascii_case("avoid")),
        }
    }

    /// Says for each tool what the line says for or against it.
    fn speak(&self, worth: f64, seen: &Seen<'_>, names: &[&str], scores: &mut [f64]) {
        if self.is_warning {
            if let Some(&last) = self.tools.last() {
                scores[last] -= AVOID * worth;
            }
            return;
        }
        let followed = seen.succeeded.iter().fold(0, |followed, done| {
            let is_next = self
                .tools
                .get(followed)
                .is_some_and(|&next| names[next] == *done);
            followed + usize::from(is_next)
        });
        let Some((&next, later)) = self.tools[followed..].split_first() else {
            return;
        };
        let is_in_step = !seen.in_vain.contains(names[next]);
        let worth = if is_in_step {
            worth
        } else {
            worth * OUT_OF_STEP
        };
        scores[next] += NEXT * worth;
        // Each tool once, however often the line names it.
        let later: BTreeSet<usize> = later.iter().copied().filter(|&tool| tool != next).collect();
        for tool in later {
            scores[tool] += LATER * worth;
        }
    }
}
