//! Where a conversation's lines come from: typed at a terminal, with editing and history, or read one
//! by one from anything else. A line that ends with a backslash goes on in the next one.

use std::borrow::Cow;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Behavior, Config, Editor, Helper};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::COMMANDS;
use crate::prompt::{drawn, must_be_drawn};
use crate::terminal::complain;

/// The history of what was typed, in the data directory.
const HISTORY: &str = "chat_history";

/// How many lines of it are kept.
const MAX_HISTORY: usize = 1000;

/// Longer lines are refused: nobody says that much, and it keeps a wrong file from filling the memory.
const MAX_BYTES: u64 = 1024 * 1024;

/// What came of asking for a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Something was said.
    Line(String),
    /// What was being typed is to be forgotten.
    Nothing,
    /// Nothing more will be said.
    End,
    /// The person wants to leave, though there may be more.
    Interrupted,
}

/// Where lines come from.
pub(super) enum Input {
    Typed(Box<Typed>),
    Piped(Piped),
}

impl Input {
    /// A terminal if standard input is one, else whatever it is.
    pub(super) fn open(data: &Path) -> anyhow::Result<Self> {
        Ok(match io::stdin().is_terminal() {
            true => Self::Typed(Box::new(Typed::new(data.join(HISTORY))?)),
            false => Self::Piped(Piped::new()),
        })
    }

    /// Whether a person sits at it.
    pub(super) fn is_typed(&self) -> bool {
        matches!(self, Self::Typed(_))
    }

    /// The next thing said. Must be called within a tokio runtime of several threads.
    pub(super) async fn next(&mut self) -> anyhow::Result<Heard> {
        let mut said = String::new();
        loop {
            let is_more = !said.is_empty();
            let heard = match self {
                Self::Typed(typed) => tokio::task::block_in_place(|| typed.line(is_more))?,
                Self::Piped(piped) => piped.line().await?,
            };
            match heard {
                Heard::Line(line) => {
                    let line = line.trim_end_matches(['\r', '\n']);
                    let (line, goes_on) = match line.strip_suffix('\\') {
                        Some(line) => (line, true),
                        None => (line, false),
                    };
                    said.push_str(line);
                    if goes_on {
                        said.push('\n');
                        continue;
                    }
                }
                Heard::End if is_more => {}
                other => return Ok(other),
            }
            if let Self::Typed(typed) = self {
                typed.remember(&said);
            }
            return Ok(Heard::Line(said));
        }
    }
}

/// Lines from a terminal.
pub(super) struct Typed {
    editor: Editor<Completion, FileHistory>,
    /// `None` once it could not be written; that is told once and the conversation goes on.
    history: Option<PathBuf>,
}

impl Typed {
    fn new(history: PathBuf) -> anyhow::Result<Self> {
        // Answers may go to a file while the person types: the prompt belongs to the terminal.
        let config = Config::builder()
            .behavior(Behavior::PreferTerm)
            .max_history_size(MAX_HISTORY)?
            .build();
        let mut editor = Editor::with_config(config).context("the terminal cannot be used")?;
        editor.set_helper(Some(Completion));
        if let Err(error) = editor.load_history(&history)
            && history.exists()
        {
            complain(&format!("what was typed before cannot be read: {error}"))?;
        }
        let history = Some(history);
        Ok(Self { editor, history })
    }

    fn line(&mut self, is_more: bool) -> anyhow::Result<Heard> {
        let prompt = if is_more { ". " } else { "> " };
        match self.editor.readline(prompt) {
            Ok(line) => Ok(Heard::Line(line)),
            Err(ReadlineError::Interrupted) => Ok(Heard::Nothing),
            Err(ReadlineError::Eof) => Ok(Heard::End),
            Err(error) => Err(error).context("the terminal cannot be read"),
        }
    }

    fn remember(&mut self, said: &str) {
        let Some(path) = &self.history else {
            return;
        };
        let kept = match self.editor.add_history_entry(said) {
            Ok(true) => self.editor.append_history(path),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = kept {
            let _ = complain(&format!("what is typed is not remembered: {error}"));
            self.history = None;
        }
    }
}

/// Completes the commands of a conversation.
struct Completion;

impl Completer for Completion {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..position).unwrap_or_default();
        let begun = COMMANDS
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| typed.starts_with('/') && name.starts_with(typed));
        Ok((0, begun.map(str::to_owned).collect()))
    }
}

impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        drawn(line)
    }

    fn highlight_char(&self, line: &str, _: usize, _: CmdKind) -> bool {
        must_be_drawn(line)
    }
}

impl Validator for Completion {}
impl Helper for Completion {}

/// Lines from a file or another program.
pub(super) struct Piped {
    lines: mpsc::Receiver<io::Result<String>>,
}

impl Piped {
    /// Reads on a thread of its own, which no one waits for: whoever writes may never end.
    fn new() -> Self {
        let (sender, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            let mut stdin = io::stdin().lock();
            while let Some(line) = read_line(&mut stdin).transpose() {
                let is_over = line.is_err();
                if sender.blocking_send(line).is_err() || is_over {
                    break;
                }
            }
        });
        Self { lines }
    }

    async fn line(&mut self) -> anyhow::Result<Heard> {
        let mut interrupts = signal(SignalKind::interrupt())?;
        tokio::select! {
            line = self.lines.recv() => match line {
                Some(line) => Ok(Heard::Line(line.context("standard input cannot be read")?)),
                None => Ok(Heard::End),
            },
            _ = interrupts.recv() => Ok(Heard::Interrupted),
        }
    }
}

/// A line, or nothing at the end.
fn read_line(reader: &mut impl io::BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    reader.take(MAX_BYTES + 1).read_until(b'\n', &mut bytes)?;
    let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    if bytes.len() as u64 > MAX_BYTES {
        return Err(invalid("a line is longer than 1 MiB"));
    }
    match String::from_utf8(bytes) {
        Ok(line) => Ok((!line.is_empty()).then_some(line)),
        Err(_) => Err(invalid("a line is not UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::{MAX_BYTES, read_line};

    #[test]
    fn lines_end_with_the_text_and_too_long_ones_are_refused() {
        let mut text = Cursor::new(b"a\nb".to_vec());
        assert_eq!(read_line(&mut text).ok(), Some(Some("a\n".to_owned())));
        assert_eq!(read_line(&mut text).ok(), Some(Some("b".to_owned())));
        assert_eq!(read_line(&mut text).ok(), Some(None));
        let longest = vec![b'x'; MAX_BYTES as usize];
        assert!(read_line(&mut Cursor::new(longest.clone())).is_ok());
        let longer = [longest, vec![b'x']].concat();
        assert!(read_line(&mut Cursor::new(longer)).is_err());
        assert!(read_line(&mut Cursor::new(b"\xff\n".to_vec())).is_err());
    }
}
