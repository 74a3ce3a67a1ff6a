//! Interactive approval: prompts the user at the terminal that drives the run. The prompt shows the same as
//! `approvals show`, and the decision is recorded in the same way.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};
use windlass_core::approval::{
    Approval, ApprovalStatus, Ask, Authorize, FormRequest, PersonDecision, Question,
};
use windlass_runtime::{AskOutcome, Asker, now};
use windlass_service::{
    Always, ApprovalDetails, Confirmation, DecisionRequest, ErrorKind, Identity, Service,
    ServiceError,
};
use windlass_spec::number::read_json_or_text;
use windlass_spec::text::{TextUse, escape_json};
use windlass_spec::{NonEmptyText, RiskLevel, SecurityLevel, Type};

use super::{ApprovalSession, show};
use crate::arguments::Decider;
use crate::describe_error;
use crate::live::{Live, describe_settlement};
use crate::moments::left;
use crate::prompt::{self, PromptError};
use crate::rendered::{escape_exact, escape_exact_line};
use crate::signals;
use crate::terminal::{cut_to_terminal, eprint_line, is_interactive};

/// Returns the function that prompts for decisions; `None` without a terminal.
pub(crate) fn asker(service: &Service, identity: &Identity, live: &Arc<Live>) -> Option<Asker> {
    let is_terminal = io::stdin().is_terminal() && is_interactive();
    if !is_terminal {
        return None;
    }
    let (service, identity, live) = (service.clone(), identity.clone(), Arc::clone(live));
    let has_asked = Arc::new(AtomicBool::new(false));
    Some(Arc::new(move |question: Approval| {
        let session = ApprovalSession {
            service: service.clone(),
            identity: identity.clone(),
        };
        let (live, has_asked) = (Arc::clone(&live), Arc::clone(&has_asked));
        Box::pin(async move {
            if !has_asked.swap(true, Ordering::Relaxed) {
                end_with_terminal(&session.service);
            }
            // Waits for the user on a thread of its own, so that it does not block the runtime.
            let asked = tokio::task::spawn_blocking(move || {
                live.suspended(|| {
                    ask(&session, &question).unwrap_or_else(|error| prompt_failed(&error))
                })
            });
            asked.await.unwrap_or(AskOutcome::NotDecided)
        })
    }))
}

/// Ends the program when its terminal is closed, even under `nohup`: no one can answer any more, and a read
/// from a closed terminal never returns. The run is left as after a crash.
fn end_with_terminal(service: &Service) {
    if let Ok(mut hangups) = signal(SignalKind::hangup()) {
        let service = service.clone();
        tokio::spawn(async move {
            if hangups.recv().await.is_some() {
                signals::end(&service, SignalKind::hangup()).await;
            }
        });
    }
}

/// Reports why the prompt failed. The question stays open.
fn prompt_failed(error: &anyhow::Error) -> AskOutcome {
    let _ = eprint_line(&format!("error: {}", describe_error(error)));
    AskOutcome::NotDecided
}

/// The choice of the user.
enum Choice {
    Decide(PersonDecision),
    /// Also applies to the same call later in the run.
    Always(PersonDecision),
    Later,
}

/// How often the store is asked whether the question is still open.
const LOOK_PERIOD: Duration = Duration::from_millis(500);

/// The prompts of one question. They end when the question changes elsewhere.
struct Prompter<'s> {
    session: &'s ApprovalSession,
    question: &'s Approval,
    looked_at: Instant,
}

impl<'s> Prompter<'s> {
    fn new(session: &'s ApprovalSession, question: &'s Approval) -> Self {
        Self {
            session,
            question,
            looked_at: Instant::now(),
        }
    }

    /// The question as it is stored now, if it is not the one that is shown any more.
    fn changed(&self) -> Option<Approval> {
        let id = self.question.call().to_string();
        let current = self
            .session
            .service
            .show_approval(&self.session.identity, &id);
        let current = current.ok()?.approval;
        let has_changed = current.status() != self.question.status()
            || current.request() != self.question.request()
            || current.decisions().len() != self.question.decisions().len();
        has_changed.then_some(current)
    }

    fn is_over(&mut self) -> bool {
        if self.looked_at.elapsed() < LOOK_PERIOD {
            return false;
        }
        self.looked_at = Instant::now();
        self.changed().is_some()
    }

    fn read_text(&mut self, question: &str, initial: &str) -> Result<String, PromptError> {
        prompt::read_text_until(question, initial, &mut || self.is_over())
    }

    fn choose(&mut self, question: &str, choices: &[&str]) -> Result<usize, PromptError> {
        prompt::choose_until(question, choices, &mut || self.is_over())
    }
}

/// Asks for a line about a question. `None` if the user cancels.
///
/// # Errors
/// If the question was settled or changed elsewhere in the meantime, or the terminal cannot be used.
pub(super) fn read_confirmation(
    session: &ApprovalSession,
    question: &Approval,
    prompt: &str,
) -> anyhow::Result<Option<String>> {
    let mut prompter = Prompter::new(session, question);
    loop {
        match prompter.read_text(prompt, "") {
            Ok(typed) => return Ok(Some(typed)),
            Err(PromptError::Cancelled) => return Ok(None),
            Err(PromptError::Terminal(error)) => return Err(error.into()),
            Err(PromptError::Over) => {
                let Some(changed) = prompter.changed() else {
                    continue;
                };
                let message = describe_change(&changed);
                return Err(ServiceError::conflict("settled", message).into());
            }
        }
    }
}

/// Describes a question that was settled or changed elsewhere.
fn describe_change(approval: &Approval) -> String {
    let deciders: Vec<&str> = approval
        .deciders()
        .map(windlass_core::approval::Principal::as_str)
        .collect();
    let by = match deciders.is_empty() {
        true => String::new(),
        false => format!(" by {}", deciders.join(" and ")),
    };
    match approval.status() {
        ApprovalStatus::Pending => format!("approved once{by} elsewhere; it is shown again"),
        ApprovalStatus::Expired => "no longer open: expired".to_owned(),
        _ => format!(
            "no longer open: {}{by} elsewhere",
            describe_settlement(approval)
        ),
    }
}

/// Shows a question and asks the user to decide about it.
pub(super) fn ask(session: &ApprovalSession, question: &Approval) -> anyhow::Result<AskOutcome> {
    let id = question.call().to_string();
    let details = ApprovalDetails {
        run: session.service.show_approval(&session.identity, &id)?.run,
        approval: question.clone(),
    };
    eprint_line("")?;
    eprint_line(show::at_prompt(&details).trim_end())?;
    let time_left = left(question.request().expires_at, now());
    eprint_line(&format!(
        "  {:<18}{}",
        "time left",
        time_left.unwrap_or_else(|| "none".to_owned())
    ))?;
    let mut prompter = Prompter::new(session, question);
    loop {
        let choice = match question.question() {
            Question::Authorize(call) => prompter.prompt_call(call, &details),
            Question::Ask(Ask {
                form: Some(form), ..
            }) => prompter.prompt_form(form, &details),
            Question::Ask(ask) => prompter.prompt_question(ask),
            Question::Intervene(_) => prompter.prompt_work(),
        };
        let choice = match choice {
            Ok(choice) => choice,
            // Escape and Ctrl-C leave the question as it is.
            Err(NoChoice::Cancelled) => Choice::Later,
            Err(NoChoice::Over) => {
                let Some(changed) = prompter.changed() else {
                    continue;
                };
                eprint_line(&describe_change(&changed))?;
                return match changed.status() {
                    ApprovalStatus::Pending => ask(session, &changed),
                    _ => Ok(AskOutcome::Decided),
                };
            }
            Err(NoChoice::Invalid(refusal)) => {
                eprint_line(&format!("error: {refusal}"))?;
                continue;
            }
            Err(NoChoice::Terminal(error)) => return Err(error),
        };
        let (decision, is_always) = match choice {
            Choice::Decide(decision) => (decision, false),
            Choice::Always(decision) => (decision, true),
            Choice::Later => return Ok(AskOutcome::NotDecided),
        };
        let request = DecisionRequest {
            decision,
            digest: Some(question.digest()),
            confirmation: Confirmation::AtTerminal,
            on_behalf_of: None,
            always: is_always.then_some(Always::Call),
        };
        let (approver, _) = session.decider_of(&Decider::default(), &request.decision)?;
        match session.service.decide(&approver, question.call(), request) {
            Ok(taken) if taken.approval.still_needed() > 0 => {
                eprint_line("a second approver has to approve it, in another session")?;
                return Ok(AskOutcome::NotDecided);
            }
            Ok(_) => return Ok(AskOutcome::Decided),
            Err(error) => {
                eprint_line(&format!("error: {error}"))?;
                // Another approver decided, or it is too late. The run reads that from the store.
                return Ok(match error.kind() {
                    // This approver may not decide. The question stays open for others.
                    ErrorKind::Denied | ErrorKind::Unavailable | ErrorKind::Failed => {
                        AskOutcome::NotDecided
                    }
                    _ => AskOutcome::Decided,
                });
            }
        }
    }
}

/// A typed value: JSON, or else a text.
fn read_value(typed: &str) -> Result<Value, NoChoice> {
    let value = read_json_or_text(typed);
    value.map_err(|error| ServiceError::invalid("inexact_number", error.to_string()).into())
}

/// Why there is no choice.
enum NoChoice {
    /// The user cancelled the prompt.
    Cancelled,
    /// The question changed elsewhere.
    Over,
    /// The input is invalid.
    Invalid(ServiceError),
    Terminal(anyhow::Error),
}

impl From<PromptError> for NoChoice {
    fn from(error: PromptError) -> Self {
        match error {
            PromptError::Cancelled => Self::Cancelled,
            PromptError::Over => Self::Over,
            PromptError::Terminal(error) => Self::Terminal(error.into()),
        }
    }
}

impl From<ServiceError> for NoChoice {
    fn from(refusal: ServiceError) -> Self {
        Self::Invalid(refusal)
    }
}

const FILL_IN: &str = "fill in the form";
const DONE_THERE: &str = "done in the browser";
const APPROVE: &str = "approve";
const ALWAYS: &str = "approve, and do not ask again for this call in this run";
const EDIT: &str = "approve with edited arguments";
const REJECT: &str = "reject";
const RESPOND: &str = "supply a result instead of running the tool";
const LATER: &str = "decide later";

const OTHER_ANSWER: &str = "type another answer";
const NO_ANSWER: &str = "decline to answer";

impl Prompter<'_> {
    fn prompt_call(
        &mut self,
        call: &Authorize,
        details: &ApprovalDetails,
    ) -> Result<Choice, NoChoice> {
        let chosen = match call.security_level {
            SecurityLevel::Low | SecurityLevel::Medium => {
                let mut choices = vec![APPROVE, REJECT, EDIT, RESPOND, LATER];
                if call.risk != RiskLevel::Irreversible {
                    choices.insert(1, ALWAYS);
                }
                let chosen = self.choose("Approve this call?", &choices)?;
                choices.get(chosen).copied().unwrap_or(LATER)
            }
            // Without a default choice: the approval is typed.
            SecurityLevel::High | SecurityLevel::Critical => self.typed_choice(call)?,
        };
        Ok(match chosen {
            APPROVE => Choice::Decide(PersonDecision::Approve),
            ALWAYS => Choice::Always(PersonDecision::Approve),
            EDIT => {
                let arguments = self.new_arguments(call, details)?;
                self.confirm_edited(call, details, &arguments)?;
                Choice::Decide(PersonDecision::ApproveEdited { arguments })
            }
            RESPOND => {
                let typed = self.read_text("Result for the model, instead of the tool's:", "")?;
                Choice::Decide(details.read_reply(Some(&typed))?)
            }
            REJECT => Choice::Decide(self.reject()?),
            _ => Choice::Later,
        })
    }

    /// Prompts for each field of a server's form, without default values.
    fn prompt_form(
        &mut self,
        form: &FormRequest,
        details: &ApprovalDetails,
    ) -> Result<Choice, NoChoice> {
        let yes = match form.url {
            Some(_) => DONE_THERE,
            None => FILL_IN,
        };
        let choices = [yes, REJECT, LATER];
        match choices[self.choose("Answer this request?", &choices)?] {
            REJECT => return Ok(Choice::Decide(self.reject()?)),
            LATER => return Ok(Choice::Later),
            _ => {}
        }
        let mut filled = Map::new();
        for field in form.fields() {
            let name = escape_exact_line(&field.name);
            let prompt = format!("The server `{}` asks for `{name}`:", form.server);
            let typed = match &field.ty {
                Type::Enum(options) => {
                    let shown: Vec<String> = options
                        .iter()
                        .map(|option| escape_exact_line(option))
                        .collect();
                    self.choose_or_skip(&prompt, &shown)?
                        .and_then(|chosen| options.get(chosen).cloned())
                }
                Type::Boolean => {
                    let options = ["true".to_owned(), "false".to_owned()];
                    self.choose_or_skip(&prompt, &options)?
                        .and_then(|chosen| options.get(chosen).cloned())
                }
                _ => self.read_text(&prompt, "").map(Some)?,
            };
            let typed = typed.filter(|typed| !typed.is_empty());
            if let Some(typed) = typed {
                let value = match &field.ty {
                    Type::Text | Type::Enum(_) => Value::String(typed),
                    _ => read_value(&typed)?,
                };
                filled.insert(field.name, value);
            }
        }
        let filled = Value::Object(filled).to_string();
        Ok(Choice::Decide(details.read_reply(Some(&filled))?))
    }

    /// Reads the decision about a call of a high security level as typed text.
    fn typed_choice(&mut self, call: &Authorize) -> Result<&'static str, NoChoice> {
        let tool = call.tool_name.as_str();
        let prompt = format!("Type `{tool}` to approve, or reject, edit, respond, later:");
        let typed = self.read_text(&prompt, "")?;
        let chosen = match typed.trim() {
            word if word == tool => APPROVE,
            "reject" => REJECT,
            "edit" => EDIT,
            "respond" => RESPOND,
            "later" => LATER,
            "" => return Err(ServiceError::invalid("empty_text", "the input is empty").into()),
            other => {
                let message = format!("`{}` is not one of the choices", escape_exact(other));
                return Err(ServiceError::invalid("not_confirmed", message).into());
            }
        };
        Ok(chosen)
    }

    fn new_arguments(
        &mut self,
        call: &Authorize,
        details: &ApprovalDetails,
    ) -> Result<Map<String, Value>, NoChoice> {
        let current = details.approval.arguments().unwrap_or(&call.tool_args);
        let current = json!(current).to_string();
        // The same value, with invisible characters escaped.
        let current = escape_json(&current, TextUse::Exact);
        let typed = self.read_text("Arguments:", &current)?;
        Ok(details.read_arguments(&typed)?)
    }

    /// Shows a call as it was edited, if its security level is high with these arguments. The approval of it is
    /// typed, as without an edit.
    fn confirm_edited(
        &mut self,
        call: &Authorize,
        details: &ApprovalDetails,
        arguments: &Map<String, Value>,
    ) -> Result<(), NoChoice> {
        let ApprovalSession { service, identity } = self.session;
        let required = service.required_confirmation(identity, details, Some(arguments))?;
        let Some(required) = required.filter(|required| required.needs_digest) else {
            return Ok(());
        };
        let tool = call.tool_name.as_str();
        let mut edited = show::edited(arguments);
        if required.level > call.security_level {
            edited.push_str(&format!(
                "these arguments raise the call to the security level {}\n",
                required.level
            ));
        }
        eprint_line(edited.trim_end()).map_err(|error| NoChoice::Terminal(error.into()))?;
        let prompt = format!("Type `{tool}` to approve it with these arguments:");
        let typed = self.read_text(&prompt, "")?;
        if typed.trim() == tool {
            return Ok(());
        }
        let message = "the edited call is not approved";
        Err(ServiceError::invalid("not_confirmed", message).into())
    }

    fn reject(&mut self) -> Result<PersonDecision, NoChoice> {
        let typed = self.read_text("Reason for the model (optional):", "")?;
        let message = NonEmptyText::new(typed.trim()).ok();
        Ok(PersonDecision::Reject { message })
    }

    fn prompt_question(&mut self, ask: &Ask) -> Result<Choice, NoChoice> {
        let mut is_free_text = ask.options.is_empty();
        if !is_free_text {
            let options = ask
                .options
                .iter()
                .map(|option| cut_to_terminal(escape_exact_line(option.as_str())));
            let mut choices: Vec<String> = options.collect();
            let count = choices.len();
            if ask.free_text {
                choices.push(OTHER_ANSWER.to_owned());
            }
            choices.extend([NO_ANSWER.to_owned(), LATER.to_owned()]);
            let shown: Vec<&str> = choices.iter().map(String::as_str).collect();
            let chosen = self.choose("Your answer:", &shown)?;
            if chosen < count {
                let text = ask.options[chosen].clone();
                return Ok(Choice::Decide(PersonDecision::Answer { text }));
            }
            match choices[chosen].as_str() {
                NO_ANSWER => return Ok(Choice::Decide(PersonDecision::Reject { message: None })),
                LATER => return Ok(Choice::Later),
                _ => is_free_text = true,
            }
        }
        let typed = match is_free_text {
            true => self.read_text("Your answer (empty to decide later):", "")?,
            false => String::new(),
        };
        Ok(match NonEmptyText::new(typed.trim()) {
            Ok(text) => Choice::Decide(PersonDecision::Answer { text }),
            Err(_) => Choice::Later,
        })
    }

    fn prompt_work(&mut self) -> Result<Choice, NoChoice> {
        const DONE: &str = "done";
        const NOT_DONE: &str = "cannot be done";
        let choices = [DONE, NOT_DONE, LATER];
        Ok(
            match choices[self.choose("Status of the manual work:", &choices)?] {
                DONE => Choice::Decide(PersonDecision::Done { note: None }),
                NOT_DONE => Choice::Decide(self.reject()?),
                _ => Choice::Later,
            },
        )
    }

    /// Asks for a choice that may be skipped with Escape.
    fn choose_or_skip(
        &mut self,
        question: &str,
        choices: &[String],
    ) -> Result<Option<usize>, NoChoice> {
        let choices: Vec<&str> = choices.iter().map(String::as_str).collect();
        match self.choose(question, &choices) {
            Ok(chosen) => Ok(Some(chosen)),
            Err(PromptError::Cancelled) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
