//! `windlass approvals` at a terminal: one pending request after the other is chosen from a list and decided.
//! Without a terminal, the list is printed.

use std::io::{self, IsTerminal as _};

use windlass_core::approval::{Approval, ApprovalStatus};
use windlass_runtime::AskOutcome;
use windlass_service::ApprovalQuery;

use super::{ApprovalSession, list, prompt};
use crate::CommandOutcome;
use crate::ending::next_step_message;
use crate::prompt::{PromptError, choose_until};
use crate::table::short_ids;
use crate::terminal::{cut_to_terminal, eprint_line, is_interactive, print_line};

pub(super) fn run(session: &ApprovalSession) -> anyhow::Result<CommandOutcome> {
    if !io::stdin().is_terminal() || !is_interactive() {
        return list::run(session, false, None, false);
    }
    loop {
        let query = ApprovalQuery {
            status: Some(ApprovalStatus::Pending),
            ..ApprovalQuery::default()
        };
        let pending = session.service.list_approvals(&session.identity, &query)?;
        if pending.is_empty() {
            eprint_line("no requests are pending")?;
            return Ok(CommandOutcome::Done);
        }
        let Some(question) = choose(&pending)? else {
            return Ok(CommandOutcome::Done);
        };
        if prompt::ask(session, question)? == AskOutcome::Decided {
            let state = session
                .service
                .outermost_run_state(&session.identity, question.run());
            if let Ok(state) = state {
                print_line(&next_step_message(&state))?;
            }
        }
    }
}

/// The request that the user chooses; `None` to leave.
fn choose(pending: &[Approval]) -> anyhow::Result<Option<&Approval>> {
    let ids = pending.iter().map(|question| question.call().to_string());
    let ids = short_ids(&ids.collect::<Vec<_>>());
    let rows = pending.iter().zip(ids);
    let rows =
        rows.map(|(question, id)| cut_to_terminal(format!("{id}  {}", list::gist(question))));
    let rows: Vec<String> = rows.collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    match choose_until("Which request?", &rows, &mut || false) {
        Ok(index) => Ok(pending.get(index)),
        Err(PromptError::Terminal(error)) => Err(error.into()),
        Err(_) => Ok(None),
    }
}
