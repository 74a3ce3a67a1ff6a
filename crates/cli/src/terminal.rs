//! The only way to standard output and standard error. Everything passes [`windlass_spec::text`] here,
//! whatever its source and whether or not the caller made it safe, so that nothing can steer a terminal;
//! and a reader that has seen enough is no reason to fail, nor to forget that something else failed.

use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use windlass_runtime::now;
use windlass_spec::text::{TextUse, escape, escape_json, escape_line};

/// Whether every line on standard error is a JSON object.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on, every line on standard error is a JSON object of the form of the log's.
pub(super) fn write_errors_as_json() {
    IS_JSON.store(true, Ordering::Relaxed);
}

/// Whether a person reads standard error: it is a terminal, and gets text.
pub(super) fn is_read_by_person() -> bool {
    !is_json() && io::stderr().is_terminal()
}

/// Whether programs read standard error.
pub(super) fn is_json() -> bool {
    IS_JSON.load(Ordering::Relaxed)
}

/// Writes a line of text for people to standard output.
pub(super) fn say(text: &str) -> io::Result<()> {
    quietly(writeln!(io::stdout().lock(), "{}", visible(text)))
}

/// Writes a line of text for people to standard error.
pub(super) fn complain(text: &str) -> io::Result<()> {
    let line = match is_json() {
        true if text.trim().is_empty() => return Ok(()),
        true => json_line(text),
        false => visible(text),
    };
    quietly(writeln!(io::stderr().lock(), "{line}"))
}

/// Writes a line of progress to standard error, which programs that read the log do not need.
pub(super) fn tell_progress(text: &str) -> io::Result<()> {
    match is_json() {
        true => Ok(()),
        false => complain(text),
    }
}

/// A text for people as an object of the form that events of the log have.
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

/// Writes JSON to standard output: the same value, with escapes for what cannot be seen.
pub(super) fn put(json: &str) -> io::Result<()> {
    let json = escape_json(json, TextUse::Display);
    quietly(io::stdout().lock().write_all(json.as_bytes()))
}

/// Writes a line of text, or of JSON without hidden characters, to standard output at once. Returns false if nobody reads it any more.
pub(super) fn stream(line: &str) -> io::Result<bool> {
    let mut output = io::stdout().lock();
    match writeln!(output, "{}", visible(line)).and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

/// Writes the content of a file to standard output: byte for byte to a file or a program, made visible
/// on a terminal.
pub(super) fn put_content(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    let text = match output.is_terminal() {
        true => escape(text, TextUse::Display),
        false => text.into(),
    };
    quietly(output.write_all(text.as_bytes()))
}

/// Writes text with colours of ours to standard error.
pub(super) fn draw(text: &str) -> io::Result<()> {
    match is_json() {
        true => complain(text),
        false => draw_log(text),
    }
}

/// Writes lines of the log, which have their form already, to standard error.
pub(super) fn draw_log(text: &str) -> io::Result<()> {
    quietly(io::stderr().lock().write_all(styled(text).as_bytes()))
}

/// Writes help, with colours of ours, to standard output.
pub(super) fn draw_help(text: &str) -> io::Result<()> {
    quietly(io::stdout().lock().write_all(styled(text).as_bytes()))
}

/// Whoever reads our output has seen enough, as in `windlass schema FILE | head`.
fn quietly(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// A text for people, with every hidden character as an escape. For libraries that write to the
/// terminal themselves.
pub(super) fn visible(text: &str) -> String {
    escape(text, TextUse::Display).into_owned()
}

/// The same on one line.
pub(super) fn visible_line(text: &str) -> String {
    escape_line(text, TextUse::Display).into_owned()
}

/// A text of several lines, the further ones further in, so that none of them can pass for a line of ours
/// or of the log. For texts of models, tools and servers.
pub(super) fn visible_block(text: &str) -> String {
    visible(text.trim_end()).replace('\n', "\n  ")
}

/// A text in which sequences that set colours stay and everything else is made visible.
fn styled(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(ESCAPE) {
        let (before, sequence) = rest.split_at(start);
        made.push_str(&visible(before));
        let length = match color_length(sequence) {
            Some(length) => {
                made.push_str(&sequence[..length]);
                length
            }
            None => {
                made.push_str(&visible(ESCAPE));
                ESCAPE.len()
            }
        };
        rest = &sequence[length..];
    }
    made.push_str(&visible(rest));
    made
}

const ESCAPE: &str = "\u{1b}";

/// How long the sequence is that sets a colour (`ESC [ digits and semicolons m`), if it is one. Hiding
/// text (8) is not a colour.
fn color_length(sequence: &str) -> Option<usize> {
    let parameters = sequence.strip_prefix(ESCAPE)?.strip_prefix('[')?;
    let end = parameters.find(|c: char| !matches!(c, '0'..='9' | ';'))?;
    let (numbers, closing) = parameters.split_at(end);
    (closing.starts_with('m') && !hides_text(numbers)).then(|| ESCAPE.len() + 1 + end + 1)
}

/// Whether one of the parameters makes a terminal draw nothing.
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
