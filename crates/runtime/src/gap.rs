//! Gaps at the three moments they can show: before a run, when no tool seems to do what the task asks;
//! during it, when its model asked for tools that do not exist or says that it cannot; and at load, when
//! a tool is specified and nothing implements it. What is found is told and kept, and stops nothing.

mod says;

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_core::gate::Rules;
use windlass_core::model::{ChatMessage, FINISH, ModelRequest, RequestedArguments};
use windlass_core::run::{Entry, Mistake, Run, RunEnd, repair_json};
use windlass_learn::gap::ToolGapDetector;
use windlass_model::ModelClient;
use windlass_reflex::ToolView;
use windlass_spec::{
    Agent, Confidence, GapMoment, MissingCapability, NonEmptyText, ToolGapReport, ToolName,
    ToolSpecification, write_tool,
};
use windlass_tools::{BindingFailure, Reason, ToolLibrary};

use says::{Says, says_it_cannot};

/// What an operator lays down about gaps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GapCheck {
    /// What is less sure than this is not said before a run.
    pub(crate) threshold: Confidence,
    /// Whether the model is asked which capabilities a task needs.
    pub(crate) ask_model: bool,
}

/// How many capabilities a model may name.
const MOST_NAMED: usize = 8;

const WHAT_IS_NEEDED: &str = "\
You do not do the task yet. Say only which capabilities it needs from the outside world: what would \
have to be looked up, calculated, sent or changed. One capability a line, each a verb with its object, \
with the values the task states, such as `send an e-mail to Ann`. Say `nothing` if it needs none. Answer \
with that list and nothing else.";

/// What no tool of a run seems to do of what its task asks.
pub(crate) fn before_run(run: &Run, rules: &Rules, check: GapCheck) -> Option<ToolGapReport> {
    let tools = usable(run, rules);
    // An agent without tools is there to talk.
    if tools.is_empty() {
        return None;
    }
    let detector = detector(&tools);
    let report = detector.detect_above(&run.task().description, check.threshold.get())?;
    Some(report.at_moment(GapMoment::BeforeRun))
}

/// The same, where the model names the capabilities and its word is checked. `None` if it did not
/// answer, so that nothing is known.
pub(crate) async fn before_run_by_model(
    run: &Run,
    rules: &Rules,
    check: GapCheck,
    model: &dyn ModelClient,
    cancel: &CancellationToken,
) -> Option<Option<ToolGapReport>> {
    let task = &run.task().description;
    let tools = usable(run, rules);
    if tools.is_empty() {
        return Some(None);
    }
    let request = ModelRequest {
        messages: vec![
            ChatMessage::System {
                content: WHAT_IS_NEEDED.to_owned(),
            },
            ChatMessage::User {
                content: task.clone(),
            },
        ],
        tools: Vec::new(),
    };
    let answer = model.answer(&request, cancel, &mut |_| {}).await.ok()?;
    let finished = answer.calls.iter().find(|call| call.tool == FINISH);
    let said = match finished.map(|call| &call.arguments) {
        Some(RequestedArguments::Json(arguments)) => text_of(arguments),
        Some(RequestedArguments::Text(text)) => {
            repair_json(text).ok().map(|(json, _)| text_of(&json))?
        }
        None => answer.text,
    };
    let named = capabilities(&said);
    let detector = detector(&tools);
    let report = detector.check_capabilities(task, &named, check.threshold.get());
    Some(report.map(|report| report.at_moment(GapMoment::BeforeRun)))
}

fn text_of(arguments: &Value) -> String {
    let answer = arguments.get("answer").and_then(Value::as_str);
    answer.unwrap_or_default().to_owned()
}

/// The lines of a model's list.
fn capabilities(said: &str) -> Vec<String> {
    let is_mark =
        |c: char| c.is_ascii_digit() || matches!(c, '-' | '*' | '•' | '.' | ')' | ' ' | '`');
    said.lines()
        .map(|line| {
            line.trim_start_matches(is_mark)
                .trim_end_matches(['`', '.', ' '])
        })
        .filter(|line| !line.is_empty() && !line.eq_ignore_ascii_case("nothing"))
        .take(MOST_NAMED)
        .map(str::to_owned)
        .collect()
}

/// What a run that is over lacked: tools its model asked for that do not exist, or what it says it could
/// not do for want of a tool.
#[must_use]
pub fn during_run(run: &Run) -> Option<ToolGapReport> {
    let end = run.end()?;
    let tools: Vec<&ToolSpecification> = run.allowed_tools().map(|tool| &**tool).collect();
    let asked = asked_for(run);
    if asked.is_empty() && *end != RunEnd::Completed {
        return None;
    }
    let task = NonEmptyText::new(run.task().description.as_str()).ok()?;
    let checked = || {
        tools
            .iter()
            .map(|tool| tool.name().clone())
            .collect::<Vec<ToolName>>()
    };
    let report = if asked.is_empty() {
        let answer = run.response().answer;
        let says = says_it_cannot(answer.as_str())?;
        let detector = detector(&tools);
        let found = detector.detect_missing_tools(task.as_str());
        match (found, says) {
            (Some(found), _) => found,
            // It says for want of what; that the tools look as if they fit does not make it untrue.
            (None, Says::WantOfTool) => detector.report_of(task.as_str())?,
            (None, Says::Cannot) => return None,
        }
    } else {
        let detector = detector(&tools);
        let missing = asked
            .iter()
            .filter_map(|(name, arguments)| detector.missing_named(name, arguments));
        ToolGapReport::of_capabilities(missing.collect(), task, checked())?
    };
    Some(report.at_moment(GapMoment::DuringRun))
}

/// The tools that a model asked for and that do not exist, each once, with the arguments it gave.
fn asked_for(run: &Run) -> Vec<(String, Value)> {
    let mut asked: Vec<(String, Value)> = Vec::new();
    for entry in run.turns().iter().flat_map(|turn| &turn.entries) {
        let Entry::Mistake {
            mistake: Mistake::UnknownTool { name, .. },
            record,
        } = entry
        else {
            continue;
        };
        if !asked.iter().any(|(known, _)| known == name) {
            asked.push((name.clone(), Value::Object(record.arguments().clone())));
        }
    }
    asked
}

/// What an agent lacks that could not be loaded: tools that are specified and that no library has.
#[must_use]
pub fn at_load(
    agent: &Agent,
    library: &ToolLibrary,
    failures: &[BindingFailure],
) -> Option<ToolGapReport> {
    let known: Vec<ToolSpecification> = library
        .iter()
        .filter_map(|tool| tool.specification().ok())
        .collect();
    let known: Vec<&ToolSpecification> = known.iter().collect();
    let detector = detector(&known);
    let lacking = failures.iter().filter(|failure| {
        let mut reasons = failure.reasons.iter();
        reasons.any(|reason| matches!(reason, Reason::Missing { .. }))
    });
    let missing = lacking.filter_map(|failure| {
        let tool = agent.tool(failure.tool.as_str())?;
        let told = format!("{}. {}", failure.tool, tool.description());
        Some(MissingCapability {
            capability: NonEmptyText::new(failure.tool.as_str()).ok()?,
            wanted_tool: Some(failure.tool.clone()),
            confidence: Some(Confidence::FULL),
            nearest_tools: detector.nearest(&told),
            proposed_tool: write_tool(tool)
                .ok()
                .and_then(|text| NonEmptyText::new(text).ok()),
        })
    });
    let task = NonEmptyText::new(format!("load the agent `{}`", agent.name())).ok()?;
    let checked = library.iter().map(|tool| tool.name().clone()).collect();
    let report = ToolGapReport::of_capabilities(missing.collect(), task, checked)?;
    Some(
        report
            .with_confidence(Confidence::FULL)
            .at_moment(GapMoment::AtLoad),
    )
}

fn detector<'t>(tools: &[&'t ToolSpecification]) -> ToolGapDetector<'t> {
    ToolGapDetector::new(tools.iter().map(|tool| ToolView::from(*tool)))
}

/// The tools of a run that can be called.
fn usable<'r>(run: &'r Run, rules: &Rules) -> Vec<&'r ToolSpecification> {
    let is_usable = |tool: &&Arc<ToolSpecification>| {
        rules.switched_off(tool.name().as_str()).is_none() && tool.attributes().deprecated.is_none()
    };
    let tools = run.allowed_tools().filter(is_usable);
    tools.map(|tool| &**tool).collect()
}

#[cfg(test)]
mod tests;
