//! `windlass policy replay`: changed policies held against the calls of past runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use windlass_core::approval::{Identity, Principal};
use windlass_core::run::{CallKind, Run};
use windlass_policy::{Request, replay};
use windlass_spec::{CallId, NonEmptyText, ToolSpecification};
use windlass_store::{RunFilter, RunSummary, Store};

use super::{PolicyText, agent_files, tools_of};
use crate::arguments::PolicyReplay;
use crate::report::Reporter;
use crate::terminal::{complain, put, say};
use crate::{Outcome, data};

pub(super) fn run(command: &PolicyReplay, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let Some(files) = agent_files(&command.agent, reporter)? else {
        return Ok(Outcome::Failed);
    };
    let Some(new) = PolicyText::read(Some(&command.new), reporter)? else {
        return Ok(Outcome::Failed);
    };
    let Some(old) = PolicyText::read(command.old.as_deref(), reporter)? else {
        return Ok(Outcome::Failed);
    };
    let stored = data::open(command.data.as_deref())?;
    let recorded = recorded_requests(stored.store())?;
    let tools = match command.agent.is_empty() {
        true => recorded.tools.values().cloned().collect(),
        false => tools_of(&files),
    };
    // Both at once, so that all mistakes are told at once.
    let (old, new) = (old.load_or_complain(&tools)?, new.load_or_complain(&tools)?);
    let (Some(old), Some(new)) = (old, new) else {
        return Ok(Outcome::Failed);
    };
    let is_declared = |name: &str| tools.iter().any(|tool| tool.name().as_str() == name);
    let (calls, left_out): (Vec<_>, Vec<_>) = recorded
        .requests
        .into_iter()
        .partition(|(_, request)| is_declared(&request.tool));
    let differences = replay(&old, &new, calls.iter().map(|(_, request)| request));
    for difference in &differences {
        let (call, request) = &calls[difference.index];
        if command.json {
            let told = json!({
                "call": call, "tool": difference.tool, "input": request.input,
                "before": difference.before, "after": difference.after, "weaker": difference.is_weaker(),
            });
            put(&format!("{told}\n"))?;
        } else {
            let weaker = if difference.is_weaker() {
                " (weaker)"
            } else {
                ""
            };
            say(&format!(
                "{call} {} {}: {} -> {}{weaker}\n  before {}\n  after  {}",
                difference.tool,
                json!(request.input),
                difference.before.verdict,
                difference.after.verdict,
                difference.before,
                difference.after
            ))?;
        }
    }
    complain(&format!(
        "{} of {} recorded calls would be decided differently, {} of them less strictly",
        differences.len(),
        calls.len(),
        differences
            .iter()
            .filter(|difference| difference.is_weaker())
            .count()
    ))?;
    if !left_out.is_empty() {
        complain(&format!(
            "{} calls of tools that these agent files do not declare were left out",
            left_out.len()
        ))?;
    }
    if recorded.unreadable > 0 {
        complain(&format!(
            "{} runs could not be read and were left out",
            recorded.unreadable
        ))?;
    }
    Ok(Outcome::Done)
}

/// What past runs asked for.
struct Recorded {
    /// The calls, the oldest first.
    requests: Vec<(CallId, Request<'static>)>,
    /// The tools as the latest run that had them knew them.
    tools: BTreeMap<String, Arc<ToolSpecification>>,
    /// How many runs could not be read.
    unreadable: usize,
}

/// What the runs of a store asked for. Those that were purged have nothing left to tell.
fn recorded_requests(store: &Store) -> anyhow::Result<Recorded> {
    let mut recorded = Recorded {
        requests: Vec::new(),
        tools: BTreeMap::new(),
        unreadable: 0,
    };
    let mut runs = store.runs(&RunFilter::default())?;
    runs.reverse();
    for summary in runs.iter().filter(|run| run.purged.is_none()) {
        let Ok(run) = store.fold(&summary.run) else {
            recorded.unreadable += 1;
            continue;
        };
        for tool in run.agent().tools() {
            let name = tool.name().to_string();
            recorded.tools.insert(name, Arc::clone(tool));
        }
        recorded.requests.extend(requests_of(summary, &run));
    }
    Ok(recorded)
}

/// The calls of a run as the policies saw them. Work that is handed to a sub-agent and questions to
/// people are no calls of tools.
fn requests_of(summary: &RunSummary, run: &Run) -> Vec<(CallId, Request<'static>)> {
    let tenant = NonEmptyText::new(summary.tenant.clone());
    let principal = Principal::new(summary.principal.clone());
    let (Ok(tenant), Ok(principal)) = (tenant, principal) else {
        return Vec::new();
    };
    let who = Identity::new(tenant, principal);
    run.calls()
        .filter(|call| {
            run.kind(call.id())
                .is_some_and(|kind| kind != CallKind::SubAgent && !kind.is_answered_by_person())
        })
        .filter_map(|call| {
            let request = run.policy_request(call.id(), &who).ok()?;
            Some((call.id().clone(), request))
        })
        .collect()
}
