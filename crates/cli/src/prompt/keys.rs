//! Keys as terminals send them: bytes and escape sequences.

use std::io;

/// A key, or a pasted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    Text(String),
    Enter,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Up,
    Down,
    Home,
    End,
    /// Ctrl-U.
    DeleteToStart,
    /// Ctrl-K.
    DeleteToEnd,
    /// Ctrl-W.
    DeleteWord,
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    Other,
}

/// The end of a pasted text.
const PASTE_END: &[u8] = b"\x1b[201~";

/// The longest sequence that is read.
const LONGEST_SEQUENCE: usize = 32;

/// Reads a key. `next` returns the next byte; `None` if none comes for a while.
///
/// # Errors
/// If the terminal cannot be read.
pub(super) fn read(next: &mut dyn FnMut() -> io::Result<Option<u8>>) -> io::Result<Option<Key>> {
    let Some(byte) = next()? else {
        return Ok(None);
    };
    Ok(Some(match byte {
        b'\r' | b'\n' => Key::Enter,
        0x7f | 0x08 => Key::Backspace,
        0x01 => Key::Home,
        0x02 => Key::Left,
        0x03 => Key::Interrupt,
        0x04 => Key::EndOfInput,
        0x05 => Key::End,
        0x06 => Key::Right,
        0x0b => Key::DeleteToEnd,
        0x0e => Key::Down,
        0x10 => Key::Up,
        0x15 => Key::DeleteToStart,
        0x17 => Key::DeleteWord,
        0x1b => escape(next)?,
        0x00..=0x1f => Key::Other,
        _ => text(byte, next)?,
    }))
}

/// Reads what follows an escape.
fn escape(next: &mut dyn FnMut() -> io::Result<Option<u8>>) -> io::Result<Key> {
    Ok(match next()? {
        None => Key::Escape,
        Some(b'b') => Key::WordLeft,
        Some(b'f') => Key::WordRight,
        Some(b'O') => match next()? {
            Some(last) => named(&[], last),
            None => Key::Other,
        },
        Some(b'[') => {
            let mut parameters = Vec::new();
            loop {
                match next()? {
                    Some(byte @ (b'0'..=b'9' | b';')) if parameters.len() < LONGEST_SEQUENCE => {
                        parameters.push(byte);
                    }
                    Some(b'~') if parameters == b"200" => return pasted(next),
                    Some(last) => return Ok(named(&parameters, last)),
                    None => return Ok(Key::Other),
                }
            }
        }
        Some(_) => Key::Other,
    })
}

fn named(parameters: &[u8], last: u8) -> Key {
    let is_by_word = parameters.ends_with(b";5") || parameters.ends_with(b";3");
    match (last, parameters) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) if is_by_word => Key::WordRight,
        (b'D', _) if is_by_word => Key::WordLeft,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::End,
        (b'~', b"3") => Key::Delete,
        _ => Key::Other,
    }
}

/// Reads a pasted text up to its end. It stays on one line.
fn pasted(next: &mut dyn FnMut() -> io::Result<Option<u8>>) -> io::Result<Key> {
    let mut bytes = Vec::new();
    while let Some(byte) = next()? {
        bytes.push(byte);
        if bytes.ends_with(PASTE_END) {
            bytes.truncate(bytes.len() - PASTE_END.len());
            break;
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(Key::Text(
        text.replace("\r\n", " ").replace(['\r', '\n'], " "),
    ))
}

/// Reads the rest of a character.
fn text(first: u8, next: &mut dyn FnMut() -> io::Result<Option<u8>>) -> io::Result<Key> {
    let length = match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    };
    let mut bytes = vec![first];
    while bytes.len() < length {
        match next()? {
            Some(byte) => bytes.push(byte),
            None => break,
        }
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Key::Text(text),
        Err(_) => Key::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut bytes = bytes.iter().copied();
        let mut next = || Ok(bytes.next());
        let mut keys = Vec::new();
        while let Some(key) = read(&mut next).unwrap() {
            keys.push(key);
        }
        keys
    }

    #[test]
    fn keys_are_recognised_as_terminals_send_them() {
        let expected = [
            Key::Home,
            Key::DeleteToStart,
            Key::DeleteWord,
            Key::Left,
            Key::Right,
            Key::Delete,
            Key::WordLeft,
            Key::Home,
            Key::End,
            Key::Text("ä".to_owned()),
            Key::Enter,
            Key::Escape,
        ];
        let bytes = b"\x01\x15\x17\x1b[D\x1b[C\x1b[3~\x1b[1;5D\x1bOH\x1b[4~\xc3\xa4\r\x1b";
        assert_eq!(keys(bytes), expected);
    }

    #[test]
    fn a_pasted_line_break_does_not_submit() {
        let bytes = b"\x1b[200~{\r\n\"a\": 1\n}\x1b[201~\r";
        let expected = [Key::Text("{ \"a\": 1 }".to_owned()), Key::Enter];
        assert_eq!(keys(bytes), expected);
    }
}
