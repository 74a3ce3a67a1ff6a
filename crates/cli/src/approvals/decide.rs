//! `windlass approvals approve`, `reject` and `respond`: records a decision, after checking that it is
//! about the call that was shown, and prints what happens next.

use std::io::{self, IsTerminal as _};

use serde_json::{Map, Value, json};
use windlass_core::approval::{
    Approval, ApprovalStatus, Authorize, Digest, PersonDecision, Principal,
};
use windlass_service::types::{StandingId, StoreError};
use windlass_service::{
    Always, ApprovalDetails, Confirmation, DecisionRequest, DecisionTaken, Identity, ServiceError,
    check_open,
};
use windlass_spec::{NonEmptyText, SecurityLevel};

use super::prompt::read_confirmation;
use super::show;
use super::{ApprovalSession, subject_line};
use crate::CommandOutcome;
use crate::arguments::{Approve, OneQuestion, Reject, Respond};
use crate::ending::{next_command, next_step_message};
use crate::rendered::{self, escape_exact};
use crate::terminal::{eprint_line, is_interactive, print_json, print_line};

pub(super) fn approve(
    session: &ApprovalSession,
    command: &Approve,
    id: &str,
) -> anyhow::Result<CommandOutcome> {
    let details = open_question(session, id)?;
    let question = &details.approval;
    let Some(call) = question.question().authorize() else {
        let answer = session
            .commands(question)
            .into_iter()
            .next()
            .unwrap_or_default();
        let message = format!(
            "`{}` is not a call, so it cannot be approved",
            question.call()
        );
        return Err(ServiceError::invalid("does_not_fit", message)
            .with_hint(format!("answer it: {answer}"))
            .into());
    };
    let mut shown = shown_digest(command, question)?;
    let edited = match &command.edit {
        Some(text) => Some(details.read_arguments(text)?),
        None => None,
    };
    let always = command.always.map(Always::from);
    if always.is_some() {
        details.check_standing(edited.as_ref())?;
    }
    let (service, identity) = (&session.service, &session.identity);
    let required = service.required_confirmation(identity, &details, edited.as_ref())?;
    let level = required.map_or(call.security_level, |required| required.level);
    let is_terminal = io::stdin().is_terminal() && is_interactive();
    let suffices = shown.is_some()
        && !is_terminal
        && required.is_none_or(|required| required.unattended_suffices);
    let is_confirmed = command.yes || suffices;
    // Before the approver types anything.
    let decider = session.decider(&command.decider)?;
    let mut confirmation = match command.yes {
        true => Confirmation::Unattended,
        false => Confirmation::Stated,
    };
    if required.is_some_and(|required| required.needs_digest) && !is_confirmed {
        if !is_terminal {
            return Err(confirmation_missing(question, level).into());
        }
        if !confirm(session, &details, call, edited.as_ref())? {
            eprint_line("not confirmed: nothing was decided")?;
            return Ok(CommandOutcome::Failed);
        }
        // The digest of what this approver saw: another approver may change the call in the meantime.
        shown = Some(question.digest());
        confirmation = Confirmation::AtTerminal;
    }
    let decision = match edited {
        Some(arguments) => PersonDecision::ApproveEdited { arguments },
        None => PersonDecision::Approve,
    };
    let request = DecisionRequest {
        decision,
        digest: shown,
        confirmation,
        on_behalf_of: None,
        always,
    };
    let (resumes, json) = (command.resume, command.question.json);
    decide(
        session,
        question,
        decider,
        request,
        Output { resumes, json },
    )
}

/// How a decision is printed.
struct Output {
    json: bool,
    /// Whether this command resumes the run itself.
    resumes: bool,
}

impl Output {
    const fn new(json: bool) -> Self {
        let resumes = false;
        Self { json, resumes }
    }
}

pub(super) fn reject(
    session: &ApprovalSession,
    command: &Reject,
) -> anyhow::Result<CommandOutcome> {
    let details = open_question(session, &session.id_of(&command.question)?)?;
    let message = command.message.as_deref();
    let message = message
        .map(|typed| text("message", typed, "write a text or omit --message"))
        .transpose()?;
    let decision = PersonDecision::Reject { message };
    let decider = session.decider_of(&command.decider, &decision)?;
    let output = Output::new(command.question.json);
    decide(session, &details.approval, decider, decision.into(), output)
}

pub(super) fn respond(
    session: &ApprovalSession,
    command: &Respond,
) -> anyhow::Result<CommandOutcome> {
    let chosen = &command.question;
    // With `--last`, the only text is the value.
    let (id, value) = match (&chosen.id, &command.value) {
        (Some(value), None) if chosen.last => {
            let last = OneQuestion {
                id: None,
                ..*chosen
            };
            (session.id_of(&last)?, Some(value))
        }
        (_, value) => (session.id_of(chosen)?, value.as_ref()),
    };
    let details = open_question(session, &id)?;
    let question = &details.approval;
    let reply = details.read_reply(value.map(String::as_str));
    let reply = reply.map_err(|error| match error.code() {
        "value_missing" => {
            let mut commands = session.commands(question).into_iter();
            let command = commands.find(|command| command.contains(" respond "));
            error.with_hint(command.unwrap_or_default())
        }
        _ => {
            let hint = error.hint().map(escape_exact).unwrap_or_default();
            error.with_hint(hint)
        }
    })?;
    let request = DecisionRequest {
        // The result is for exactly this call.
        digest: Some(question.digest()),
        ..reply.into()
    };
    let decider = session.decider(&command.decider)?;
    let output = Output::new(command.question.json);
    decide(session, question, decider, request, output)
}

/// The question with this id, which must not be settled.
fn open_question(session: &ApprovalSession, id: &str) -> anyhow::Result<ApprovalDetails> {
    let details = session.service.show_approval(&session.identity, id)?;
    check_open(&details.approval)?;
    Ok(details)
}

/// Records the decision and prints it.
fn decide(
    session: &ApprovalSession,
    question: &Approval,
    (approver, on_behalf_of): (Identity, Option<Principal>),
    request: DecisionRequest,
    output: Output,
) -> anyhow::Result<CommandOutcome> {
    let request = DecisionRequest {
        on_behalf_of,
        ..request
    };
    let taken = session
        .service
        .decide(&approver, question.call(), request)?;
    print_decision(session, &approver, &taken, &output)
}

/// The text of a field. `advice` is what to do if it is empty.
fn text(field: &str, typed: &str, advice: &str) -> Result<NonEmptyText, ServiceError> {
    NonEmptyText::new(typed).map_err(|_| {
        let message = format!("the {field} is empty; {advice}");
        ServiceError::invalid("empty_text", message)
    })
}

/// Returns the digest of `--digest`. It must match the present call.
fn shown_digest(command: &Approve, question: &Approval) -> anyhow::Result<Option<Digest>> {
    let Some(typed) = &command.digest else {
        return Ok(None);
    };
    let found: Digest = typed
        .parse()
        .map_err(|error| ServiceError::invalid("not_a_digest", format!("{error}")))?;
    let asked = question.digest();
    if found != asked {
        let call = question.call().clone();
        return Err(ServiceError::from(StoreError::DigestDiffers { call, asked, found }).into());
    }
    Ok(Some(found))
}

fn confirmation_missing(question: &Approval, level: SecurityLevel) -> ServiceError {
    let message = format!(
        "a call of the security level {level} needs a confirmation at a terminal, and there is none; \
         nothing was decided"
    );
    // The digest is left out here: it proves that the approver has seen the call.
    let call = question.call();
    let show =
        format!("run `windlass approvals show {call}` and pass the `--digest` that it prints");
    let hint = match level {
        SecurityLevel::Critical => format!(
            "decide at a terminal; with a key that may decide unattended, {show}, and `--yes`"
        ),
        _ => format!(
            "{show}; with a key that may decide unattended, `--yes` approves without review"
        ),
    };
    ServiceError::invalid("not_confirmed", message).with_hint(hint)
}

/// Shows the call and asks the approver to type the tool's name. Any other input is a no.
fn confirm(
    session: &ApprovalSession,
    details: &ApprovalDetails,
    call: &Authorize,
    edited: Option<&Map<String, Value>>,
) -> anyhow::Result<bool> {
    let tool = call.tool_name.as_str();
    eprint_line(show::at_prompt(details).trim_end())?;
    if let Some(arguments) = edited {
        let arguments = rendered::json(&Value::Object(arguments.clone()));
        eprint_line(&format!("new arguments:\n{arguments}"))?;
    }
    let question = format!("type `{tool}` to approve this call:");
    let Some(typed) = read_confirmation(session, &details.approval, &question)? else {
        return Ok(false);
    };
    let typed = typed.trim();
    if typed == tool {
        return Ok(true);
    }
    eprint_line(&match typed {
        "" => "nothing was typed".to_owned(),
        other => format!("`{}` is not `{tool}`", escape_exact(other)),
    })?;
    Ok(false)
}

/// Prints the decision and what happens next.
fn print_decision(
    session: &ApprovalSession,
    approver: &Identity,
    taken: &DecisionTaken,
    output: &Output,
) -> anyhow::Result<CommandOutcome> {
    let (question, standing) = (&taken.approval, taken.standing);
    let onward = session
        .service
        .outermost_run_state(&session.identity, question.run())
        .ok();
    let is_settled = question.status() != ApprovalStatus::Pending;
    let onward = onward.filter(|_| is_settled);
    if output.json {
        let decision = question
            .decisions()
            .last()
            .map(|decided| decided.decision.as_str());
        let object = json!({
            "id": question.call(),
            "status": question.status(),
            "decision": decision,
            "by": approver.principal(),
            "digest": question.digest(),
            "still_needed": question.still_needed(),
            "standing": standing.map(StandingId::number),
            "outermost_run": onward.as_ref().map(|onward| &onward.run),
            "run_state": onward.as_ref().map(|onward| onward.state.as_str()),
            "next": match &onward {
                Some(onward) => next_command(onward),
                None => session.commands(question).into_iter().next(),
            },
        });
        print_json(&format!("{object}\n"))?;
        return Ok(CommandOutcome::Done);
    }
    print_line(&describe_decision(question))?;
    if let Some(id) = standing {
        print_line(&format!(
            "this run does not ask about it again (standing approval {id}); calls that cannot be undone still ask"
        ))?;
    }
    if let Some(onward) = onward {
        if !output.resumes {
            print_line(&next_step_message(&onward))?;
        }
    } else if !is_settled {
        let second = session
            .commands(question)
            .into_iter()
            .next()
            .unwrap_or_default();
        print_line(&format!(
            "waiting for a second, different approver:\n  {second}"
        ))?;
    }
    Ok(CommandOutcome::Done)
}

fn describe_decision(question: &Approval) -> String {
    let what = match question.decisions().last().map(|decided| &decided.decision) {
        Some(PersonDecision::Approve) => "approved",
        Some(PersonDecision::ApproveEdited { .. }) => "approved with edited arguments",
        Some(PersonDecision::Reject { .. }) => "rejected",
        Some(PersonDecision::Respond { .. }) => "result supplied for",
        Some(PersonDecision::Answer { .. }) => "answered",
        Some(PersonDecision::Done { .. }) => "done",
        None => question.status().as_str(),
    };
    let subject = subject_line(question, 120);
    format!("{what}: {subject} ({})", question.call())
}
