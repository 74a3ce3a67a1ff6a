//! `windlass chat`: a conversation with an agent. Whatever is said is a task of its own, with a run and
//! a journal of its own; what was said before goes with it, and is kept so that it can be taken up
//! again. Answers go to standard output, everything else to standard error.

mod input;

use std::pin::pin;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use windlass_core::risk::ToolRisk;
use windlass_core::run::{Run, RunEnd, Task};
use windlass_runtime::Stop;
use windlass_service::{Attachment, BoundAgent, ConversationChoice, Identity, NewRun, Service};
use windlass_spec::Agent;
use windlass_store::StoredConversation;

use self::input::{Heard, Input};
use super::arguments::Chat;
use super::ending::{what_it_waits_for, why_early};
use super::live::Live;
use super::program::{Notices, Program};
use super::report::Reporter;
use super::run::{block_on, choose, watch};
use super::terminal::{complain, is_read_by_person, say, visible_block};
use super::trace::drawn;
use super::{Outcome, approvals, gaps};

/// What can be asked of the program itself, and what comes of it.
const COMMANDS: [(&str, &str); 4] = [
    ("/help", "lists these commands"),
    ("/tools", "lists what the agent can use"),
    ("/trace", "shows how the last answer came about"),
    ("/quit", "ends the conversation, as Ctrl-D does"),
];

pub(super) fn run(
    program: &Program,
    command: &Chat,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
    let options = command.crew.run_options();
    let Some(declared) = choose(&command.file, &options, reporter)? else {
        return Ok(Outcome::Failed);
    };
    let service = program.service_for(command.data.as_deref(), &options, Notices::Text);
    let identity = program.identity()?;
    let bound = service.bind(&identity, &declared, &options)?;
    let agent = bound.agent().name().clone();
    let conversation = conversation(command, &service, &identity, agent.as_str())?;
    let mut input = Input::open(&service.data_directory()?)?;
    let mut talk = Talk {
        command,
        bound,
        service: service.clone(),
        identity,
        conversation,
    };
    block_on(&service, talk.until_the_end(&mut input))?
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
        complain(&format!(
            "{} messages taken up; the last is of {}",
            conversation.messages.len(),
            conversation.updated_at
        ))?;
    } else if choice == ConversationChoice::Latest {
        complain(&format!(
            "there is no conversation with `{agent}` yet; this is the first"
        ))?;
    }
    Ok(conversation)
}

/// A conversation under way.
struct Talk<'c> {
    command: &'c Chat,
    bound: BoundAgent,
    service: Service,
    identity: Identity,
    conversation: StoredConversation,
}

impl Talk<'_> {
    async fn until_the_end(&mut self, input: &mut Input) -> anyhow::Result<Outcome> {
        if input.is_typed() {
            self.greet()?;
        }
        let mut was_nothing = false;
        loop {
            let heard = input.next().await?;
            let is_nothing = heard == Heard::Nothing;
            match heard {
                Heard::Line(line) => {
                    if self.heed(&line).await? == Goes::Away {
                        break;
                    }
                }
                // Whoever presses Ctrl-C again at an empty line wants to leave.
                Heard::Nothing if was_nothing => complain("Ctrl-D ends the conversation")?,
                Heard::Nothing => {}
                Heard::End => break,
                Heard::Interrupted => return Ok(Outcome::Code(RunEnd::Cancelled.exit_code())),
            }
            was_nothing = is_nothing;
        }
        if input.is_typed() && !self.conversation.messages.is_empty() {
            complain(&format!(
                "to go on: windlass chat {} --resume={}",
                self.command.file.display(),
                self.conversation.id
            ))?;
        }
        Ok(Outcome::Done)
    }

    fn agent(&self) -> &Agent {
        self.bound.agent()
    }

    fn greet(&self) -> anyhow::Result<()> {
        let name = self.agent().name();
        complain(&format!("{name}: /help lists the commands, Ctrl-D ends"))?;
        Ok(())
    }

    async fn heed(&mut self, line: &str) -> anyhow::Result<Goes> {
        let said = line.trim();
        match said {
            "" => {}
            // What begins with a blank is said to the agent, whatever it is.
            _ if !line.starts_with('/') => self.answer(said).await?,
            "/quit" => return Ok(Goes::Away),
            "/help" => complain(&help())?,
            "/tools" => complain(&told_tools(self.agent()))?,
            "/trace" => self.show_trace()?,
            unknown => complain(&format!(
                "there is no command `{}`\n{}",
                unknown.split_whitespace().next().unwrap_or_default(),
                help()
            ))?,
        }
        Ok(Goes::On)
    }

    fn show_trace(&self) -> anyhow::Result<()> {
        let Some(id) = self.conversation.runs.last() else {
            complain("nothing was answered yet")?;
            return Ok(());
        };
        match self.service.run(&self.identity, id.as_str()) {
            Ok(run) => complain(drawn(&run).trim_end())?,
            Err(error) => complain(&format!("error: {error}"))?,
        }
        Ok(())
    }

    /// Has the agent answer, and keeps what was said.
    async fn answer(&mut self, said: &str) -> anyhow::Result<()> {
        let new = NewRun {
            task_id: None,
            task: Task {
                description: said.to_owned(),
                conversation: self.conversation.messages.clone(),
                ..Task::default()
            },
            settings: self.command.limits.settings(),
        };
        let run = self.work_on(new).await?;
        self.conversation.runs.push(run.id().clone());
        let answer = show(&run, &self.service, &self.identity)?;
        // What never reached the model was not said; it can be said again.
        if !run.turns().is_empty() {
            self.keep(said, answer)?;
        }
        Ok(())
    }

    /// Drives a new run. Interrupted once, it stops after the step under way; twice, at once.
    async fn work_on(&self, new: NewRun) -> anyhow::Result<Run> {
        let stop = Stop::default();
        let mut interrupts = signal(SignalKind::interrupt())?;
        let live = Arc::new(Live::new());
        let attachment = Attachment {
            stop: stop.clone(),
            watch: Some(watch(false, &live)),
            asker: approvals::asker(&self.service, &self.identity, &live),
            patience: None,
        };
        let mut work = pin!(self.bound.start(&self.identity, new, attachment));
        loop {
            tokio::select! {
                run = &mut work => return Ok(run?),
                _ = interrupts.recv() => match stop.after_step.is_cancelled() {
                    true => stop.at_once.cancel(),
                    false => {
                        // On a terminal, what is waited for stands in the current line.
                        let line_break = if is_read_by_person() { "\n" } else { "" };
                        complain(&format!(
                            "{line_break}stopping after this step; interrupt again to stop at once"
                        ))?;
                        stop.after_step.cancel();
                    }
                },
            }
        }
    }

    /// Adds to the conversation and keeps it.
    fn keep(&mut self, said: &str, answer: String) -> anyhow::Result<()> {
        let (service, identity) = (&self.service, &self.identity);
        let conversation = &mut self.conversation;
        tokio::task::block_in_place(|| {
            service.extend_conversation(identity, conversation, said, answer)
        })?;
        Ok(())
    }
}

/// Whether a conversation goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    On,
    Away,
}

/// Tells what came of a run, and gives what the agent is taken to have said. It is not told more of
/// its own failures than the category.
fn show(run: &Run, service: &Service, identity: &Identity) -> anyhow::Result<String> {
    let answer = run.response().answer.to_string();
    match run.standing() {
        None => {
            complain("stopped")?;
            complain(&what_it_waits_for(run, service, identity)?)?;
            return Ok("(I was stopped before I could answer.)".to_owned());
        }
        Some(RunEnd::WaitingForPerson) => {
            complain("the run waits for a person")?;
            complain(&what_it_waits_for(run, service, identity)?)?;
            return Ok("(I wait for a person to decide before I can answer.)".to_owned());
        }
        Some(RunEnd::Cancelled) => {
            complain("stopped")?;
            return Ok("(I was stopped before I could answer.)".to_owned());
        }
        Some(RunEnd::Failed { category, message }) => {
            let message = visible_block(&message);
            complain(&format!("error: {message}\nhint: {}", category.guidance()))?;
            return Ok(format!("(I could not answer: {category}.)"));
        }
        Some(RunEnd::Completed) => say(&answer)?,
        Some(end) => {
            say(&answer)?;
            if let Some(told) = why_early(&end) {
                complain(&told)?;
            }
        }
    }
    if let Some(gap) = gaps::untold(run) {
        complain(&gaps::told(&gap))?;
    }
    Ok(answer)
}

fn help() -> String {
    let lines: Vec<String> = COMMANDS
        .iter()
        .map(|(name, what)| format!("{name:<7} {what}"))
        .collect();
    format!(
        "{}\nAnything else is said to the agent; begin with a blank to say something that begins with a slash.",
        lines.join("\n")
    )
}

/// What an agent can use, each with what it does and how reversible it is.
fn told_tools(agent: &Agent) -> String {
    let tools = agent.tools().iter().map(|tool| {
        let risk = ToolRisk::of_specification(tool).at_worst();
        format!(
            "{}  {} (by {})\n  {}",
            tool.name(),
            risk.level,
            risk.source,
            visible_block(tool.description())
        )
    });
    let agents = agent.agents().iter().map(|name| format!("{name}  agent"));
    let told: Vec<String> = tools.chain(agents).collect();
    match told.is_empty() {
        true => "the agent has no tools".to_owned(),
        false => told.join("\n"),
    }
}
