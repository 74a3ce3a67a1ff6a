//! `windlass approvals watch`: prints questions as they arrive and are settled.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use windlass_core::approval::{Approval, ApprovalStatus, Principal};
use windlass_runtime::now;
use windlass_spec::text::{TextUse, escape_json};
use windlass_spec::{CallId, Timestamp};

use super::list::as_object;
use super::{ApprovalSession, risk_and_level, subject};
use crate::Outcome;
use crate::moments::left;
use crate::rendered::escape_exact;
use crate::run::block_on;
use crate::table::one_line;
use crate::terminal::stream_line;

/// The polling interval of the database.
const PERIOD: Duration = Duration::from_millis(300);

/// One of this many polls reads all questions. It finds those that were asked and settled between two polls
/// of the pending ones.
const FULL_POLL_INTERVAL: u32 = 10;

pub(super) fn run(session: &ApprovalSession, as_json: bool) -> anyhow::Result<Outcome> {
    block_on(&session.service, async {
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut watching = ApprovalWatch {
            session,
            as_json,
            known: session
                .service
                .list_approvals(&session.identity, None, None)?
                .into_iter()
                .map(known)
                .collect(),
            pending: Vec::new(),
        };
        // Pending questions come first. Settled ones are left out.
        let pending = Some(ApprovalStatus::Pending);
        for question in session
            .service
            .list_approvals(&session.identity, pending, None)?
        {
            if !watching.print("asked", &question)? {
                return Ok(Outcome::Done);
            }
        }
        let mut polls: u32 = 0;
        loop {
            tokio::select! {
                _ = interrupts.recv() => return Ok(Outcome::Code(130)),
                () = tokio::time::sleep(PERIOD) => {}
            }
            polls = polls.wrapping_add(1);
            if !watching.poll(polls.is_multiple_of(FULL_POLL_INTERVAL))? {
                return Ok(Outcome::Done);
            }
        }
    })?
}

/// What identifies a question.
type Key = (CallId, Timestamp);
type Stage = (ApprovalStatus, usize);

struct ApprovalWatch<'d> {
    session: &'d ApprovalSession,
    as_json: bool,
    known: HashMap<Key, Stage>,
    /// The pending questions of the last poll.
    pending: Vec<(Key, Stage)>,
}

fn known(question: Approval) -> (Key, Stage) {
    let key = (question.call().clone(), question.request().asked_at);
    (key, (question.status(), question.decisions().len()))
}

impl ApprovalWatch<'_> {
    fn questions(&self, status: Option<ApprovalStatus>) -> anyhow::Result<Vec<Approval>> {
        let session = self.session;
        Ok(session
            .service
            .list_approvals(&session.identity, status, None)?)
    }

    /// Prints what changed. Returns false if the output is closed.
    fn poll(&mut self, is_full: bool) -> anyhow::Result<bool> {
        let pending = self.questions(Some(ApprovalStatus::Pending))?;
        let pending: Vec<(Key, Stage)> = pending.into_iter().map(known).collect();
        if pending == self.pending && !is_full {
            return Ok(true);
        }
        self.pending = pending;
        for question in self.questions(None)? {
            let (key, stage) = known(question.clone());
            let before = self.known.insert(key, stage);
            if before == Some(stage) {
                continue;
            }
            let is_new = before.is_none();
            if is_new && !self.print("asked", &question)? {
                return Ok(false);
            }
            let event = match stage {
                (ApprovalStatus::Pending, 0) => continue,
                (ApprovalStatus::Pending, _) => "decided",
                _ => "settled",
            };
            if !self.print(event, &question)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Prints an event. Returns false if the output is closed.
    fn print(&self, event: &str, question: &Approval) -> anyhow::Result<bool> {
        let line = match self.as_json {
            true => {
                let mut object = json!({ "event": event });
                object["question"] = as_object(self.session, question, now());
                escape_json(&object.to_string(), TextUse::Display).into_owned()
            }
            false => escape_exact(&line(event, question, now())),
        };
        Ok(stream_line(&line)?)
    }
}

fn line(event: &str, question: &Approval, now: Timestamp) -> String {
    let (id, what) = (question.call(), one_line(subject(question.question()), 60));
    let deciders: Vec<&str> = question.deciders().map(Principal::as_str).collect();
    let by = match deciders.as_slice() {
        [] => String::new(),
        deciders => format!(" by {}", deciders.join(" and ")),
    };
    match event {
        "asked" => {
            let risk = risk_and_level(question.question());
            let risk = risk.map_or_else(String::new, |(risk, level)| format!(" {risk} {level}"));
            let left = left(question.request().expires_at, now);
            let left = left.map_or_else(String::new, |left| format!(" {left} left"));
            format!("asked {id} {what}{risk}{left}")
        }
        "decided" => format!("approved once {id} {what}{by}; needs a second approver"),
        _ => format!("{} {id} {what}{by}", question.status()),
    }
}
