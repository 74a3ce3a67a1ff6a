//! The terminal while a prompt is shown: keys come one by one, and what is written is not changed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::getpgrp;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp,
    tcgetwinsize, tcsetattr,
};

use super::keys::{self, Key};

/// How long to wait for a key, in tenths of a second.
const PATIENCE: u8 = 2;

/// A read that returns nothing sooner than this did not wait: the terminal is closed.
const LEAST_WAIT: Duration = Duration::from_millis(50);

/// The terminal. Dropping it restores its settings.
pub(super) struct Tty {
    file: File,
    before: Termios,
    is_prompt: bool,
}

/// The settings of the terminal before it was opened.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Restores the settings of the terminal, before the program ends while it is open.
pub(crate) fn restore_terminal() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let (Some(before), Ok(file)) = (before, File::open("/dev/tty")) {
        let _ = tcsetattr(&file, OptionalActions::Drain, &before);
    }
}

impl Tty {
    /// Opens the terminal for a prompt, which handles all keys itself.
    pub(super) fn open() -> io::Result<Self> {
        let mut tty = Self::with(|settings| {
            settings.local_modes -= LocalModes::ISIG | LocalModes::IEXTEN;
            settings.input_modes -= InputModes::IXON | InputModes::ICRNL;
        })?;
        tty.is_prompt = true;
        // Pasted text is marked, so that its line breaks do not submit it.
        tty.write("\x1b[?2004h")?;
        Ok(tty)
    }

    /// Opens the terminal for single keys while the program works. Ctrl-C stays an interrupt. `None` if the
    /// program is in the background, where it must not read.
    pub(super) fn listen() -> io::Result<Option<Self>> {
        let file = OpenOptions::new().read(true).open("/dev/tty")?;
        match tcgetpgrp(&file)? == getpgrp() {
            true => Self::with(|_| ()).map(Some),
            false => Ok(None),
        }
    }

    fn with(change: impl FnOnce(&mut Termios)) -> io::Result<Self> {
        // Answers may go to a file while the user types: the prompt belongs to the terminal.
        let file = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
        let before = tcgetattr(&file)?;
        let mut settings = before.clone();
        settings.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        settings.special_codes[SpecialCodeIndex::VMIN] = 0;
        settings.special_codes[SpecialCodeIndex::VTIME] = PATIENCE;
        change(&mut settings);
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before.clone());
        tcsetattr(&file, OptionalActions::Drain, &settings)?;
        Ok(Self {
            file,
            before,
            is_prompt: false,
        })
    }

    pub(super) fn columns(&self) -> usize {
        let size = tcgetwinsize(&self.file).map_or(0, |size| usize::from(size.ws_col));
        // Some terminals do not know their size.
        if size == 0 { 80 } else { size }
    }

    /// Writes text that is safe to draw.
    pub(super) fn write(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        self.file.flush()
    }

    /// Waits for a key; `None` if none comes for a while.
    pub(super) fn key(&mut self) -> io::Result<Option<Key>> {
        keys::read(&mut || self.byte())
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        let since = Instant::now();
        match self.file.read(&mut byte) {
            Ok(0) => {
                if since.elapsed() < LEAST_WAIT {
                    std::thread::sleep(LEAST_WAIT);
                }
                Ok(None)
            }
            Ok(_) => Ok(Some(byte[0])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        if self.is_prompt {
            let _ = self.write("\x1b[?2004l");
        }
        let _ = tcsetattr(&self.file, OptionalActions::Drain, &self.before);
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
