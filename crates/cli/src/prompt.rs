//! Prompts at the terminal for a line and for one of several choices. Pasted text is drawn without characters that
//! control the terminal or change the order of what is seen. A prompt can end before the user answers it.

mod keys;
mod line;
mod tty;

use std::borrow::Cow;
use std::io;

use rustyline::completion::Completer;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use windlass_spec::text::{CharacterClass, TextUse, is_clean, replace_hidden};

use keys::Key;
use line::Line;
use tty::Tty;
pub(super) use tty::restore_terminal;

/// How many choices are shown at the same time.
const SHOWN_CHOICES: usize = 10;

/// The columns that are left for typing behind a question on the same line.
const LEAST_ROOM: usize = 20;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum PromptError {
    /// The user cancelled the prompt with Escape, Ctrl-C or Ctrl-D.
    Cancelled,
    /// The question was settled while the prompt was shown.
    Over,
    /// The terminal cannot be used.
    Terminal(io::Error),
}

impl From<io::Error> for PromptError {
    fn from(error: io::Error) -> Self {
        Self::Terminal(error)
    }
}

/// Asks for a line. `initial` can be edited.
///
/// # Errors
/// If the user cancels the prompt, or the terminal cannot be used.
pub(super) fn read_text(question: &str, initial: &str) -> Result<String, PromptError> {
    read_text_until(question, initial, &mut || false)
}

/// Asks for a line, unless `is_over` becomes true.
///
/// # Errors
/// If the user cancels the prompt, it is over, or the terminal cannot be used.
pub(super) fn read_text_until(
    question: &str,
    initial: &str,
    is_over: &mut dyn FnMut() -> bool,
) -> Result<String, PromptError> {
    let mut tty = Tty::open()?;
    let mut question = drawn(question).into_owned();
    if line::width_of(&question) + LEAST_ROOM > tty.columns() {
        tty.write(&format!("{question}\r\n"))?;
        ">".clone_into(&mut question);
    }
    let mut line = Line::new(initial);
    loop {
        tty.write(&line.draw(&question, tty.columns()))?;
        let typed = loop {
            match tty.key()? {
                Some(key) => break Some(key),
                None if is_over() => break None,
                None => {}
            }
        };
        let end = match typed {
            None => Err(PromptError::Over),
            Some(Key::Enter) => Ok(line.text()),
            Some(Key::Interrupt | Key::Escape) => Err(PromptError::Cancelled),
            Some(Key::EndOfInput) if line.is_empty() => Err(PromptError::Cancelled),
            Some(key) => {
                line.apply(key);
                continue;
            }
        };
        // The whole line stays on the screen.
        line.move_to_end();
        tty.write(&line.draw(&question, tty.columns()))?;
        tty.write("\r\n")?;
        return end;
    }
}

/// Asks for one of several choices, unless `is_over` becomes true. Returns its index.
///
/// # Errors
/// If the user cancels the prompt, it is over, or the terminal cannot be used.
pub(super) fn choose_until(
    question: &str,
    choices: &[&str],
    is_over: &mut dyn FnMut() -> bool,
) -> Result<usize, PromptError> {
    let mut tty = Tty::open()?;
    let question = drawn(question).into_owned();
    tty.write(&format!(
        "{question} (arrow keys and Enter, Escape to leave)\r\n"
    ))?;
    let last = choices.len().saturating_sub(1);
    let mut chosen: usize = 0;
    let mut first: usize = 0;
    loop {
        first = first.clamp((chosen + 1).saturating_sub(SHOWN_CHOICES), chosen);
        let shown = choices.iter().enumerate().skip(first).take(SHOWN_CHOICES);
        let mut rows = 0;
        for (index, choice) in shown {
            let mark = if index == chosen { ">" } else { " " };
            let row = format!("{mark} {}", drawn(choice));
            let row = line::cut(&row, tty.columns().saturating_sub(1));
            tty.write(&format!("\r\x1b[K{row}\r\n"))?;
            rows += 1;
        }
        let typed = loop {
            match tty.key()? {
                Some(key) => break Some(key),
                None if is_over() => break None,
                None => {}
            }
        };
        // The choices are removed, and drawn again or replaced by the chosen one.
        tty.write(&format!("\x1b[{rows}A\r\x1b[J"))?;
        match typed {
            None => return Err(PromptError::Over),
            Some(Key::Enter) => {
                let chosen_text = choices.get(chosen).copied().unwrap_or_default();
                tty.write(&format!("> {}\r\n", drawn(chosen_text)))?;
                return Ok(chosen);
            }
            Some(Key::Interrupt | Key::Escape | Key::EndOfInput) => {
                return Err(PromptError::Cancelled);
            }
            Some(Key::Up) => chosen = chosen.checked_sub(1).unwrap_or(last),
            Some(Key::Down) => chosen = if chosen == last { 0 } else { chosen + 1 },
            Some(Key::Home) => chosen = 0,
            Some(Key::End) => chosen = last,
            Some(_) => {}
        }
    }
}

/// Passes the letters that the user types to `typed`, until that returns false or the program is in the background.
/// Interrupts stay interrupts. `typed` is also called without a letter, several times a second.
///
/// # Errors
/// If the terminal cannot be used.
pub(super) fn listen(typed: &mut dyn FnMut(Option<&str>) -> bool) -> io::Result<()> {
    let Some(mut tty) = Tty::listen()? else {
        return Ok(());
    };
    loop {
        let key = tty.key()?;
        let letter = match &key {
            Some(Key::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        if !typed(letter) {
            return Ok(());
        }
    }
}

/// A line as it is drawn.
fn drawn(line: &str) -> Cow<'_, str> {
    replace_hidden(line, TextUse::Display, |class, hidden, drawn| {
        // The editor counts one column for each control character and none for the others.
        if class == CharacterClass::Control {
            drawn.extend(hidden.chars().map(|_| '\u{fffd}'));
        }
    })
}

/// Whether a line cannot be drawn as it is.
fn must_be_drawn(line: &str) -> bool {
    !is_clean(line, TextUse::Display)
}

/// Draws typed and pasted text and the history without characters that control the terminal. `C` completes what
/// is typed.
pub(super) struct SafeLine<C>(pub(super) C);

impl<C: Completer> Completer for SafeLine<C> {
    type Candidate = C::Candidate;

    fn complete(
        &self,
        line: &str,
        position: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<C::Candidate>)> {
        self.0.complete(line, position, context)
    }
}

impl<C> Hinter for SafeLine<C> {
    type Hint = String;
}

impl<C> Highlighter for SafeLine<C> {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        drawn(line)
    }

    fn highlight_char(&self, line: &str, _: usize, _: CmdKind) -> bool {
        must_be_drawn(line)
    }
}

impl<C> Validator for SafeLine<C> {}
impl<C: Completer> Helper for SafeLine<C> {}
