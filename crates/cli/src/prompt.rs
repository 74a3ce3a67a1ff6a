//! Prompts for a line at the terminal. Pasted text is drawn without characters that control the terminal or
//! change the order of what is seen.

use std::borrow::Cow;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{Behavior, Config, Context, Editor, Helper};
use windlass_spec::text::{CharacterClass, TextUse, is_clean, replace_hidden};

/// Why there is no line.
#[derive(Debug)]
pub(super) enum PromptError {
    /// The user cancelled the prompt with Ctrl-C or Ctrl-D.
    Cancelled,
    /// The terminal cannot be used.
    Terminal(ReadlineError),
}

impl From<ReadlineError> for PromptError {
    fn from(error: ReadlineError) -> Self {
        match error {
            ReadlineError::Interrupted | ReadlineError::Eof => Self::Cancelled,
            other => Self::Terminal(other),
        }
    }
}

/// Asks for a line. `initial` can be edited.
///
/// # Errors
/// If the user cancels the prompt, or the terminal cannot be used.
pub(super) fn read_text(question: &str, initial: &str) -> Result<String, PromptError> {
    // Answers may go to a file while the user types: the prompt belongs to the terminal.
    let config = Config::builder().behavior(Behavior::PreferTerm).build();
    let mut editor = Editor::<SafeLine<()>, MemHistory>::with_history(config, MemHistory::new())?;
    editor.set_helper(Some(SafeLine(())));
    let prompt = format!("{} ", drawn(question));
    Ok(editor.readline_with_initial(&prompt, (initial, ""))?)
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
