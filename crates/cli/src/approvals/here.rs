//! Asking in place: a run that waits for a person puts its question to whoever sits at the terminal.
//! They see what `approvals show` shows, and what they decide is taken as from anywhere else.

use std::io::{self, IsTerminal as _};
use std::sync::{Arc, Once};

use inquire::{InquireError, Select, Text};
use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};
use windlass_core::approval::{
    Approval, Ask, Authorize, Digest, FormRequest, PersonDecision, Question, Reach, Scope, Standing,
};
use windlass_core::run::Run;
use windlass_runtime::{Asked, Asker, Stored, now};
use windlass_spec::text::{TextUse, escape_json};
use windlass_spec::{NonEmptyText, RiskLevel, SecurityLevel, Type};

use super::decide::{Wanted, edited};
use super::{Desk, show};
use crate::live::Live;
use crate::moments::left;
use crate::refusal::Refusal;
use crate::rendered::{on_one_line, seen};
use crate::signals;
use crate::terminal::complain;

/// Puts questions to the person at the terminal; `None` if there is none.
pub(crate) fn asker(stored: &Stored, live: &Arc<Live>) -> Option<Asker> {
    let is_somebody_here = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !is_somebody_here {
        return None;
    }
    let (store, person, live) = (
        Arc::clone(stored.store()),
        stored.who().clone(),
        Arc::clone(live),
    );
    Some(Arc::new(move |question: Approval| {
        let desk = Desk {
            store: Arc::clone(&store),
            person: person.clone(),
        };
        let live = Arc::clone(&live);
        Box::pin(async move {
            end_with_terminal();
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
fn end_with_terminal() {
    static LISTENS: Once = Once::new();
    LISTENS.call_once(|| {
        if let Ok(mut hangups) = signal(SignalKind::hangup()) {
            tokio::spawn(async move {
                if hangups.recv().await.is_some() {
                    signals::end(SignalKind::hangup()).await;
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
    let run = desk.run_of(question);
    complain("")?;
    if let Some(message) = &question.request().message {
        complain(&seen(message.as_str()))?;
    }
    complain(show::body(question, run.as_ref()).trim_end())?;
    let time_left = left(question.request().expires_at, now());
    complain(&format!(
        "  {:<18}{}",
        "time left",
        time_left.unwrap_or_else(|| "none".to_owned())
    ))?;
    loop {
        let choice = match question.question() {
            Question::Authorize(call) => about_call(call, question, run.as_ref()),
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
        let digest = question.digest();
        let decided = desk.store.decide(
            question.call(),
            Some(&digest),
            &desk.person,
            decision,
            now(),
        );
        match decided {
            Ok(decided) if decided.still_needed() > 0 => {
                complain("a second person has to approve it, from elsewhere")?;
                return Ok(Asked::NotDecided);
            }
            Ok(_) => {
                if is_always {
                    grant(desk, question)?;
                }
                return Ok(Asked::Decided);
            }
            Err(error) => {
                complain(&format!("error: {error}"))?;
                // Somebody else decided, or it is too late: the run learns of it by itself.
                return Ok(match Refusal::of(&error) {
                    Some(_) => Asked::Decided,
                    None => Asked::NotDecided,
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
    Wrong(Refusal),
    Terminal(InquireError),
}

impl From<InquireError> for Stopped {
    fn from(error: InquireError) -> Self {
        match error {
            InquireError::OperationCanceled | InquireError::OperationInterrupted => Self::Left,
            other => Self::Terminal(other),
        }
    }
}

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
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

fn about_call(call: &Authorize, question: &Approval, run: Option<&Run>) -> Result<Choice, Stopped> {
    let chosen = match call.security_level {
        SecurityLevel::Low | SecurityLevel::Medium => {
            let mut choices = vec![APPROVE, REJECT, EDIT, RESPOND, LATER];
            if call.risk != RiskLevel::Irreversible {
                choices.insert(1, ALWAYS);
            }
            Select::new("May it run?", choices).prompt()?.to_owned()
        }
        // Nothing is chosen beforehand: a yes is typed.
        SecurityLevel::High | SecurityLevel::Critical => typed(call)?,
    };
    Ok(match chosen.as_str() {
        APPROVE => Choice::Decide(PersonDecision::Approve),
        ALWAYS => Choice::Always(PersonDecision::Approve),
        EDIT => {
            let arguments = new_arguments(call, question, run)?;
            Choice::Decide(PersonDecision::ApproveEdited { arguments })
        }
        RESPOND => {
            let typed =
                Text::new("What does the model get instead of the tool's result?").prompt()?;
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
    match Select::new("Will you answer?", vec![yes, REJECT, LATER]).prompt()? {
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
                let chosen = Select::new(&prompt, shown).raw_prompt_skippable()?;
                chosen.and_then(|chosen| options.get(chosen.index).cloned())
            }
            Type::Boolean => Select::new(&prompt, vec!["true".to_owned(), "false".to_owned()])
                .prompt_skippable()?,
            _ => Text::new(&prompt).prompt_skippable()?,
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
        false => Err(Refusal::usage("does_not_fit", misfits.join("; ")).into()),
    }
}

/// A decision about a grave call, typed in full.
fn typed(call: &Authorize) -> Result<String, Stopped> {
    let tool = call.tool_name.as_str();
    let prompt = format!("Type `{tool}` to approve, or reject, edit, respond, later:");
    let typed = Text::new(&prompt).prompt()?;
    let chosen = match typed.trim() {
        word if word == tool => APPROVE,
        "reject" => REJECT,
        "edit" => EDIT,
        "respond" => RESPOND,
        "later" => LATER,
        "" => return Err(Refusal::usage("empty_text", "nothing was typed").into()),
        other => {
            let message = format!("`{}` is none of these", seen(other));
            return Err(Refusal::usage("not_confirmed", message).into());
        }
    };
    Ok(chosen.to_owned())
}

fn new_arguments(
    call: &Authorize,
    question: &Approval,
    run: Option<&Run>,
) -> Result<Map<String, Value>, Stopped> {
    let current = question.arguments().unwrap_or(&call.tool_args);
    let current = json!(current).to_string();
    // The same value, with nothing in it that the terminal would not show.
    let current = escape_json(&current, TextUse::Exact);
    let typed = Text::new("The arguments:")
        .with_initial_value(&current)
        .prompt()?;
    let arguments = edited(&typed, call, run)?;
    let wanted = Wanted::new(question, call, run, Some(&arguments));
    if wanted.level() > call.security_level {
        let message = format!(
            "with these arguments the call needs the security level {}",
            wanted.level()
        );
        return Err(Refusal::usage("not_confirmed", message)
            .hint("reject it, and have the agent ask for what you want")
            .into());
    }
    Ok(arguments)
}

fn reject() -> Result<PersonDecision, Stopped> {
    let typed = Text::new("Why? (the model is told; may be left empty)").prompt()?;
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
        let chosen = Select::new("Your answer?", choices).raw_prompt()?;
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
        true => Text::new("Your answer? (empty to decide later)").prompt()?,
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
    let chosen = Select::new("Please do it.", vec![DONE, NOT_DONE, LATER]).prompt()?;
    Ok(match chosen {
        DONE => Choice::Decide(PersonDecision::Done { note: None }),
        NOT_DONE => Choice::Decide(reject()?),
        _ => Choice::Later,
    })
}

/// Leave for the same call for the rest of the run.
fn grant(desk: &Desk, question: &Approval) -> anyhow::Result<()> {
    let Some(call) = question.question().authorize() else {
        return Ok(());
    };
    let standing = Standing::new(
        question.request().principal.clone(),
        call.tool_name.clone(),
        Scope::ToolWithArguments {
            digest: Digest::of_call(&call.tool_name, &call.tool_args),
        },
        Reach::Run {
            run: question.run().clone(),
        },
        desk.person.principal.clone(),
        now(),
    )?;
    desk.store.grant_standing(&standing)?;
    Ok(())
}
