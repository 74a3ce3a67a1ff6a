//! Asking in place: a run that waits for a person puts its question to whoever sits at the terminal.
//! They see what `approvals show` shows, and what they decide is taken as from anywhere else.

use std::io::{self, IsTerminal as _};
use std::sync::{Arc, Once};

use inquire::{InquireError, Select};
use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};
use windlass_core::approval::{Approval, Ask, Authorize, FormRequest, PersonDecision, Question};
use windlass_runtime::{Asked, Asker, now};
use windlass_service::{
    Always, ApprovalDetails, DecisionRequest, ErrorKind, Identity, Service, ServiceError,
};
use windlass_spec::text::{TextUse, escape_json};
use windlass_spec::{NonEmptyText, RiskLevel, SecurityLevel, Type};

use super::decide::edited;
use super::{Desk, show};
use crate::live::Live;
use crate::moments::left;
use crate::prompt::{self, PromptError};
use crate::rendered::{on_one_line, seen};
use crate::signals;
use crate::terminal::{complain, is_read_by_person};

/// Puts questions to the person at the terminal; `None` if there is none.
pub(crate) fn asker(service: &Service, identity: &Identity, live: &Arc<Live>) -> Option<Asker> {
    let is_somebody_here = io::stdin().is_terminal() && is_read_by_person();
    if !is_somebody_here {
        return None;
    }
    let (service, identity, live) = (service.clone(), identity.clone(), Arc::clone(live));
    Some(Arc::new(move |question: Approval| {
        let desk = Desk {
            service: service.clone(),
            identity: identity.clone(),
        };
        let live = Arc::clone(&live);
        Box::pin(async move {
            end_with_terminal(&desk.service);
            // A person may take their time; the runtime's threads have other things to do.
            let asked = tokio::task::spawn_blocking(move || {
                live.suspended(|| ask(&desk, &question).unwrap_or_else(|error| not_asked(&error)))
            });
            asked.await.unwrap_or(Asked::NotDecided)
        })
    }))
}

/// Ends the program when its terminal is gone, also where it was told to outlive it: there is nobody
/// left to answer, and what reads from a terminal that is gone never ends. The run is as after a crash.
fn end_with_terminal(service: &Service) {
    static LISTENS: Once = Once::new();
    LISTENS.call_once(|| {
        if let Ok(mut hangups) = signal(SignalKind::hangup()) {
            let service = service.clone();
            tokio::spawn(async move {
                if hangups.recv().await.is_some() {
                    signals::end(&service, SignalKind::hangup()).await;
                }
            });
        }
    });
}

/// Says why nobody could be asked here. The question stays open.
fn not_asked(error: &anyhow::Error) -> Asked {
    let _ = complain(&format!("error: {error:#}"));
    Asked::NotDecided
}

/// What a person chose.
enum Choice {
    Decide(PersonDecision),
    /// The same, and from now on without being asked.
    Always(PersonDecision),
    Later,
}

fn ask(desk: &Desk, question: &Approval) -> anyhow::Result<Asked> {
    let id = question.call().to_string();
    let details = ApprovalDetails {
        run: desk.service.show_approval(&desk.identity, &id)?.run,
        approval: question.clone(),
    };
    complain("")?;
    if let Some(message) = &question.request().message {
        complain(&seen(message.as_str()))?;
    }
    complain(show::body(&details).trim_end())?;
    let time_left = left(question.request().expires_at, now());
    complain(&format!(
        "  {:<18}{}",
        "time left",
        time_left.unwrap_or_else(|| "none".to_owned())
    ))?;
    loop {
        let choice = match question.question() {
            Question::Authorize(call) => about_call(call, &details),
            Question::Ask(Ask {
                form: Some(form), ..
            }) => about_form(form),
            Question::Ask(ask) => about_question(ask),
            Question::Intervene(_) => about_work(),
        };
        let choice = match choice {
            Ok(choice) => choice,
            // Escape and Ctrl-C leave the question as it is.
            Err(Stopped::Left) => Choice::Later,
            Err(Stopped::Wrong(refusal)) => {
                complain(&format!("error: {refusal}"))?;
                continue;
            }
            Err(Stopped::Terminal(error)) => return Err(error.into()),
        };
        let (decision, is_always) = match choice {
            Choice::Decide(decision) => (decision, false),
            Choice::Always(decision) => (decision, true),
            Choice::Later => return Ok(Asked::NotDecided),
        };
        let request = DecisionRequest {
            decision,
            digest: Some(question.digest()),
            is_unseen: false,
            always: is_always.then_some(Always::Call),
        };
        match desk
            .service
            .decide(&desk.identity, question.call(), request)
        {
            Ok(taken) if taken.approval.still_needed() > 0 => {
                complain("a second person has to approve it, from elsewhere")?;
                return Ok(Asked::NotDecided);
            }
            Ok(_) => return Ok(Asked::Decided),
            Err(error) => {
                complain(&format!("error: {error}"))?;
                // Another person decided, or it is too late: the run learns of it by itself.
                return Ok(match error.kind() {
                    ErrorKind::Unavailable | ErrorKind::Failed => Asked::NotDecided,
                    _ => Asked::Decided,
                });
            }
        }
    }
}

/// Why there is no choice.
enum Stopped {
    /// The person went away from it.
    Left,
    /// What they typed cannot be taken.
    Wrong(ServiceError),
    Terminal(anyhow::Error),
}

impl From<InquireError> for Stopped {
    fn from(error: InquireError) -> Self {
        match error {
            InquireError::OperationCanceled | InquireError::OperationInterrupted => Self::Left,
            other => Self::Terminal(other.into()),
        }
    }
}

impl From<PromptError> for Stopped {
    fn from(error: PromptError) -> Self {
        match error {
            PromptError::Left => Self::Left,
            PromptError::Terminal(error) => Self::Terminal(error.into()),
        }
    }
}

impl From<ServiceError> for Stopped {
    fn from(refusal: ServiceError) -> Self {
        Self::Wrong(refusal)
    }
}

const FILL_IN: &str = "fill it in";
const DONE_THERE: &str = "it is done there";
const APPROVE: &str = "approve";
const ALWAYS: &str = "approve, also the same call later in this run";
const EDIT: &str = "approve with other arguments";
const REJECT: &str = "reject";
const RESPOND: &str = "answer in the tool's stead";
const LATER: &str = "decide later";

fn about_call(call: &Authorize, details: &ApprovalDetails) -> Result<Choice, Stopped> {
    let chosen = match call.security_level {
        SecurityLevel::Low | SecurityLevel::Medium => {
            let mut choices = vec![APPROVE, REJECT, EDIT, RESPOND, LATER];
            if call.risk != RiskLevel::Irreversible {
                choices.insert(1, ALWAYS);
            }
            Select::new("May it run?", choices)
                .without_filtering()
                .prompt()?
                .to_owned()
        }
        // Nothing is chosen beforehand: a yes is typed.
        SecurityLevel::High | SecurityLevel::Critical => typed(call)?,
    };
    Ok(match chosen.as_str() {
        APPROVE => Choice::Decide(PersonDecision::Approve),
        ALWAYS => Choice::Always(PersonDecision::Approve),
        EDIT => {
            let arguments = new_arguments(call, details)?;
            Choice::Decide(PersonDecision::ApproveEdited { arguments })
        }
        RESPOND => {
            let typed =
                prompt::read_text("What does the model get instead of the tool's result?", "")?;
            let value = serde_json::from_str(&typed).unwrap_or(Value::String(typed));
            Choice::Decide(PersonDecision::Respond { value })
        }
        REJECT => Choice::Decide(reject()?),
        _ => Choice::Later,
    })
}

/// What a server wants filled in, field by field. Nothing is filled in beforehand.
fn about_form(form: &FormRequest) -> Result<Choice, Stopped> {
    let yes = match form.url {
        Some(_) => DONE_THERE,
        None => FILL_IN,
    };
    match Select::new("Will you answer?", vec![yes, REJECT, LATER])
        .without_filtering()
        .prompt()?
    {
        REJECT => return Ok(Choice::Decide(reject()?)),
        LATER => return Ok(Choice::Later),
        _ => {}
    }
    let mut filled = Map::new();
    for field in form.fields() {
        let prompt = format!("{}:", on_one_line(&field.name));
        let typed = match &field.ty {
            Type::Enum(options) => {
                let shown = options.iter().map(|option| on_one_line(option)).collect();
                let chosen = Select::new(&prompt, shown)
                    .without_filtering()
                    .raw_prompt_skippable()?;
                chosen.and_then(|chosen| options.get(chosen.index).cloned())
            }
            Type::Boolean => Select::new(&prompt, vec!["true".to_owned(), "false".to_owned()])
                .without_filtering()
                .prompt_skippable()?,
            _ => prompt::read_text(&prompt, "").map(Some)?,
        };
        let typed = typed.filter(|typed| !typed.is_empty());
        if let Some(typed) = typed {
            let value = match &field.ty {
                Type::Text | Type::Enum(_) => Value::String(typed),
                _ => serde_json::from_str(&typed).unwrap_or(Value::String(typed)),
            };
            filled.insert(field.name, value);
        }
    }
    let value = Value::Object(filled);
    let misfits: Vec<String> = form
        .misfits(&value)
        .iter()
        .map(ToString::to_string)
        .collect();
    match misfits.is_empty() {
        true => Ok(Choice::Decide(PersonDecision::Respond { value })),
        false => Err(ServiceError::invalid("does_not_fit", misfits.join("; ")).into()),
    }
}

/// A decision about a grave call, typed in full.
fn typed(call: &Authorize) -> Result<String, Stopped> {
    let tool = call.tool_name.as_str();
    let prompt = format!("Type `{tool}` to approve, or reject, edit, respond, later:");
    let typed = prompt::read_text(&prompt, "")?;
    let chosen = match typed.trim() {
        word if word == tool => APPROVE,
        "reject" => REJECT,
        "edit" => EDIT,
        "respond" => RESPOND,
        "later" => LATER,
        "" => return Err(ServiceError::invalid("empty_text", "nothing was typed").into()),
        other => {
            let message = format!("`{}` is none of these", seen(other));
            return Err(ServiceError::invalid("not_confirmed", message).into());
        }
    };
    Ok(chosen.to_owned())
}

fn new_arguments(
    call: &Authorize,
    details: &ApprovalDetails,
) -> Result<Map<String, Value>, Stopped> {
    let current = details.approval.arguments().unwrap_or(&call.tool_args);
    let current = json!(current).to_string();
    // The same value, with nothing in it that the terminal would not show.
    let current = escape_json(&current, TextUse::Exact);
    let typed = prompt::read_text("The arguments:", &current)?;
    let arguments = edited(&typed, call, details)?;
    let level = details.level_with(Some(&arguments));
    if let Some(level) = level.filter(|level| *level > call.security_level) {
        let message = format!("with these arguments the call needs the security level {level}");
        return Err(ServiceError::invalid("not_confirmed", message)
            .with_hint("reject it, and have the agent ask for what you want")
            .into());
    }
    Ok(arguments)
}

fn reject() -> Result<PersonDecision, Stopped> {
    let typed = prompt::read_text("Why? (the model is told; may be left empty)", "")?;
    let message = NonEmptyText::new(typed.trim()).ok();
    Ok(PersonDecision::Reject { message })
}

const OWN_WORDS: &str = "something else";
const NO_ANSWER: &str = "give no answer";

fn about_question(ask: &Ask) -> Result<Choice, Stopped> {
    let mut own_words = ask.options.is_empty();
    if !own_words {
        let options = ask.options.iter().map(|option| seen(option.as_str()));
        let mut choices: Vec<String> = options.collect();
        let count = choices.len();
        if ask.free_text {
            choices.push(OWN_WORDS.to_owned());
        }
        choices.extend([NO_ANSWER.to_owned(), LATER.to_owned()]);
        let chosen = Select::new("Your answer?", choices)
            .without_filtering()
            .raw_prompt()?;
        if chosen.index < count {
            let text = ask.options[chosen.index].clone();
            return Ok(Choice::Decide(PersonDecision::Answer { text }));
        }
        match chosen.value.as_str() {
            NO_ANSWER => return Ok(Choice::Decide(PersonDecision::Reject { message: None })),
            LATER => return Ok(Choice::Later),
            _ => own_words = true,
        }
    }
    let typed = match own_words {
        true => prompt::read_text("Your answer? (empty to decide later)", "")?,
        false => String::new(),
    };
    Ok(match NonEmptyText::new(typed.trim()) {
        Ok(text) => Choice::Decide(PersonDecision::Answer { text }),
        Err(_) => Choice::Later,
    })
}

fn about_work() -> Result<Choice, Stopped> {
    const DONE: &str = "it is done";
    const NOT_DONE: &str = "it cannot be done";
    let chosen = Select::new("Please do it.", vec![DONE, NOT_DONE, LATER])
        .without_filtering()
        .prompt()?;
    Ok(match chosen {
        DONE => Choice::Decide(PersonDecision::Done { note: None }),
        NOT_DONE => Choice::Decide(reject()?),
        _ => Choice::Later,
    })
}
