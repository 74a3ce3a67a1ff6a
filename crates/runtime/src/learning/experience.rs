//! A run that is over, as what can be learned from it. Here it is decided what strangers may have caused. After
//! something was read from outside, what was read may have asked for any call, so that a call teaches
//! only if all of this holds:
//!
//! - it changed nothing;
//! - nothing that was read names its tool;
//! - it reads from outside as well, because reading on is what whoever looks things up does, or its tool is in the
//!   playbook already: from a call before which nothing was read, or by a person's hand.
//!
//! What was read cannot bring a tool into a playbook that way, and arguments are never learned.

mod used;

use std::collections::HashSet;

use windlass_core::run::{Entry, Mistake, RecalledStrategy, Run, RunEnd};
use windlass_learn::playbook::{Ended, Experience, RecalledBefore, Tried, is_followed};
use windlass_spec::{
    CallRecord, CallState, ErrorCategory, NonEmptyText, RiskLevel, Timestamp, ToolName, Turn,
};

use self::used::{Words, is_in_vain};

/// What can be learned from a run, given what whoever can tell says about its answer; nothing if it is not
/// over, or nobody was asked in it.
#[must_use]
pub fn of(run: &Run, checked: Option<bool>, now: Timestamp) -> Option<Experience> {
    of_known(run, checked, &HashSet::new(), now)
}

/// Whether a run is over and somebody was asked in it.
pub(super) fn says_something(run: &Run) -> bool {
    run.end().is_some() && run.task().call.is_none()
}

/// The same as [`of`], given the tools that are in the playbook.
pub(super) fn of_known(
    run: &Run,
    checked: Option<bool>,
    known: &HashSet<ToolName>,
    now: Timestamp,
) -> Option<Experience> {
    let end = run.end().filter(|_| says_something(run))?;
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
        confidence: run.response().confidence,
        checked,
        refused_by_person: refused_by_person(run),
        iterations: u32::try_from(run.turns().len()).unwrap_or(u32::MAX),
        calls: calls(run, known),
        recalled: recalled
            .iter()
            .map(|recalled| RecalledBefore {
                id: recalled.id.clone(),
                section: recalled.section,
                sequence: recalled.sequence.clone(),
            })
            .collect(),
    })
}

/// The strategies that were put before the model of a run, and whether each was followed: its tools
/// succeeded in its order.
pub fn followed(run: &Run) -> impl Iterator<Item = (&RecalledStrategy, bool)> {
    let calls = calls(run, &HashSet::new());
    let recalled = run.recalled().unwrap_or_default().iter();
    recalled.map(move |recalled| {
        let is_followed = is_followed(recalled.section, &recalled.sequence, &calls);
        (recalled, is_followed)
    })
}

fn ended(end: &RunEnd) -> Ended {
    match end {
        RunEnd::Completed => Ended::Completed,
        RunEnd::IterationLimit => Ended::Short("it ran out of turns".to_owned()),
        RunEnd::Budget { budget } => {
            Ended::Short(format!("it ran out of its budget ({})", budget.as_str()))
        }
        RunEnd::Cancelled => Ended::Stopped("it was stopped".to_owned()),
        RunEnd::WaitingForPerson => Ended::Stopped("it waits for a person".to_owned()),
        // What the model or the operator is to blame for says nothing about tools.
        RunEnd::Failed { category, .. } => match category {
            ErrorCategory::InvalidArguments
            | ErrorCategory::NotFound
            | ErrorCategory::ToolFailure
            | ErrorCategory::InvalidOutput => Ended::Short(format!("it failed ({category})")),
            _ => Ended::Stopped(format!("it could not go on ({category})")),
        },
    }
}

/// The calls of the agent's own tools, in order. What is asked of people, of plans and of the search for
/// tools is not among them.
fn calls(run: &Run, known: &HashSet<ToolName>) -> Vec<Tried> {
    let is_own = |name: &ToolName| run.allowed_tools().any(|tool| tool.name() == name);
    let read = Read::of(run);
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
        let is_idle = is_harmless && is_in_vain(run, record);
        calls.push(Tried {
            tool: record.tool_name().clone(),
            outcome,
            teaches: !is_idle && read.may_teach(record, is_harmless, known),
        });
    }
    calls
}

/// What a run read, in the order in which it did.
struct Read<'r> {
    run: &'r Run,
    /// The tools of the strategies that were put before its model: they are in the playbook.
    recalled: HashSet<&'r ToolName>,
    /// With the turn of each; the task comes before all.
    texts: Vec<(Option<Turn>, Words)>,
}

impl<'r> Read<'r> {
    fn of(run: &'r Run) -> Self {
        let recalled = run.recalled().unwrap_or_default().iter();
        let mut texts = Vec::new();
        if run.task().tainted {
            texts.push((None, Words::of(&run.task().description)));
        }
        // Most runs read nothing from outside, and nobody looks at what they read.
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
        let reads_on = specification.is_some_and(|tool| tool.attributes().open_world == Some(true));
        let is_known = known.contains(tool) || self.recalled.contains(tool);
        is_harmless && !is_asked_for && (reads_on || is_known)
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
