//! The JSON of runs, approvals, tools, plans and more, the same for every front end: the stored fields, and what follows
//! from them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};
use windlass_core::approval::{Approval, ApprovalStatus, Hold, HoldStatus, Question};
use windlass_core::risk::ToolRisk;
use windlass_core::run::{Entry, PlanState, Run};
use windlass_learn::playbook::{KeptStrategy, StrategyStatus};
use windlass_spec::{CallId, RiskLevel, Timestamp, ToolName};
use windlass_store::{RunSummary, StoredPlan};

use crate::gaps::MissingTool;
use crate::identity::Identity;
use crate::runs::{ListedRun, RunStatus};
use crate::service::Service;
use crate::stops::stop_to_json;
use crate::tools::{FoundTool, ToolDetails, ToolStatus};
use crate::usage::usage_sum_to_json;

/// A call of a run with its risk and the gate's decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunCall {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// Its state, such as `success`.
    pub state: String,
    /// The risk of the call with these arguments.
    pub risk: RiskLevel,
    /// The gate's decision and its reasons; `None` before the gate decided.
    pub decision: Option<String>,
}

impl RunCall {
    /// The well-formed calls of a run, in order.
    #[must_use]
    pub fn of_run(run: &Run) -> Vec<Self> {
        let entries = run.turns().iter().flat_map(|turn| &turn.entries);
        let calls = entries.filter_map(|entry| match entry {
            Entry::Call {
                record, decision, ..
            } => {
                let tool = run.specification(record.tool_name().as_str());
                let risk = tool.map_or(RiskLevel::Irreversible, |tool| {
                    let risk = ToolRisk::of_specification(tool);
                    risk.with_arguments(record.arguments()).level
                });
                Some(Self {
                    call: record.id().clone(),
                    tool: record.tool_name().clone(),
                    arguments: record.arguments().clone(),
                    state: record.state().to_string(),
                    risk,
                    decision: decision.as_ref().map(ToString::to_string),
                })
            }
            Entry::Mistake { .. } | Entry::Finish => None,
        });
        calls.collect()
    }
}

/// What the tools of a run should write differently in their answers, one entry for each tool, rule and place.
#[must_use]
pub fn notices_to_json(run: &Run) -> Vec<Value> {
    let notices = run.notices().into_iter();
    let entry = |(tool, notice)| {
        let mut entry = json!({"tool": tool});
        if let (Some(entry), Value::Object(notice)) = (entry.as_object_mut(), json!(notice)) {
            entry.extend(notice);
        }
        entry
    };
    notices.map(entry).collect()
}

/// A run in a list as JSON.
#[must_use]
pub fn run_to_json(run: &RunSummary) -> Value {
    json!({
        "run": run.run, "agent": run.agent, "task_id": run.task_id, "task": run.task,
        "started_at": run.started_at,
        "ended_at": run.ended_at, "end": run.end, "events": run.events, "state": run.state.as_str(),
    })
}

impl ListedRun {
    /// The run as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = run_to_json(&self.summary);
        let waits = self.waits_for_program.as_ref().map(ToString::to_string);
        object["waits_for_program"] = json!(waits);
        object
    }
}

impl RunStatus {
    /// The calls of the run; none if its events were purged.
    #[must_use]
    pub fn calls(&self) -> Vec<RunCall> {
        self.run.as_ref().map(RunCall::of_run).unwrap_or_default()
    }

    /// The run as JSON, with its calls, questions and holds.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let run = self.run.as_ref();
        let mut object = run_to_json(&self.summary);
        object["principal"] = json!(self.summary.principal);
        object["parent"] = json!(run.and_then(Run::parent));
        object["outermost_run"] = json!(self.outermost);
        object["turns"] = json!(run.map(|run| run.turns().len()));
        object["calls"] = json!(run.map(RunCall::of_run));
        object["questions"] = json!(self.questions);
        object["holds"] = json!(self.holds);
        object["has_process"] = json!(self.has_process);
        object["stopped"] = json!(self.stopped.as_ref().map(stop_to_json));
        object["usage"] = usage_sum_to_json(&self.usage);
        let waits = self.waits_for_program.as_ref().map(ToString::to_string);
        object["waits_for_program"] = json!(waits);
        object
    }
}

impl Service {
    /// A question as JSON, with the time that is left to decide it.
    #[must_use]
    pub fn approval_to_json(&self, identity: &Identity, question: &Approval) -> Value {
        let outermost = self.outermost_run(identity, question.run());
        let outermost = outermost.unwrap_or_else(|_| question.run().clone());
        let mut object = json!(question);
        object["id"] = json!(question.call());
        object["what"] = json!(subject_of(question.question()));
        object["still_needed"] = json!(question.still_needed());
        object["outermost_run"] = json!(outermost);
        if question.status() == ApprovalStatus::Pending {
            let expires_at = question.request().expires_at;
            object["seconds_left"] = json!(seconds_left(expires_at, self.now()));
            // The present arguments: the first of two approvers may have changed them.
            object["digest_now"] = json!(question.digest());
            object["arguments_now"] = json!(question.arguments());
        }
        object
    }

    /// A held call as JSON, with the time that is left to undo it.
    #[must_use]
    pub fn hold_to_json(&self, identity: &Identity, hold: &Hold) -> Value {
        let mut object = json!(hold);
        object["id"] = json!(hold.call());
        object["run"] = json!(hold.run());
        object["outermost_run"] = json!(self.outermost_run(identity, hold.run()).ok());
        if hold.status() == HoldStatus::Held {
            object["seconds_left"] = json!(seconds_left(hold.due_at(), self.now()));
        }
        object
    }
}

impl ToolStatus {
    /// The tool as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (entry, settings) = (&self.entry, &self.settings);
        let statistics = self.statistics.as_ref();
        json!({
            "name": entry.name,
            "library": entry.library,
            "signature": entry.signature.as_ref().ok().map(ToString::to_string),
            "inexpressible": entry.signature.as_ref().err(),
            "risk": self.risk.map(|risk| risk.to_string()),
            "state": self.stage.as_str(),
            "category": settings.category,
            "enabled": settings.switched_off.is_none(),
            "switched_off": settings.switched_off,
            "permissions": settings.demands,
            "timeout_seconds": settings.timeout,
            "rate_limits": settings.rate_limits,
            "success_count": statistics.map_or(0, |of| of.success_count),
            "failure_count": statistics.map_or(0, |of| of.failure_count),
            "description": entry.description,
        })
    }
}

impl FoundTool {
    /// The tool as JSON, with how well it fits.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.entry.name, "library": self.entry.library, "score": self.score,
            "description": self.entry.description,
        })
    }
}

impl ToolDetails {
    /// The tool as JSON, with its schemas and its declared properties.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let signature = self.signature();
        json!({
            "name": self.tool.name(),
            "library": self.library.name(),
            "description": self.tool.description(),
            "signature": signature.as_ref().ok().map(ToString::to_string),
            "inexpressible": signature.as_ref().err(),
            "schema": self.tool.schema(),
            "returns": self.tool.returns_schema(),
            "attributes": self.declared.as_ref().map(|declared| declared.attributes()),
        })
    }
}

/// A plan as JSON: the fields that a model gets, with times.
#[must_use]
pub fn plan_to_json(plan: &PlanState) -> Value {
    let mut object = plan.to_json();
    object["goal"] = json!(plan.plan().goal());
    object["made_at"] = json!(plan.made_at());
    for (index, (task, state)) in plan.tasks().enumerate() {
        let entry = &mut object["tasks"][index];
        entry["depends_on"] = json!(task.depends_on);
        entry["attempts"] = json!(state.attempts);
        entry["started_at"] = json!(state.started_at);
        entry["ended_at"] = json!(state.ended_at);
        if let Some(failure) = &state.failure {
            entry["error"] = json!(failure.operator_message);
        }
    }
    object
}

/// A plan in a list as JSON.
#[must_use]
pub fn stored_plan_to_json(plan: &StoredPlan) -> Value {
    json!({
        "plan": plan.plan, "run": plan.plan.run, "goal": plan.goal, "tasks": plan.tasks,
        "made_at": plan.made_at, "run_state": plan.run_state.as_str(),
    })
}

/// A strategy of the playbook of a domain as JSON.
#[must_use]
pub fn strategy_to_json(domain: &str, kept: &KeptStrategy) -> Value {
    let mut object = json!(kept.strategy);
    object["domain"] = json!(domain);
    object["standing"] = json!(match &kept.status {
        StrategyStatus::Active => "active",
        StrategyStatus::Disabled => "disabled",
        StrategyStatus::Retired(_) => "retired",
    });
    object["lower_bound"] = json!((kept.lower_bound() * 1e4).round() / 1e4);
    object["recalled"] = json!(kept.tally.recalled());
    object
}

impl MissingTool {
    /// The missing capability as JSON.
    #[must_use]
    pub fn to_json(&self, now: Timestamp) -> Value {
        let times = &self.occurrences;
        let agents: BTreeSet<&str> = times.iter().map(|time| time.agent.as_str()).collect();
        let mut moments: BTreeMap<&str, usize> = BTreeMap::new();
        for time in times {
            *moments.entry(time.moment.as_str()).or_default() += 1;
        }
        json!({
            "tool": self.name,
            "wish": self.description,
            "count": times.len(),
            "this_week": self.this_week(now),
            "first_at": times.iter().map(|time| time.at).min(),
            "last_at": self.last_at(),
            "agents": agents,
            "moments": moments,
        })
    }

    /// The missing capability as JSON, with every occurrence.
    #[must_use]
    pub fn to_json_in_full(&self, now: Timestamp) -> Value {
        let mut object = self.to_json(now);
        let times = self.occurrences.iter().map(|time| {
            json!({
                "at": time.at,
                "run": time.run,
                "agent": time.agent,
                "moment": time.moment,
                "task": time.task,
                "missing": time.missing,
            })
        });
        object["times"] = times.collect();
        object["proposed_tool"] = json!(self.proposal());
        object
    }
}

/// What a question is about, in short: the tool of a call, else the text of the question.
#[must_use]
pub fn subject_of(question: &Question) -> &str {
    match question {
        Question::Authorize(call) => call.tool_name.as_str(),
        Question::Ask(_) | Question::Intervene(_) => question.headline().as_str(),
    }
}

fn seconds_left(until: Timestamp, now: Timestamp) -> f64 {
    (until.microseconds_since(now) / 1_000) as f64 / 1_000.0
}
