//! Collects what happened in a period from the journals and the record of changes by administrators.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_spec::Timestamp;
use windlass_store::{Alteration, EventRecord, RunFilter, RunSummary, Store};

use super::{AuditQuery, AuditRecord};
use crate::error::ServiceError;

/// The kinds of events that are no evidence of what was asked, decided or done.
const LEFT_OUT: [&str; 6] = [
    "model_answered",
    "model_failed",
    "offered",
    "recalled",
    "time_passed",
    "planned",
];

/// What happened in a period, in the order of time.
pub(super) fn records(
    store: &Store,
    tenant: &str,
    query: &AuditQuery,
) -> Result<Vec<AuditRecord>, ServiceError> {
    let is_in_period = |at: Timestamp| at >= query.from && at < query.to;
    let filter = RunFilter {
        tenant: Some(tenant.to_owned()),
        ..RunFilter::default()
    };
    let mut found: Vec<(Timestamp, AuditRecord)> = Vec::new();
    for run in store.runs(&filter)?.into_iter().rev() {
        let is_outside =
            run.started_at >= query.to || run.ended_at.is_some_and(|end| end < query.from);
        if is_outside && run.ended_at.is_some() {
            continue;
        }
        let verified = store.verify_run(&run.run)?;
        for alteration in &verified.alterations {
            found.push((run.started_at, altered(alteration, Some(&run))));
        }
        if !verified.alterations.is_empty() {
            // Nothing of a journal that was changed is evidence.
            continue;
        }
        let mut calls = BTreeMap::new();
        for event in store.event_records(&run.run)? {
            let payload = event.payload.as_deref();
            let payload: Option<Value> = payload.and_then(|text| serde_json::from_str(text).ok());
            note_calls(&mut calls, &run, payload.as_ref());
            if is_in_period(event.at) && !LEFT_OUT.contains(&event.kind.as_str()) {
                let record = of_event(&run, &event, payload.as_ref(), &calls);
                found.push((event.at, record));
            }
        }
    }
    for recorded in store.admin_changes(tenant)? {
        let change = recorded.change;
        if is_in_period(change.at) {
            let record = AuditRecord {
                at: change.at.to_string(),
                kind: "admin_change".to_owned(),
                number: Some(recorded.seq),
                principal: change.by,
                decision: Some(change.kind),
                arguments: Some(change.subject),
                ..AuditRecord::default()
            };
            found.push((change.at, record));
        }
    }
    found.sort_by_key(|(at, _)| *at);
    Ok(found.into_iter().map(|(_, record)| record).collect())
}

/// What was changed that belongs to no run.
pub(super) fn rest(store: &Store) -> Result<Vec<AuditRecord>, ServiceError> {
    let rest = store.verify_rest()?;
    Ok(rest.iter().map(|found| altered(found, None)).collect())
}

fn altered(alteration: &Alteration, run: Option<&RunSummary>) -> AuditRecord {
    AuditRecord {
        at: run.map_or_else(String::new, |run| run.started_at.to_string()),
        kind: "alteration".to_owned(),
        run: run.map(|run| run.run.to_string()),
        number: alteration.event,
        outcome: Some(alteration.place.clone()),
        reason: Some(alteration.reason.clone()),
        ..AuditRecord::default()
    }
}

/// The tool and the arguments of each call, as the model asked for it.
type Calls = BTreeMap<String, (String, Value)>;

fn note_calls(calls: &mut Calls, run: &RunSummary, payload: Option<&Value>) {
    let Some(answer) = payload.filter(|payload| payload["event"] == "model_answered") else {
        return;
    };
    let asked = answer["answer"]["calls"].as_array();
    for (call, index) in asked.into_iter().flatten().zip(0..) {
        let id = format!("{}:{}:{index}", run.run, answer["turn"]);
        let tool = call["tool"].as_str().unwrap_or_default().to_owned();
        let arguments = match &call["arguments"]["json"] {
            Value::Null => call["arguments"]["text"].clone(),
            arguments => arguments.clone(),
        };
        calls.insert(id, (tool, arguments));
    }
}

/// The record of an event.
fn of_event(
    run: &RunSummary,
    event: &EventRecord,
    payload: Option<&Value>,
    calls: &Calls,
) -> AuditRecord {
    let mut record = AuditRecord {
        at: event.at.to_string(),
        kind: event.kind.clone(),
        run: Some(run.run.to_string()),
        number: Some(event.seq),
        principal: Some(run.principal.clone()),
        agent: Some(run.agent.clone()),
        event_digest: Some(event.digest.clone()),
        is_purged: payload.is_none(),
        ..AuditRecord::default()
    };
    let Some(payload) = payload else {
        return record;
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    // A question has the call in it, and what the approver was shown.
    let question = match &payload["approval"] {
        Value::Null => &payload["request"],
        approval => approval,
    };
    record.call = text(&payload["call"]).or_else(|| text(&question["call"]));
    let asked = record.call.as_ref().and_then(|call| calls.get(call));
    let shown = &question["question"];
    record.tool = text(&shown["tool_name"]).or_else(|| asked.map(|(tool, _)| tool.clone()));
    record.arguments = match &shown["tool_args"] {
        Value::Null => asked.map(|(_, arguments)| arguments.clone()),
        arguments => Some(arguments.clone()),
    };
    let decision = &payload["decision"];
    record.decision = text(&decision["verdict"]).or_else(|| text(&question["status"]));
    record.reason = text(&decision["reason"])
        .or_else(|| text(&shown["reason"]))
        .or_else(|| text(&payload["reason"]));
    let rules = decision["rules"].as_array().into_iter().flatten();
    record.policies = rules.filter_map(text).collect();
    record.configuration = text(&decision["configuration"]);
    record.call_digest = text(&decision["digest"]).or_else(|| text(&question["digest"]));
    let decisions = question["decisions"].as_array().into_iter().flatten();
    record.approvers = decisions.cloned().collect();
    if let Some(by) = text(&payload["by"]) {
        record.approvers.push(serde_json::json!({"by": by}));
    }
    let end = payload["end"].as_object();
    record.outcome = end.and_then(|end| end.keys().next().cloned());
    record
}
