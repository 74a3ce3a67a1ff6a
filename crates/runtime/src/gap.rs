//! Tool gaps: capabilities that a task needs and no tool has. They are detected at three moments:
//!
//! - before a run, when no tool seems to do what the task asks;
//! - during it, when its model calls tools that do not exist or answers that it cannot do the task;
//! - at load, when a tool is specified and nothing implements it.
//!
//! A tool that is not configured counts as missing, and the report says what to set. A gap is reported and
//! stored, and stops nothing.

mod inability;

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_config::Configuration;
use windlass_core::gate::Rules;
use windlass_core::model::{ChatMessage, FINISH, ModelRequest, RequestedArguments};
use windlass_core::run::{DisabledTool, Entry, LeftOutReason, Mistake, Run, RunEnd, repair_json};
use windlass_learn::gap::ToolGapDetector;
use windlass_model::ModelClient;
use windlass_reflex::ToolView;
use windlass_spec::{
    Agent, Confidence, ErrorCategory, GapMoment, MissingCapability, NonEmptyText, ToolGapReport,
    ToolName, ToolSpecification, write_tool,
};
use windlass_tools::{BindingFailure, BindingReason, ToolLibrary};

use inability::{Inability, stated_inability};

/// The operator's settings for the detection of gaps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GapCheck {
    /// Gaps of lower confidence are not reported before a run.
    pub(crate) threshold: Confidence,
    /// Whether the model is asked which capabilities a task needs.
    pub(crate) ask_model: bool,
}

impl GapCheck {
    /// The settings of a configuration; `None` if gaps are not detected.
    pub(crate) fn of(configuration: &Configuration) -> Option<Self> {
        let set = configuration.gaps();
        set.check.then_some(Self {
            threshold: set.threshold,
            ask_model: set.ask_model,
        })
    }
}

/// A tool of an agent that can do nothing until it is configured, and why.
pub(crate) struct UnconfiguredTool {
    pub(crate) tool: ToolName,
    pub(crate) because: String,
}

/// How many capabilities a model may name.
const MAX_CAPABILITIES: usize = 8;

const CAPABILITIES_PROMPT: &str = "\
You do not do the task yet. Say only which capabilities it needs from the outside world: what would \
have to be looked up, calculated, sent or changed. One capability a line, each a verb with its object, \
with the values the task states, such as `send an e-mail to Ann`. Say `nothing` if it needs none. Answer \
with that list and nothing else.";

/// What the task of a run needs and cannot have.
#[derive(Debug, Default)]
pub(crate) struct Lacking {
    /// The capabilities that no tool of the run seems to have.
    pub(crate) gap: Option<ToolGapReport>,
    /// The tools that have a capability and are switched off.
    pub(crate) disabled: Vec<DisabledTool>,
}

/// What the task of a run needs and cannot have, before it starts.
pub(crate) fn before_run(
    run: &Run,
    rules: &Rules,
    check: GapCheck,
    unconfigured: &[UnconfiguredTool],
) -> Lacking {
    let Some(tools) = RunTools::of(run, rules, unconfigured) else {
        return Lacking::default();
    };
    let detector = detector(&tools.usable);
    let report = detector.detect_above(&run.task().description, check.threshold.get());
    report.map_or_else(Lacking::default, |report| tools.explain(report))
}

/// Like [`before_run`], but the model names the needed capabilities, which are then checked. `None` if it
/// did not answer.
pub(crate) async fn before_run_by_model(
    run: &Run,
    rules: &Rules,
    check: GapCheck,
    unconfigured: &[UnconfiguredTool],
    model: &dyn ModelClient,
    cancel: &CancellationToken,
) -> Option<Lacking> {
    let task = &run.task().description;
    let Some(tools) = RunTools::of(run, rules, unconfigured) else {
        return Some(Lacking::default());
    };
    let request = ModelRequest {
        messages: vec![
            Arc::new(ChatMessage::System {
                content: CAPABILITIES_PROMPT.to_owned(),
            }),
            Arc::new(ChatMessage::User {
                content: task.clone(),
            }),
        ],
        tools: Vec::new(),
    };
    let answer = model.answer(&request, cancel, &mut |_| {}).await.ok()?;
    let finished = answer.calls.iter().find(|call| call.tool == FINISH);
    let list = match finished.map(|call| &call.arguments) {
        Some(RequestedArguments::Json(arguments)) => answer_text(arguments),
        Some(RequestedArguments::Text(text)) => {
            repair_json(text).ok().map(|(json, _)| answer_text(&json))?
        }
        None => answer.text,
    };
    let named = capabilities(&list);
    let detector = detector(&tools.usable);
    let report = detector.check_capabilities(task, &named, check.threshold.get());
    Some(report.map_or_else(Lacking::default, |report| tools.explain(report)))
}

fn answer_text(arguments: &Value) -> String {
    let answer = arguments.get("answer").and_then(Value::as_str);
    answer.unwrap_or_default().to_owned()
}

/// The items of a model's list.
fn capabilities(list: &str) -> Vec<String> {
    let is_mark =
        |c: char| c.is_ascii_digit() || matches!(c, '-' | '*' | '•' | '.' | ')' | ' ' | '`');
    list.lines()
        .map(|line| {
            line.trim_start_matches(is_mark)
                .trim_end_matches(['`', '.', ' '])
        })
        .filter(|line| !line.is_empty() && !line.eq_ignore_ascii_case("nothing"))
        .take(MAX_CAPABILITIES)
        .map(str::to_owned)
        .collect()
}

/// The gap of a run that is over: tools its model called that do not exist or are not configured, or what
/// its answer says it could not do.
#[must_use]
pub fn during_run(run: &Run) -> Option<ToolGapReport> {
    let end = run.end()?;
    let tools: Vec<&ToolSpecification> = run.allowed_tools().map(|tool| &**tool).collect();
    let wanted = [unknown_tools_called(run), unconfigured_tools_called(run)].concat();
    if wanted.is_empty() && *end != RunEnd::Completed {
        return None;
    }
    let task = NonEmptyText::new(run.task().description.as_str()).ok()?;
    let checked = || {
        tools
            .iter()
            .map(|tool| tool.name().clone())
            .collect::<Vec<ToolName>>()
    };
    let report = if wanted.is_empty() {
        let answer = run.response().answer().clone();
        let inability = stated_inability(answer.as_str())?;
        // A tool that is switched off is not missing.
        let off = switched_off(run);
        if detector(&off).tool_for(task.as_str()).is_some() {
            return None;
        }
        let detector = detector(&tools);
        let found = detector.detect_missing_tools(task.as_str());
        match (found, inability) {
            (Some(found), _) => found,
            // The answer says that a tool is missing, even if the tools seem to fit.
            (None, Inability::NoTool) => detector.report_whole_task(task.as_str())?,
            (None, Inability::Cannot) => return None,
        }
    } else {
        let others = tools.iter().copied().filter(|tool| {
            let mut wanted = wanted.iter();
            !wanted.any(|wanted| wanted.name == tool.name().as_str())
        });
        let detector = detector(&others.collect::<Vec<_>>());
        let missing = wanted.iter().filter_map(|wanted| {
            let missing = detector.missing_for_call(&wanted.name, &wanted.arguments)?;
            Some(match &wanted.because {
                Some(because) => with_reason(missing, because),
                None => missing,
            })
        });
        ToolGapReport::of_capabilities(missing.collect(), task, checked())?
    };
    Some(report.at_moment(GapMoment::DuringRun))
}

/// The tools of a run that are switched off.
fn switched_off(run: &Run) -> Vec<&ToolSpecification> {
    let left_out = run.offer().map_or(&[][..], |offer| &offer.left_out);
    let off = left_out
        .iter()
        .filter(|left_out| left_out.because == LeftOutReason::SwitchedOff);
    let off = off.filter_map(|left_out| run.specification(left_out.tool.as_str()));
    off.map(|tool| &**tool).collect()
}

/// A tool that a model called and could not use.
#[derive(Debug, Clone)]
struct WantedTool {
    name: String,
    arguments: Value,
    /// Why it does nothing, if there is one of that name.
    because: Option<String>,
}

/// The missing capability of a tool that exists and does nothing: with the reason, without a proposed tool.
fn with_reason(missing: MissingCapability, because: &str) -> MissingCapability {
    MissingCapability {
        because: NonEmptyText::new(because).ok(),
        nearest_tools: Vec::new(),
        proposed_tool: None,
        ..missing
    }
}

/// The tools that were called and are not configured, each once.
fn unconfigured_tools_called(run: &Run) -> Vec<WantedTool> {
    let mut called: Vec<WantedTool> = Vec::new();
    for entry in run.missing_tool_entries() {
        let Entry::Call { record: call, .. } = entry else {
            continue;
        };
        let name = call.tool_name().as_str();
        let Some(Err(failure)) = call.outcome() else {
            continue;
        };
        let is_new = !called.iter().any(|known| known.name == name);
        if failure.category == ErrorCategory::UnknownTool && is_new {
            called.push(WantedTool {
                name: name.to_owned(),
                arguments: Value::Object(call.arguments().clone()),
                because: Some(failure.operator_message.clone()),
            });
        }
    }
    called
}

/// The tools that a model called and that do not exist, each once, with the arguments it gave.
fn unknown_tools_called(run: &Run) -> Vec<WantedTool> {
    let mut called: Vec<WantedTool> = Vec::new();
    for entry in run.missing_tool_entries() {
        let Entry::Mistake {
            mistake: Mistake::UnknownTool { name, .. },
            record,
        } = entry
        else {
            continue;
        };
        if !called.iter().any(|known| known.name == *name) {
            called.push(WantedTool {
                name: name.clone(),
                arguments: Value::Object(record.arguments().clone()),
                because: None,
            });
        }
    }
    called
}

/// The gap of an agent that could not be loaded: tools that are specified and that no library has.
#[must_use]
pub(crate) fn at_load(
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
        reasons.any(|reason| matches!(reason, BindingReason::Missing { .. }))
    });
    let missing = lacking.filter_map(|failure| {
        let tool = agent.tool(failure.tool.as_str())?;
        let query = format!("{}. {}", failure.tool, tool.description());
        Some(MissingCapability {
            capability: NonEmptyText::new(failure.tool.as_str()).ok()?,
            request: None,
            wanted_tool: Some(failure.tool.clone()),
            confidence: Some(Confidence::FULL),
            nearest_tools: detector.nearest(&query),
            proposed_tool: write_tool(tool)
                .ok()
                .and_then(|text| NonEmptyText::new(text).ok()),
            because: None,
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

/// The tools of a run that may be called.
struct RunTools<'r> {
    /// Those that are configured.
    usable: Vec<&'r ToolSpecification>,
    /// Those that are not, and why.
    unconfigured: Vec<(&'r ToolSpecification, &'r str)>,
    /// Those that are switched off, and why.
    switched_off: Vec<(&'r ToolSpecification, String)>,
}

impl<'r> RunTools<'r> {
    /// `None` if there are no tools at all: an agent without tools only talks and has no gaps.
    fn of(run: &'r Run, rules: &Rules, unconfigured: &'r [UnconfiguredTool]) -> Option<Self> {
        let is_current = |tool: &&Arc<ToolSpecification>| tool.attributes().deprecated.is_none();
        let mut tools = Self {
            usable: Vec::new(),
            unconfigured: Vec::new(),
            switched_off: Vec::new(),
        };
        for tool in run.allowed_tools().filter(is_current) {
            if let Some(because) = rules.switched_off(tool.name().as_str()) {
                tools.switched_off.push((&**tool, because.to_owned()));
                continue;
            }
            let mut found = unconfigured.iter();
            match found.find(|found| found.tool == *tool.name()) {
                Some(found) => tools.unconfigured.push((&**tool, found.because.as_str())),
                None => tools.usable.push(&**tool),
            }
        }
        let has_some = !tools.usable.is_empty()
            || !tools.unconfigured.is_empty()
            || !tools.switched_off.is_empty();
        has_some.then_some(tools)
    }

    /// What a report of missing capabilities means: one that a switched-off tool has is not missing, and one
    /// that an unconfigured tool would have names it.
    fn explain(&self, report: ToolGapReport) -> Lacking {
        let specifications: Vec<&ToolSpecification> =
            self.switched_off.iter().map(|(tool, _)| *tool).collect();
        let off = detector(&specifications);
        let disabled_for = |missing: &MissingCapability| {
            let does = off.tool_for(missing.words().as_str())?.name;
            let mut switched_off = self.switched_off.iter();
            let (tool, because) = switched_off.find(|(tool, _)| tool.name().as_str() == does)?;
            Some(DisabledTool {
                tool: tool.name().clone(),
                because: because.clone(),
                request: missing.words().clone(),
            })
        };
        let disabled = report
            .capabilities()
            .iter()
            .filter_map(disabled_for)
            .collect();
        let missing = report.retain(|missing| disabled_for(missing).is_none());
        Lacking {
            gap: missing.map(|missing| self.name_unconfigured(missing)),
            disabled,
        }
    }

    /// Adds to each missing capability the unconfigured tool that would have it.
    fn name_unconfigured(&self, report: ToolGapReport) -> ToolGapReport {
        let tools: Vec<&ToolSpecification> =
            self.unconfigured.iter().map(|(tool, _)| *tool).collect();
        let detector = detector(&tools);
        let report = report.at_moment(GapMoment::BeforeRun);
        report.with_each(|missing| {
            let Some(does) = detector.tool_for(missing.words().as_str()) else {
                return;
            };
            let mut unconfigured = self.unconfigured.iter();
            let found = unconfigured.find(|(tool, _)| tool.name().as_str() == does.name);
            if let Some((tool, because)) = found {
                *missing = with_reason(missing.clone(), because);
                missing.wanted_tool = Some(tool.name().clone());
            }
        })
    }
}

#[cfg(test)]
mod tests;
