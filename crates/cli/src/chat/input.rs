//! The input of a conversation: typed at a terminal, with editing and history, or read line by line from a
//! pipe or file. A line that ends with a backslash continues on the next one.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Behavior, Config, Editor};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::COMMANDS;
use crate::prompt::SafeLine;
use crate::terminal::eprint_line;

/// The history file, in the data directory.
const HISTORY: &str = "chat_history";

/// The maximum number of lines in the history.
const MAX_HISTORY: usize = 1000;

/// The maximum length of a line, so that a wrong file does not fill the memory.
const MAX_BYTES: u64 = 1024 * 1024;

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChatInput {
    /// A complete line.
    Line(String),
    /// The user discarded the line with Ctrl-C.
    LineCancelled,
    /// The end of the input.
    End,
    /// An interrupt before the end of the input.
    Interrupted,
}

/// The source of lines.
pub(super) enum Input {
    Typed(Box<Typed>),
    Piped(Piped),
}

impl Input {
    /// Opens the terminal if standard input is one, else standard input.
    pub(super) fn open(data: &Path) -> anyhow::Result<Self> {
        Ok(match io::stdin().is_terminal() {
            true => Self::Typed(Box::new(Typed::new(data.join(HISTORY))?)),
            false => Self::Piped(Piped::new()),
        })
    }

    /// Whether the input is a terminal.
    pub(super) fn is_typed(&self) -> bool {
        matches!(self, Self::Typed(_))
    }

    /// Reads the next message. Must be called within a tokio runtime of several threads.
    pub(super) async fn next(&mut self) -> anyhow::Result<ChatInput> {
        let mut message = String::new();
        loop {
            let is_more = !message.is_empty();
            let received = match self {
                Self::Typed(typed) => tokio::task::block_in_place(|| typed.line(is_more))?,
                Self::Piped(piped) => piped.line().await?,
            };
            match received {
                ChatInput::Line(line) => {
                    let line = line.trim_end_matches(['\r', '\n']);
                    let (line, is_continued) = match line.strip_suffix('\\') {
                        Some(line) => (line, true),
                        None => (line, false),
                    };
                    message.push_str(line);
                    if is_continued {
                        message.push('\n');
                        continue;
                    }
                }
                ChatInput::End if is_more => {}
                other => return Ok(other),
            }
            if let Self::Typed(typed) = self {
                typed.add_to_history(&message);
            }
            return Ok(ChatInput::Line(message));
        }
    }
}

/// Lines from a terminal.
pub(super) struct Typed {
    editor: Editor<SafeLine<Completion>, FileHistory>,
    /// `None` once it could not be written. That is reported once, and the conversation continues.
    history: Option<PathBuf>,
}

impl Typed {
    fn new(history: PathBuf) -> anyhow::Result<Self> {
        // Standard output may be a file, so the prompt goes to the terminal.
        let config = Config::builder()
            .behavior(Behavior::PreferTerm)
            .max_history_size(MAX_HISTORY)?
            .build();
        let mut editor = Editor::with_config(config).context("cannot use the terminal")?;
        editor.set_helper(Some(SafeLine(Completion)));
        if let Err(error) = editor.load_history(&history)
            && history.exists()
        {
            eprint_line(&format!("warning: cannot read the chat history: {error}"))?;
        }
        let history = Some(history);
        Ok(Self { editor, history })
    }

    fn line(&mut self, is_more: bool) -> anyhow::Result<ChatInput> {
        let prompt = if is_more { ". " } else { "> " };
        match self.editor.readline(prompt) {
            Ok(line) => Ok(ChatInput::Line(line)),
            Err(ReadlineError::Interrupted) => Ok(ChatInput::LineCancelled),
            Err(ReadlineError::Eof) => Ok(ChatInput::End),
            Err(error) => Err(error).context("cannot read the terminal"),
        }
    }

    fn add_to_history(&mut self, message: &str) {
        let Some(path) = &self.history else {
            return;
        };
        let added = match self.editor.add_history_entry(message) {
            Ok(true) => self.editor.append_history(path),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = added {
            let _ = eprint_line(&format!("warning: cannot write the chat history: {error}"));
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
        let matching = COMMANDS
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| typed.starts_with('/') && name.starts_with(typed));
        Ok((0, matching.map(str::to_owned).collect()))
    }
}

/// Lines from a file or another program.
pub(super) struct Piped {
    lines: mpsc::Receiver<io::Result<String>>,
}

impl Piped {
    /// Reads on a detached thread, because the input may never end.
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

    async fn line(&mut self) -> anyhow::Result<ChatInput> {
        let mut interrupts = signal(SignalKind::interrupt())?;
        tokio::select! {
            line = self.lines.recv() => match line {
                Some(line) => Ok(ChatInput::Line(line.context("cannot read standard input")?)),
                None => Ok(ChatInput::End),
            },
            _ = interrupts.recv() => Ok(ChatInput::Interrupted),
        }
    }
}

/// Reads a line; `None` at the end.
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
    fn lines_are_read_to_the_end_and_too_long_ones_are_refused() {
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
