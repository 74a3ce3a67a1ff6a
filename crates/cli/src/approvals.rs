//! `windlass approvals`: what agents want to do, shown to people, and what people decide about it.

mod decide;
mod here;
mod list;
mod show;
mod watch;

use windlass_core::approval::{Approval, Question};
use windlass_service::{Identity, Service};
use windlass_spec::{RiskLevel, RunId, SecurityLevel, Timestamp};

use super::Outcome;
use super::arguments::{Approvals, ApprovalsCommand};
use super::program::{Program, ended};

pub(super) use here::asker;

pub(super) fn run(program: &Program, command: &Approvals) -> anyhow::Result<Outcome> {
    let desk = Desk {
        service: program.service(command.data.as_deref()),
        identity: program.identity()?,
    };
    let (result, as_json) = match &command.command {
        ApprovalsCommand::List { all, run, json } => {
            (list::run(&desk, *all, run.as_deref(), *json), *json)
        }
        ApprovalsCommand::Show { question } => (show::run(&desk, question), question.json),
        ApprovalsCommand::Approve(command) => {
            (decide::approve(&desk, command), command.question.json)
        }
        ApprovalsCommand::Reject(command) => {
            (decide::reject(&desk, command), command.question.json)
        }
        ApprovalsCommand::Respond(command) => {
            (decide::respond(&desk, command), command.question.json)
        }
        ApprovalsCommand::Watch { json } => (watch::run(&desk, *json), *json),
    };
    ended(result, as_json)
}

/// Who decides, and the service that takes the decision.
struct Desk {
    service: Service,
    identity: Identity,
}

impl Desk {
    /// The outermost run that a question is about.
    fn outer_run(&self, question: &Approval) -> RunId {
        let outer = self.service.outermost_run(&self.identity, question.run());
        outer.unwrap_or_else(|_| question.run().clone())
    }
}

/// What is asked for, on one line: the tool, or the question itself.
fn subject(question: &Question) -> &str {
    match question {
        Question::Authorize(call) => call.tool_name.as_str(),
        Question::Ask(_) | Question::Intervene(_) => question.headline().as_str(),
    }
}

/// How reversible the call is and how much care it needs, if it is about a call.
fn gravity(question: &Question) -> Option<(RiskLevel, SecurityLevel)> {
    let call = question.authorize()?;
    Some((call.risk, call.security_level))
}

/// Whether the clock says that a question has not been asked yet.
fn is_before_it_was_asked(question: &Approval, now: Timestamp) -> bool {
    now < question.request().asked_at
}
