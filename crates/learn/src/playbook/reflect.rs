//! What a run that is over teaches. Everything is read off what happened: how the run ended, which calls
//! succeeded, what a checker says. How sure the model was must suffice and never does. Calls that
//! strangers may have caused teach nothing.

use windlass_spec::{
    AgentName, Confidence, ErrorCategory, NonEmptyText, RunId, StrategyId, StrategySection,
    Timestamp, ToolName,
};

use super::evidence::{Pitfall, RunEvidence, Verdict, Vote, Voted};

/// How many calls a sequence has at most. What is longer is no pattern; its parts may be.
const LONGEST: usize = 12;

/// How many pitfalls one run teaches at most.
const MOST_PITFALLS: usize = 8;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The model finished.
    Completed,
    /// It could not go on, or something was used up; in words.
    Short(String),
    /// Something else ended it than its tools: a person, say, or a model that did not answer; in words.
    Stopped(String),
}

/// One call that was made, or asked for and refused because of how it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// The tool.
    pub tool: ToolName,
    /// How the call ended, if it did.
    pub outcome: Result<(), ErrorCategory>,
    /// Whether it may be learned from. Not if what strangers wrote may have caused it.
    pub teaches: bool,
}

/// A run that is over, as far as something can be learned from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Experience {
    /// Which run.
    pub run: RunId,
    /// Whose.
    pub agent: AgentName,
    /// When it was over.
    pub at: Timestamp,
    /// What was asked, unless strangers wrote part of it.
    pub task: Option<NonEmptyText>,
    /// How it ended.
    pub ended: Ended,
    /// How sure the model says it is.
    pub confidence: Confidence,
    /// What whoever can tell says about the answer, if somebody could.
    pub checked: Option<bool>,
    /// The tool whose call a person undid or refused, if one did.
    pub refused_by_person: Option<ToolName>,
    /// How many turns it took.
    pub iterations: u32,
    /// The calls, in order.
    pub calls: Vec<Tried>,
    /// The strategies that were put before the model.
    pub recalled: Vec<RecalledBefore>,
}

/// A strategy that was put before the model.
#[derive(Debug, Clone, PartialEq)]
pub struct RecalledBefore {
    /// Which.
    pub id: StrategyId,
    /// What it says.
    pub section: StrategySection,
    /// Its tools.
    pub sequence: Vec<ToolName>,
}

/// Reads off a run what it teaches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroundedReflector {
    /// A run of which the model is less sure is no success.
    pub min_confidence: Confidence,
}

impl Default for GroundedReflector {
    fn default() -> Self {
        Self {
            min_confidence: Confidence::HALF,
        }
    }
}

impl GroundedReflector {
    /// What a run teaches, given the tools that strategies of the playbook name and the agent does not
    /// have. Nothing if it made no call and was told nothing: then it says nothing about tools.
    #[must_use]
    pub fn reflect(&self, experience: &Experience, lacks: Vec<ToolName>) -> Option<RunEvidence> {
        if experience.calls.is_empty() && experience.recalled.is_empty() {
            return None;
        }
        let (verdict, because) = self.judge(experience);
        let succeeded: Vec<&ToolName> = experience
            .calls
            .iter()
            .filter(|call| call.teaches && call.outcome.is_ok())
            .map(|call| &call.tool)
            .collect();
        let sequence: Vec<ToolName> = succeeded.iter().copied().cloned().collect();
        let recalled = votes(experience, verdict);
        let pitfalls = match verdict {
            Verdict::Unclear => Vec::new(),
            Verdict::Succeeded | Verdict::Failed => pitfalls(experience, verdict, &sequence),
        };
        Some(RunEvidence {
            run: experience.run.clone(),
            agent: experience.agent.clone(),
            at: experience.at,
            task: experience.task.clone(),
            verdict,
            because,
            iterations: experience.iterations,
            sequence,
            pitfalls,
            recalled,
            lacks,
        })
    }

    fn judge(&self, experience: &Experience) -> (Verdict, String) {
        let unclear = |because: String| (Verdict::Unclear, because);
        let failed = |because: String| (Verdict::Failed, because);
        // What people decide says nothing about tools, whatever came of it.
        if let Ended::Stopped(why) = &experience.ended {
            return unclear(why.clone());
        }
        if let Some(tool) = &experience.refused_by_person {
            return unclear(format!("a person refused or undid `{tool}`"));
        }
        if experience.checked == Some(false) {
            return failed("the answer was checked and is wrong".to_owned());
        }
        let last = experience.calls.last();
        let last_failure = last.and_then(|last| Some((&last.tool, last.outcome.err()?)));
        // Nor does a service that is down, nor one that has had enough for now.
        if let Some((tool, category)) = last_failure
            && experience.checked.is_none()
            && !says_something(category)
        {
            return unclear(format!("the last call, of `{tool}`, failed ({category})"));
        }
        if let Ended::Short(why) = &experience.ended {
            return failed(why.clone());
        }
        if experience.confidence < self.min_confidence {
            return unclear(format!(
                "the model is {} sure, and {} is needed",
                experience.confidence, self.min_confidence
            ));
        }
        match (last_failure, experience.checked) {
            _ if last.is_none() => unclear("no tool was called".to_owned()),
            (Some((tool, _)), None) => failed(format!("the last call, of `{tool}`, failed")),
            (_, Some(_)) => {
                let because = "it finished, and the answer was checked";
                (Verdict::Succeeded, because.to_owned())
            }
            (None, None) => {
                let because = "it finished, and its last call succeeded";
                (Verdict::Succeeded, because.to_owned())
            }
        }
    }
}

/// Whether all of `wanted` stand in `tools`, in that order, with whatever between them.
#[must_use]
pub fn is_subsequence<'t>(
    wanted: &[ToolName],
    tools: impl IntoIterator<Item = &'t ToolName>,
) -> bool {
    let mut wanted = wanted.iter().peekable();
    for tool in tools {
        if wanted.peek() == Some(&tool) {
            wanted.next();
        }
    }
    wanted.peek().is_none()
}

/// Whether a strategy that was put before a model was followed: its tools succeeded in its order, in calls that
/// may be learned from.
#[must_use]
pub fn is_followed(section: StrategySection, sequence: &[ToolName], calls: &[Tried]) -> bool {
    let succeeded = calls
        .iter()
        .filter(|call| call.teaches && call.outcome.is_ok());
    section == StrategySection::Strategies
        && !sequence.is_empty()
        && is_subsequence(sequence, succeeded.map(|call| &call.tool))
}

fn pitfalls(experience: &Experience, verdict: Verdict, sequence: &[ToolName]) -> Vec<Pitfall> {
    let mut found: Vec<Pitfall> = Vec::new();
    let mut before: Option<&ToolName> = None;
    for (place, call) in experience.calls.iter().enumerate() {
        let Err(category) = call.outcome else {
            // What strangers may have caused is no part of a warning either.
            before = call.teaches.then_some(&call.tool);
            continue;
        };
        // One that goes well in the end was only asked for wrongly.
        let later = &experience.calls[place + 1..];
        let is_mended = later
            .iter()
            .any(|later| later.tool == call.tool && later.outcome.is_ok());
        if !call.teaches || is_mended || !says_something(category) {
            continue;
        }
        let tools = before.into_iter().chain([&call.tool]);
        let pitfall = Pitfall {
            sequence: tools.cloned().collect(),
            category: Some(category),
        };
        if !found.contains(&pitfall) && found.len() < MOST_PITFALLS {
            found.push(pitfall);
        }
    }
    if verdict == Verdict::Failed && found.is_empty() && (1..=LONGEST).contains(&sequence.len()) {
        found.push(Pitfall {
            sequence: sequence.to_vec(),
            category: None,
        });
    }
    found
}

/// Whether a failure says something about the choice of the tool. What passes by itself does not, nor
/// what people decide, nor a tool that does not exist.
fn says_something(category: ErrorCategory) -> bool {
    match category {
        ErrorCategory::InvalidArguments
        | ErrorCategory::NotFound
        | ErrorCategory::PermissionDenied
        | ErrorCategory::Timeout
        | ErrorCategory::InvalidOutput
        | ErrorCategory::ToolFailure => true,
        ErrorCategory::UnknownTool
        | ErrorCategory::Rejected
        | ErrorCategory::Expired
        | ErrorCategory::Authentication
        | ErrorCategory::RateLimited
        | ErrorCategory::BudgetExceeded
        | ErrorCategory::Cancelled
        | ErrorCategory::Unavailable
        | ErrorCategory::Internal => false,
    }
}

/// What the run says about the strategies that were put before the model. A strategy that was tried in
/// vain is harmful only if no other one was right: the model had to choose, and chose in the end.
fn votes(experience: &Experience, verdict: Verdict) -> Vec<Voted> {
    let calls = &experience.calls;
    let follows =
        |recalled: &RecalledBefore| is_followed(recalled.section, &recalled.sequence, calls);
    let was_one_right = experience.recalled.iter().any(follows);
    let in_vain = |recalled: &RecalledBefore| {
        recalled.sequence.iter().any(|tool| {
            let mut calls = calls
                .iter()
                .filter(|call| call.tool == *tool && call.teaches);
            let has_succeeded = calls.clone().any(|call| call.outcome.is_ok());
            !has_succeeded && calls.any(|call| call.outcome.is_err_and(says_something))
        })
    };
    let vote = |recalled: &RecalledBefore| {
        let followed = follows(recalled);
        let vote = match (verdict, followed) {
            (Verdict::Unclear, _) => Vote::Neutral,
            (Verdict::Succeeded, true) => Vote::Helpful,
            (Verdict::Failed, true) => Vote::Harmful,
            (_, false) if recalled.section != StrategySection::Strategies => Vote::Neutral,
            (_, false) if !was_one_right && in_vain(recalled) => Vote::Harmful,
            (_, false) => Vote::Neutral,
        };
        Voted {
            strategy: recalled.id.clone(),
            followed,
            vote,
        }
    };
    experience.recalled.iter().map(vote).collect()
}
