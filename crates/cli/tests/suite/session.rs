//! A running program: waits for its output, types input, and interrupts it.

use std::io::{Read, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Far longer than any step takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running program.
pub(super) struct Session {
    child: Child,
    input: Option<ChildStdin>,
    printed: Receiver<Vec<u8>>,
    text: String,
    /// The length of the text that is already matched.
    seen: usize,
}

impl Session {
    pub(super) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, printed) = channel();
        forward(child.stdout.take().unwrap(), sender.clone());
        forward(child.stderr.take().unwrap(), sender);
        Self {
            input: child.stdin.take(),
            child,
            printed,
            text: String::new(),
            seen: 0,
        }
    }

    /// Starts the program at a pseudo-terminal, with `script` of util-linux.
    pub(super) fn at_a_terminal(command: &Command) -> Self {
        Self::at_a_terminal_of(80, command)
    }

    /// Starts the program at a pseudo-terminal with that many columns.
    pub(super) fn at_a_terminal_of(columns: u16, command: &Command) -> Self {
        let words: Vec<String> = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|word| format!("'{}'", word.to_str().unwrap()))
            .collect();
        let mut script = Command::new("script");
        script
            .args([
                "-qec",
                &format!("stty rows 24 columns {columns}; exec {}", words.join(" ")),
                "/dev/null",
            ])
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh");
        if let Some(directory) = command.get_current_dir() {
            script.current_dir(directory);
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => script.env(name, value),
                None => script.env_remove(name),
            };
        }
        Self::start(script)
    }

    /// Waits until this text is printed, after the previous match.
    pub(super) fn expect(&mut self, text: &str) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(start) = self.text[self.seen..].find(text) {
                self.seen += start + text.len();
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.printed.recv_timeout(left) {
                Ok(bytes) => self.text += &String::from_utf8_lossy(&bytes),
                Err(RecvTimeoutError::Timeout) => panic!("no `{text}` came:\n{}", self.text),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended:\n{}", self.text),
            }
        }
    }

    /// Waits until the program has printed everything.
    pub(super) fn expect_end(&mut self) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.printed.recv_timeout(left) {
                Ok(bytes) => self.text += &String::from_utf8_lossy(&bytes),
                Err(RecvTimeoutError::Timeout) => panic!("it does not end:\n{}", self.text),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Waits for a condition outside of the output.
    pub(super) fn wait_until(&mut self, is_done: impl Fn() -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !is_done() {
            assert!(self.child.try_wait().unwrap().is_none(), "it ended");
            assert!(Instant::now() < deadline, "it does not do it");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The text so far.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The last complete line of the matched text.
    pub(super) fn last_line(&self) -> &str {
        self.text[..self.seen]
            .trim_end()
            .lines()
            .last()
            .unwrap_or_default()
    }

    pub(super) fn send(&mut self, text: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// Sends SIGINT, as Ctrl-C does.
    pub(super) fn interrupt(&self) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-INT", &id]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end and returns the exit code.
    pub(super) fn end(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap()
    }

    /// Interrupts the program until it ends, and returns the exit code. The input stays open.
    pub(super) fn interrupt_until_the_end(mut self) -> i32 {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap();
            }
            self.interrupt();
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not end:\n{}", self.text);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn forward(mut from: impl Read + Send + 'static, to: Sender<Vec<u8>>) {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
}

/// What is on a terminal after a text was written to it.
pub(super) struct Screen {
    rows: Vec<String>,
}

impl Screen {
    pub(super) fn of(written: &str, columns: usize) -> Self {
        let mut rows: Vec<Vec<char>> = vec![Vec::new()];
        let (mut row, mut column) = (0_usize, 0_usize);
        let mut characters = written.chars().peekable();
        while let Some(c) = characters.next() {
            match c {
                '\r' => column = 0,
                '\n' => row += 1,
                '\u{1b}' => {
                    let Some('[') = characters.next() else {
                        continue;
                    };
                    let mut parameters = String::new();
                    let end = loop {
                        match characters.next() {
                            Some(c) if c.is_ascii_digit() || ";?".contains(c) => {
                                parameters.push(c);
                            }
                            end => break end,
                        }
                    };
                    let count = parameters.parse().unwrap_or(1_usize);
                    match end {
                        Some('A') => row = row.saturating_sub(count),
                        Some('B') => row += count,
                        Some('C') => column += count,
                        Some('D') => column = column.saturating_sub(count),
                        Some('K') if parameters == "2" => rows[row].clear(),
                        Some('K') => rows[row].truncate(column),
                        Some('J') => {
                            rows[row].truncate(column);
                            rows.truncate(row + 1);
                        }
                        _ => {}
                    }
                }
                c => {
                    if column == columns {
                        (row, column) = (row + 1, 0);
                    }
                    while rows.len() <= row {
                        rows.push(Vec::new());
                    }
                    let line = &mut rows[row];
                    line.resize(line.len().max(column + 1), ' ');
                    line[column] = c;
                    column += 1;
                }
            }
            while rows.len() <= row {
                rows.push(Vec::new());
            }
        }
        let rows = rows.into_iter().map(String::from_iter);
        Self {
            rows: rows.map(|row: String| row.trim_end().to_owned()).collect(),
        }
    }

    pub(super) fn lines(&self) -> Vec<&str> {
        self.rows.iter().map(String::as_str).collect()
    }
}

/// Replaces ids and times, which differ between runs.
pub(super) fn without_ids(output: &str) -> String {
    let is_end = |c: char| !c.is_ascii_alphanumeric() && !"-:.".contains(c);
    let words = output.split_inclusive(is_end);
    words
        .map(|word| {
            let bare = word.trim_end_matches(is_end);
            let is_id = bare.len() == 32 && bare.chars().all(|c| c.is_ascii_hexdigit());
            let is_time = bare.ends_with('Z') && bare.contains("T") && bare.starts_with("20");
            match (is_id, is_time) {
                (true, _) => word.replace(bare, "ID"),
                (_, true) => word.replace(bare, "TIME"),
                _ => word.to_owned(),
            }
        })
        .collect()
}
