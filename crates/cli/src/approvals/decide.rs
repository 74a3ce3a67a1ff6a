//! `windlass approvals approve`, `reject` and `respond`: takes a person's decision, after making sure
//! that it is about what they think it is, and says what happens next.

use std::io::{self, IsTerminal as _, Write as _};

use serde_json::{Map, Value, json};
use windlass_core::approval::{
    Approval, ApprovalStatus, Ask, Authorize, Digest, PersonDecision, Question, Reach, Scope,
    Standing, least_security_level,
};
use windlass_core::risk::ToolRisk;
use windlass_core::run::Run;
use windlass_runtime::now;
use windlass_spec::{NonEmptyText, RiskLevel, SecurityLevel};
use windlass_store::{Error, StandingId};

use super::show::{self, commands};
use super::{Desk, is_before_it_was_asked, specification, subject};
use crate::Outcome;
use crate::arguments::{Always, Approve, Reject, Respond};
use crate::outermost::Onward;
use crate::refusal::{Refusal, refused};
use crate::rendered::{self, seen};
use crate::terminal::{complain, draw, put, say};

pub(super) fn approve(desk: &Desk, command: &Approve) -> anyhow::Result<Outcome> {
    let question = desk.find(&command.question.id)?;
    check_open(&question)?;
    check_clock(&question)?;
    let Some(call) = question.question().authorize() else {
        let answer = commands(&question).into_iter().next().unwrap_or_default();
        let message = format!(
            "`{}` asks for no call that could be approved",
            question.call()
        );
        return Err(Refusal::usage("does_not_fit", message)
            .hint(format!("answer it: {answer}"))
            .into());
    };
    let mut shown = shown_digest(command, &question)?;
    let run = desk.run_of(&question);
    let edited = match &command.edit {
        Some(text) => Some(edited(text, call, run.as_ref())?),
        None => None,
    };
    let wanted = Wanted::new(&question, call, run.as_ref(), edited.as_ref());
    if let Some(always) = command.always {
        wanted.check_always(always)?;
    }
    let at_a_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    let is_certain = command.yes || (shown.is_some() && !at_a_terminal);
    if wanted.level >= SecurityLevel::High && !is_certain {
        if !at_a_terminal {
            return Err(needs_certainty(&question, wanted.level).into());
        }
        if !confirmed(&question, run.as_ref(), &wanted)? {
            complain("nothing was decided")?;
            return Ok(Outcome::Failed);
        }
        // Only what a person looked at counts as seen: another may change it in the meantime.
        shown = Some(question.digest());
    }
    let standing = command
        .always
        .map(|always| wanted.standing(desk, always))
        .transpose()?;
    let decision = match edited {
        Some(arguments) => PersonDecision::ApproveEdited { arguments },
        None => PersonDecision::Approve,
    };
    let decided = taken(desk, &question, shown.as_ref(), decision)?;
    let standing = match &standing {
        Some(standing) => Some(desk.store.grant_standing(standing).map_err(refused)?),
        None => None,
    };
    tell(desk, &decided, standing, command.question.json)
}

pub(super) fn reject(desk: &Desk, command: &Reject) -> anyhow::Result<Outcome> {
    let question = desk.find(&command.question.id)?;
    check_open(&question)?;
    let message = command.message.as_deref().map(text).transpose()?;
    let decision = PersonDecision::Reject { message };
    let decided = taken(desk, &question, None, decision)?;
    tell(desk, &decided, None, command.question.json)
}

pub(super) fn respond(desk: &Desk, command: &Respond) -> anyhow::Result<Outcome> {
    let question = desk.find(&command.question.id)?;
    check_open(&question)?;
    check_clock(&question)?;
    let decision = response(&question, command.value.as_deref())?;
    // What is said in the tool's stead is about this call and no other.
    let digest = question.digest();
    let decided = taken(desk, &question, Some(&digest), decision)?;
    tell(desk, &decided, None, command.question.json)
}

fn response(question: &Approval, value: Option<&str>) -> Result<PersonDecision, Refusal> {
    let needed = |what: &str| {
        let message = format!("{what} is missing");
        let hint = commands(question)
            .into_iter()
            .find(|command| command.contains(" respond "));
        Refusal::usage("value_missing", message).hint(hint.unwrap_or_default())
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
                Refusal::usage("not_json", message)
            })?;
            let misfits: Vec<String> = form
                .misfits(&value)
                .iter()
                .map(ToString::to_string)
                .collect();
            match misfits.is_empty() {
                true => Ok(PersonDecision::Respond { value }),
                false => Err(Refusal::usage("does_not_fit", misfits.join("; "))),
            }
        }
        Question::Ask(ask) => {
            let text = text(value.ok_or_else(|| needed("the answer"))?)?;
            if !ask.free_text && !ask.options.contains(&text) {
                let options: Vec<&str> = ask.options.iter().map(NonEmptyText::as_str).collect();
                let message = format!("`{}` is none of the answers to choose from", text.as_str());
                let hint = format!("answer one of: {}", seen(&options.join(", ")));
                return Err(Refusal::usage("does_not_fit", message).hint(hint));
            }
            Ok(PersonDecision::Answer { text })
        }
        Question::Intervene(_) => {
            let note = value.map(text).transpose()?;
            Ok(PersonDecision::Done { note })
        }
    }
}

fn text(typed: &str) -> Result<NonEmptyText, Refusal> {
    NonEmptyText::new(typed).map_err(|error| Refusal::usage("empty_text", error.to_string()))
}

/// Said before a person is asked to confirm. Whoever comes in between is found by the store.
fn check_open(question: &Approval) -> anyhow::Result<()> {
    let call = question.call().clone();
    match question.status() {
        ApprovalStatus::Pending => Ok(()),
        ApprovalStatus::Expired => {
            let at = question.request().expires_at;
            Err(refused(Error::Expired { call, at }))
        }
        status => Err(refused(Error::AlreadyDecided { call, status })),
    }
}

/// A clock that was set back makes every time limit longer than it should be. A no is safe at any time;
/// anything else waits until the clock is right.
fn check_clock(question: &Approval) -> Result<(), Refusal> {
    let now = now();
    if !is_before_it_was_asked(question, now) {
        return Ok(());
    }
    let message = format!(
        "the clock went backwards: it is {now} here, but the question was asked at {}",
        question.request().asked_at
    );
    Err(Refusal::conflict("clock", message)
        .hint("set the clock right, then decide; a `reject` is taken at any time"))
}

/// What the person says they were shown. It must be what is asked now.
fn shown_digest(command: &Approve, question: &Approval) -> anyhow::Result<Option<Digest>> {
    let Some(typed) = &command.digest else {
        return Ok(None);
    };
    let found: Digest = typed
        .parse()
        .map_err(|error| Refusal::usage("not_a_digest", format!("{error}")))?;
    let asked = question.digest();
    if found != asked {
        let call = question.call().clone();
        return Err(refused(Error::DigestDiffers { call, asked, found }));
    }
    Ok(Some(found))
}

/// The arguments that were typed, if the tool takes them.
pub(super) fn edited(
    text: &str,
    call: &Authorize,
    run: Option<&Run>,
) -> Result<Map<String, Value>, Refusal> {
    let tool = &call.tool_name;
    let arguments: Value = serde_json::from_str(text).map_err(|error| {
        Refusal::usage("not_json", format!("the arguments are not JSON: {error}")).hint(format!(
            "write all of them, as one object: {}",
            json!(call.tool_args)
        ))
    })?;
    let specification = run.and_then(|run| run.specification(tool.as_str())).ok_or_else(|| {
        let message = format!("the journal does not say what `{tool}` takes, so nothing else can be approved for it");
        Refusal::conflict("no_schema", message)
    })?;
    let misfits = specification.signature().misfits(&arguments);
    match arguments {
        Value::Object(arguments) if misfits.is_empty() => Ok(arguments),
        _ => {
            let misfits: Vec<String> = misfits.iter().map(|misfit| format!("  {misfit}")).collect();
            let message = format!("the arguments do not fit `{tool}`:\n{}", misfits.join("\n"));
            let hint = format!("it takes {}", specification.signature());
            Err(Refusal::usage("arguments_do_not_fit", message).hint(hint))
        }
    }
}

/// What would run if the person's yes counted.
pub(super) struct Wanted<'a> {
    question: &'a Approval,
    call: &'a Authorize,
    arguments: &'a Map<String, Value>,
    is_edited: bool,
    risk: RiskLevel,
    level: SecurityLevel,
}

impl<'a> Wanted<'a> {
    /// How much care it needs.
    pub(super) fn level(&self) -> SecurityLevel {
        self.level
    }

    pub(super) fn new(
        question: &'a Approval,
        call: &'a Authorize,
        run: Option<&Run>,
        edited: Option<&'a Map<String, Value>>,
    ) -> Self {
        let arguments = edited
            .or_else(|| question.arguments())
            .unwrap_or(&call.tool_args);
        // Other arguments may be graver. They are never taken for harmless.
        let tool = run.and_then(|run| specification(run, question));
        let found = tool.filter(|_| arguments != &call.tool_args).map(|tool| {
            ToolRisk::of_specification(tool)
                .with_arguments(arguments)
                .level
        });
        let risk = found.map_or(call.risk, |found| found.max(call.risk));
        Self {
            question,
            call,
            arguments,
            is_edited: edited.is_some(),
            risk,
            level: call.security_level.max(least_security_level(risk)),
        }
    }

    /// One leave for many calls is only for what can be undone, and only one person's to give.
    fn check_always(&self, always: Always) -> Result<(), Refusal> {
        let option = match always {
            Always::Call => "--always",
            Always::Tool => "--always=tool",
        };
        let refusal = |why: &str| {
            let message = format!("`{option}` is not possible here: {why}");
            Refusal::usage("never_always", message)
                .hint(format!("approve this one call, without `{option}`"))
        };
        if self.risk == RiskLevel::Irreversible {
            let why = format!(
                "this call of `{}` cannot be undone, and such calls are asked about every time",
                self.call.tool_name
            );
            return Err(refusal(&why));
        }
        if self.level == SecurityLevel::Critical {
            return Err(refusal("two people decide about every CRITICAL call"));
        }
        Ok(())
    }

    fn standing(&self, desk: &Desk, always: Always) -> anyhow::Result<Standing> {
        let tool = self.call.tool_name.clone();
        let scope = match always {
            Always::Tool => Scope::Tool,
            Always::Call => Scope::ToolWithArguments {
                digest: Digest::of_call(&tool, self.arguments),
            },
        };
        let reach = Reach::Run {
            run: self.question.run().clone(),
        };
        let principal = self.question.request().principal.clone();
        let by = desk.person.principal.clone();
        Ok(Standing::new(principal, tool, scope, reach, by, now())?)
    }
}

fn needs_certainty(question: &Approval, level: SecurityLevel) -> Refusal {
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
    Refusal::usage("not_confirmed", message).hint(hint)
}

/// Shows what would run and has the person type the tool's name. Nothing else is a yes.
fn confirmed(question: &Approval, run: Option<&Run>, wanted: &Wanted<'_>) -> anyhow::Result<bool> {
    let tool = wanted.call.tool_name.as_str();
    complain(show::body(question, run).trim_end())?;
    if wanted.is_edited {
        let arguments = rendered::json(&Value::Object(wanted.arguments.clone()));
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

/// Has the store take the decision.
fn taken(
    desk: &Desk,
    question: &Approval,
    digest: Option<&Digest>,
    decision: PersonDecision,
) -> anyhow::Result<Approval> {
    let decided = desk
        .store
        .decide(question.call(), digest, &desk.person, decision, now());
    decided.map_err(|error| match error {
        Error::SecretInStructure => Refusal::usage(
            "secret",
            "the arguments hold the value of an environment variable that must not be written down",
        )
        .hint(
            "variables that end in _KEY, _TOKEN, _SECRET or _PASSWORD are kept out of the journal",
        )
        .into(),
        other => refused(other),
    })
}

/// Says what was decided and what happens next.
fn tell(
    desk: &Desk,
    question: &Approval,
    standing: Option<StandingId>,
    as_json: bool,
) -> anyhow::Result<Outcome> {
    let onward = Onward::of(&desk.store, question.run()).ok();
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
            "by": desk.person.principal,
            "digest": question.digest(),
            "still_needed": question.still_needed(),
            "standing": standing.map(StandingId::number),
            "outermost_run": onward.as_ref().map(|onward| &onward.run),
            "run_state": onward.as_ref().map(|onward| onward.state.as_str()),
            "next": match &onward {
                Some(onward) => onward.next(),
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
        say(&onward.told())?;
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
