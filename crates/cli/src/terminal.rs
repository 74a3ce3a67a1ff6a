//! Writes to the person in front of the program. Whatever comes from a file, an argument or a library
//! is made visible first, so that it cannot steer a terminal; and a reader that has seen enough is no
//! reason to fail, nor to forget that something else failed.

use std::io::{self, Write};

use windlass_spec::is_invisible;

/// Writes a line of text for people to standard output.
pub(super) fn say(text: &str) -> io::Result<()> {
    quietly(writeln!(io::stdout().lock(), "{}", visible(text)))
}

/// Writes a line of text for people to standard error.
pub(super) fn complain(text: &str) -> io::Result<()> {
    quietly(writeln!(io::stderr().lock(), "{}", visible(text)))
}

/// Writes a result to standard output as it is: for programs, or the content of a file.
pub(super) fn put(text: &str) -> io::Result<()> {
    quietly(io::stdout().lock().write_all(text.as_bytes()))
}

/// Writes what has been made visible already to standard error.
pub(super) fn draw(text: &str) -> io::Result<()> {
    quietly(io::stderr().lock().write_all(text.as_bytes()))
}

/// Whoever reads our output has seen enough, as in `windlass schema FILE | head`.
fn quietly(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// A text with every invisible character but the line break shown as an escape.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_invisible(c) && c != '\n' {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown
}
