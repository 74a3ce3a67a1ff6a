//! `windlass chat`: a conversation with an agent. Whatever is said is a task of its own, with a run and
//! a journal of its own; what was said before goes with it, and is kept so that it can be taken up
//! again. Answers go to standard output, everything else to standard error.

mod input;

use std::io::IsTerminal as _;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Map, Value};
use tokio::signal::unix::{SignalKind, signal};
use windlass_core::model::ChatMessage;
use windlass_core::risk::ToolRisk;
use windlass_core::run::{Run, RunEnd, Task};
use windlass_runtime::{Driver, Durable as _, NewTask, Stop, Stored, now};
use windlass_spec::{Agent, Conversation};
use windlass_store::{Store, StoredConversation};

use self::input::{Heard, Input};
use super::arguments::Chat;
use super::ending::{what_it_waits_for, why_early};
use super::live::Live;
use super::report::Reporter;
use super::run::{block_on, watch};
use super::terminal::{complain, say};
use super::trace::drawn;
use super::{Outcome, approvals, crew, data, gaps};

/// What can be asked of the program itself, and what comes of it.
const COMMANDS: [(&str, &str); 4] = [
    ("/help", "lists these commands"),
    ("/tools", "lists what the agent can use"),
    ("/trace", "shows how the last answer came about"),
    ("/quit", "ends the conversation, as Ctrl-D does"),
];

pub(super) fn run(command: &Chat, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let Some(chosen) = crew::choose(&command.file, &command.crew, reporter)? else {
        return Ok(Outcome::Failed);
    };
    let crew = chosen.assemble(&command.crew, command.data.as_deref())?;
    let (crew, _watching) = crew.watched(false);
    let stored = data::open(command.data.as_deref())?;
    let store = Arc::clone(stored.store());
    let conversation = conversation(command, &stored, crew.lead().agent.name().as_str())?;
    let mut input = Input::open(store.path().parent().unwrap_or(Path::new(".")))?;
    let mut talk = Talk {
        command,
        driver: Driver::new(crew, Arc::new(stored.clone())),
        stored,
        store,
        assembly: crew::assembly(&command.crew)?,
        conversation,
    };
    block_on(talk.until_the_end(&mut input))?
}

/// The conversation to go on with: the one that was asked for, or a new one.
fn conversation(
    command: &Chat,
    stored: &Stored,
    agent: &str,
) -> anyhow::Result<StoredConversation> {
    let store = stored.store();
    let earlier = match &command.resume {
        None => None,
        Some(None) => {
            let latest = store.latest_conversation(agent)?;
            if latest.is_none() {
                complain(&format!(
                    "there is no conversation with `{agent}` yet; this is the first"
                ))?;
            }
            latest
        }
        Some(Some(id)) => {
            let found = store.conversation(id)?.with_context(|| {
                format!(
                    "there is no conversation `{id}`\nhint: `--resume` alone takes up the latest one"
                )
            })?;
            anyhow::ensure!(
                found.agent == agent,
                "the conversation `{id}` is with the agent `{}`, not with `{agent}`",
                found.agent
            );
            Some(found)
        }
    };
    if let Some(earlier) = earlier {
        complain(&format!(
            "{} messages taken up; the last is of {}",
            earlier.messages.len(),
            earlier.updated_at
        ))?;
        return Ok(earlier);
    }
    let who = stored.who();
    Ok(StoredConversation {
        id: stored.new_id()?.to_string(),
        tenant: who.tenant.to_string(),
        principal: who.principal.to_string(),
        agent: agent.to_owned(),
        runs: Vec::new(),
        messages: Vec::new(),
        updated_at: now(),
    })
}

/// A conversation under way.
struct Talk<'c> {
    command: &'c Chat,
    driver: Driver,
    stored: Stored,
    store: Arc<Store>,
    assembly: Map<String, Value>,
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
        &self.driver.crew().lead().agent
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
        match self.store.fold(id) {
            Ok(run) => complain(drawn(&run).trim_end())?,
            Err(error) => complain(&format!("error: {error}"))?,
        }
        Ok(())
    }

    /// Has the agent answer, and keeps what was said.
    async fn answer(&mut self, said: &str) -> anyhow::Result<()> {
        let new = NewTask {
            task_id: None,
            task: Task {
                description: said.to_owned(),
                conversation: self.conversation.messages.clone(),
                ..Task::default()
            },
            settings: self.command.limits.settings(),
            assembly: self.assembly.clone(),
        };
        let run = self.work_on(new).await?;
        self.conversation.runs.push(run.id().clone());
        let answer = show(&run, &self.store)?;
        // What never reached the model was not said; it can be said again.
        if !run.turns().is_empty() {
            self.keep(said, answer)?;
        }
        Ok(())
    }

    /// Drives a new run. Interrupted once, it stops after the step under way; twice, at once.
    async fn work_on(&self, new: NewTask) -> anyhow::Result<Run> {
        let stop = Stop::default();
        let mut interrupts = signal(SignalKind::interrupt())?;
        let driver = self.driver.clone().stopped_by(stop.clone());
        let live = Arc::new(Live::new());
        let driver = driver.watched_by(watch(false, &live));
        let driver = match approvals::asker(&self.stored, &live) {
            Some(asker) => driver.asking(asker),
            None => driver,
        };
        let mut work = pin!(driver.start(new));
        loop {
            tokio::select! {
                run = &mut work => return Ok(run?),
                _ = interrupts.recv() => match stop.after_step.is_cancelled() {
                    true => stop.at_once.cancel(),
                    false => {
                        // On a terminal, what is waited for stands in the current line.
                        let line_break = if std::io::stderr().is_terminal() { "\n" } else { "" };
                        complain(&format!(
                            "{line_break}stopping after this step; interrupt again to stop at once"
                        ))?;
                        stop.after_step.cancel();
                    }
                },
            }
        }
    }

    /// Adds to the conversation and keeps it. The oldest of it is dropped when it gets long.
    fn keep(&mut self, said: &str, answer: String) -> anyhow::Result<()> {
        let conversation = &mut self.conversation;
        conversation.messages.extend([
            ChatMessage::User {
                content: said.to_owned(),
            },
            ChatMessage::Assistant {
                content: answer,
                calls: Vec::new(),
            },
        ]);
        let surplus = conversation
            .messages
            .len()
            .saturating_sub(Conversation::MAX);
        conversation.messages.drain(..surplus);
        conversation.updated_at = now();
        tokio::task::block_in_place(|| self.store.save_conversation(&self.conversation))
            .context("the conversation cannot be kept")
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
fn show(run: &Run, store: &Store) -> anyhow::Result<String> {
    let answer = run.response().answer.to_string();
    match run.standing() {
        None => {
            complain("stopped")?;
            complain(&what_it_waits_for(run, store)?)?;
            return Ok("(I was stopped before I could answer.)".to_owned());
        }
        Some(RunEnd::WaitingForPerson) => {
            complain("the run waits for a person")?;
            complain(&what_it_waits_for(run, store)?)?;
            return Ok("(I wait for a person to decide before I can answer.)".to_owned());
        }
        Some(RunEnd::Cancelled) => {
            complain("stopped")?;
            return Ok("(I was stopped before I could answer.)".to_owned());
        }
        Some(RunEnd::Failed { category, message }) => {
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
            tool.description()
        )
    });
    let agents = agent.agents().iter().map(|name| format!("{name}  agent"));
    let told: Vec<String> = tools.chain(agents).collect();
    match told.is_empty() {
        true => "the agent has no tools".to_owned(),
        false => told.join("\n"),
    }
}
