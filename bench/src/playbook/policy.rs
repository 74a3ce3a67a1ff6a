//! The scripted policy that playbooks are measured with. It takes the place of a model and sees what a
//! model sees: the system prompt, the task, the tools, and the results of its calls in this run. It was
//! fixed before the playbook existed. Do not change it: results would no longer be comparable.
//!
//! It is not an agent. Its *arguments* come from an oracle that knows the next expected call: if the policy
//! picks the tool of that call, it gets the right arguments. Any other tool is called with `{}`. Windlass or the
//! tool then rejects the call, or, if the tool needs no arguments, executes it. So only the *choice of tools* is
//! measured. When all expected calls were made, it finishes.
//!
//! It chooses one tool per turn of the run: the tool with the highest score, and the first by name among
//! equals. The score of a tool is
//!
//! 1. the similarity of the task's text to the tool's text (the words of its name, its description, the
//!    names of its parameters): the cosine of TF-IDF vectors whose frequencies come from the offered tools;
//! 2. minus [`JUST_DONE`] if it is the tool that succeeded last;
//! 3. plus the support of the strategies in the system prompt for it, minus their warnings against it.
//!
//! A tool that was called without success, because it was rejected or not expected, is not picked again before an
//! expected call has succeeded. Once all tools were called without success, it starts again from the top, until
//! the run's turns are used up. It never gives up by finishing.
//!
//! Strategies are read only from the system prompt: the lines below [`STRATEGIES_HEADING`] and
//! [`PITFALLS_HEADING`]. A line names tools in the order in which to call them, may quote a task that it worked
//! for in double quotes, and may begin with "Avoid", which is a warning against the tool it names last. The worth
//! of a line is its similarity to the task's
//! text plus [`PLACE`] divided by its position in the list. Its progress is the longest prefix of its tools that is a
//! subsequence of the calls that succeeded. The next tool gains [`NEXT`] times the worth of the line, each later one
//! [`LATER`] times.

mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};
use windlass_core::model::{
    ChatMessage, FINISH, ModelAnswer, ModelRequest, RequestedArguments, RequestedCall, Usage,
};
use windlass_core::run::{PITFALLS_HEADING, STRATEGIES_HEADING};
use windlass_model::{ImmediateModel, ModelError};
use windlass_spec::ToolSpecification;

use words::{Lexicon, cosine, identifier_words, words};

// The weights were set once, for the following reasons, and not tuned.

/// The gain of the next tool of a strategy, times the worth of the line. The similarities to a task and to a tool's
/// text are cosines of the same kind. Advice about what worked counts as much as a description that fits twice as
/// well.
const NEXT: f64 = 2.0;

/// The gain of each tool after the next one. A step may be unnecessary this time, so later tools rank above tools
/// that no line names, but well below the next one: a quarter of it.
const LATER: f64 = 0.5;

/// The loss of a tool that a line warns against: half of the gain of the next tool. A failure is weaker evidence than
/// a success.
const AVOID: f64 = 1.0;

/// The worth of the first position in the list, since lists are sorted best first; the second has half of it, the
/// third a third. It is about the similarity of texts that share one word, so that it decides between equally
/// similar lines but is not by itself a reason to follow one.
const PLACE: f64 = 0.1;

/// The factor for a line whose next tool was called without success since the last expected call. Its later tools
/// may still be right.
const OUT_OF_STEP: f64 = 0.5;

/// The loss of the tool that succeeded last, since calls are rarely repeated. It is about the similarity of texts
/// that share one word.
const JUST_DONE: f64 = 0.1;

/// The bytes per token, as Windlass estimates it.
const BYTES_PER_TOKEN: usize = 4;

/// A call that a task expects.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedCall {
    /// The name of the tool.
    pub tool: String,
    /// The right arguments.
    pub arguments: Map<String, Value>,
}

/// The policy. Its only state between requests is the oracle.
#[derive(Debug, Default)]
pub struct Policy {
    expected: Mutex<Vec<ExpectedCall>>,
}

impl Policy {
    /// Sets the expected calls of the next run.
    pub fn expect(&self, calls: Vec<ExpectedCall>) {
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner) = calls;
    }

    fn choose_answer(&self, request: &ModelRequest) -> ModelAnswer {
        let expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = RunView::new(request, &expected);
        let (tool, arguments) = match expected.get(seen.made) {
            None => (FINISH.to_owned(), finish()),
            Some(next) => match pick(request, &seen) {
                Some(tool) if tool == next.tool => {
                    (tool.to_owned(), Value::Object(next.arguments.clone()))
                }
                Some(tool) => (tool.to_owned(), json!({})),
                // Without tools there is nothing to call.
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

impl ImmediateModel for Policy {
    fn compute_answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        Ok(self.choose_answer(request))
    }
}

fn finish() -> Value {
    json!({"answer": "Done.", "reasoning": "Everything that was asked for was done.", "confidence": 1})
}

/// The estimated tokens of a request: its messages and tools.
fn tokens(request: &ModelRequest) -> u64 {
    let messages = request.messages.iter().map(|message| message.characters());
    let tools = request.tools.iter().map(|tool| {
        tool.name().as_str().len() + tool.description().len() + tool.schema().to_string().len()
    });
    let bytes = messages.chain(tools).sum::<usize>();
    u64::try_from(bytes / BYTES_PER_TOKEN).unwrap_or(u64::MAX)
}

/// The result of a call, as its observation shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObservedResult {
    Succeeded,
    /// It was not executed again, because the same call was made before.
    Repeated,
    Rejected,
}

impl ObservedResult {
    /// Results are JSON objects; errors are plain text.
    fn from_observation(observation: &str) -> Self {
        if matches!(serde_json::from_str(observation), Ok(Value::Object(_))) {
            Self::Succeeded
        } else if observation.starts_with("You made exactly this call before") {
            Self::Repeated
        } else {
            Self::Rejected
        }
    }
}

/// The state of a run, as a request shows it.
#[derive(Debug, Default)]
struct RunView<'r> {
    task: &'r str,
    strategies: Vec<&'r str>,
    /// The tools of the calls that succeeded in this run, in order.
    succeeded: Vec<&'r str>,
    /// The tools that were called without success since the last expected call.
    failed: BTreeSet<&'r str>,
    /// How many of the expected calls were made.
    made: usize,
}

impl<'r> RunView<'r> {
    fn new(request: &'r ModelRequest, expected: &[ExpectedCall]) -> Self {
        let mut seen = Self::default();
        if let Some(ChatMessage::System { content }) = request.messages.first().map(AsRef::as_ref) {
            seen.strategies = strategies(content);
        }
        let messages = &request.messages;
        let task = messages
            .iter()
            .rposition(|message| matches!(**message, ChatMessage::User { .. }));
        let Some(task) = task else {
            return seen;
        };
        if let ChatMessage::User { content } = &*messages[task] {
            seen.task = content;
        }
        let mut arguments = &Value::Null;
        for message in &messages[task + 1..] {
            match &**message {
                ChatMessage::Assistant { calls, .. } => {
                    arguments = calls.first().map_or(&Value::Null, |call| &call.arguments);
                }
                ChatMessage::Tool { tool, content, .. } => {
                    seen.observe(
                        tool,
                        arguments,
                        ObservedResult::from_observation(content),
                        expected,
                    );
                }
                ChatMessage::System { .. } | ChatMessage::User { .. } => {}
            }
        }
        seen
    }

    fn observe(
        &mut self,
        tool: &'r str,
        arguments: &Value,
        result: ObservedResult,
        expected: &[ExpectedCall],
    ) {
        let is_expected = expected.get(self.made).is_some_and(|next| {
            next.tool == tool && arguments.as_object() == Some(&next.arguments)
        });
        if result == ObservedResult::Succeeded {
            self.succeeded.push(tool);
        }
        // A repeated call counts, because its result is known.
        if is_expected && result != ObservedResult::Rejected {
            self.made += 1;
            self.failed.clear();
        } else {
            self.failed.insert(tool);
        }
    }
}

/// The lines below the headings of the strategies and of the pitfalls.
fn strategies(system: &str) -> Vec<&str> {
    let below = |heading: &'static str| {
        let lines = system.lines().skip_while(move |line| *line != heading);
        lines.skip(1).map_while(|line| line.strip_prefix("- "))
    };
    below(STRATEGIES_HEADING)
        .chain(below(PITFALLS_HEADING))
        .collect()
}

/// The tool with the highest score.
fn pick<'r>(request: &'r ModelRequest, seen: &RunView<'_>) -> Option<&'r str> {
    let mut tools: Vec<&ToolSpecification> = request.tools.iter().map(AsRef::as_ref).collect();
    tools.sort_by_key(|tool| tool.name().as_str());
    let names: Vec<&str> = tools.iter().map(|tool| tool.name().as_str()).collect();
    let texts: Vec<Vec<String>> = tools.iter().map(|tool| text_of(tool)).collect();
    let lexicon = Lexicon::fit(&texts);
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
        let line = AdviceLine::parse(line, &names);
        let similarity = cosine(&task, &lexicon.vector(&words(&line.about)));
        let worth = similarity + PLACE / (place + 1) as f64;
        line.add_scores(worth, seen, &names, &mut scores);
    }
    let best = |is_open: &dyn Fn(&str) -> bool| {
        let open = (0..names.len()).filter(|&tool| is_open(names[tool]));
        // The first of equals; `max_by` would return the last.
        open.reduce(|best, tool| {
            if scores[tool] > scores[best] {
                tool
            } else {
                best
            }
        })
    };
    let fresh = best(&|name| !seen.failed.contains(name));
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

/// A parsed strategy line.
#[derive(Debug, PartialEq)]
struct AdviceLine {
    /// The positions of the offered tools it names, in its order.
    tools: Vec<usize>,
    /// The text that is compared with the task: its quotations, or else the whole line.
    about: String,
    is_warning: bool,
}

impl AdviceLine {
    fn parse(line: &str, names: &[&str]) -> Self {
        // An unclosed quotation does not count.
        let parts: Vec<&str> = line.split('"').collect();
        let ended = (parts.len() - 1) / 2 * 2;
        let (mut quoted, mut plain) = (Vec::new(), Vec::new());
        for (index, part) in parts.into_iter().enumerate() {
            match index % 2 == 1 && index < ended {
                true => quoted.push(part),
                false => plain.push(part),
            }
        }
        let is_name_character = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let named = plain
            .iter()
            .flat_map(|part| part.split(|c| !is_name_character(c)));
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

    /// Adds the gains and losses of the line to the scores of the tools.
    fn add_scores(&self, worth: f64, seen: &RunView<'_>, names: &[&str], scores: &mut [f64]) {
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
        let is_in_step = !seen.failed.contains(names[next]);
        let worth = if is_in_step {
            worth
        } else {
            worth * OUT_OF_STEP
        };
        scores[next] += NEXT * worth;
        // Each tool gains once, even if the line names it several times.
        let later: BTreeSet<usize> = later.iter().copied().filter(|&tool| tool != next).collect();
        for tool in later {
            scores[tool] += LATER * worth;
        }
    }
}
