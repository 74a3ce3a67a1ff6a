//! `windlass approvals`: what agents want to do, shown to people, and what people decide about it.

mod decide;
mod here;
mod list;
mod show;
mod watch;

use std::sync::Arc;

use windlass_core::approval::{Approval, ApprovalStatus, Identity, Question};
use windlass_core::risk::{Assessment, ToolRisk};
use windlass_core::run::Run;
use windlass_runtime::{local_identity, now};
use windlass_spec::{RiskLevel, SecurityLevel, Timestamp, ToolSpecification};
use windlass_store::{ApprovalFilter, Store};

use super::arguments::{Approvals, ApprovalsCommand};
use super::call_ids::{Candidate, Sought, pick};
use super::refusal::{refused, told};
use super::{Outcome, data};

pub(super) use here::asker;

pub(super) fn run(command: &Approvals) -> anyhow::Result<Outcome> {
    let stored = data::open(command.data.as_deref())?;
    let desk = Desk {
        store: Arc::clone(stored.store()),
        person: local_identity()?,
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
    told(result, as_json)
}

/// Where somebody decides.
struct Desk {
    store: Arc<Store>,
    person: Identity,
}

impl Desk {
    /// Questions to the person's tenant, the oldest first.
    fn questions(&self, status: Option<ApprovalStatus>) -> anyhow::Result<Vec<Approval>> {
        let filter = ApprovalFilter {
            tenant: Some(self.person.tenant.as_str().to_owned()),
            status,
            ..ApprovalFilter::default()
        };
        self.store.approvals(&filter, now()).map_err(refused)
    }

    /// The question that is meant by what was typed: the latest about a call.
    fn find(&self, typed: &str) -> anyhow::Result<Approval> {
        let sought = Sought {
            word: "no_such_approval",
            what: "question",
            listed_by: "windlass approvals list --all",
        };
        let candidates = self.questions(None)?.into_iter().map(|question| Candidate {
            call: question.call().clone(),
            is_open: question.status() == ApprovalStatus::Pending,
        });
        let call = pick(typed, candidates, &sought)?;
        self.store.approval(&call, now()).map_err(refused)
    }

    /// The run a question is about, if its journal can be read.
    fn run_of(&self, question: &Approval) -> Option<Run> {
        self.store.fold(question.run()).ok()
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

/// What is declared of the tool that would run.
fn specification<'r>(run: &'r Run, question: &Approval) -> Option<&'r Arc<ToolSpecification>> {
    run.specification(question.question().authorize()?.tool_name.as_str())
}

/// How the risk of what would run came about.
fn assessment(run: &Run, question: &Approval) -> Option<Assessment> {
    let tool = ToolRisk::of_specification(specification(run, question)?);
    Some(tool.with_arguments(question.arguments()?))
}

/// Whether the clock says that a question has not been asked yet.
fn is_before_it_was_asked(question: &Approval, now: Timestamp) -> bool {
    now < question.request().asked_at
}
