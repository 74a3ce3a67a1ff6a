//! `windlass approvals watch`: questions as they come, and how they are settled.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use windlass_core::approval::{Approval, ApprovalStatus, Principal};
use windlass_runtime::now;
use windlass_spec::text::{TextUse, escape_json};
use windlass_spec::{CallId, Timestamp};

use super::list::as_object;
use super::{Desk, gravity, subject};
use crate::Outcome;
use crate::moments::left;
use crate::rendered::seen;
use crate::run::block_on;
use crate::table::one_line;
use crate::terminal::stream;

/// How often the database is looked at.
const PERIOD: Duration = Duration::from_millis(300);

/// Of so many looks, one is at all questions: what was asked and settled between two looks at the
/// pending ones is found then.
const THOROUGH: u32 = 10;

pub(super) fn run(desk: &Desk, as_json: bool) -> anyhow::Result<Outcome> {
    block_on(&desk.service, async {
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut watching = Watching {
            desk,
            as_json,
            known: desk
                .service
                .list_approvals(&desk.identity, None, None)?
                .into_iter()
                .map(known)
                .collect(),
            pending: Vec::new(),
        };
        // Those that wait already come first; what was settled before is not told.
        let pending = Some(ApprovalStatus::Pending);
        for question in desk.service.list_approvals(&desk.identity, pending, None)? {
            if !watching.tell("asked", &question)? {
                return Ok(Outcome::Done);
            }
        }
        let mut looks: u32 = 0;
        loop {
            tokio::select! {
                _ = interrupts.recv() => return Ok(Outcome::Code(130)),
                () = tokio::time::sleep(PERIOD) => {}
            }
            looks = looks.wrapping_add(1);
            if !watching.look(looks.is_multiple_of(THOROUGH))? {
                return Ok(Outcome::Done);
            }
        }
    })?
}

/// A question by what tells it from others, and how far it had come.
type Key = (CallId, Timestamp);
type Stage = (ApprovalStatus, usize);

struct Watching<'d> {
    desk: &'d Desk,
    as_json: bool,
    known: HashMap<Key, Stage>,
    /// The pending ones of the last look.
    pending: Vec<(Key, Stage)>,
}

fn known(question: Approval) -> (Key, Stage) {
    let key = (question.call().clone(), question.request().asked_at);
    (key, (question.status(), question.decisions().len()))
}

impl Watching<'_> {
    fn questions(&self, status: Option<ApprovalStatus>) -> anyhow::Result<Vec<Approval>> {
        let desk = self.desk;
        Ok(desk.service.list_approvals(&desk.identity, status, None)?)
    }

    /// Tells what changed. Whether anybody still listens.
    fn look(&mut self, is_thorough: bool) -> anyhow::Result<bool> {
        let pending = self.questions(Some(ApprovalStatus::Pending))?;
        let pending: Vec<(Key, Stage)> = pending.into_iter().map(known).collect();
        if pending == self.pending && !is_thorough {
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
            if is_new && !self.tell("asked", &question)? {
                return Ok(false);
            }
            let event = match stage {
                (ApprovalStatus::Pending, 0) => continue,
                (ApprovalStatus::Pending, _) => "decided",
                _ => "settled",
            };
            if !self.tell(event, &question)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether anybody still listens.
    fn tell(&self, event: &str, question: &Approval) -> anyhow::Result<bool> {
        let line = match self.as_json {
            true => {
                let mut told = json!({ "event": event });
                told["question"] = as_object(self.desk, question, now());
                escape_json(&told.to_string(), TextUse::Display).into_owned()
            }
            false => seen(&line(event, question, now())),
        };
        Ok(stream(&line)?)
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
            let gravity = gravity(question.question());
            let gravity =
                gravity.map_or_else(String::new, |(risk, level)| format!(" {risk} {level}"));
            let left = left(question.request().expires_at, now);
            let left = left.map_or_else(String::new, |left| format!(" {left} left"));
            format!("asked {id} {what}{gravity}{left}")
        }
        "decided" => format!("approved once {id} {what}{by}; a second person has to approve"),
        _ => format!("{} {id} {what}{by}", question.status()),
    }
}
