//! Derives evidence from a finished run. It uses only what happened: how the run ended, which calls
//! succeeded, and the result of a checker. The model's confidence is necessary for success, but not sufficient.
//! Calls that untrusted content may have caused are not learned from.

use windlass_spec::{
    AgentName, Confidence, ErrorCategory, NonEmptyText, RunId, StrategyId, StrategySection,
    Timestamp, ToolName,
};

use super::evidence::{Pitfall, RunEvidence, RunVerdict, StrategyVote, Vote};

/// The most calls in a sequence. A longer one is no pattern, but its parts may be.
const LONGEST: usize = 12;

/// The most pitfalls that are learned from one run.
const MOST_PITFALLS: usize = 8;

/// How a run ended, as far as learning is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExperienceEnd {
    /// The model finished.
    Completed,
    /// It failed or exhausted a limit; with the reason.
    Incomplete(String),
    /// It ended for a cause other than its tools, such as a person or a model that did not answer; with the
    /// reason.
    Stopped(String),
}

/// One call that was made, or that was refused because of its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAttempt {
    /// The tool.
    pub tool: ToolName,
    /// The result of the call.
    pub outcome: Result<(), ErrorCategory>,
    /// Whether it may be learned from. False if untrusted content may have caused it.
    pub teaches: bool,
}

/// The facts about a finished run that can be learned from.
#[derive(Debug, Clone, PartialEq)]
pub struct Experience {
    /// The run.
    pub run: RunId,
    /// The agent of the run.
    pub agent: AgentName,
    /// When the run ended.
    pub at: Timestamp,
    /// The task; `None` if it contains untrusted content.
    pub task: Option<NonEmptyText>,
    /// How it ended.
    pub ended: ExperienceEnd,
    /// The confidence that the model stated.
    pub confidence: Confidence,
    /// The checker's result for the answer; `None` if it was not checked.
    pub checked: Option<bool>,
    /// The tool whose call a person undid or rejected, if any.
    pub refused_by_person: Option<ToolName>,
    /// How many turns it took.
    pub iterations: u32,
    /// The calls, in order.
    pub calls: Vec<ToolAttempt>,
    /// The strategies that the model was shown.
    pub recalled: Vec<ShownStrategy>,
}

/// A strategy that the model was shown.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownStrategy {
    /// The id of the strategy.
    pub id: StrategyId,
    /// Its section.
    pub section: StrategySection,
    /// Its tools.
    pub sequence: Vec<ToolName>,
}

/// Derives evidence from finished runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroundedReflector {
    /// A run counts as a success only if the model's confidence is above this.
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
    /// The evidence of a run, given the tools that strategies of the playbook name and the agent does not
    /// have. `None` if the run made no call and its model was shown no strategy.
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
            RunVerdict::Unclear => Vec::new(),
            RunVerdict::Succeeded | RunVerdict::Failed => pitfalls(experience, verdict, &sequence),
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

    fn judge(&self, experience: &Experience) -> (RunVerdict, String) {
        let unclear = |because: String| (RunVerdict::Unclear, because);
        let failed = |because: String| (RunVerdict::Failed, because);
        // A person's decision is no evidence about tools, whatever the result.
        if let ExperienceEnd::Stopped(why) = &experience.ended {
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
        // Neither is a service that is down or limits its rate.
        if let Some((tool, category)) = last_failure
            && experience.checked.is_none()
            && !is_tool_related(category)
        {
            return unclear(format!("the last call, of `{tool}`, failed ({category})"));
        }
        if let ExperienceEnd::Incomplete(why) = &experience.ended {
            return failed(why.clone());
        }
        if experience.confidence <= self.min_confidence {
            return unclear(format!(
                "the model's confidence ({}) is not above the threshold ({})",
                experience.confidence, self.min_confidence
            ));
        }
        match (last_failure, experience.checked) {
            _ if last.is_none() => unclear("no tool was called".to_owned()),
            (Some((tool, _)), None) => failed(format!("the last call, of `{tool}`, failed")),
            (_, Some(_)) => {
                let because = "it finished, and the answer was checked";
                (RunVerdict::Succeeded, because.to_owned())
            }
            (None, None) => {
                let because = "it finished, and its last call succeeded";
                (RunVerdict::Succeeded, because.to_owned())
            }
        }
    }
}

/// Whether `wanted` is a subsequence of `tools`: the same order, with any tools between them.
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

/// Whether a strategy that a model was shown was followed: its tools succeeded in its order, in calls that may
/// be learned from.
#[must_use]
pub fn is_followed(section: StrategySection, sequence: &[ToolName], calls: &[ToolAttempt]) -> bool {
    let succeeded = calls
        .iter()
        .filter(|call| call.teaches && call.outcome.is_ok());
    section == StrategySection::Strategies
        && !sequence.is_empty()
        && is_subsequence(sequence, succeeded.map(|call| &call.tool))
}

fn pitfalls(experience: &Experience, verdict: RunVerdict, sequence: &[ToolName]) -> Vec<Pitfall> {
    let mut found: Vec<Pitfall> = Vec::new();
    let mut before: Option<&ToolName> = None;
    for (place, call) in experience.calls.iter().enumerate() {
        let Err(category) = call.outcome else {
            // A call that untrusted content may have caused is not part of a warning either.
            before = call.teaches.then_some(&call.tool);
            continue;
        };
        // A call that succeeds on a later attempt only had wrong arguments.
        let later = &experience.calls[place + 1..];
        let is_fixed_later = later
            .iter()
            .any(|later| later.tool == call.tool && later.outcome.is_ok());
        if !call.teaches || is_fixed_later || !is_tool_related(category) {
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
    if verdict == RunVerdict::Failed && found.is_empty() && (1..=LONGEST).contains(&sequence.len())
    {
        found.push(Pitfall {
            sequence: sequence.to_vec(),
            category: None,
        });
    }
    found
}

/// Whether a failure is evidence about the choice of the tool. A temporary failure, a person's decision and a
/// tool that does not exist are not.
fn is_tool_related(category: ErrorCategory) -> bool {
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

/// The run's votes on the strategies that the model was shown. A strategy that was tried without success is
/// harmful only if no other shown strategy was followed, because the model may try several.
fn votes(experience: &Experience, verdict: RunVerdict) -> Vec<StrategyVote> {
    let calls = &experience.calls;
    let follows =
        |recalled: &ShownStrategy| is_followed(recalled.section, &recalled.sequence, calls);
    let any_followed = experience.recalled.iter().any(follows);
    let is_tried_without_success = |recalled: &ShownStrategy| {
        recalled.sequence.iter().any(|tool| {
            let mut calls = calls
                .iter()
                .filter(|call| call.tool == *tool && call.teaches);
            let has_succeeded = calls.clone().any(|call| call.outcome.is_ok());
            !has_succeeded && calls.any(|call| call.outcome.is_err_and(is_tool_related))
        })
    };
    let vote = |recalled: &ShownStrategy| {
        let followed = follows(recalled);
        let vote = match (verdict, followed) {
            (RunVerdict::Unclear, _) => Vote::Neutral,
            (RunVerdict::Succeeded, true) => Vote::Helpful,
            (RunVerdict::Failed, true) => Vote::Harmful,
            (_, false) if recalled.section != StrategySection::Strategies => Vote::Neutral,
            (_, false) if !any_followed && is_tried_without_success(recalled) => Vote::Harmful,
            (_, false) => Vote::Neutral,
        };
        StrategyVote {
            strategy: recalled.id.clone(),
            followed,
            vote,
        }
    };
    experience.recalled.iter().map(vote).collect()
}
