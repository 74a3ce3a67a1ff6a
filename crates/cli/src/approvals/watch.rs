//! `windlass approvals watch`: prints questions as they arrive and are settled.

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use windlass_core::approval::{Approval, Principal};
use windlass_runtime::now;
use windlass_service::{ApprovalChange, ApprovalChangeKind};
use windlass_spec::Timestamp;
use windlass_spec::text::{TextUse, escape_json};

use super::{ApprovalSession, risk_and_level, subject_line};
use crate::CommandOutcome;
use crate::moments::left;
use crate::rendered::escape_exact;
use crate::run::block_on;
use crate::terminal::stream_line;

pub(super) fn run(session: &ApprovalSession, as_json: bool) -> anyhow::Result<CommandOutcome> {
    block_on(&session.service, async {
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut changes = session.service.approval_changes(&session.identity, None)?;
        loop {
            let change = tokio::select! {
                _ = interrupts.recv() => return Ok(CommandOutcome::Code(130)),
                change = changes.next() => change?,
            };
            if !print(session, &change, as_json)? {
                return Ok(CommandOutcome::Done);
            }
        }
    })?
}

/// Prints a change. Returns false if the output is closed.
fn print(
    session: &ApprovalSession,
    change: &ApprovalChange,
    as_json: bool,
) -> anyhow::Result<bool> {
    let question = &change.approval;
    let line = match as_json {
        true => {
            let mut object = json!({ "event": change.kind.as_str() });
            object["question"] = session.to_json(question);
            escape_json(&object.to_string(), TextUse::Display).into_owned()
        }
        false => escape_exact(&line(change.kind, question, now())),
    };
    Ok(stream_line(&line)?)
}

fn line(kind: ApprovalChangeKind, question: &Approval, now: Timestamp) -> String {
    let (id, what) = (question.call(), subject_line(question, 60));
    let deciders: Vec<&str> = question.deciders().map(Principal::as_str).collect();
    let by = match deciders.as_slice() {
        [] => String::new(),
        deciders => format!(" by {}", deciders.join(" and ")),
    };
    match kind {
        ApprovalChangeKind::Asked => {
            let risk = risk_and_level(question.question());
            let risk = risk.map_or_else(String::new, |(risk, level)| format!(" {risk} {level}"));
            let left = left(question.request().expires_at, now);
            let left = left.map_or_else(String::new, |left| format!(" {left} left"));
            format!("asked {id} {what}{risk}{left}")
        }
        ApprovalChangeKind::Decided => {
            format!("approved once {id} {what}{by}; needs a second approver")
        }
        ApprovalChangeKind::Settled => format!("{} {id} {what}{by}", question.status()),
    }
}
