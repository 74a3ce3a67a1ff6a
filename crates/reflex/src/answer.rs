//! One turn: from a model request to the next call or the final answer. No state is kept between turns;
//! earlier calls are read from the conversation.

use serde_json::{Map, Value, json};
use windlass_core::model::{
    ChatMessage, FINISH, ModelAnswer, ModelRequest, RequestedArguments, RequestedCall,
};
use windlass_spec::reserved::ASK_HUMAN;

use crate::choose::{Reflex, ToolView};
use crate::extract::Reading;
use crate::extract::date::{Date, stated_today};
use crate::missing;
use crate::plan::{Plan, Step};
use crate::{observation, strategy};

/// The confidence of an answer that a task cannot be done.
const CANNOT: f64 = 0.3;

/// The parts of a model request.
struct ParsedRequest<'a> {
    instruction: &'a str,
    /// The system message, including strategies.
    system: &'a str,
    task: &'a str,
    /// Earlier user messages, latest first.
    earlier: Vec<&'a str>,
    /// The parts of the task that no tool can do, as listed in the system message.
    missing: Vec<&'a str>,
    done: Vec<CompletedCall<'a>>,
    today: Option<Date>,
}

/// A completed call with its observation.
struct CompletedCall<'a> {
    tool: &'a str,
    arguments: &'a Value,
    observed: &'a str,
}

impl Reflex {
    /// The next step for a request: a call with its confidence, or [`FINISH`] with the answer.
    #[must_use]
    pub fn answer(&self, request: &ModelRequest) -> ModelAnswer {
        let parsed = ParsedRequest::new(request);
        let described: Vec<(String, String)> = request
            .tools
            .iter()
            .map(|tool| {
                let name = tool.name().as_str();
                let advice = advice_about(parsed.instruction, name);
                (name.to_owned(), format!("{} {advice}", tool.description()))
            })
            .collect();
        let views: Vec<ToolView<'_>> = request
            .tools
            .iter()
            .zip(&described)
            .map(|(tool, (name, description))| ToolView {
                name,
                description: description.trim_end(),
                input_schema: tool.schema(),
            })
            .collect();
        self.next_answer(&parsed, &views)
    }

    fn next_answer(&self, parsed: &ParsedRequest<'_>, views: &[ToolView<'_>]) -> ModelAnswer {
        if let Some(last) = parsed.done.last()
            && let Some(failure) = observation::failure(last.observed)
        {
            return failure_answer(parsed, last.tool, &failure);
        }
        let callable: Vec<usize> = (0..views.len())
            .filter(|&index| views[index].name != ASK_HUMAN)
            .collect();
        let tools: Vec<ToolView<'_>> = callable.iter().map(|&index| views[index]).collect();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
        let sequences = strategy::sequences(parsed.system, &names);
        let possible = missing::possible_part(parsed.task, &parsed.missing);
        let Some(possible) = possible else {
            return final_answer(parsed, 0.0, &names);
        };
        let reading = Reading::new(&possible, parsed.today);
        let plan = Plan::new(self, &reading, &tools, &sequences);
        let made: Vec<&str> = parsed
            .done
            .iter()
            .map(|done| done.tool)
            .filter(|tool| *tool != ASK_HUMAN)
            .collect();
        let Some(step) = plan.next(&made, &names) else {
            return final_answer(parsed, plan.confidence, &names);
        };
        let tool = &tools[step.tool];
        let (arguments, missing, confidence) = self.arguments(parsed, step, tool);
        if !missing.is_empty() {
            return missing_argument_answer(parsed, views, tool, &missing);
        }
        let arguments = Value::Object(arguments);
        let repeated = parsed
            .done
            .iter()
            .any(|done| done.tool == tool.name && *done.arguments == arguments);
        if repeated {
            return final_answer(parsed, plan.confidence, &names);
        }
        let why = if step.from_strategy {
            format!(
                "What worked before for tasks like this calls `{}` next.",
                tool.name
            )
        } else {
            format!(
                "`{}` fits \"{}\" best.",
                tool.name,
                crate::text::beginning(step.text.trim(), 120)
            )
        };
        ModelAnswer {
            thought: Some(why),
            calls: vec![call(tool.name, arguments, confidence)],
            ..ModelAnswer::default()
        }
    }

    /// A step's arguments, its missing arguments and the confidence. Values come from the step's text, then
    /// from observations and answers, the whole task, and earlier messages.
    fn arguments(
        &self,
        parsed: &ParsedRequest<'_>,
        step: &Step,
        tool: &ToolView<'_>,
    ) -> (Map<String, Value>, Vec<String>, f64) {
        let own = Reading::new(&step.text, parsed.today);
        let first = self.fill_arguments(&own, tool);
        let mut confidence = step.confidence(&first);
        let mut arguments = first.arguments;
        let mut missing = first.missing;
        let mut sources: Vec<(&str, f64)> = vec![(parsed.task, 0.9)];
        sources.extend(parsed.earlier.iter().map(|text| (*text, 0.7)));
        missing.retain(|path| {
            let observed = parsed.done.iter().rev().find_map(|done| {
                let name = path.rsplit('.').next().unwrap_or(path);
                if done.tool == ASK_HUMAN {
                    return self.value_from_answer(done.observed, tool, path);
                }
                observation::value_named(done.observed, name)
            });
            if let Some(value) = observed {
                insert(&mut arguments, path, value);
                confidence *= 0.9;
                return false;
            }
            true
        });
        for (text, trust) in sources {
            if missing.is_empty() {
                break;
            }
            if text == step.text {
                continue;
            }
            let filled = self.fill_arguments(&Reading::new(text, parsed.today), tool);
            missing.retain(|path| match at_path(&filled.arguments, path) {
                Some(value) => {
                    insert(&mut arguments, path, value.clone());
                    confidence *= trust;
                    false
                }
                None => true,
            });
        }
        // A step may take the whole result of the step before it.
        if missing.len() == 1
            && let Some(last) = parsed.done.iter().rev().find(|done| done.tool != ASK_HUMAN)
            && is_text(tool.input_schema, &missing[0])
        {
            insert(
                &mut arguments,
                &missing[0],
                Value::from(observation::readable(last.observed)),
            );
            missing.clear();
            confidence *= 0.6;
        }
        (arguments, missing, confidence.clamp(0.02, 0.98))
    }

    /// The argument that a person's answer gives.
    fn value_from_answer(&self, text: &str, tool: &ToolView<'_>, path: &str) -> Option<Value> {
        let text = observation::readable(text);
        let filled = self.fill_arguments(&Reading::new(&text, None), tool);
        at_path(&filled.arguments, path).cloned().or_else(|| {
            let words = text.trim();
            (is_text(tool.input_schema, path) && !words.is_empty()).then(|| Value::from(words))
        })
    }
}

impl<'a> ParsedRequest<'a> {
    fn new(request: &'a ModelRequest) -> Self {
        let (mut system, mut missing) = ("", Vec::new());
        let mut user_messages: Vec<(usize, &str)> = Vec::new();
        let mut today = None;
        for (index, message) in request.messages.iter().enumerate() {
            match &**message {
                ChatMessage::System { content } => {
                    (system, missing) = missing::split_note(content);
                    today = stated_today(crate::text::beginning(content, 20_000));
                }
                ChatMessage::User { content } if !is_note(content) => {
                    user_messages.push((index, content));
                }
                _ => {}
            }
        }
        let (at, task) = user_messages.pop().unwrap_or((0, ""));
        let mut done: Vec<CompletedCall<'a>> = Vec::new();
        let after = request.messages.get(at..).unwrap_or(&[]);
        for message in after {
            if let ChatMessage::Assistant { calls, .. } = &**message {
                for call in calls.iter().filter(|call| call.tool != FINISH) {
                    let observed = after.iter().find_map(|message| match &**message {
                        ChatMessage::Tool {
                            call_id, content, ..
                        } if *call_id == call.id => Some(observation::returned(content)),
                        _ => None,
                    });
                    done.push(CompletedCall {
                        tool: &call.tool,
                        arguments: &call.arguments,
                        observed: observed.unwrap_or(""),
                    });
                }
            }
        }
        Self {
            instruction: strategy::instruction(system),
            system,
            task,
            earlier: user_messages
                .into_iter()
                .rev()
                .map(|(_, text)| text)
                .take(6)
                .collect(),
            missing,
            done,
            today,
        }
    }
}

/// Whether a user message was written by the runtime.
fn is_note(content: &str) -> bool {
    content.starts_with('(') && content.ends_with("earlier turns of this task are left out here.)")
        || content.starts_with("Your answer was empty.")
}

/// The sentences of an instruction that name a tool.
fn advice_about(instruction: &str, tool: &str) -> String {
    if tool.is_empty() {
        return String::new();
    }
    crate::text::beginning(instruction, 20_000)
        .split(['.', '\n'])
        .filter(|sentence| sentence.contains(tool))
        .take(3)
        .collect::<Vec<_>>()
        .join(". ")
}

fn call(tool: &str, arguments: Value, confidence: f64) -> RequestedCall {
    RequestedCall {
        tool: tool.to_owned(),
        arguments: RequestedArguments::Json(arguments),
        confidence: Some((confidence * 100.0).round() / 100.0),
    }
}

fn finish(answer: &str, reasoning: &str, confidence: f64) -> ModelAnswer {
    let confidence = (confidence * 100.0).round() / 100.0;
    let arguments = json!({"answer": answer, "reasoning": reasoning, "confidence": confidence});
    ModelAnswer {
        thought: Some(reasoning.to_owned()),
        calls: vec![call(FINISH, arguments, confidence)],
        ..ModelAnswer::default()
    }
}

fn failure_answer(parsed: &ParsedRequest<'_>, tool: &str, failure: &str) -> ModelAnswer {
    let before: Vec<String> = observed(&parsed.done[..parsed.done.len() - 1]);
    let mut answer = before.join("\n");
    if !answer.is_empty() {
        answer.push('\n');
    }
    let reasoning = match observation::was_made(failure) {
        true => {
            answer.push_str(&format!("`{tool}` did not work: {failure}"));
            format!("`{tool}` answered with an error.")
        }
        false => {
            answer.push_str(&format!("`{tool}` was not called: {failure}"));
            format!("The call of `{tool}` was not made.")
        }
    };
    finish(&answer, &reasoning, CANNOT)
}

/// The text without the punctuation at its end.
fn without_end_mark(text: &str) -> &str {
    text.trim_end_matches(['.', '?', '!', ' '])
}

/// The distinct observations, without answers of people.
fn observed(done: &[CompletedCall<'_>]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for one in done.iter().filter(|one| one.tool != ASK_HUMAN) {
        let mut text = observation::readable(one.observed);
        if text.trim().is_empty() {
            text = format!("`{}` found nothing.", one.tool);
        }
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

fn final_answer(parsed: &ParsedRequest<'_>, confidence: f64, names: &[&str]) -> ModelAnswer {
    let mut texts = observed(&parsed.done);
    if texts.is_empty() {
        let shown = names
            .iter()
            .take(10)
            .copied()
            .collect::<Vec<_>>()
            .join("`, `");
        let answer = if parsed.task.trim().is_empty() {
            "I cannot help: no task was given.".to_owned()
        } else if names.is_empty() {
            "I cannot do this: I have no tools.".to_owned()
        } else if !parsed.missing.is_empty() {
            let missing: Vec<&str> = parsed
                .missing
                .iter()
                .map(|text| without_end_mark(text))
                .collect();
            let missing = missing.join("; ");
            format!("I cannot do this, none of my tools does: {missing}. I have `{shown}`.")
        } else {
            format!("I cannot do this: none of my tools fits the task. I have `{shown}`.")
        };
        return finish(&answer, "No tool fits the task.", CANNOT);
    }
    let used: Vec<&str> = parsed.done.iter().map(|done| done.tool).collect();
    let reasoning = format!("The answer is what `{}` returned.", used.join("`, `"));
    let mut confidence = confidence;
    for missing in &parsed.missing {
        texts.push(format!(
            "I could not do this, none of my tools does: {}.",
            without_end_mark(missing)
        ));
        confidence = confidence.min(CANNOT);
    }
    finish(&texts.join("\n"), &reasoning, confidence)
}

fn missing_argument_answer(
    parsed: &ParsedRequest<'_>,
    views: &[ToolView<'_>],
    tool: &ToolView<'_>,
    missing: &[String],
) -> ModelAnswer {
    let wanted = missing
        .iter()
        .map(|path| describe_parameter(tool.input_schema, path))
        .collect::<Vec<_>>()
        .join(", ");
    let question = format!(
        "To use `{}`, I need to know: {wanted}. What should it be?",
        tool.name
    );
    let ask = views.iter().find(|view| view.name == ASK_HUMAN);
    let asked = parsed.done.iter().any(|done| {
        done.tool == ASK_HUMAN
            && done
                .arguments
                .to_string()
                .contains(&wanted.replace('"', "\\\""))
    });
    if let Some(ask) = ask.filter(|_| !asked) {
        return ModelAnswer {
            thought: Some(format!(
                "`{}` fits, but the text does not say: {wanted}.",
                tool.name
            )),
            calls: vec![call(
                ASK_HUMAN,
                question_arguments(ask.input_schema, &question),
                0.8,
            )],
            ..ModelAnswer::default()
        };
    }
    let mut lines = observed(&parsed.done);
    lines.push(format!(
        "I cannot call `{}`: the task does not say {wanted}.",
        tool.name
    ));
    finish(
        &lines.join("\n"),
        &format!("A required argument of `{}` is missing.", tool.name),
        CANNOT,
    )
}

/// The arguments of a question: the first required string parameter, else the first one, takes it.
fn question_arguments(schema: &Value, question: &str) -> Value {
    let mut arguments = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let texts: Vec<&String> = properties
        .into_iter()
        .flatten()
        .filter(|(_, property)| {
            property.get("type").and_then(Value::as_str) == Some("string")
                && property.get("enum").is_none()
        })
        .map(|(name, _)| name)
        .collect();
    let chosen = texts
        .iter()
        .find(|name| matches!(name.as_str(), "question" | "message" | "prompt" | "text"))
        .or_else(|| texts.iter().find(|name| required.contains(&name.as_str())))
        .or_else(|| texts.first());
    arguments.insert(
        chosen.map_or("question", |name| name.as_str()).to_owned(),
        Value::from(question),
    );
    Value::Object(arguments)
}

fn property<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .try_fold(schema, |schema, name| schema.get("properties")?.get(name))
}

fn is_text(schema: &Value, path: &str) -> bool {
    property(schema, path).is_some_and(|property| {
        property.get("type").and_then(Value::as_str) == Some("string")
            && property.get("enum").is_none()
    })
}

fn describe_parameter(schema: &Value, path: &str) -> String {
    let description = property(schema, path)
        .and_then(|property| property.get("description"))
        .and_then(Value::as_str)
        .map(|text| text.trim().trim_end_matches('.'));
    match description {
        Some(text) if !text.is_empty() => format!("{path} ({})", crate::text::beginning(text, 160)),
        _ => path.to_owned(),
    }
}

fn at_path<'a>(arguments: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut names = path.split('.');
    let first = arguments.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}

fn insert(arguments: &mut Map<String, Value>, path: &str, value: Value) {
    let path: Vec<String> = path.split('.').map(str::to_owned).collect();
    crate::fill::insert(arguments, &path, value);
}
