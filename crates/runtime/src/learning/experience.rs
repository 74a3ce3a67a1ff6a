//! Turns a run that is over into an experience to learn from. Untrusted content must not teach: after a run has
//! read such content, the content may have caused any call. Such a call teaches only if all of this holds:
//!
//! - it changed nothing;
//! - no content that was read names its tool;
//! - its tool reads untrusted content as well, as research does, or is in the playbook already: from a call
//!   before which nothing was read, or from a person's edit.
//!
//! So untrusted content cannot bring a tool into a playbook. Arguments are never learned.

mod used;

use std::collections::HashSet;

use windlass_core::run::{Entry, Mistake, RecalledStrategy, Run, RunEnd};
use windlass_learn::playbook::{
    Experience, ExperienceEnd, ShownStrategy, ToolAttempt, is_followed,
};
use windlass_spec::{
    CallRecord, CallState, ErrorCategory, NonEmptyText, RiskLevel, Timestamp, ToolName, Turn,
};

use self::used::{Words, is_unused};

/// The experience of a run, given whether its answer is right, if known. `None` if the run is not over, or is a
/// single call without a model.
#[must_use]
pub fn of(run: &Run, checked: Option<bool>, now: Timestamp) -> Option<Experience> {
    of_known(run, checked, &HashSet::new(), now)
}

/// Whether a run is over and used a model.
pub(super) fn is_learnable(run: &Run) -> bool {
    run.end().is_some() && run.task().call.is_none()
}

/// Like [`of`], given the tools that are in the playbook.
pub(super) fn of_known(
    run: &Run,
    checked: Option<bool>,
    known: &HashSet<ToolName>,
    now: Timestamp,
) -> Option<Experience> {
    let end = run.end().filter(|_| is_learnable(run))?;
    let recalled = run.recalled().unwrap_or_default();
    Some(Experience {
        run: run.id().clone(),
        agent: run.agent().name().clone(),
        at: now,
        task: match run.task().tainted {
            true => None,
            false => NonEmptyText::new(run.task().description.trim()).ok(),
        },
        ended: ended(end),
        confidence: run.response().confidence(),
        checked,
        refused_by_person: refused_by_person(run),
        iterations: u32::try_from(run.turns().len()).unwrap_or(u32::MAX),
        calls: calls(run, known),
        recalled: recalled
            .iter()
            .map(|recalled| ShownStrategy {
                id: recalled.id.clone(),
                section: recalled.section,
                sequence: recalled.sequence.clone(),
            })
            .collect(),
    })
}

/// The strategies that the model of a run was shown, and whether each was followed: its tools succeeded in
/// its order.
pub fn followed(run: &Run) -> impl Iterator<Item = (&RecalledStrategy, bool)> {
    let calls = calls(run, &HashSet::new());
    let recalled = run.recalled().unwrap_or_default().iter();
    recalled.map(move |recalled| {
        let is_followed = is_followed(recalled.section, &recalled.sequence, &calls);
        (recalled, is_followed)
    })
}

fn ended(end: &RunEnd) -> ExperienceEnd {
    match end {
        RunEnd::Completed => ExperienceEnd::Completed,
        RunEnd::IterationLimit => ExperienceEnd::Incomplete("it ran out of turns".to_owned()),
        RunEnd::Budget { budget, .. } => {
            ExperienceEnd::Incomplete(format!("it ran out of its budget ({})", budget.as_str()))
        }
        RunEnd::Cancelled => ExperienceEnd::Stopped("it was stopped".to_owned()),
        RunEnd::WaitingForPerson | RunEnd::WaitingForCaller { .. } => {
            ExperienceEnd::Stopped("it waits for an approval or answer".to_owned())
        }
        // A failure of the model or the operator teaches nothing about tools.
        RunEnd::Failed { category, .. } => match category {
            ErrorCategory::InvalidArguments
            | ErrorCategory::NotFound
            | ErrorCategory::ToolFailure
            | ErrorCategory::InvalidOutput => {
                ExperienceEnd::Incomplete(format!("it failed ({category})"))
            }
            _ => ExperienceEnd::Stopped(format!("it could not continue ({category})")),
        },
    }
}

/// The calls of the agent's own tools, in order. Questions to people, plan operations and tool searches are
/// not included.
fn calls(run: &Run, known: &HashSet<ToolName>) -> Vec<ToolAttempt> {
    let is_own = |name: &ToolName| run.allowed_tools().any(|tool| tool.name() == name);
    let read = ReadTexts::of(run);
    let mut calls = Vec::new();
    for entry in run.turns().iter().flat_map(|turn| &turn.entries) {
        let (record, outcome) = match entry {
            Entry::Finish => continue,
            Entry::Call { record, .. } => match record.outcome() {
                None => continue,
                Some(Ok(_)) => (record, Ok(())),
                Some(Err(failure)) => (record, Err(failure.category)),
            },
            Entry::Mistake { mistake, record } => match mistake {
                Mistake::NotJson(_) | Mistake::Misfits(_) => {
                    (record, Err(ErrorCategory::InvalidArguments))
                }
                _ => continue,
            },
        };
        if !is_own(record.tool_name()) {
            continue;
        }
        let is_harmless = run.risk(record.id()) == RiskLevel::Reversible;
        let is_idle = is_harmless && is_unused(run, record);
        calls.push(ToolAttempt {
            tool: record.tool_name().clone(),
            outcome,
            teaches: !is_idle && read.may_teach(record, is_harmless, known),
        });
    }
    calls
}

/// The texts that a run read, in order.
struct ReadTexts<'r> {
    run: &'r Run,
    /// The tools of the strategies that its model was shown: they are in the playbook.
    recalled: HashSet<&'r ToolName>,
    /// Each with its turn; `None` for the task.
    texts: Vec<(Option<Turn>, Words)>,
}

impl<'r> ReadTexts<'r> {
    fn of(run: &'r Run) -> Self {
        let recalled = run.recalled().unwrap_or_default().iter();
        let mut texts = Vec::new();
        if run.task().tainted {
            texts.push((None, Words::of(&run.task().description)));
        }
        // The texts of an untainted run are not needed.
        let calls = run.calls().filter(|_| run.is_tainted());
        for call in calls {
            let words = match call.outcome() {
                Some(Ok(result)) => Words::of_value(result),
                Some(Err(failure)) => Words::of(&failure.model_message),
                None => continue,
            };
            texts.push((Some(call.id().turn), words));
        }
        Self {
            run,
            recalled: recalled.flat_map(|one| &one.sequence).collect(),
            texts,
        }
    }

    fn may_teach(&self, record: &CallRecord, is_harmless: bool, known: &HashSet<ToolName>) -> bool {
        let run = self.run;
        let is_tainted = run.is_tainted_at(record.id());
        if !is_tainted.unwrap_or_else(|_| run.is_tainted()) {
            return true;
        }
        let tool = record.tool_name();
        let name = Words::of(tool.as_str());
        let mut before = self.texts.iter();
        let is_asked_for =
            before.any(|(turn, text)| *turn < Some(record.id().turn) && text.contains(&name));
        let specification = run.specification(tool.as_str());
        let reads_untrusted =
            specification.is_some_and(|tool| tool.attributes().open_world == Some(true));
        let is_known = known.contains(tool) || self.recalled.contains(tool);
        is_harmless && !is_asked_for && (reads_untrusted || is_known)
    }
}

/// The tool of a call that a person refused or undid.
fn refused_by_person(run: &Run) -> Option<ToolName> {
    let refused = run.calls().find(|call| {
        let is_undone = call.state() == CallState::Cancelled && !call.was_permitted();
        let failure = call.outcome().and_then(Result::err);
        is_undone || failure.is_some_and(|failure| failure.category == ErrorCategory::Rejected)
    });
    refused.map(|call| call.tool_name().clone())
}
