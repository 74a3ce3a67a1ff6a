//! `windlass approvals list`: the pending approvals and questions.

use serde_json::{Value, json};
use windlass_core::approval::{Approval, ApprovalStatus};
use windlass_runtime::now;
use windlass_spec::Timestamp;

use super::{ApprovalSession, risk_and_level, subject};
use crate::Outcome;
use crate::moments::{ago, left, seconds_left};
use crate::table::{one_line, print_table};
use crate::terminal::{eprint_line, print_json};

/// The maximum length of a listed question.
const SUBJECT: usize = 48;

pub(super) fn run(
    session: &ApprovalSession,
    all: bool,
    run: Option<&str>,
    as_json: bool,
) -> anyhow::Result<Outcome> {
    let status = (!all).then_some(ApprovalStatus::Pending);
    let questions = session
        .service
        .list_approvals(&session.identity, status, run)?;
    let now = now();
    if as_json {
        for question in &questions {
            let object = as_object(session, question, now);
            print_json(&format!("{object}\n"))?;
        }
    } else if questions.is_empty() {
        eprint_line(match all {
            true => "there are no requests",
            false => "no requests are pending",
        })?;
    } else {
        let rows: Vec<[String; 8]> = questions
            .iter()
            .map(|question| row(session, question, now))
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
        print_table(headings, &rows)?;
    }
    Ok(Outcome::Done)
}

fn row(session: &ApprovalSession, question: &Approval, now: Timestamp) -> [String; 8] {
    let (risk, level) = match risk_and_level(question.question()) {
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
        session.outer_run(question).to_string(),
    ]
}

/// A question as JSON: the stored fields, and the derived ones.
pub(super) fn as_object(session: &ApprovalSession, question: &Approval, now: Timestamp) -> Value {
    let mut object = json!(question);
    object["id"] = json!(question.call());
    object["what"] = json!(subject(question.question()));
    object["still_needed"] = json!(question.still_needed());
    object["outermost_run"] = json!(session.outer_run(question));
    if question.status() == ApprovalStatus::Pending {
        object["seconds_left"] = json!(seconds_left(question.request().expires_at, now));
        // The present arguments: the first of two approvers may have changed them.
        object["digest_now"] = json!(question.digest());
        object["arguments_now"] = json!(question.arguments());
    }
    object
}
