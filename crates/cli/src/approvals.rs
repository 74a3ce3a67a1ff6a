//! `windlass approvals`: shows what agents ask for, and records the decisions of approvers.

mod decide;
mod list;
mod pick;
mod prompt;
mod show;
mod watch;

use serde_json::Value;
use windlass_core::approval::{
    Approval, ApprovalStatus, Decided, PersonDecision, Principal, Question,
};
use windlass_service::{ApprovalQuery, Identity, ResumeOptions, Service, ServiceError, subject_of};
use windlass_spec::{RiskLevel, RunId, SecurityLevel, Timestamp};

use super::approvers::approver;
use super::arguments::{Approvals, ApprovalsCommand, Approve, Decider, OneQuestion};
use super::program::{Program, ended};
use super::table::one_line;
use super::terminal::Quote;
use super::{CommandOutcome, paste, runs};

pub(super) use prompt::asker;

/// Describes a decision: by whom, when and what.
pub(super) fn describe_decision(decided: &Decided) -> String {
    show::decision(decided)
}

pub(super) fn run(program: &Program, command: &Approvals) -> anyhow::Result<CommandOutcome> {
    let session = ApprovalSession {
        service: program.service(command.data.as_deref()),
        identity: program.identity()?,
    };
    let Some(command) = &command.command else {
        return ended(pick::run(&session), false);
    };
    let (result, as_json) = match command {
        ApprovalsCommand::List { all, run, json } => {
            (list::run(&session, *all, run.as_deref(), *json), *json)
        }
        ApprovalsCommand::Show { question } => (show::run(&session, question), question.json),
        ApprovalsCommand::Approve(command) => (approve(&session, command), command.question.json),
        ApprovalsCommand::Reject(command) => {
            (decide::reject(&session, command), command.question.json)
        }
        ApprovalsCommand::Respond(command) => {
            (decide::respond(&session, command), command.question.json)
        }
        ApprovalsCommand::Watch { json } => (watch::run(&session, *json), *json),
    };
    ended(result, as_json)
}

/// Approves a call, and resumes its run if that was asked for and it is settled.
fn approve(session: &ApprovalSession, command: &Approve) -> anyhow::Result<CommandOutcome> {
    let (service, identity) = (&session.service, &session.identity);
    let id = session.id_of(&command.question)?;
    let resumed = match command.resume {
        true => Some(service.show_approval(identity, &id)?.approval),
        false => None,
    };
    let outcome = decide::approve(session, command, &id)?;
    let Some(asked) = resumed.filter(|_| outcome == CommandOutcome::Done) else {
        return Ok(outcome);
    };
    let settled = service.show_approval(identity, &asked.call().to_string())?;
    if settled.approval.status() == ApprovalStatus::Pending {
        return Ok(outcome);
    }
    let run = session.outer_run(&asked).to_string();
    let options = ResumeOptions::default();
    runs::resume(service, identity, &run, &options, command.question.json)
}

/// The identity of the approver, and the service that records decisions.
struct ApprovalSession {
    service: Service,
    identity: Identity,
}

impl ApprovalSession {
    /// Returns the outermost run of a question.
    fn outer_run(&self, question: &Approval) -> RunId {
        let outer = self.service.outermost_run(&self.identity, question.run());
        outer.unwrap_or_else(|_| question.run().clone())
    }

    /// The id of the request that a command is about, as it was typed or of the latest pending one.
    fn id_of(&self, question: &OneQuestion) -> anyhow::Result<String> {
        match (&question.id, question.last) {
            (Some(id), false) => return Ok(id.clone()),
            (Some(_), true) => {
                let message = "an id and `--last` are given";
                let error = ServiceError::invalid("two_requests", message);
                return Err(error.with_hint("give one of them").into());
            }
            (None, _) => {}
        }
        let pending = ApprovalQuery {
            status: Some(ApprovalStatus::Pending),
            ..ApprovalQuery::default()
        };
        let pending = self.service.list_approvals(&self.identity, &pending)?;
        let last = pending.iter().max_by_key(|asked| asked.request().asked_at);
        let none = || ServiceError::not_found("no_such_request", "no requests are pending");
        Ok(last.ok_or_else(none)?.call().to_string())
    }

    /// The approver who decides, with their key, and whom they decide for.
    fn decider(&self, options: &Decider) -> anyhow::Result<(Identity, Option<Principal>)> {
        let on_behalf_of = options.on_behalf_of.as_deref().map(Principal::new);
        let on_behalf_of = on_behalf_of.transpose().map_err(|error| {
            anyhow::Error::from(ServiceError::invalid("invalid", error.to_string()))
        })?;
        let approver = approver(&self.service, &self.identity, &options.approver)?;
        Ok((approver, on_behalf_of))
    }

    /// The commands that decide a question, as they work where they are pasted.
    fn commands(&self, question: &Approval) -> Vec<String> {
        let data = self.service.given_data_directory();
        let steps = show::commands(question).into_iter();
        steps
            .map(|step| paste::command(&step, data.as_deref()))
            .collect()
    }

    /// The approver who makes a decision. A rejection needs no key, so none is asked for unless options name it.
    fn decider_of(
        &self,
        options: &Decider,
        decision: &PersonDecision,
    ) -> anyhow::Result<(Identity, Option<Principal>)> {
        let is_rejection = matches!(decision, PersonDecision::Reject { .. });
        match is_rejection && *options == Decider::default() {
            true => Ok((self.identity.clone(), None)),
            false => self.decider(options),
        }
    }

    /// A question as JSON.
    fn to_json(&self, question: &Approval) -> Value {
        self.service.approval_to_json(&self.identity, question)
    }
}

/// Describes the subject on one line, at most `limit` characters of it. The text of a question is quoted after
/// its author.
fn subject_line(approval: &Approval, limit: usize) -> String {
    let subject = one_line(subject_of(approval.question()), limit);
    match (approval.question(), approval.asker()) {
        (Question::Authorize(_), _) | (_, None) => subject,
        (_, Some(asker)) => format!("{asker}{}", Quote::of(&subject).on_line()),
    }
}

/// Returns the risk and the security level of a question about a call.
fn risk_and_level(question: &Question) -> Option<(RiskLevel, SecurityLevel)> {
    let call = question.authorize()?;
    Some((call.risk, call.security_level))
}

/// Whether the clock is earlier than the time of the question.
fn is_clock_behind(question: &Approval, now: Timestamp) -> bool {
    now < question.request().asked_at
}
