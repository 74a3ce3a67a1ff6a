//! Gaps at the three moments they can show: before a run, when no tool seems to do what the task asks;
//! during it, when its model asked for tools that do not exist or says that it cannot; and at load, when
//! a tool is specified and nothing implements it. A tool that can do nothing because it is not configured is
//! as good as none, and the report says what to set. What is found is told and kept, and stops nothing.

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
    Agent, AgentName, Confidence, ErrorCategory, GapMoment, MissingCapability, NonEmptyText,
    ToolGapReport, ToolName, ToolSpecification, write_tool,
};
use windlass_tools::{BindingFailure, Reason, ToolLibrary};

use crate::crew::CrewError;
use says::{Says, says_it_cannot};

/// What an operator lays down about gaps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GapCheck {
    /// What is less sure than this is not said before a run.
    pub(crate) threshold: Confidence,
    /// Whether the model is asked which capabilities a task needs.
    pub(crate) ask_model: bool,
}

/// A tool of an agent that can do nothing, and why.
pub(crate) struct Lacking {
    pub(crate) tool: ToolName,
    pub(crate) because: String,
}

/// How many capabilities a model may name.
const MOST_NAMED: usize = 8;

const WHAT_IS_NEEDED: &str = "\
You do not do the task yet. Say only which capabilities it needs from the outside world: what would \
have to be looked up, calculated, sent or changed. One capability a line, each a verb with its object, \
with the values the task states, such as `send an e-mail to Ann`. Say `nothing` if it needs none. Answer \
with that list and nothing else.";

/// What no tool of a run seems to do of what its task asks.
pub(crate) fn before_run(
    run: &Run,
    rules: &Rules,
    check: GapCheck,
    lacking: &[Lacking],
) -> Option<ToolGapReport> {
    let tools = Tools::of(run, rules, lacking)?;
    let detector = detector(&tools.usable);
    let report = detector.detect_above(&run.task().description, check.threshold.get())?;
    Some(tools.explain(report).at_moment(GapMoment::BeforeRun))
}

/// The same, where the model names the capabilities and its word is checked. `None` if it did not
/// answer, so that nothing is known.
pub(crate) async fn before_run_by_model(
    run: &Run,
    rules: &Rules,
    check: GapCheck,
    lacking: &[Lacking],
    model: &dyn ModelClient,
    cancel: &CancellationToken,
) -> Option<Option<ToolGapReport>> {
    let task = &run.task().description;
    let Some(tools) = Tools::of(run, rules, lacking) else {
        return Some(None);
    };
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
    let detector = detector(&tools.usable);
    let report = detector.check_capabilities(task, &named, check.threshold.get());
    Some(report.map(|report| tools.explain(report).at_moment(GapMoment::BeforeRun)))
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

/// What a run that is over lacked: tools its model asked for that do not exist or could do nothing, or what
/// it says it could not do for want of a tool.
#[must_use]
pub fn during_run(run: &Run) -> Option<ToolGapReport> {
    let end = run.end()?;
    let tools: Vec<&ToolSpecification> = run.allowed_tools().map(|tool| &**tool).collect();
    let asked = [asked_for(run), called_in_vain(run)].concat();
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
        let others = tools.iter().copied().filter(|tool| {
            let mut asked = asked.iter();
            !asked.any(|asked| asked.name == tool.name().as_str())
        });
        let detector = detector(&others.collect::<Vec<_>>());
        let missing = asked.iter().filter_map(|asked| {
            let missing = detector.missing_named(&asked.name, &asked.arguments)?;
            Some(match &asked.because {
                Some(because) => explained(missing, because),
                None => missing,
            })
        });
        ToolGapReport::of_capabilities(missing.collect(), task, checked())?
    };
    Some(report.at_moment(GapMoment::DuringRun))
}

/// A tool that a model wanted.
#[derive(Debug, Clone)]
struct Asked {
    name: String,
    arguments: Value,
    /// Why it does nothing, if there is one of that name.
    because: Option<String>,
}

/// What is missing is a tool that is there: why it does nothing, and no other specification of it.
fn explained(missing: MissingCapability, because: &str) -> MissingCapability {
    MissingCapability {
        because: NonEmptyText::new(because).ok(),
        nearest_tools: Vec::new(),
        proposed_tool: None,
        ..missing
    }
}

/// The tools that were called and said that they are as good as not there, because they are not configured,
/// each once.
fn called_in_vain(run: &Run) -> Vec<Asked> {
    let mut called: Vec<Asked> = Vec::new();
    for call in run.calls().filter(|call| call.was_permitted()) {
        let name = call.tool_name().as_str();
        let Some(Err(failure)) = call.outcome() else {
            continue;
        };
        let is_new = !called.iter().any(|known| known.name == name);
        if failure.category == ErrorCategory::UnknownTool && is_new {
            called.push(Asked {
                name: name.to_owned(),
                arguments: Value::Object(call.arguments().clone()),
                because: Some(failure.operator_message.clone()),
            });
        }
    }
    called
}

/// The tools that a model asked for and that do not exist, each once, with the arguments it gave.
fn asked_for(run: &Run) -> Vec<Asked> {
    let mut asked: Vec<Asked> = Vec::new();
    for entry in run.turns().iter().flat_map(|turn| &turn.entries) {
        let Entry::Mistake {
            mistake: Mistake::UnknownTool { name, .. },
            record,
        } = entry
        else {
            continue;
        };
        if !asked.iter().any(|known| known.name == *name) {
            asked.push(Asked {
                name: name.clone(),
                arguments: Value::Object(record.arguments().clone()),
                because: None,
            });
        }
    }
    asked
}

/// What an agent lacks that could not be loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct GapAtLoad {
    /// Which agent.
    pub agent: AgentName,
    /// What it lacks.
    pub report: ToolGapReport,
}

impl GapAtLoad {
    /// What one of `agents`, or `lead`, lacks that `library` was to implement; nothing if they could not be
    /// put to work for another reason.
    #[must_use]
    pub fn of(
        error: &CrewError,
        agents: &[Agent],
        lead: &Agent,
        library: &ToolLibrary,
    ) -> Option<Self> {
        let CrewError::Binding {
            agent, failures, ..
        } = error
        else {
            return None;
        };
        let mut all = agents.iter().chain([lead]);
        let agent = all.find(|known| known.name() == agent)?;
        Some(Self {
            agent: agent.name().clone(),
            report: at_load(agent, library, failures)?,
        })
    }
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
struct Tools<'r> {
    /// Those that can do something.
    usable: Vec<&'r ToolSpecification>,
    /// The others, and why.
    lacking: Vec<(&'r ToolSpecification, &'r str)>,
}

impl<'r> Tools<'r> {
    /// Nothing if there is none at all: an agent without tools is there to talk.
    fn of(run: &'r Run, rules: &Rules, lacking: &'r [Lacking]) -> Option<Self> {
        let is_allowed = |tool: &&Arc<ToolSpecification>| {
            rules.switched_off(tool.name().as_str()).is_none()
                && tool.attributes().deprecated.is_none()
        };
        let mut tools = Self {
            usable: Vec::new(),
            lacking: Vec::new(),
        };
        for tool in run.allowed_tools().filter(is_allowed) {
            match lacking.iter().find(|lacking| lacking.tool == *tool.name()) {
                Some(lacks) => tools.lacking.push((&**tool, lacks.because.as_str())),
                None => tools.usable.push(&**tool),
            }
        }
        let has_some = !tools.usable.is_empty() || !tools.lacking.is_empty();
        has_some.then_some(tools)
    }

    /// Says of what is missing which tool would do it if it could do anything.
    fn explain(&self, report: ToolGapReport) -> ToolGapReport {
        let names: Vec<&ToolSpecification> = self.lacking.iter().map(|(tool, _)| *tool).collect();
        let detector = detector(&names);
        report.with_each(|missing| {
            let Some(does) = detector.does(missing.capability.as_str()) else {
                return;
            };
            let mut lacking = self.lacking.iter();
            let found = lacking.find(|(tool, _)| tool.name().as_str() == does.name);
            if let Some((tool, because)) = found {
                *missing = explained(missing.clone(), because);
                missing.wanted_tool = Some(tool.name().clone());
            }
        })
    }
}

#[cfg(test)]
mod tests;
