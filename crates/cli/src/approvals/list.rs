//! `windlass approvals list`: the pending approvals and questions.

use windlass_core::approval::{Approval, ApprovalStatus};
use windlass_runtime::now;
use windlass_service::ApprovalQuery;
use windlass_spec::Timestamp;

use super::{ApprovalSession, risk_and_level, subject_line};
use crate::CommandOutcome;
use crate::moments::{ago, left};
use crate::table::print_table;
use crate::terminal::{eprint_line, print_json};

/// The maximum length of a listed question.
const SUBJECT: usize = 48;

pub(super) fn run(
    session: &ApprovalSession,
    all: bool,
    run: Option<&str>,
    as_json: bool,
) -> anyhow::Result<CommandOutcome> {
    let query = ApprovalQuery {
        status: (!all).then_some(ApprovalStatus::Pending),
        run: run.map(str::to_owned),
        ..ApprovalQuery::default()
    };
    let questions = session.service.list_approvals(&session.identity, &query)?;
    let now = now();
    if as_json {
        for question in &questions {
            let object = session.to_json(question);
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
    Ok(CommandOutcome::Done)
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
        subject_line(question, SUBJECT),
        question.status().to_string(),
        risk,
        level,
        ago(question.request().asked_at, now),
        time_left.unwrap_or_else(|| "-".to_owned()),
        session.outer_run(question).to_string(),
    ]
}
