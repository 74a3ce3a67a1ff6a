//! `windlass approvals list`: the pending approvals and questions.

use serde_json::Value;
use windlass_core::approval::{Approval, ApprovalStatus};
use windlass_runtime::now;
use windlass_service::ApprovalQuery;
use windlass_spec::Timestamp;

use super::{ApprovalSession, risk_and_level, subject_line};
use crate::CommandOutcome;
use crate::moments::{ago, left};
use crate::table::{one_line, short_ids, table_lines};
use crate::terminal::{
    cut_to_terminal, eprint_line, print_json, print_line, print_styled_line, visible_line,
};

/// The maximum length of a listed question or call, so that the list has 80 columns.
const SUBJECT: usize = 72;

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
        let ids = questions.iter().map(|question| question.call().to_string());
        let ids = short_ids(&ids.collect::<Vec<_>>());
        let rows = questions.iter().zip(ids);
        let rows: Vec<[String; 6]> = rows.map(|(question, id)| row(question, id, now)).collect();
        let headings = ["ID", "STATUS", "RISK", "LEVEL", "ASKED", "TIME LEFT"];
        let table = table_lines(headings, &rows);
        let gists = questions
            .iter()
            .map(|question| format!("  {}", visible_line(&gist(question))));
        // The headings have no gist.
        let gists = std::iter::once(None).chain(gists.map(Some));
        for (lines, gist) in table.iter().zip(gists) {
            for line in lines {
                print_styled_line(line)?;
            }
            if let Some(gist) = gist {
                print_line(&cut_to_terminal(gist))?;
            }
        }
    }
    Ok(CommandOutcome::Done)
}

/// What a question is about: a call with the beginning of its arguments, or the text of a question.
pub(super) fn gist(question: &Approval) -> String {
    let Some(call) = question.question().authorize() else {
        return subject_line(question, SUBJECT);
    };
    let arguments = question.arguments().unwrap_or(&call.tool_args);
    let arguments: Vec<String> = arguments
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}: {text}"),
            value => format!("{name}: {value}"),
        })
        .collect();
    let call = format!("{} ({})", call.tool_name, arguments.join(", "));
    one_line(&call, SUBJECT)
}

/// The largest unit of an age, such as `3 h ago`.
fn short_age(at: Timestamp, now: Timestamp) -> String {
    let age = ago(at, now);
    let words: Vec<&str> = age.split(' ').collect();
    match words.as_slice() {
        [count, unit, .., last] if words.len() > 3 && count.parse::<u64>().is_ok() => {
            format!("{count} {unit} {last}")
        }
        _ => age,
    }
}

fn row(question: &Approval, id: String, now: Timestamp) -> [String; 6] {
    let (risk, level) = match risk_and_level(question.question()) {
        Some((risk, level)) => (risk.to_string(), level.to_string()),
        None => ("-".to_owned(), "-".to_owned()),
    };
    let time_left = match question.status() {
        ApprovalStatus::Pending => left(question.request().expires_at, now),
        _ => None,
    };
    [
        id,
        question.status().to_string(),
        risk,
        level,
        short_age(question.request().asked_at, now),
        time_left.unwrap_or_else(|| "-".to_owned()),
    ]
}
