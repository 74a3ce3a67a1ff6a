//! `windlass approvals list`: what waits for a person.

use serde_json::{Value, json};
use windlass_core::approval::{Approval, ApprovalStatus};
use windlass_runtime::now;
use windlass_spec::Timestamp;

use super::{Desk, gravity, subject};
use crate::Outcome;
use crate::moments::{ago, left, seconds_left};
use crate::table::{one_line, say_table};
use crate::terminal::{complain, put};

/// How much of a question in words is listed.
const SUBJECT: usize = 48;

pub(super) fn run(
    desk: &Desk,
    all: bool,
    run: Option<&str>,
    as_json: bool,
) -> anyhow::Result<Outcome> {
    let status = (!all).then_some(ApprovalStatus::Pending);
    let questions = desk.service.list_approvals(&desk.identity, status, run)?;
    let now = now();
    if as_json {
        for question in &questions {
            let told = as_object(desk, question, now);
            put(&format!("{told}\n"))?;
        }
    } else if questions.is_empty() {
        complain(match all {
            true => "there are no questions",
            false => "no questions are pending",
        })?;
    } else {
        let rows: Vec<[String; 8]> = questions
            .iter()
            .map(|question| row(desk, question, now))
            .collect();
        let headings = [
            "ID",
            "WHAT",
            "STATUS",
            "RISK",
            "LEVEL",
            "ASKED",
            "TIME LEFT",
            "RUN",
        ];
        say_table(headings, &rows)?;
    }
    Ok(Outcome::Done)
}

fn row(desk: &Desk, question: &Approval, now: Timestamp) -> [String; 8] {
    let (risk, level) = match gravity(question.question()) {
        Some((risk, level)) => (risk.to_string(), level.to_string()),
        None => ("-".to_owned(), "-".to_owned()),
    };
    let time_left = match question.status() {
        ApprovalStatus::Pending => left(question.request().expires_at, now),
        _ => None,
    };
    [
        question.call().to_string(),
        one_line(subject(question.question()), SUBJECT),
        question.status().to_string(),
        risk,
        level,
        ago(question.request().asked_at, now),
        time_left.unwrap_or_else(|| "-".to_owned()),
        desk.outer_run(question).to_string(),
    ]
}

/// A question for programs: as it is kept, with what a list adds.
pub(super) fn as_object(desk: &Desk, question: &Approval, now: Timestamp) -> Value {
    let mut told = json!(question);
    told["id"] = json!(question.call());
    told["what"] = json!(subject(question.question()));
    told["still_needed"] = json!(question.still_needed());
    told["outermost_run"] = json!(desk.outer_run(question));
    if question.status() == ApprovalStatus::Pending {
        told["seconds_left"] = json!(seconds_left(question.request().expires_at, now));
        // What is to be decided about now: the first of two people may have changed it.
        told["digest_now"] = json!(question.digest());
        told["arguments_now"] = json!(question.arguments());
    }
    told
}
