//! The terminal while a prompt is shown: keys come one by one, and what is written is not changed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::time::{Duration, Instant};

use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize,
    tcsetattr,
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
}

impl Tty {
    pub(super) fn open() -> io::Result<Self> {
        // Answers may go to a file while the user types: the prompt belongs to the terminal.
        let file = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
        let before = tcgetattr(&file)?;
        let mut settings = before.clone();
        settings.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        settings.local_modes -= LocalModes::IEXTEN;
        settings.input_modes -= InputModes::IXON | InputModes::ICRNL;
        settings.special_codes[SpecialCodeIndex::VMIN] = 0;
        settings.special_codes[SpecialCodeIndex::VTIME] = PATIENCE;
        tcsetattr(&file, OptionalActions::Drain, &settings)?;
        let mut tty = Self { file, before };
        // Pasted text is marked, so that its line breaks do not submit it.
        tty.write("\x1b[?2004h")?;
        Ok(tty)
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
        let _ = self.write("\x1b[?2004l");
        let _ = tcsetattr(&self.file, OptionalActions::Drain, &self.before);
    }
}
