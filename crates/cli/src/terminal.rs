//! The only way to standard output and standard error. Everything is escaped by [`windlass_spec::text`] here,
//! whatever its source and whether or not the caller escaped it, so that no text can control a terminal. A
//! closed pipe is not an error, and does not hide another error.
//!
//! Text of models, tools and servers is quoted ([`Quote`]), so that it cannot pass for output of Windlass: a
//! bar begins every line of it, or a label of Windlass stands before it on the same line. On a terminal it is
//! also wrapped, because a terminal continues a long line in the first column. What a model answers there is
//! rendered as Markdown.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};

use anstream::{AutoStream, ColorChoice};
use rustix::termios::{Winsize, tcgetwinsize};
use serde_json::json;
use windlass_runtime::now;
use windlass_spec::text::{TextUse, escape, escape_json, escape_line};

use super::log::is_json;
use super::paste::complete;
use quote::room_behind_bar;

mod layout;
mod markdown;
mod quote;

pub(super) use layout::{Cells, Style, TableKind, Tone, lay_out, paint, styled_text};
pub(super) use markdown::{MarkdownStream, Page};
pub(super) use quote::{Quote, behind_bar, cut_to_terminal};

/// Whether standard error is a terminal and gets text.
pub(super) fn is_interactive() -> bool {
    !is_json() && io::stderr().is_terminal()
}

/// Writes a line of text for people to standard output.
pub(super) fn print_line(text: &str) -> io::Result<()> {
    ignore_broken_pipe(writeln!(io::stdout().lock(), "{}", visible(text)))
}

/// Writes a line of text for people to standard error.
pub(super) fn eprint_line(text: &str) -> io::Result<()> {
    let text = &*complete(text);
    let line = match is_json() {
        true if text.trim().is_empty() => return Ok(()),
        true => json_line(text),
        false => indent_error(&visible(text)).into_owned(),
    };
    ignore_broken_pipe(writeln!(io::stderr().lock(), "{line}"))
}

/// Writes a line with styles to standard output. All of its other sequences are escaped.
pub(super) fn print_styled_line(text: &str) -> io::Result<()> {
    ignore_broken_pipe(writeln!(io::stdout().lock(), "{}", styled(text)))
}

/// Whether text on standard output has styles.
pub(super) fn is_styled() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// Writes a line of progress to standard error. JSON logs leave it out.
pub(super) fn eprint_progress(text: &str) -> io::Result<()> {
    match is_json() {
        true => Ok(()),
        false => eprint_line(text),
    }
}

/// Indents the further lines of an error or warning, except hints: an error may quote anything.
fn indent_error(text: &str) -> Cow<'_, str> {
    let is_error = text.starts_with("error: ") || text.starts_with("warning: ");
    if !is_error || !text.contains('\n') {
        return text.into();
    }
    let mut lines = text.split('\n');
    let mut indented = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        let is_indented = line.is_empty() || line.starts_with([' ', '│']);
        indented.push('\n');
        if !is_indented && !line.starts_with("hint: ") {
            indented.push_str("  ");
        }
        indented.push_str(line);
    }
    indented.into()
}

/// Wraps a text for people in a JSON object in the format of the log's events.
fn json_line(text: &str) -> String {
    let text = text.trim_end_matches('\n');
    let level = match text.split_once(':') {
        Some(("error", _)) => "ERROR",
        Some(("warning", _)) => "WARN",
        _ => "INFO",
    };
    let line = json!({
        "timestamp": now(),
        "level": level,
        "fields": {"message": text},
        "target": "windlass",
    });
    escape_json(&line.to_string(), TextUse::Display).into_owned()
}

/// Writes JSON to standard output: the same value, with invisible characters escaped.
pub(super) fn print_json(json: &str) -> io::Result<()> {
    let json = escape_json(json, TextUse::Display);
    ignore_broken_pipe(io::stdout().lock().write_all(json.as_bytes()))
}

/// Writes a line of text, or of JSON without hidden characters, to standard output and flushes. Returns false if the pipe is closed.
pub(super) fn stream_line(line: &str) -> io::Result<bool> {
    let mut output = io::stdout().lock();
    match writeln!(output, "{}", visible(line)).and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

/// Writes the content of a file to standard output: byte for byte to a file or a program, escaped on a
/// terminal.
pub(super) fn print_content(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    let text = match output.is_terminal() {
        true => escape(text, TextUse::Display),
        false => text.into(),
    };
    ignore_broken_pipe(output.write_all(text.as_bytes()))
}

/// Writes the result of a tool to standard output: unchanged to a file or program, and on a terminal quoted below
/// a line that names its author.
pub(super) fn print_result(author: &str, text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    let text = match output.is_terminal() {
        true => format!("{author}:\n{}", Quote::of(text).block("")),
        false => text.to_owned(),
    };
    ignore_broken_pipe(writeln!(output, "{text}"))
}

/// Writes the answer of a model to standard output: escaped to a file or program, and on a terminal rendered below
/// a line that names its author.
pub(super) fn print_answer(author: &str, text: &str) -> io::Result<()> {
    match page() {
        Some(page) => {
            print_line(&format!("{author}:"))?;
            print_styled_line(&behind_bar(&page.render(text)))
        }
        None => print_line(text),
    }
}

/// How quoted text is rendered on standard output. `None` if that is no terminal.
pub(super) fn page() -> Option<Page> {
    output_width().map(|width| Page {
        width: room_behind_bar(width),
        is_styled: is_styled(),
    })
}

/// The width of standard output. `None` if that is no terminal.
pub(super) fn output_width() -> Option<usize> {
    let output = io::stdout();
    output
        .is_terminal()
        .then(|| known_columns(tcgetwinsize(output)))
}

/// The width of the terminal. `None` without a terminal.
pub(super) fn width() -> Option<usize> {
    let size = match (io::stderr().is_terminal(), io::stdout().is_terminal()) {
        (true, _) => tcgetwinsize(io::stderr()),
        (false, true) => tcgetwinsize(io::stdout()),
        (false, false) => return None,
    };
    Some(known_columns(size))
}

/// The columns of a terminal. Some do not know their size.
fn known_columns(size: rustix::io::Result<Winsize>) -> usize {
    match size.map_or(0, |size| usize::from(size.ws_col)) {
        0 => 80,
        columns => columns,
    }
}

/// Writes text with colours to standard error.
pub(super) fn eprint_styled(text: &str) -> io::Result<()> {
    match is_json() {
        true => eprint_line(text),
        false => eprint_log(text),
    }
}

/// Writes formatted lines of the log to standard error.
pub(super) fn eprint_log(text: &str) -> io::Result<()> {
    ignore_broken_pipe(io::stderr().lock().write_all(styled(text).as_bytes()))
}

/// Writes help with colours to standard output.
pub(super) fn print_help(text: &str) -> io::Result<()> {
    ignore_broken_pipe(io::stdout().lock().write_all(styled(text).as_bytes()))
}

/// Ignores a closed pipe, as in `windlass schema FILE | head`.
fn ignore_broken_pipe(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Escapes every hidden character of a text for people. For libraries that write to the terminal
/// themselves.
pub(super) fn visible(text: &str) -> String {
    escape(text, TextUse::Display).into_owned()
}

/// Like [`visible`], on one line.
pub(super) fn visible_line(text: &str) -> String {
    escape_line(text, TextUse::Display).into_owned()
}

/// Escapes a text except for the sequences that set colours.
fn styled(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(ESCAPE) {
        let (before, sequence) = rest.split_at(start);
        output.push_str(&visible(before));
        let length = match color_length(sequence) {
            Some(length) => {
                output.push_str(&sequence[..length]);
                length
            }
            None => {
                output.push_str(&visible(ESCAPE));
                ESCAPE.len()
            }
        };
        rest = &sequence[length..];
    }
    output.push_str(&visible(rest));
    output
}

const ESCAPE: &str = "\u{1b}";

/// Returns the length of a sequence that sets a colour (`ESC [ digits and semicolons m`). Hiding text (8)
/// is not a colour.
fn color_length(sequence: &str) -> Option<usize> {
    let parameters = sequence.strip_prefix(ESCAPE)?.strip_prefix('[')?;
    let end = parameters.find(|c: char| !matches!(c, '0'..='9' | ';'))?;
    let (numbers, closing) = parameters.split_at(end);
    (closing.starts_with('m') && !hides_text(numbers)).then(|| ESCAPE.len() + 1 + end + 1)
}

/// Whether one of the parameters hides the text.
fn hides_text(parameters: &str) -> bool {
    let mut numbers = parameters.split(';');
    while let Some(number) = numbers.next() {
        match number.parse() {
            Ok(8_u32) => return true,
            // A colour by its number, or by red, green and blue.
            Ok(38 | 48 | 58) => {
                let more = if numbers.next() == Some("2") { 3 } else { 1 };
                numbers.by_ref().take(more).for_each(drop);
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests;
