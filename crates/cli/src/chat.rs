//! `windlass chat`: a conversation with an agent. Each message is a task with its own run and journal, and
//! carries the conversation so far. The conversation is stored, so that it can be resumed. Answers go to
//! standard output, everything else to standard error.

mod input;

use std::pin::pin;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use windlass_core::risk::ToolRisk;
use windlass_core::run::{Run, RunEnd};
use windlass_runtime::Stop;
use windlass_service::types::StoredConversation;
use windlass_service::{Attachment, BoundAgent, ConversationChoice, Identity, NewRun, Service};
use windlass_spec::Agent;

use self::input::{ChatInput, Input};
use super::arguments::Chat;
use super::ending::{describe_pending, early_end_message};
use super::live::Live;
use super::program::{Notices, Program};
use super::report::Reporter;
use super::run::{block_on, choose, print_final_answer, watch};
use super::terminal::{Quote, eprint_line, is_interactive};
use super::trace::draw_trace;
use super::{CommandOutcome, approvals, gaps, paste};

/// The commands of a conversation, with their descriptions.
const COMMANDS: [(&str, &str); 4] = [
    ("/help", "list these commands"),
    ("/tools", "list the tools of the agent"),
    ("/trace", "show the steps of the last answer"),
    ("/quit", "end the conversation (also Ctrl-D)"),
];

pub(super) fn run(
    program: &Program,
    command: &Chat,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let options = command.run.agent.run_options();
    let Some(declared) = choose(&command.file, &options, reporter)? else {
        return Ok(CommandOutcome::Failed);
    };
    let service = program.service_for(command.run.data.as_deref(), &options, Notices::Text);
    let identity = program.identity()?;
    let bound = service.bind(&identity, &declared, &options)?;
    let agent = bound.agent().name().clone();
    let conversation = conversation(command, &service, &identity, agent.as_str())?;
    let mut input = Input::open(&service.data_directory()?)?;
    let mut session = ChatSession {
        command,
        bound,
        service: service.clone(),
        identity,
        conversation,
    };
    block_on(&service, session.run(&mut input))?
}

/// The conversation to continue: the one that was asked for, or a new one.
fn conversation(
    command: &Chat,
    service: &Service,
    identity: &Identity,
    agent: &str,
) -> anyhow::Result<StoredConversation> {
    let choice = match &command.resume {
        None => ConversationChoice::New,
        Some(None) => ConversationChoice::Latest,
        Some(Some(id)) => ConversationChoice::Id(id.clone()),
    };
    let conversation = service.conversation(identity, agent, &choice)?;
    if !conversation.messages.is_empty() {
        eprint_line(&format!(
            "resuming a conversation of {} messages, the last from {}",
            conversation.messages.len(),
            conversation.updated_at
        ))?;
    } else if choice == ConversationChoice::Latest {
        eprint_line(&format!(
            "there is no conversation with `{agent}` to resume; starting a new one"
        ))?;
    }
    Ok(conversation)
}

/// An open conversation.
struct ChatSession<'c> {
    command: &'c Chat,
    bound: BoundAgent,
    service: Service,
    identity: Identity,
    conversation: StoredConversation,
}

impl ChatSession<'_> {
    async fn run(&mut self, input: &mut Input) -> anyhow::Result<CommandOutcome> {
        if input.is_typed() {
            self.greet()?;
        }
        let mut was_cancelled = false;
        loop {
            let received = input.next().await?;
            let is_cancelled = received == ChatInput::LineCancelled;
            match received {
                ChatInput::Line(line) => {
                    if self.handle(&line).await? == ChatFlow::Quit {
                        break;
                    }
                }
                // A second Ctrl-C on an empty line is an attempt to quit.
                ChatInput::LineCancelled if was_cancelled => {
                    eprint_line("press Ctrl-D to end the conversation")?;
                }
                ChatInput::LineCancelled => {}
                ChatInput::End => break,
                ChatInput::Interrupted => {
                    return Ok(CommandOutcome::Code(RunEnd::Cancelled.exit_code()));
                }
            }
            was_cancelled = is_cancelled;
        }
        if input.is_typed() && !self.conversation.messages.is_empty() {
            eprint_line(&format!(
                "resume with: windlass chat {} --resume={}",
                paste::path(&self.command.file),
                self.conversation.id
            ))?;
        }
        Ok(CommandOutcome::Done)
    }

    fn agent(&self) -> &Agent {
        self.bound.agent()
    }

    fn greet(&self) -> anyhow::Result<()> {
        let name = self.agent().name();
        eprint_line(&format!(
            "{name}: type /help for the commands, Ctrl-D to quit"
        ))?;
        Ok(())
    }

    async fn handle(&mut self, line: &str) -> anyhow::Result<ChatFlow> {
        let message = line.trim();
        match message {
            "" => {}
            // A line that starts with a space always goes to the agent.
            _ if !line.starts_with('/') => self.answer(message).await?,
            "/quit" => return Ok(ChatFlow::Quit),
            "/help" => eprint_line(&help())?,
            "/tools" => eprint_line(&describe_tools(self.agent()))?,
            "/trace" => self.show_trace()?,
            unknown => eprint_line(&format!(
                "unknown command `{}`\n{}",
                unknown.split_whitespace().next().unwrap_or_default(),
                help()
            ))?,
        }
        Ok(ChatFlow::Continue)
    }

    fn show_trace(&self) -> anyhow::Result<()> {
        let Some(id) = self.conversation.runs.last() else {
            eprint_line("there is no answer yet")?;
            return Ok(());
        };
        match self.service.run(&self.identity, id.as_str()) {
            Ok(run) => eprint_line(draw_trace(&run).trim_end())?,
            Err(error) => eprint_line(&format!("error: {error}"))?,
        }
        Ok(())
    }

    /// Runs the agent on a message.
    async fn answer(&mut self, message: &str) -> anyhow::Result<()> {
        let settings = self.command.run.limits.settings();
        let new = NewRun::of_message(&self.conversation, message, settings);
        let live = Arc::new(Live::attended(&self.service, &self.identity));
        let run = self.drive(new, &live).await?;
        show(&run, &self.service, &self.identity, &live)?;
        let (service, identity) = (&self.service, &self.identity);
        let id = ConversationChoice::Id(self.conversation.id.clone());
        let agent = self.conversation.agent.clone();
        self.conversation =
            tokio::task::block_in_place(|| service.conversation(identity, &agent, &id))?;
        Ok(())
    }

    /// Drives a new run. The first interrupt stops it after the current step, the second at once.
    async fn drive(&self, new: NewRun, live: &Arc<Live>) -> anyhow::Result<Run> {
        let stop = Stop::default();
        let mut interrupts = signal(SignalKind::interrupt())?;
        let attachment = Attachment {
            stop: stop.clone(),
            watch: Some(watch(false, live)),
            asker: approvals::asker(&self.service, &self.identity, live),
            wait_policy: None,
        };
        let mut work = pin!(self.bound.start(&self.identity, new, attachment));
        loop {
            tokio::select! {
                run = &mut work => return Ok(run?),
                _ = interrupts.recv() => match stop.after_step.is_cancelled() {
                    true => stop.at_once.cancel(),
                    false => {
                        // On a terminal, the spinner occupies the current line.
                        let line_break = if is_interactive() { "\n" } else { "" };
                        eprint_line(&format!(
                            "{line_break}stopping after this step; interrupt again to stop at once"
                        ))?;
                        stop.after_step.cancel();
                    }
                },
            }
        }
    }
}

/// Whether a conversation continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChatFlow {
    Continue,
    Quit,
}

/// Prints the outcome of a run.
fn show(run: &Run, service: &Service, identity: &Identity, live: &Live) -> anyhow::Result<()> {
    match run.end_or_waiting() {
        None => {
            eprint_line("stopped")?;
            eprint_line(&describe_pending(run, service, identity)?)?;
            return Ok(());
        }
        Some(RunEnd::WaitingForPerson) => {
            eprint_line("the run waits for an approval or answer")?;
            eprint_line(&describe_pending(run, service, identity)?)?;
            return Ok(());
        }
        Some(RunEnd::Cancelled) => {
            eprint_line("stopped")?;
            return Ok(());
        }
        Some(RunEnd::Failed { category, message }) => {
            if run.has_answered() {
                print_final_answer(run, live)?;
            }
            let message = Quote::of(&message).after_label("  ");
            eprint_line(&format!("error: {message}\nhint: {}", category.guidance()))?;
            return Ok(());
        }
        Some(end) => {
            print_final_answer(run, live)?;
            if let Some(message) = early_end_message(&end) {
                eprint_line(&message)?;
            }
        }
    }
    if let Some(gap) = gaps::unreported(run) {
        eprint_line(&gaps::message(&gap))?;
    }
    Ok(())
}

fn help() -> String {
    let lines: Vec<String> = COMMANDS
        .iter()
        .map(|(name, what)| format!("{name:<7} {what}"))
        .collect();
    format!(
        "{}\nAnything else goes to the agent. To send a message that starts with a slash, start it with a space.",
        lines.join("\n")
    )
}

/// Describes the tools of an agent, with their risk.
fn describe_tools(agent: &Agent) -> String {
    let tools = agent.tools().iter().map(|tool| {
        let risk = ToolRisk::of_specification(tool).at_worst();
        format!(
            "{}  {} (by {})\n{}",
            tool.name(),
            risk.level,
            risk.source,
            Quote::of(tool.description()).block("  ")
        )
    });
    let agents = agent.agents().iter().map(|name| format!("{name}  agent"));
    let lines: Vec<String> = tools.chain(agents).collect();
    match lines.is_empty() {
        true => "the agent has no tools".to_owned(),
        false => lines.join("\n"),
    }
}
