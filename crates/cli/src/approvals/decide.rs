//! `windlass approvals approve`, `reject` and `respond`: takes a person's decision, after making sure
//! that it is about what they think it is, and says what happens next.

use std::io::{self, IsTerminal as _, Write as _};

use serde_json::{Map, Value, json};
use windlass_core::approval::{
    Approval, ApprovalStatus, Ask, Authorize, Digest, PersonDecision, Question,
};
use windlass_service::{
    Always, ApprovalDetails, DecisionRequest, DecisionTaken, ServiceError, check_open,
};
use windlass_spec::{NonEmptyText, SecurityLevel};
use windlass_store::{Error, StandingId};

use super::show::{self, commands};
use super::{Desk, subject};
use crate::Outcome;
use crate::arguments::{Approve, Reject, Respond};
use crate::ending::{next_command, onward_message};
use crate::rendered::{self, seen};
use crate::terminal::{complain, draw, is_read_by_person, put, say};

pub(super) fn approve(desk: &Desk, command: &Approve) -> anyhow::Result<Outcome> {
    let details = desk
        .service
        .show_approval(&desk.identity, &command.question.id)?;
    let question = &details.approval;
    check_open(question)?;
    desk.service.check_clock(question)?;
    let Some(call) = question.question().authorize() else {
        let answer = commands(question).into_iter().next().unwrap_or_default();
        let message = format!(
            "`{}` asks for no call that could be approved",
            question.call()
        );
        return Err(ServiceError::invalid("does_not_fit", message)
            .with_hint(format!("answer it: {answer}"))
            .into());
    };
    let mut shown = shown_digest(command, question)?;
    let edited = match &command.edit {
        Some(text) => Some(edited(text, call, &details)?),
        None => None,
    };
    let always = command.always.map(Always::from);
    if always.is_some() {
        details.check_standing(edited.as_ref())?;
    }
    let level = details.level_with(edited.as_ref());
    let level = level.unwrap_or(call.security_level);
    let at_a_terminal = io::stdin().is_terminal() && is_read_by_person();
    let is_certain = command.yes || (shown.is_some() && !at_a_terminal);
    if level >= SecurityLevel::High && !is_certain {
        if !at_a_terminal {
            return Err(needs_certainty(question, level).into());
        }
        if !confirmed(&details, call, edited.as_ref())? {
            complain("nothing was decided")?;
            return Ok(Outcome::Failed);
        }
        // Only what a person looked at counts as seen: another may change it in the meantime.
        shown = Some(question.digest());
    }
    let decision = match edited {
        Some(arguments) => PersonDecision::ApproveEdited { arguments },
        None => PersonDecision::Approve,
    };
    let request = DecisionRequest {
        decision,
        digest: shown,
        is_unseen: command.yes,
        always,
    };
    take(desk, question, request, command.question.json)
}

pub(super) fn reject(desk: &Desk, command: &Reject) -> anyhow::Result<Outcome> {
    let details = desk
        .service
        .show_approval(&desk.identity, &command.question.id)?;
    check_open(&details.approval)?;
    let message = command.message.as_deref().map(text).transpose()?;
    let decision = PersonDecision::Reject { message };
    take(
        desk,
        &details.approval,
        decision.into(),
        command.question.json,
    )
}

pub(super) fn respond(desk: &Desk, command: &Respond) -> anyhow::Result<Outcome> {
    let details = desk
        .service
        .show_approval(&desk.identity, &command.question.id)?;
    let question = &details.approval;
    check_open(question)?;
    desk.service.check_clock(question)?;
    let request = DecisionRequest {
        // The result that is given instead of the tool's is about this call and no other.
        digest: Some(question.digest()),
        ..response(question, command.value.as_deref())?.into()
    };
    take(desk, question, request, command.question.json)
}

/// Has the service take the decision, and prints it.
fn take(
    desk: &Desk,
    question: &Approval,
    request: DecisionRequest,
    as_json: bool,
) -> anyhow::Result<Outcome> {
    let taken = desk
        .service
        .decide(&desk.identity, question.call(), request)?;
    tell(desk, &taken, as_json)
}

fn response(question: &Approval, value: Option<&str>) -> Result<PersonDecision, ServiceError> {
    let needed = |what: &str| {
        let message = format!("{what} is missing");
        let hint = commands(question)
            .into_iter()
            .find(|command| command.contains(" respond "));
        ServiceError::invalid("value_missing", message).with_hint(hint.unwrap_or_default())
    };
    match question.question() {
        Question::Authorize(_) => {
            let typed =
                value.ok_or_else(|| needed("what the model gets instead of the tool's result"))?;
            let value =
                serde_json::from_str(typed).unwrap_or_else(|_| Value::String(typed.to_owned()));
            Ok(PersonDecision::Respond { value })
        }
        Question::Ask(Ask {
            form: Some(form), ..
        }) => {
            let typed = value.ok_or_else(|| needed("what is to be filled in"))?;
            let value: Value = serde_json::from_str(typed).map_err(|error| {
                let message = format!("what is filled in is not JSON: {error}");
                ServiceError::invalid("not_json", message)
            })?;
            let misfits: Vec<String> = form
                .misfits(&value)
                .iter()
                .map(ToString::to_string)
                .collect();
            match misfits.is_empty() {
                true => Ok(PersonDecision::Respond { value }),
                false => Err(ServiceError::invalid("does_not_fit", misfits.join("; "))),
            }
        }
        Question::Ask(ask) => {
            let text = text(value.ok_or_else(|| needed("the answer"))?)?;
            if !ask.free_text && !ask.options.contains(&text) {
                let options: Vec<&str> = ask.options.iter().map(NonEmptyText::as_str).collect();
                let message = format!("`{}` is none of the answers to choose from", text.as_str());
                let hint = format!("answer one of: {}", seen(&options.join(", ")));
                return Err(ServiceError::invalid("does_not_fit", message).with_hint(hint));
            }
            Ok(PersonDecision::Answer { text })
        }
        Question::Intervene(_) => {
            let note = value.map(text).transpose()?;
            Ok(PersonDecision::Done { note })
        }
    }
}

fn text(typed: &str) -> Result<NonEmptyText, ServiceError> {
    NonEmptyText::new(typed).map_err(|error| ServiceError::invalid("empty_text", error.to_string()))
}

/// What the person says they were shown. It must be what is asked now.
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
        return Err(ServiceError::from(Error::DigestDiffers { call, asked, found }).into());
    }
    Ok(Some(found))
}

/// The arguments that were typed, if the tool takes them.
pub(super) fn edited(
    text: &str,
    call: &Authorize,
    details: &ApprovalDetails,
) -> Result<Map<String, Value>, ServiceError> {
    let hint = || {
        format!(
            "write all of them, as one object: {}",
            json!(call.tool_args)
        )
    };
    let arguments: Value = serde_json::from_str(text).map_err(|error| {
        let message = format!("the arguments are not JSON: {error}");
        ServiceError::invalid("not_json", message).with_hint(hint())
    })?;
    details.check_arguments(&arguments)?;
    match arguments {
        Value::Object(arguments) => Ok(arguments),
        _ => {
            Err(ServiceError::invalid("not_json", "the arguments are no object").with_hint(hint()))
        }
    }
}

fn needs_certainty(question: &Approval, level: SecurityLevel) -> ServiceError {
    let message = format!(
        "a call of the security level {level} is confirmed by typing at a terminal, and this is none; \
         nothing was decided"
    );
    // The digest itself is not told here: it is to say that somebody looked.
    let hint = format!(
        "look at it with `windlass approvals show {}` and give the `--digest` that it prints, or \
         approve it without looking with `--yes`",
        question.call()
    );
    ServiceError::invalid("not_confirmed", message).with_hint(hint)
}

/// Shows what would run and has the person type the tool's name. Nothing else is a yes.
fn confirmed(
    details: &ApprovalDetails,
    call: &Authorize,
    edited: Option<&Map<String, Value>>,
) -> anyhow::Result<bool> {
    let tool = call.tool_name.as_str();
    complain(show::body(details).trim_end())?;
    if let Some(arguments) = edited {
        let arguments = rendered::json(&Value::Object(arguments.clone()));
        complain(&format!("you change the arguments to\n{arguments}"))?;
    }
    draw(&format!("type `{tool}` to approve this call: "))?;
    io::stderr().flush()?;
    let mut typed = String::new();
    io::stdin().read_line(&mut typed)?;
    let typed = typed.trim();
    if typed == tool {
        return Ok(true);
    }
    complain(&match typed {
        "" => "nothing was typed".to_owned(),
        other => format!("`{}` is not `{tool}`", seen(other)),
    })?;
    Ok(false)
}

/// Says what was decided and what happens next.
fn tell(desk: &Desk, taken: &DecisionTaken, as_json: bool) -> anyhow::Result<Outcome> {
    let (question, standing) = (&taken.approval, taken.standing);
    let onward = desk.service.onward(&desk.identity, question.run()).ok();
    let is_settled = question.status() != ApprovalStatus::Pending;
    let onward = onward.filter(|_| is_settled);
    if as_json {
        let decision = question
            .decisions()
            .last()
            .map(|decided| decided.decision.as_str());
        let told = json!({
            "id": question.call(),
            "status": question.status(),
            "decision": decision,
            "by": desk.identity.principal(),
            "digest": question.digest(),
            "still_needed": question.still_needed(),
            "standing": standing.map(StandingId::number),
            "outermost_run": onward.as_ref().map(|onward| &onward.run),
            "run_state": onward.as_ref().map(|onward| onward.state.as_str()),
            "next": match &onward {
                Some(onward) => next_command(onward),
                None => commands(question).into_iter().next(),
            },
        });
        put(&format!("{told}\n"))?;
        return Ok(Outcome::Done);
    }
    say(&what_was_decided(question))?;
    if let Some(id) = standing {
        say(&format!(
            "it will not be asked about again in this run (standing approval {id}); calls that cannot be undone will"
        ))?;
    }
    if let Some(onward) = onward {
        say(&onward_message(&onward))?;
    } else if !is_settled {
        let second = commands(question).into_iter().next().unwrap_or_default();
        say(&format!(
            "it does not run yet: a second, different person must approve, with\n  {second}"
        ))?;
    }
    Ok(Outcome::Done)
}

fn what_was_decided(question: &Approval) -> String {
    let what = match question.decisions().last().map(|decided| &decided.decision) {
        Some(PersonDecision::Approve) => "approved",
        Some(PersonDecision::ApproveEdited { .. }) => "approved with other arguments",
        Some(PersonDecision::Reject { .. }) => "rejected",
        Some(PersonDecision::Respond { .. }) => "responded in the stead of",
        Some(PersonDecision::Answer { .. }) => "answered",
        Some(PersonDecision::Done { .. }) => "done",
        None => question.status().as_str(),
    };
    let subject = seen(subject(question.question()));
    format!("{what}: {subject} ({})", question.call())
}
