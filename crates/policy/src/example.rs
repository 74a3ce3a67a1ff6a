//! The examples of a rule: calls that it must match and calls that it must not match. They are comments
//! before the rule or in it, `// @match {...}` and `// @not_match {...}`, and run at load, so that a
//! rule that never matches its purpose is noticed.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_spec::{Confidence, RiskLevel};

use crate::error::{PolicyError, Problem};
use crate::evaluate::{Case, Parties};
use crate::load::{Draft, Policies};
use crate::request::{Request, Session};
use crate::schema::{Declared, Tool, Tools};
use crate::shape::guess_attributes;
use crate::slice::{Part, compiled};
use crate::source::{ExampleComment, example_comments, place};

/// The kinds of examples.
const KINDS: [&str; 2] = ["match", "not_match"];

/// A parsed example.
#[derive(Debug)]
pub(crate) struct Example {
    /// The index of its rule.
    draft: usize,
    offset: usize,
    /// Whether the rule must match it.
    must_match: bool,
    call: Call,
    /// The text as written, for messages.
    written: String,
}

/// The JSON of an example.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: Option<String>,
    /// The declared attributes of the tool, if no tool is named.
    declared: Option<Declared>,
    #[serde(default)]
    input: Map<String, Value>,
    principal: Option<String>,
    tenant: Option<String>,
    agent: Option<String>,
    risk: Option<RiskLevel>,
    confidence: Option<Confidence>,
    environment: Option<String>,
    #[serde(default)]
    tainted: bool,
    #[serde(default)]
    approved: bool,
    #[serde(default)]
    session: Session,
}

/// Parses the examples of a text. Returns the valid ones and the errors of the others.
pub(crate) fn read(
    text: &str,
    drafts: &[Draft],
    tools: &Tools,
) -> (Vec<Example>, Vec<PolicyError>) {
    let mut examples = Vec::new();
    let mut errors = Vec::new();
    for comment in example_comments(text) {
        let draft = drafts.iter().position(|draft| comment.offset < draft.end);
        match read_one(&comment, draft, tools) {
            Ok(example) => examples.push(example),
            Err(mut error) => {
                error.place = Some(place(text, comment.offset));
                error.rule = draft
                    .and_then(|draft| drafts.get(draft))
                    .and_then(|draft| draft.id.clone());
                errors.push(*error);
            }
        }
    }
    (examples, errors)
}

/// The tools that the examples of a text name, as far as they can be parsed.
pub(crate) fn named_tools(text: &str) -> impl Iterator<Item = String> {
    example_comments(text).into_iter().filter_map(|comment| {
        let mut values = serde_json::Deserializer::from_str(&comment.rest).into_iter::<Value>();
        let example = values.next()?.ok()?;
        Some(example.get("tool")?.as_str()?.to_owned())
    })
}

fn read_one(
    comment: &ExampleComment,
    draft: Option<usize>,
    tools: &Tools,
) -> Result<Example, Box<PolicyError>> {
    let wrong = |problem| PolicyError::new(None, None, problem);
    let form = || {
        format!(
            "// @{} {{\"tool\": \"...\", \"input\": {{}}}}",
            comment.word
        )
    };
    if !KINDS.contains(&comment.word.as_str()) {
        let problem = Problem::UnknownExample(comment.word.clone());
        return Err(Box::new(wrong(problem).near(&comment.word, KINDS).hint(
            "comments that start with @ are examples: write @match or @not_match",
        )));
    }
    let draft =
        draft.ok_or_else(|| wrong(Problem::ExampleWithoutRule).hint("write it before its rule"))?;
    let mut values = serde_json::Deserializer::from_str(&comment.rest).into_iter::<Value>();
    let value = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => {
            let problem = Problem::ExampleNotJson(error.to_string());
            return Err(Box::new(wrong(problem).hint(format!("write {}", form()))));
        }
        None => {
            let problem = Problem::ExampleNotJson("it is empty".to_owned());
            return Err(Box::new(wrong(problem).hint(format!("write {}", form()))));
        }
    };
    let (written, after) = comment
        .rest
        .split_at_checked(values.byte_offset())
        .unwrap_or((&comment.rest, ""));
    let rest_of_line = after.lines().next().unwrap_or_default().trim();
    if !rest_of_line.is_empty() {
        let problem = Problem::ExampleNotJson(format!("`{rest_of_line}` follows the call"));
        return Err(Box::new(
            wrong(problem).hint("write nothing after the call on its last line"),
        ));
    }
    let call: Call = serde_json::from_value(value).map_err(|error| {
        wrong(Problem::ExampleNotACall(error.to_string())).hint(
            "the keys are tool or declared, input, principal, tenant, agent, risk, confidence, environment, \
             tainted, approved and session; all are optional",
        )
    })?;
    check_call(&call, tools)?;
    Ok(Example {
        draft,
        offset: comment.offset,
        must_match: comment.word == "match",
        call,
        written: written.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

/// Checks that the example calls an existing tool with valid arguments.
fn check_call(call: &Call, tools: &Tools) -> Result<(), Box<PolicyError>> {
    let wrong = |message| PolicyError::new(None, None, Problem::ExampleNotACall(message));
    let Some(name) = &call.tool else {
        return match guess_attributes(&call.input) {
            Some(_) => Ok(()),
            None => Err(Box::new(wrong("rules cannot use null".to_owned()))),
        };
    };
    if tools.get(name).is_none() {
        let names = tools.iter().map(|tool| tool.name.as_str());
        return Err(Box::new(
            wrong(format!("there is no tool `{name}`")).near(name, names),
        ));
    }
    if call.declared.is_some() {
        return Err(Box::new(
            wrong(format!("the attributes of `{name}` are already declared"))
                .hint("leave out `declared`, or leave out `tool`"),
        ));
    }
    match tools.misfit(name, &call.input) {
        Some(misfit) => Err(Box::new(wrong(format!(
            "the input of `{name}` does not fit: {misfit}"
        )))),
        None => Ok(()),
    }
}

/// Runs examples; returns those that failed.
pub(crate) fn run(
    text: &str,
    examples: &[Example],
    drafts: &[Draft],
    policies: &Policies,
) -> Vec<PolicyError> {
    examples
        .iter()
        .filter_map(|example| {
            let draft = drafts.get(example.draft)?;
            let outcome = match applies(draft, &example.call, policies) {
                Ok(applies) if applies == example.must_match => return None,
                Ok(true) => "must not match, but the rule applies to it".to_owned(),
                Ok(false) => "must match, but the rule does not apply to it".to_owned(),
                Err(message) => format!("could not be evaluated: {message}"),
            };
            let problem = Problem::ExampleFailed {
                example: example.written.clone(),
                outcome,
            };
            let hint = if example.must_match {
                "change the rule or the example; keys that the example omits have the defaults that \
                 docs/policy.md lists"
            } else {
                "change the rule or the example"
            };
            Some(draft.error(text, example.offset, problem).hint(hint))
        })
        .collect()
}

/// Whether a rule, taken alone, applies to a call.
fn applies(draft: &Draft, call: &Call, policies: &Policies) -> Result<bool, String> {
    let some_tool;
    let tool = match call
        .tool
        .as_deref()
        .and_then(|name| policies.tools.get(name))
    {
        Some(tool) => tool,
        None => {
            let arguments = guess_attributes(&call.input).unwrap_or_default();
            let declared = call.declared.clone().unwrap_or_default();
            some_tool = Tool::unnamed(arguments, &declared);
            &some_tool
        }
    };
    let mut part = Part::default();
    let id = draft.id.as_deref().unwrap_or_default();
    draft
        .tree()
        .and_then(|tree| compiled(tree, id))
        .and_then(|policy| part.add(policy, &draft.analysis))
        .map_err(|error| PolicyError::from(error).to_string())?;
    let request = call.request(tool);
    let parties =
        Parties::new(&policies.types, tool, &request).map_err(|fault| fault.to_string())?;
    let case = Case::new(&parties, &part.mentions, tool, &request, call.approved);
    let outcome = case.and_then(|case| case.evaluate(&policies.authorizer, &part));
    match outcome {
        Ok(outcome) => Ok(!outcome.permits.is_empty() || !outcome.forbids.is_empty()),
        Err(faults) => {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            Err(faults.join("; "))
        }
    }
}

impl Call {
    /// The call with defaults for everything that was omitted.
    fn request(&self, tool: &Tool) -> Request<'_> {
        let or = |given: &'_ Option<String>, default: &'static str| -> Cow<'_, str> {
            match given {
                Some(given) => Cow::Owned(given.clone()),
                None => Cow::Borrowed(default),
            }
        };
        Request {
            principal: or(&self.principal, "someone"),
            tenant: or(&self.tenant, "local"),
            agent: or(&self.agent, "some agent"),
            tool: Cow::Owned(tool.name.clone()),
            input: Cow::Borrowed(&self.input),
            risk: self.risk.or(tool.risk).unwrap_or(RiskLevel::Irreversible),
            confidence: self.confidence,
            environment: or(&self.environment, "development"),
            tainted: self.tainted,
            session: self.session,
        }
    }
}
